"""Step times between measured points: exact there, straight between them, joined at the edges, told when beyond."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.formulas.interpolated import InterpolatedStep, interpolated_step, pairs
from simkv.formulas.step import FOREVER, step_cost
from simkv.hardware import Gpu
from simkv.model import AttentionLayers, ModelShape
from simkv.profile.machine import gpu_of
from simkv.profile.schema import AttentionRow, Compute
from tests.profile_factory import SMOLLM, make_compute, make_profile

LAYERS = SMOLLM["layers"]
MODEL = ModelShape(
    "small", LAYERS, 576, (AttentionLayers(LAYERS, 9, 3, 64),), 1536, 49152, "bf16", 8192, tie_embeddings=True
)


def card() -> Gpu:
    return gpu_of(make_profile())


def made(kernels: str = "contiguous", **changes: Any) -> InterpolatedStep:
    return interpolated_step(make_compute(**changes), step_cost(MODEL, card(), 1, "fp32", "fp32"), kernels)


def base_s(compute: Compute, tokens: int, sampled: int) -> float:
    linear, head = dict(compute.linear)[tokens], dict(compute.head)[sampled]
    return compute.step_overhead_s + LAYERS * (linear + compute.layer_overhead_s) + head


BENT = (
    AttentionRow(batch=1, context=((100, 1e-5), (250, 4e-5), (1000, 6e-5))),
    AttentionRow(batch=3, context=((300, 3e-5), (900, 9e-5), (3000, 30e-5))),
    AttentionRow(batch=8, context=((500, 5e-5), (8000, 50e-5))),
)


def test_decode_at_measured_points_is_what_was_measured() -> None:
    compute, step = make_compute(), made()
    for context, seconds in compute.decode[0].context:
        assert step.decode(1, int(context))[0] == pytest.approx(base_s(compute, 1, 1) + LAYERS * seconds)
    assert step.outside() == []


def test_decode_paged_reads_the_paged_table_and_contiguous_where_there_is_none() -> None:
    compute = make_compute()
    assert compute.paged is not None
    (context, seconds), plain = compute.paged[0].context[1], compute.decode[0].context[1][1]
    expected = base_s(compute, 1, 1) + LAYERS * seconds
    assert made("paged").decode(1, int(context))[0] == pytest.approx(expected)
    without = made("paged", paged=None).decode(1, int(context))[0]
    assert without == pytest.approx(base_s(compute, 1, 1) + LAYERS * plain)


def test_decode_of_unmeasured_batch_lies_between_its_neighbours_at_the_same_context_a_sequence() -> None:
    step = made()
    base = made(decode=(AttentionRow(batch=1, context=((1, 1e-12),)),))
    attention = {n: step.decode(n, n * 512)[0] - base.decode(n, n)[0] for n in (1, 2, 3, 4)}
    assert attention[2] == pytest.approx(attention[1] * 2 / 3 + attention[4] / 3)
    assert attention[3] == pytest.approx(attention[1] / 3 + attention[4] * 2 / 3)


@settings(max_examples=200, deadline=None)
@given(sequences=st.integers(1, 20), context=st.integers(0, 20_000), bent=st.booleans(), walk=st.integers(1, 60))
def test_decode_series_is_what_single_steps_sum_to(sequences: int, context: int, bent: bool, walk: int) -> None:
    step = made(decode=BENT) if bent else made()
    first_s, growth_s, steps = step.decode(sequences, context)
    assert steps >= 1
    taken = min(steps, walk)
    singles = [step.decode(sequences, context + n * sequences)[0] for n in range(taken)]
    assert [first_s + n * growth_s for n in range(taken)] == pytest.approx(singles, rel=1e-12)
    if steps < 10_000:  # also its very last step, and no more than to the knot
        last = step.decode(sequences, context + (steps - 1) * sequences)[0]
        assert first_s + (steps - 1) * growth_s == pytest.approx(last, rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(sequences=st.integers(1, 20), context=st.integers(0, 20_000), more=st.integers(0, 5_000), bent=st.booleans())
def test_decode_more_context_never_takes_less(sequences: int, context: int, more: int, bent: bool) -> None:
    step = made(decode=BENT) if bent else made()
    less_s, growth_s, _ = step.decode(sequences, context)
    assert growth_s >= 0
    assert step.decode(sequences, context + more)[0] >= less_s * (1 - 1e-12)


def test_decode_falling_points_count_as_high_as_those_before() -> None:
    step = made(decode=(AttentionRow(batch=1, context=((100, 5e-5), (200, 4e-5), (400, 8e-5))),))
    assert step.decode(1, 150) == (step.decode(1, 100)[0], 0.0, 51)


@pytest.mark.parametrize("sequences", [1, 2, 3, 5, 8, 11])
@pytest.mark.parametrize("kind", ["plain", "bent"])
def test_decode_joins_at_every_knot_and_edge(sequences: int, kind: str) -> None:
    step = made(decode=BENT) if kind == "bent" else made()
    context, jumps = 0, 0
    while True:
        first_s, growth_s, steps = step.decode(sequences, context)
        if steps == FOREVER:
            break
        context += sequences * steps
        after_s, after_growth_s, _ = step.decode(sequences, context)
        steepest = max(growth_s, after_growth_s)
        assert abs(after_s - (first_s + growth_s * steps)) <= steepest * (1 + 1e-9) + 1e-15
        jumps += 1
    assert jumps >= 2


def test_decode_beyond_the_longest_context_grows_in_proportion() -> None:
    step, compute = made(), make_compute()
    longest, seconds = compute.decode[0].context[-1]
    base = base_s(compute, 1, 1)
    first_s, growth_s, steps = step.decode(1, int(longest) * 10)
    assert first_s - base == pytest.approx(LAYERS * seconds * 10)
    assert growth_s == pytest.approx(LAYERS * seconds / longest)
    assert steps == FOREVER


def test_decode_beyond_the_largest_batch_grows_in_proportion() -> None:
    step = made(linear=((1, 1e-3),), head=((1, 1e-9),), layer_overhead_s=0.0, step_overhead_s=0.0)
    alone = made(decode=(AttentionRow(batch=1, context=((1, 1e-12),)),), linear=((1, 1e-3),), head=((1, 1e-9),),
                 layer_overhead_s=0.0, step_overhead_s=0.0)  # fmt: skip
    sixteen = step.decode(16, 16 * 512)[0] - alone.decode(16, 0)[0]
    assert step.decode(32, 32 * 512)[0] - alone.decode(32, 0)[0] == pytest.approx(2 * sixteen, rel=1e-6)


def test_linear_beyond_the_most_tokens_follows_the_roofline() -> None:
    step, compute = made(), make_compute()
    roofline = step_cost(MODEL, card(), 1, "fp32", "fp32")
    ratio = roofline.linear.seconds(2048) / roofline.linear.seconds(256)
    assert ratio > 7
    whole = step.mixed(0, 0, [(2048, 0)], 1)
    attention = LAYERS * compute.prefill[-1][1] * pairs(2048) / pairs(1024)
    head, overhead = compute.head[0][1], compute.step_overhead_s + LAYERS * compute.layer_overhead_s
    assert whole == pytest.approx(head + overhead + attention + LAYERS * compute.linear[-1][1] * ratio)


def test_mixed_prompt_of_measured_length_takes_what_was_measured() -> None:
    compute = make_compute(linear=((1, 1e-3), (256, 22e-3)))
    whole = made(linear=((1, 1e-3), (256, 22e-3))).mixed(0, 0, [(256, 0)], 1)
    assert whole == pytest.approx(base_s(compute, 256, 1) + LAYERS * 0.9e-3)


def test_mixed_chunk_takes_no_less_than_reading_what_is_before_it() -> None:
    step = made()
    reading = step.decode(1, 8001)[0] - base_s(make_compute(), 1, 1)
    chunk = step.mixed(0, 0, [(1, 8000)], 1) - base_s(make_compute(), 1, 1)
    assert chunk == pytest.approx(reading)
    assert step.mixed(0, 0, [(64, 8000)], 1) > step.mixed(0, 0, [(64, 1000)], 1) > step.mixed(0, 0, [(64, 0)], 1)


def test_mixed_adds_the_decoding_part() -> None:
    step = made()
    alone = step.mixed(0, 0, [(56, 0)], 8)
    together = step.mixed(8, 8 * 512, [(48, 0)], 8)
    decoding = step.decode(8, 8 * 512)[0] - made(decode=(AttentionRow(batch=1, context=((1, 1e-12),)),)).decode(8, 0)[0]
    assert together == pytest.approx(alone + decoding, rel=1e-6)


def test_decode_of_nobody_has_no_attention() -> None:
    first_s, growth_s, steps = made().decode(0, 0)
    assert (growth_s, steps) == (0.0, FOREVER)
    assert first_s == pytest.approx(base_s(make_compute(), 1, 1))


def test_outside_names_each_figure_once_with_the_farthest_asked() -> None:
    step = made()
    step.decode(4, 4 * 1024)
    step.mixed(4, 4 * 1024, [(200, 0)], 5)
    assert step.outside() == []
    step.decode(4, 4 * 3000)
    step.decode(4, 4 * 9000)
    step.decode(4, 4 * 100)
    step.decode(20, 20 * 512)
    step.mixed(0, 0, [(4000, 0)], 1)
    found = {one.figure: one for one in step.outside()}
    assert found["context"] == ("context", 9000, 128, 2048)
    assert found["batch"] == ("batch", 20, 1, 16)
    assert found["linear"] == ("linear", 4000, 1, 256)
    assert found["prompt"].asked == pytest.approx(4000)
    assert (found["prompt"].low, found["prompt"].high) == pytest.approx((64, 1024))
    assert "head" not in found


def test_costs_pickle_alike_whatever_they_were_asked_before() -> None:
    cost = made(decode=BENT)
    before = pickle.dumps(cost)
    series = cost.decode(1000, 123_456_789)
    cost.mixed(2, 300, [(11, 0)], 3)
    assert cost.outside()
    assert pickle.dumps(cost) == before
    again = pickle.loads(before)
    assert not again.outside()
    assert again.decode(1000, 123_456_789) == series
