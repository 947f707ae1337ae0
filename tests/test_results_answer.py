"""Warnings on and off, and the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simkv.results.context import SummaryContext
from simkv.results.summary import summarize
from simkv.sim.rundata import RunData
from tests.results_factory import make_context, make_run

WORK_S = 0.41166
"""Mean time that the made-up server works for a request."""


def warnings(data: RunData, ctx: SummaryContext | None = None, baseline: RunData | None = None) -> dict[str, str]:
    baselines = {"no_offload": baseline} if baseline else None
    found: Any = summarize(data, ctx or make_context(), baselines)["warnings"]
    return {one["code"]: one["message"] for one in found}


def verdict(data: RunData, baseline: RunData, **changes: Any) -> dict[str, Any]:
    found: Any = summarize(data, make_context(**changes), {"no_offload": baseline})["verdict"]
    return dict(found)


@pytest.mark.parametrize("load", [1.3, 2.0, 5.0])
@pytest.mark.parametrize("n", [500, 3000])
def test_not_stationary_of_too_much_load_is_said_with_numbers(load: float, n: int) -> None:
    message = warnings(make_run(n, rate=load / WORK_S))["not_stationary"]
    assert "requests/s arrive" in message and "waiting" in message


@pytest.mark.parametrize("load", [0.3, 0.7, 0.9])
@pytest.mark.parametrize("seed", range(5))
def test_not_stationary_of_a_load_that_fits_is_silent(load: float, seed: int) -> None:
    assert "not_stationary" not in warnings(make_run(3000, rate=load / WORK_S, seed=seed))


@pytest.mark.parametrize(("fixed", "said"), [(True, True), (False, False)])
def test_not_stationary_of_later_turns_counts_where_their_times_are_given(fixed: bool, said: bool) -> None:
    """All sessions of a log begin early; their later turns arrive at recorded times all the same."""
    data = make_run(1000, rate=2 / WORK_S)
    turn = np.arange(1000, dtype="i4")
    turn[:20] = 0
    until_s = float(data.requests["arrival_s"].max()) if fixed else 0.0
    data = replace(data, requests=data.requests | {"turn": turn}, fixed_until_s=until_s)
    assert ("not_stationary" in warnings(data)) is said


def test_not_stationary_of_a_batch_is_silent() -> None:
    assert "not_stationary" not in warnings(make_run(1000, batch=True))


@pytest.mark.parametrize("when", [0.1, 0.5, 0.97])
def test_not_stationary_of_a_short_burst_is_silent(when: float) -> None:
    rng = np.random.default_rng(3)
    calm = np.cumsum(rng.exponential(1.0, 2000))
    burst = np.full(100, calm[-1] * when) + rng.uniform(0, 5, 100)
    assert "not_stationary" not in warnings(make_run(2100, arrival_s=np.sort(np.concatenate([calm, burst]))))


def test_not_stationary_of_a_queue_that_levels_off_is_silent() -> None:
    """A closed loop: each of 50 users asks again when answered, so the queue fills once and stays."""
    n, users = 2000, 50
    arrivals = np.maximum(0.0, (np.arange(n) - users) * WORK_S)
    assert "not_stationary" not in warnings(make_run(n, arrival_s=arrivals))


def test_not_stationary_of_sessions_sees_past_the_drain_of_later_turns() -> None:
    data = make_run(3000, rate=1.5 / WORK_S)
    late = make_run(3600, arrival_s=np.concatenate([data.requests["arrival_s"], np.linspace(0, 800, 600) + data.end_s]))
    late.requests["turn"][3000:] = 1
    assert "not_stationary" in warnings(late)


def test_cold_cache_of_a_tier_not_filled_once_says_how_often() -> None:
    cold = make_run(300, dram_blocks=45_000)
    assert warnings(cold)["cold_cache"] == "DRAM filled 0.40 times: hit rates are not those of a warm cache."
    assert "cold_cache" not in warnings(make_run(300, dram_blocks=15_000))


def test_cold_cache_without_reuse_or_with_endless_room_is_silent() -> None:
    assert "cold_cache" not in warnings(make_run(300, dram_blocks=2**60))
    cold = make_run(300, dram_blocks=45_000)
    cold.requests["ceiling_tokens"][:] = 0
    assert "cold_cache" not in warnings(cold)


def test_stores_refused_now_and_then_are_silent_and_many_are_told() -> None:
    data = make_run(500)
    data.refused_stores = 25
    assert "stores_refused" not in warnings(data)
    data.refused_stores = 1000
    assert warnings(data)["stores_refused"].startswith("DRAM refused 1000 batches of blocks (2.00 a request)")


def test_verdict_where_nothing_is_shared_says_so_instead_of_noughts() -> None:
    data = make_run(500, vram_hit=0.0, dram_hit=0.0)
    data.requests["ceiling_tokens"] = np.zeros(500, "i4")
    because = verdict(data, data)["because"]
    assert "there is nothing to cache" in because and "0 %" not in because


def test_few_requests_are_told_below_a_hundred() -> None:
    assert "p95 rests on 2.0 of them" in warnings(make_run(40))["few_requests"]
    assert "few_requests" not in warnings(make_run(500))


def test_saturated_names_the_resource_and_its_share() -> None:
    data = make_run(500)
    assert "saturated" not in warnings(data)
    data.busy_s["d2h"] = 0.97 * data.end_s
    assert warnings(data)["saturated"].startswith("Device-to-host link is saturated: busy 97 %")


def test_saturated_while_requests_arrive_is_seen_past_a_long_drain() -> None:
    data = make_run(500)
    arriving = data.requests["arrival_s"].max()
    data.timeseries["h2d_busy_s"] = np.minimum(data.timeseries["t_s"], arriving)
    data.busy_s["h2d"] = arriving
    data.timeseries = {name: np.append(values, values[-1]) for name, values in data.timeseries.items()}
    data.timeseries["t_s"][-1] = 3 * arriving
    data.end_s = 3 * arriving
    assert "saturated" in warnings(data)


def test_offload_hurts_beyond_the_interval_is_said() -> None:
    slow = make_run(2000, load_s_per_token=4e-4)
    plain = make_run(2000, dram_hit=0.0)
    assert "TTFT" in warnings(slow, baseline=plain)["offload_hurts"]
    assert "offload_hurts" not in warnings(make_run(2000), baseline=plain)
    assert "offload_hurts" not in warnings(plain, baseline=plain)


def test_rejected_and_interrupted_are_said() -> None:
    data = replace(make_run(100, rejected=4), interrupted=True, arrived=110, live=6)
    found = warnings(data)
    assert "4 of 110" in found["rejected"] and "100 of 110" in found["interrupted"]


def test_warnings_of_the_scenario_are_passed_on_and_a_long_warm_up_is_said() -> None:
    ctx = make_context(warm_up=1e6, warnings=(("not_realisable", "Not realisable in vLLM."),))
    found = warnings(make_run(100), ctx)
    assert found["not_realisable"] == "Not realisable in vLLM." and "warm_up_too_long" in found


def test_verdict_of_a_fast_tier_helps_with_numbers() -> None:
    found = verdict(make_run(2000), make_run(2000, dram_hit=0.0))
    assert found["offload_helps"] is True
    assert all(word in found["because"] for word in ("mean TTFT", "mean E2E", "%", "40 %", "10 %"))


def test_verdict_of_a_slow_link_says_worse() -> None:
    found = verdict(make_run(2000, load_s_per_token=4e-4), make_run(2000, dram_hit=0.0))
    assert found["offload_helps"] is False and "worse" in found["because"]


def test_verdict_of_equal_runs_says_no_difference() -> None:
    plain = make_run(2000, dram_hit=0.0)
    found = verdict(plain, plain)
    assert found["offload_helps"] is False and "no difference" in found["because"]


def test_verdict_of_a_handful_of_requests_does_not_claim() -> None:
    found = verdict(make_run(8), make_run(8, dram_hit=0.0))
    assert found["offload_helps"] is None and found["because"].startswith("Too few requests for an interval")


def test_verdict_of_ttft_against_e2e_names_the_trade() -> None:
    faster = make_run(2000, rate=0.1, step_s=0.02)
    found = verdict(faster, make_run(2000, rate=0.1, dram_hit=0.0))
    assert found["offload_helps"] is None and "trades" in found["because"]


def test_verdict_of_a_run_worse_than_a_growing_queue_does_not_blame_the_baseline_alone() -> None:
    plain, slower = make_run(2000, rate=5.0), make_run(2000, rate=5.0, load_s_per_token=0.02)
    assert "not_stationary" in warnings(plain) and "not_stationary" not in warnings(slower)
    assert "grows without bound" not in verdict(slower, plain)["because"]


def test_verdict_without_baseline_or_lower_tier_says_why_not() -> None:
    alone: Any = summarize(make_run(100), make_context())["verdict"]
    assert alone["offload_helps"] is None and "run.baselines" in alone["because"]
    assert alone["because"].startswith("Mean TTFT ") and "output tokens/s. " in alone["because"]
    none: Any = summarize(make_run(100), make_context(tiers=("vram",)))["verdict"]
    assert none["offload_helps"] is None and "no tier" in none["because"]


def test_verdict_of_a_baseline_that_finished_nothing_is_null() -> None:
    assert verdict(make_run(100), make_run(0))["offload_helps"] is None
