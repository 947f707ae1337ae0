"""What a transfer costs beside its bytes: setup, descriptors, requests; and CPU time of a step. All by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.firstorder import active_first_order
from simkv.formulas.step import ConstantStep
from simkv.formulas.transfer import transfer_s
from simkv.kvcache.access import Window
from simkv.sim.clock import ARRIVAL_RANK, Clock
from simkv.sim.config import SystemConfig
from simkv.sim.fabric import DEMAND, LOOK_AHEAD, Fabric, Lane
from simkv.sim.tiers import Host
from tests import active_factory as make
from tests.sim_factory import BLOCK_BYTES, RATE, column, run, same, system_config
from tests.test_batchmode_scenario import answer

LAYERS, BLOCKS, TOKENS = 4, 11, 64
SSD_RATE = RATE / 2


def alone(cold: int, **changes: Any) -> SystemConfig:
    """One sequence of eleven blocks, the ``cold`` oldest of which stream in each step of 1 s."""
    knobs: dict[str, Any] = {
        "cost": ConstantStep(1.0, LAYERS), "block_tokens": TOKENS, "prefill": "dram", "write": "write_back",
        "residency": (BLOCKS - cold) / BLOCKS - 0.01, "ssd_blocks": 400,
    }  # fmt: skip
    return make.active_config(**(knobs | changes))


def step_s(config: SystemConfig) -> float:
    found = make.measured(config, [make.request(0, 0.0, (BLOCKS - 1) * TOKENS + 2, 3)])
    return make.step_s(found)


# ---- one lane


@given(st.integers(1, 10**6), st.integers(1, 50), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_transfer_alone_takes_setup_descriptors_and_bytes(
    nbytes: int, descriptors: int, latency_s: float, setup_s: float
) -> None:
    clock = Clock()
    fabric = Fabric(clock, float("inf"))
    up, down = (Lane(fabric, name, 1000.0, latency_s, 64, setup_s) for name in ("h2d", "d2h"))
    fabric.add_link(up, down, float("inf"))
    ended: list[float] = []
    up.submit(nbytes, descriptors, DEMAND, lambda: ended.append(clock.now))
    clock.run()
    expected = setup_s + descriptors * latency_s + nbytes / 1000.0
    assert ended == [pytest.approx(expected)]
    assert up.service_s(nbytes, descriptors) == expected
    assert transfer_s(nbytes, 1000.0, descriptors, latency_s, setup_s) == expected


@pytest.mark.parametrize("lane", ["ssd_read", "ssd_write"])
def test_ssd_read_gives_way_after_the_piece_under_way(lane: str) -> None:
    clock, ended = Clock(), {}
    host = Host(clock, system_config(dram_blocks=10, ssd_blocks=10, chunk_bytes=250, ssd_read=1000.0), 1)
    carrier = getattr(host, lane)
    seconds = 250 / carrier.bytes_per_s
    carrier.submit(2500, 10, LOOK_AHEAD, lambda: ended.setdefault("ahead", clock.now))
    carrier_of_demand = lambda _: carrier.submit(250, 1, DEMAND, lambda: ended.setdefault("demand", clock.now))  # noqa: E731
    clock.at(3.5 * seconds, ARRIVAL_RANK, carrier_of_demand)
    clock.run()
    assert ended == pytest.approx({"demand": 5 * seconds, "ahead": 11 * seconds})


# ---- steps of active offload


@pytest.mark.parametrize("cold", [1, 5])
def test_dense_layers_are_one_transfer_of_one_descriptor_each(cold: int) -> None:
    plain = step_s(alone(cold))
    assert plain == pytest.approx(1.0 + cold * BLOCK_BYTES / RATE)
    assert step_s(alone(cold, setup_s=0.01)) == pytest.approx(plain + LAYERS * 0.01)
    assert step_s(alone(cold, latency_s=0.02, setup_s=0.01)) == pytest.approx(plain + LAYERS * 0.03)


@pytest.mark.parametrize("cold", [1, 5])
def test_dense_layers_are_one_request_of_the_ssd_each(cold: int) -> None:
    plain = step_s(alone(cold, prefill="ssd"))
    assert plain == pytest.approx(1.0 + cold * BLOCK_BYTES * (1 / RATE + 1 / SSD_RATE))
    costs = {"ssd_latency_s": 0.002, "request_latency_s": 0.01, "queue_depth": 1000}
    assert step_s(alone(cold, prefill="ssd", **costs)) == pytest.approx(plain + LAYERS * 0.012)


@pytest.mark.parametrize("setup_s", [0.0, 0.003])
@pytest.mark.parametrize("request_s", [0.0, 0.01])
def test_scattered_pieces_are_a_request_each(setup_s: float, request_s: float) -> None:
    """A window of six blocks, one of them resident: five or six pieces a layer from SSD, on average."""
    costs = {"ssd_latency_s": 0.002, "request_latency_s": request_s, "queue_depth": 1000, "setup_s": setup_s}
    knobs = {"access": Window(5 * TOKENS + 2, 0), "residency": 0.05, "prefill": "ssd", "eviction": "fifo"}
    config = alone(1, **knobs, **costs)
    found = make.measured(config, [make.request(0, 0.0, (BLOCKS - 1) * TOKENS + 2, 2)])
    loaded = found.loads_ssd / found.steps / LAYERS
    assert loaded > 1
    bytes_s = loaded * BLOCK_BYTES * (1 / RATE + 1 / SSD_RATE)
    per_step = LAYERS * (0.002 + loaded * request_s + setup_s)
    assert make.step_s(found) == pytest.approx(1.0 + bytes_s + per_step)
    assert found.needed_s / found.steps == pytest.approx(bytes_s + per_step)
    assert found.descriptors_s / found.steps == pytest.approx(per_step)


def test_closed_forms_leave_setup_and_requests_out_of_bytes_over_bandwidth_and_count_them_for_a_piece() -> None:
    costs = {"ssd_latency_s": 0.002, "request_latency_s": 0.01, "queue_depth": 1000, "setup_s": 0.003}
    config = alone(5, prefill="ssd", latency_s=0.001, **costs)
    data = make.run(config, [make.request(0, 0.0, (BLOCKS - 1) * TOKENS + 2, 3)])
    forms = active_first_order(config, data)
    bytes_s = 5 * BLOCK_BYTES * (1 / RATE + 1 / SSD_RATE)
    assert forms["t_transfer_s"] == pytest.approx(bytes_s, rel=0.01)  # by the mean share of bytes in all transfers
    piece_s = BLOCK_BYTES / LAYERS * (1 / RATE + 1 / SSD_RATE)
    assert forms["t_mem_s"] == pytest.approx(piece_s + 0.003 + 0.001 + 0.002 + 0.01)


def test_queue_depth_bounds_an_ssd_whose_requests_have_no_cost_of_their_own() -> None:
    """A block a 0.5 s at most, or as much as the requests leave."""
    knobs: dict[str, Any] = {"prefill": "ssd", "ssd_latency_s": 0.5, "queue_depth": 1}
    up_s = 5 * BLOCK_BYTES / RATE + LAYERS * 0.5
    assert step_s(alone(5, **knobs)) == pytest.approx(1.0 + up_s + 5 * 0.5)
    requests_s = LAYERS * 0.01 + 5 * BLOCK_BYTES / SSD_RATE
    assert step_s(alone(5, **knobs, request_latency_s=0.01)) == pytest.approx(1.0 + up_s + requests_s)


def test_rewritten_layers_pay_requests_on_their_way_back() -> None:
    costs = {"ssd_latency_s": 0.002, "queue_depth": 1000}
    knobs: dict[str, Any] = {"prefill": "ssd", "write": "rewrite"} | costs
    assert step_s(alone(5, **knobs, request_latency_s=0.01)) == pytest.approx(
        step_s(alone(5, **knobs)) + LAYERS * 2 * 0.01
    )


def test_cpu_time_of_a_step_comes_before_it_on_top_of_that_of_blocks() -> None:
    plain = alone(5)
    assert step_s(alone(5, host_s_per_step=0.25)) == pytest.approx(step_s(plain) + 0.25)
    both = step_s(alone(5, host_s_per_step=0.25, host_s_per_block=0.001))
    assert both == pytest.approx(step_s(alone(5, host_s_per_block=0.001)) + 0.25)


# ---- prefix reuse and batch mode


def test_promoted_blocks_are_a_request_each() -> None:
    """Two blocks fit DRAM beside what another prompt needs: the third request reads its prefix from SSD."""
    config = system_config(
        num_gpu_blocks=5, dram_blocks=6, ssd_blocks=100, queue_depth=1000, ssd_latency_s=0.05, request_latency_s=0.01
    )
    requests = [same(0, 0.0, 20, 1, 1), same(1, 20.0, 20, 1, 2), same(2, 40.0, 20, 1, 1)]
    data = run(config, requests)
    blocks = column(data, "hit_ssd_tokens")[2] // 4
    assert blocks > 1
    expected = 0.05 + blocks * (0.01 + BLOCK_BYTES / SSD_RATE)
    assert column(data, "load_ssd_time_s")[2] == pytest.approx(expected)


def test_batch_mode_pays_setup_and_request_with_each_transfer() -> None:
    placed = "engine.placement={weights: [0, 50], kv: [0, 100]}"
    plain = answer(placed)
    slower = answer(placed, "link.setup=1ms", "tiers.ssd.request_latency=2ms")
    same_sum = answer(placed, "link.latency=1003.5us", "tiers.ssd.latency=2080us", "tiers.ssd.queue_depth=65536")
    assert slower["e2e_s"]["mean"] > plain["e2e_s"]["mean"]
    assert slower["e2e_s"] == pytest.approx(same_sum["e2e_s"])
    assert slower["closed_form"]["e2e_s"] == pytest.approx(same_sum["closed_form"]["e2e_s"])
