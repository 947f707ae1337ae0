"""Step times of models with windows and states: pairs, series that bend at a window, states read and written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.catalog import load_hardware
from simkv.formulas.attention import pairs, prefill_flops, prefill_pairs
from simkv.formulas.breakeven import latency_bytes_per_s
from simkv.formulas.breakeven import prefill_flops as all_prefill_flops
from simkv.formulas.kv_size import kv_bytes, kv_bytes_per_token, state_bytes_per_sequence
from simkv.formulas.step import FOREVER, RooflineStep, step_cost
from simkv.formulas.weights import linear_bytes_per_rank, routed_bytes_per_rank
from tests import shapes

H100 = load_hardware("h100-sxm5-80gb")
CARD = load_hardware("rtx-4090")
SLIDING = step_cost(shapes.gpt_oss(24, 32), H100)
WIDE = step_cost(shapes.gemma_4_26b(), CARD, 2)
CHUNKED = step_cost(shapes.llama_4_scout(), H100, 4)
STATES = step_cost(shapes.qwen_27b(), H100)
TWO = step_cost(
    replace(shapes.gemma_3_27b(), attention=(*shapes.gemma_3_27b().attention, *shapes.gpt_oss(24, 32).attention[1:])),
    H100,
)
ONLY = step_cost(shapes.mistral_7b_v01(), CARD)
costs = st.sampled_from([SLIDING, WIDE, CHUNKED, STATES, TWO, ONLY])
windows = st.one_of(st.none(), st.integers(1, 60))


@given(st.integers(0, 200), st.integers(0, 100), windows, st.booleans())
def test_pairs_are_those_counted_one_by_one(before: int, new: int, window: int | None, chunked: bool) -> None:
    def seen(position: int) -> int:
        if window is None:
            return position
        return (position - 1) % window + 1 if chunked else min(position, window)

    assert prefill_pairs(new, before, window, chunked) == sum(seen(before + i) for i in range(1, new + 1))
    assert pairs(before + new, window, chunked) <= pairs(before + new)


@given(costs, st.integers(1, 300), st.integers(1, 20_000), st.integers(0, 299))
def test_decode_first_step_equals_mixed_without_chunks(cost: RooflineStep, batch: int, length: int, odd: int) -> None:
    context = batch * length + odd % batch
    assert cost.decode(batch, context)[0] == cost.mixed(batch, context, [], batch)


@given(costs, st.integers(1, 64), st.integers(1, 12_000), st.integers(0, 63), st.floats(0, 1))
def test_decode_series_holds_up_to_its_knot(
    cost: RooflineStep, batch: int, length: int, odd: int, share: float
) -> None:
    context = batch * length + odd % batch
    first, growth, steps = cost.decode(batch, context)
    later = int(share * (min(steps, 20_000) - 1))
    then = cost.mixed(batch, context + later * batch, [], batch)
    assert first + later * growth == pytest.approx(then, rel=1e-12)


@given(costs, st.integers(1, 64), st.integers(1, 12_000), st.integers(0, 63))
def test_growth_falls_at_each_knot_until_none_is_left(cost: RooflineStep, batch: int, length: int, odd: int) -> None:
    context = batch * length + odd % batch
    growths, knots = [], 0
    while True:
        _, growth, steps = cost.decode(batch, context)
        growths.append(growth)
        if steps == FOREVER:
            break
        assert steps >= 1
        context += steps * batch
        knots += 1
    assert knots <= len(cost.windows)
    assert growths == sorted(growths, reverse=True) and len(set(growths)) == len(growths)
    assert growths[-1] == cost.kv_s * batch


def test_knot_is_the_first_step_whose_mean_context_is_beyond_the_window() -> None:
    # 4 sequences of 100 tokens each: steps read 100 .. 128 each, 29 of them, then the window is full.
    assert SLIDING.decode(4, 400)[2] == 29
    assert SLIDING.decode(4, 4 * 128)[2] == 1
    assert SLIDING.decode(4, 4 * 128 + 1)[2] == FOREVER
    assert STATES.decode(4, 400)[2] == FOREVER


def test_window_stops_the_growth_of_half_the_layers() -> None:
    near, far = SLIDING.decode(8, 8 * 64), SLIDING.decode(8, 8 * 6400)
    assert near[1] == pytest.approx(2 * far[1])
    [window] = SLIDING.windows
    assert window.kv_s == pytest.approx(SLIDING.kv_s)


def test_chunks_read_half_of_themselves_in_the_mean() -> None:
    [window] = CHUNKED.windows
    assert window.read_tokens(3, 3 * 8192) == 3 * 8192
    assert window.read_tokens(3, 3 * 100_000) == 3 * 8193 / 2


def test_gpt_oss_decode_takes_what_its_bytes_take() -> None:
    """One sequence of 10,000 tokens: 4 of 32 experts, everything else, and the KV of what each layer sees."""
    model = shapes.gpt_oss(24, 32)
    rate = H100.hbm_bytes_per_s * H100.value("weight_bandwidth_efficiency")
    weights = linear_bytes_per_rank(model, 1, "auto") + routed_bytes_per_rank(model, 1, "auto") * 4 / 32
    weights += model.embedding_params * 2
    kv = 10_000 * 24_576 + 128 * 24_576
    by_hand = weights / rate + kv / (H100.hbm_bytes_per_s * H100.value("attention_bandwidth_efficiency"))
    by_hand += 24 * H100.value("layer_overhead_s") + H100.value("sequence_overhead_s")
    assert SLIDING.decode(1, 10_000)[0] == pytest.approx(by_hand, rel=0.02)


def test_state_costs_each_sequence_a_read_and_a_write() -> None:
    model = shapes.qwen_27b()
    rate = H100.hbm_bytes_per_s * H100.value("attention_bandwidth_efficiency")
    assert STATES.sequence_s - H100.value("sequence_overhead_s") == pytest.approx(
        2 * state_bytes_per_sequence(model) / rate
    )
    two = step_cost(model, H100, 2)
    assert two.sequence_s - H100.value("sequence_overhead_s") == pytest.approx(state_bytes_per_sequence(model) / rate)


def test_experts_in_four_bits_leave_attention_in_sixteen() -> None:
    model = shapes.gpt_oss(24, 32)
    wide = step_cost(replace(model, expert_dtype=""), H100)
    assert wide.linear == SLIDING.linear
    assert wide.experts is not None and SLIDING.experts is not None
    # 4.25 of 16 bits, and 2880 rows padded to 3072.
    assert SLIDING.experts.all_weights_s / wide.experts.all_weights_s == pytest.approx(4.25 / 16 * 3072 / 2880)
    assert SLIDING.experts.flops_s_per_token == wide.experts.flops_s_per_token


def test_given_dtype_is_that_of_every_part() -> None:
    model = shapes.gpt_oss(24, 32)
    assert linear_bytes_per_rank(model, 1, "fp8") == model.always_on_params
    assert routed_bytes_per_rank(model, 1, "fp8") == model.routed_params


def test_shared_caches_are_read_by_every_layer() -> None:
    model = shapes.uniform(24)
    [kind] = model.attention
    shared = replace(model, attention=(replace(kind, shared_cache_layers=10),))
    assert step_cost(shared, CARD).kv_s == step_cost(model, CARD).kv_s
    assert kv_bytes_per_token(shared) * 24 == kv_bytes_per_token(model) * 14


@given(st.integers(1, 4000), st.integers(0, 20_000))
def test_chunk_of_a_windowed_model_is_cheaper_than_of_one_without(new: int, before: int) -> None:
    model = shapes.gemma_3_27b()
    blind = replace(model, attention=tuple(replace(kind, window=None) for kind in model.attention))
    full, near = step_cost(blind, H100), step_cost(model, H100)
    assert near.mixed(0, 0, [(new, before)], 1) <= full.mixed(0, 0, [(new, before)], 1) * (1 + 1e-12)
    if before + new <= 1024:
        assert near.mixed(0, 0, [(new, before)], 1) == pytest.approx(full.mixed(0, 0, [(new, before)], 1))


def test_break_even_of_windows_counts_what_is_computed_and_what_is_loaded() -> None:
    model = shapes.gpt_oss(24, 32)
    span = 100_000
    assert prefill_flops(model, span) == 12 * 4 * 64 * 64 * (pairs(span) + pairs(span, 128))
    assert all_prefill_flops(model, span) > 2 * model.always_on_params * span
    rate = latency_bytes_per_s(model, span, 5e14)
    assert rate == pytest.approx(kv_bytes(model, span) / (all_prefill_flops(model, span) / 5e14))
