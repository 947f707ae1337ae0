"""One sequence alone: what a decode step takes follows by hand from bytes, bandwidth and layers."""

from __future__ import annotations

from math import ceil, inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.formulas.step import ConstantStep
from simkv.kvcache.access import Window
from simkv.results.active import figures, why
from simkv.sim.active.measured import Measured
from tests import active_factory as make
from tests.sim_factory import BLOCK_BYTES, RATE, ComputeStep

BLOCKS = 11
TOKENS = 64
"""Of a block here, so that a sequence can decode for a while in its last one."""
CLOSE = 1e-9

LAYERS = st.sampled_from((1, 2, 4, 5, 10, 40))
COLD = st.integers(1, BLOCKS - 1)
COMPUTE_S = st.sampled_from((0.01, 0.1, 0.3, 1.0, 7.0))
EXAMPLES = settings(max_examples=60, deadline=None)


def alone(layers: int, cold: int, compute_s: float = 1.0, steps: int = 3, **changes: Any) -> Measured:
    """Decode ``steps`` steps of one sequence of eleven blocks, the ``cold`` oldest of which stream from DRAM."""
    knobs: dict[str, Any] = {
        "cost": ConstantStep(compute_s, layers), "layers": layers, "block_tokens": TOKENS, "prefill": "dram",
        "residency": (BLOCKS - cold) / BLOCKS - 0.01, "write": "write_back",
    }  # fmt: skip
    config = make.active_config(**(knobs | changes))
    return make.measured(config, [make.request(0, 0.0, (BLOCKS - 1) * TOKENS + 2, steps)])


def transfer_s(cold: int) -> float:
    return cold * BLOCK_BYTES / RATE


@EXAMPLES
@given(LAYERS, COLD, COMPUTE_S)
def test_without_prefetch_a_step_computes_and_then_some(layers: int, cold: int, compute_s: float) -> None:
    found = alone(layers, cold, compute_s)
    assert make.step_s(found) == pytest.approx(compute_s + transfer_s(cold), rel=CLOSE)
    assert found.exposed_s == pytest.approx(found.carried_s, rel=CLOSE)
    assert found.carried_s == pytest.approx(3 * transfer_s(cold), rel=CLOSE)
    assert found.needed_s == pytest.approx(found.carried_s, rel=CLOSE)
    assert (found.hits, found.reads) == (3 * (BLOCKS - cold) * layers, 3 * BLOCKS * layers)


@EXAMPLES
@given(LAYERS, COLD, COMPUTE_S, st.integers(2, 4))
def test_layer_prefetch_leaves_the_fill_bubble(layers: int, cold: int, compute_s: float, staging: int) -> None:
    moving_s = transfer_s(cold)
    found = alone(layers, cold, compute_s, policy="layer", staging_layers=staging)
    ideal_s = max(compute_s, moving_s) + min(compute_s, moving_s) / layers
    assert make.step_s(found) == pytest.approx(ideal_s, rel=CLOSE)
    assert found.exposed_s == pytest.approx(3 * (ideal_s - compute_s), rel=CLOSE, abs=CLOSE)
    assert found.carried_s == pytest.approx(3 * moving_s, rel=CLOSE)


def test_layer_prefetch_with_one_buffer_hides_nothing() -> None:
    found = alone(4, 5, 1.0, policy="layer", staging_layers=1)
    assert make.step_s(found) == pytest.approx(1.0 + transfer_s(5))


@EXAMPLES
@given(LAYERS, COLD, COMPUTE_S, st.integers(2, 4))
def test_next_step_prefetch_in_steady_state_hides_the_bubble(
    layers: int, cold: int, compute_s: float, staging: int
) -> None:
    moving_s, steps = transfer_s(cold), 9
    found = alone(layers, cold, compute_s, steps, policy="next_step", staging_layers=staging)
    bubble_s = min(compute_s, moving_s) / layers
    assert found.step_s == pytest.approx(steps * max(compute_s, moving_s) + bubble_s, rel=CLOSE)
    assert found.compute_s == pytest.approx(steps * compute_s, rel=CLOSE)


@pytest.mark.parametrize("beta", [0.0, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("compute_s", [0.2, 0.5, 5.0])
def test_fixed_overlap_hides_beta_where_that_is_feasible(beta: float, compute_s: float) -> None:
    found = alone(4, 10, compute_s, policy="fixed_overlap", beta=beta)  # 40 pieces, a second of transfer
    feasible = min(1.0, compute_s)
    assert make.step_s(found) == pytest.approx(compute_s + (1 - min(beta, feasible)) * 1.0, rel=CLOSE)
    assert found.clamped == (3 if beta > feasible else 0)
    assert 1 - found.exposed_s / found.carried_s == pytest.approx(min(beta, feasible), abs=CLOSE)


@EXAMPLES
@given(LAYERS, COLD)
def test_from_ssd_a_layer_takes_both_hops(layers: int, cold: int) -> None:
    found = alone(layers, cold, ssd_blocks=50, prefill="ssd")
    both_s = transfer_s(cold) * 3  # SSD reads at half the link's rate
    assert make.step_s(found) == pytest.approx(1.0 + both_s, rel=CLOSE)
    assert found.loads_ssd == 3 * cold * layers + (BLOCKS - cold) * layers  # its share comes up before it decodes
    assert found.needed_s == pytest.approx(3 * both_s, rel=CLOSE)


@EXAMPLES
@given(LAYERS, COLD, COMPUTE_S)
def test_from_ssd_layer_prefetch_works_both_hops_at_once(layers: int, cold: int, compute_s: float) -> None:
    up_s, read_s = transfer_s(cold), 2 * transfer_s(cold)
    found = alone(layers, cold, compute_s, ssd_blocks=50, prefill="ssd", policy="layer")
    least_s = max(compute_s, read_s)
    assert least_s <= make.step_s(found) * (1 + CLOSE)
    assert make.step_s(found) <= (compute_s + up_s + read_s) * (1 + CLOSE)


@EXAMPLES
@given(LAYERS, COLD, st.sampled_from((1e-4, 0.01, 0.2)))
def test_dense_access_pays_one_descriptor_a_layer(layers: int, cold: int, latency_s: float) -> None:
    found = alone(layers, cold, latency_s=latency_s)
    assert make.step_s(found) == pytest.approx(1.0 + transfer_s(cold) + layers * latency_s, rel=CLOSE)
    step_descriptors_s = found.descriptors_s - layers * latency_s  # but for the load of its share
    assert step_descriptors_s == pytest.approx(3 * layers * latency_s, rel=CLOSE)


@EXAMPLES
@given(LAYERS, st.sampled_from((1e-4, 0.01, 0.2)))
def test_sparse_access_pays_a_descriptor_a_piece(layers: int, latency_s: float) -> None:
    window = Window(3 * TOKENS + 2, 0)  # four blocks at two tokens into the last one
    found = alone(layers, 6, steps=1, latency_s=latency_s, access=window)
    assert found.loads_dram == 4 * layers
    pieces_s = 4 * layers * (BLOCK_BYTES / layers / RATE + latency_s)
    assert make.step_s(found) == pytest.approx(1.0 + pieces_s, rel=CLOSE)


def test_write_backs_take_their_half_of_a_full_duplex_link() -> None:
    """A prompt's cold blocks go down while the first decode step's come up: both at half speed."""
    prompt, knobs = 40, {"write": "write_back", "layers": 1, "cost": ConstantStep(1.0, 1), "residency": 0.5}
    for duplex, share in ((inf, 1.0), (RATE, 0.5)):
        config = make.active_config(duplex=duplex, num_gpu_blocks=50, **knobs)
        found = make.measured(config, [make.request(0, 0.0, prompt - 1, 2)])
        assert found.steps == 1
        assert found.step_s == pytest.approx(1.0 + transfer_s(5) / share)
        assert found.duplex_s == pytest.approx(transfer_s(5) / share - transfer_s(5))


def test_rewrite_puts_every_layer_back_before_the_next() -> None:
    found = alone(4, 6, write="rewrite")
    assert make.step_s(found) == pytest.approx(1.0 + 2 * transfer_s(6))
    assert found.written_bytes == 3 * 6 * BLOCK_BYTES
    assert found.write_wait_s == pytest.approx(3 * transfer_s(6))


def test_cpu_time_of_managing_blocks_comes_before_each_step() -> None:
    found = alone(4, 6, host_s_per_block=0.01)
    assert make.step_s(found) == pytest.approx(1.0 + transfer_s(6) + 0.01 * BLOCKS)
    assert found.host_s == pytest.approx(3 * 0.01 * BLOCKS)


def test_budget_keeps_so_many_blocks_and_streams_the_rest() -> None:
    found = alone(4, 0, budget_blocks=8, prefill="here", max_num_batched_tokens=10_000)
    assert found.steps == 2
    assert make.step_s(found) == pytest.approx(1.0 + transfer_s(BLOCKS - 8))


@pytest.mark.parametrize(("compute_s", "hidden"), [(4.0, True), (0.4, False)])
def test_figures_of_layer_prefetch_follow_by_hand(compute_s: float, hidden: bool) -> None:
    """Eight of eleven blocks stream in 0.8 s, 0.2 s a layer of four."""
    found = alone(4, 8, compute_s, policy="layer")
    layer_s, load_s = compute_s / 4, 0.2
    exposed_s = load_s + 3 * max(0.0, load_s - layer_s)
    hits = 3 * 4 + 8 * 3 * hidden
    shown = figures(found, {"t_vram_s": 0.001, "t_avg_s": 7.0})
    assert shown["p_hit"] == pytest.approx(hits / 44)
    assert shown["beta"] == pytest.approx(1 - exposed_s / 0.8)
    assert shown["t_compute_s"] == pytest.approx(compute_s)
    assert shown["t_transfer_s"] == pytest.approx(0.8)
    parts: Any = shown["t_avg_s"]
    share_s = 0.3  # its three resident blocks came up before, once for three steps
    assert parts["formula"] == 7.0
    assert parts["service"] == pytest.approx(0.001 + (3 * 0.8 + share_s) / (3 * 44))
    assert parts["exposed"] == pytest.approx(exposed_s / 44)


def test_a_sequence_may_take_its_share_only_in_whole_blocks() -> None:
    for share in (0.01, 0.1, 0.3, 0.5, 0.95):
        found = alone(4, 0, residency=share)
        assert found.hits == 3 * 4 * max(1, ceil(share * BLOCKS))


def test_prompts_stream_what_is_cold_of_them_chunk_by_chunk() -> None:
    """20 tokens a step: the first leaves 2 of 5 blocks below, the second 5 of 10; both stream again."""
    knobs: dict[str, Any] = {"residency": 0.5, "max_num_batched_tokens": 20, "cost": ComputeStep(1.0, 0.0)}
    data = make.run(make.active_config(**knobs, write="write_back"), [make.request(0, 0.0, 40, 1)])
    assert data.end_s == pytest.approx(1.0 + 1.0)  # five blocks are its share of ten: nothing cold after 20 tokens
    knobs["residency"] = 0.3
    data = make.run(make.active_config(**knobs, write="write_back"), [make.request(0, 0.0, 40, 1)])
    assert data.end_s == pytest.approx(2.0 + transfer_s(2))


def test_why_names_the_rest_the_overlap_and_nothing_where_a_step_is_faster() -> None:
    closed: dict[str, object] = {"t_step_s": 1.0, "t_transfer_s": 0.5}
    [rest] = why(Measured(steps=1, step_s=1.1, descriptors_s=0.02), closed)
    assert "+10 %" in rest and "20.0 ms of descriptors" in rest and "80.0 ms of steps that differ" in rest
    [whole] = why(Measured(steps=1, step_s=1.1, descriptors_s=0.1), closed)
    assert "100 ms of descriptors" in whole and "differ" not in whole and "overlap" not in whole
    [both] = why(Measured(steps=1, step_s=1.1, descriptors_s=0.09, write_wait_s=0.09), closed)
    assert both.endswith("of waiting for write-backs; these overlap.")
    [faster] = why(Measured(steps=1, step_s=0.9, descriptors_s=0.1), closed)
    assert faster == "A decode step takes 900 ms where the closed form gives 1.00 s (-10 %)."
    assert why(Measured(steps=1, step_s=1.005, descriptors_s=0.005), closed) == ()
