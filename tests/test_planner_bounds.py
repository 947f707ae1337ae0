"""Bounds are optimistic: no simulated unit carries more, none is faster."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.planner.bounds import Bounds, bounds, request_s
from simkv.planner.capacity import largest_load
from simkv.planner.offered import Turn, offered
from simkv.planner.types import Effort, Slo
from simkv.scenario.build import cost, engine_config
from simkv.sweeps.simulate import Case
from tests.planner_factory import SINGLE_SERVER, SMALL, case

LAX = Slo({"ttft_p95": 3.0})
HIST_S = 1.0005
"""Percentiles of intervals between tokens are from bins so wide."""


def of(one: Case) -> Bounds:
    resolved = one.resolve()
    return bounds(resolved, offered(resolved, 0))


lengths = st.sampled_from(["20", "300", "{dist: lognormal, median: 150, sigma: 1.0, max: 1500}"])
small = st.builds(
    lambda gpu, seqs, batched, prompt, output, turns, dram, blocks: (
        f"hardware={gpu}",
        f"engine.max_num_seqs={seqs}",
        f"engine.max_num_batched_tokens={batched}",
        f"workload.prompt_tokens={prompt}",
        f"workload.output_tokens={output}",
        f"workload.turns={turns}",
        f"tiers.dram.capacity={dram}",
        f"engine.num_gpu_blocks={blocks}",
        "workload.think_time=0.5s",
    ),
    st.sampled_from(["t4", "l4", "h100-sxm5-80gb"]),
    st.sampled_from([1, 8, 64]),
    st.sampled_from([128, 2048]),
    lengths,
    st.sampled_from(["1", "8", "{dist: geometric, mean: 20, max: 60}"]),
    st.sampled_from(["1", "4", "{dist: geometric, mean: 3, max: 6}"]),
    st.sampled_from(["0GiB", "2GiB"]),
    st.sampled_from([512, 4096]),
)


@settings(max_examples=12)
@given(small)
def test_bounds_of_random_small_units_hold_in_the_simulation(chosen: tuple[str, ...]) -> None:
    one = case(SMALL, *chosen)
    bound = of(one)
    found = largest_load(one, LAX, Effort(150, 0.4), start=bound.load / 3)
    assert 0 < found.load <= bound.load
    assert found.summary["ttft_s"]["p50"] >= bound.ttft_s > 0
    if found.summary["itl_s"] is not None:
        assert found.summary["itl_s"]["p50"] * HIST_S >= bound.itl_s > 0
        assert found.summary["tpot_s"]["p50"] >= bound.itl_s


def test_bounds_of_a_single_server_are_its_rate_and_its_step() -> None:
    bound = of(case(SINGLE_SERVER))
    assert bound.ttft_s == bound.itl_s == 0.1
    alone = case(SINGLE_SERVER, "engine.max_num_batched_tokens=1", "engine.max_model_len=1000")
    assert of(alone).load == pytest.approx(1.25 * 2)  # ten a second, of five that come


def test_request_s_counts_a_step_once_for_all_that_share_it() -> None:
    resolved = case(SMALL).resolve()
    step, engine = cost(resolved), engine_config(resolved)
    short, longer, further = (
        request_s(step, engine, Turn(*turn)) for turn in ((100, 10, 5), (100, 10, 50), (900, 10, 5))
    )
    assert short < longer < further
    decoded = Turn(100, 200, 1)
    assert request_s(step, engine, decoded) >= 199 * step.decode(engine.max_num_seqs, 0)[0] / engine.max_num_seqs


def test_bounds_miss_targets_that_no_load_can_hold() -> None:
    bound = Bounds(2.0, ttft_s=0.5, itl_s=0.02)
    slo = Slo({"ttft_p95": 0.4, "itl_p50": 0.1, "e2e_p50": 0.001}, {"chat": {"tpot_p99": 0.01}})
    assert bound.misses(slo) == {"ttft_p95": (0.5, 0.4), "chat.tpot_p99": (0.02, 0.01)}


@pytest.mark.parametrize(
    "assignments",
    [
        ("offload.residency=0.5", "tiers.dram.capacity=2GiB"),
        ("workload.arrival.process=closed_loop", "workload.arrival.users=3", "workload.arrival.rate=null"),
    ],
)
def test_bounds_where_nothing_is_known_prune_nothing(assignments: tuple[str, ...]) -> None:
    assert of(case(SMALL, *assignments)).load == inf
