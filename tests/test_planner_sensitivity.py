"""What more of a resource would buy: crossings of known curves, and machines whose capacity is known in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import SimkvError
from simkv.jobs.job import Failure, Job, Outcome
from simkv.planner import crossing as crossings
from simkv.planner.compare import Bench, Comparison, Measured, gain, measure
from simkv.planner.crossing import Crossing, Near, crossing, near, of_answer
from simkv.planner.sensitivity import BASE, absent, cases, sensitivity
from simkv.planner.types import Capacity, Effort, Slo, Trial
from simkv.results.words import MORE_OF
from simkv.scenario.scaled import RESOURCES
from simkv.sweeps.simulate import Case, Written

QUEUE = """\
name: queue
model: {kv_bytes_per_token: 1000B}
hardware: {step_time: 10ms, kv_tokens: 16Ki}
engine: {max_num_seqs: 1}
workload: {kind: plain, arrival: {process: poisson, rate: 5 req/s}, requests: 1500, prompt_tokens: 16,
  output_tokens: 10}
"""
"""M/D/1: a request has the server for ten steps."""
LINKED = """\
name: linked
model: {kv_bytes_per_token: 1MB}
hardware: {step_time: 1ms, kv_tokens: 16Ki}
workload: {kind: documents, arrival: {process: poisson, rate: 5 req/s}, requests: 400, output_tokens: 1,
  prompt_tokens: 16, documents: {count: 60, tokens: 992}}
tiers: {dram: {capacity: 1TB, bandwidth: inf GB/s}}
link: {h2d: 10 GB/s, d2h: 1 TB/s, duplex: 10 TB/s, latency: 0us}
"""
"""A request moves 992 MB at 10 GB/s, and takes next to no time otherwise."""


def a_case(text: str, *assignments: str) -> Case:
    return Case(Written(text, "s.yaml", assignments))


def serially(jobs: Sequence[Job]) -> list[Outcome]:
    done = []
    for job in jobs:
        try:
            done.append(Outcome(job, "done", job.work(*job.args)))
        except SimkvError as error:
            done.append(Outcome(job, "failed", None, Failure(type(error).__name__, str(error))))
    return done[::-1]  # in whatever order


# ---- crossings of known curves ----------------------------------------------------------------


class Curve:
    """Stands for simulation: a latency over load, with a limit of 1."""

    def __init__(self, latency: Any, grows_from: float = inf) -> None:
        self.latency, self.grows_from, self.loads = latency, grows_from, []

    def __call__(
        self, case: Case, resolved: Any, slo: Slo, load: float, effort: Effort
    ) -> tuple[Trial, dict[str, Any]]:
        self.loads.append(load)
        value = self.latency(load)
        misses = {"ttft_p95": (value, 1.0)} if value > 1 else {}
        if load > self.grows_from:
            misses["stationary"] = (1.0, 0.0)
        return Trial(load, misses), {"ttft_s": {"p95": value}}


def cross(curve: Curve, begin: Near, precision: float = 0.01) -> Crossing:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossings, "trial", curve)
        return crossing(a_case(QUEUE), Slo({"ttft_p95": 1.0}), Effort(100, precision), begin)


@given(at=st.floats(0.2, 8.0), power=st.floats(0.6, 15.0), slope=st.floats(0.6, 15.0))
@settings(max_examples=40)
def test_crossing_of_a_power_of_load_is_found_within_precision(at: float, power: float, slope: float) -> None:
    curve = Curve(lambda load: (load / at) ** power)
    found = cross(curve, Near(1.0, slope))
    assert found.load == pytest.approx(at, rel=0.03) and found.binds == "ttft_p95"
    assert (
        found.runs == len(curve.loads) <= crossings.MOST_TRIALS
        and found.low <= at * 1.0001
        and found.high >= at * 0.9999
    )


@given(st.floats(0.3, 0.95), st.floats(0.5, 1.6))
@settings(max_examples=40)
def test_crossing_of_a_queue_is_found_within_precision(share: float, begin: float) -> None:
    """Latency 0.1 / (1 - load) reaches a limit steeply, and goes beyond all limits at 1."""
    limit = 0.1 / (1 - share)
    found = cross(Curve(lambda load: 0.1 / (1 - load) / limit if load < 1 else 1e3, 1.0), Near(begin * share, 4.0))
    assert found.load == pytest.approx(share, rel=0.02)


def test_crossing_known_before_takes_a_single_run() -> None:
    found = cross(Curve(lambda load: (load / 2.002) ** 3), Near(2.0, 3.0))
    assert found.runs == 1 and found.load == pytest.approx(2.002, rel=1e-6) and found.high == inf


def test_crossing_that_only_a_growing_queue_shows_is_bracketed() -> None:
    found = cross(Curve(lambda load: 0.5, grows_from=1.3), Near(1.0))
    assert found.low <= 1.3 <= found.high and found.binds == "stationary"
    assert found.load == pytest.approx(1.3, rel=found.uncertainty)


def test_crossing_without_a_limit_or_without_any_load_says_so() -> None:
    endless = cross(Curve(lambda load: 0.5), Near(1.0))
    assert endless.high == endless.uncertainty == inf and endless.load > 50 and endless.binds == ""
    nothing = cross(Curve(lambda load: 9.0), Near(1.0))
    assert nothing.load == nothing.low == 0 and nothing.binds == "ttft_p95"
    assert of_answer(endless.to_answer()) == endless and None in endless.to_answer().values()


def test_near_takes_load_and_slope_from_a_bisection() -> None:
    slo = Slo({"ttft_p95": 2.0})
    failed = Trial(1.1, {"ttft_p95": (2.2, 2.0)})
    found = near(Capacity(1.0, 1.1, (failed,), {"ttft_s": {"p95": 1.8}}, "ttft_p95"), slo)
    assert found.load == pytest.approx(1.0488, rel=1e-4) and found.slope == pytest.approx(2.105, rel=1e-3)
    unknown = near(Capacity(1.0, 1.1, (Trial(1.1, {"stationary": (1.0, 0.0)}),), {}, "stationary"), slo)
    assert unknown.slope == crossings.SLOPE
    assert near(Capacity(0.0, 0.01, (failed,), {}, ""), slo).load == 0.01
    assert near(Capacity(7.0, inf, (), {}, ""), slo).load == 7.0


# ---- comparing --------------------------------------------------------------------------------


def carries(load: float, uncertainty: float = 0.01, low: float | None = None, high: float | None = None) -> Crossing:
    return Crossing(load, load if low is None else low, load if high is None else high, uncertainty, "ttft_p95", 2)


def test_gain_below_both_uncertainties_is_nothing_measurable() -> None:
    assert gain(carries(1.015), carries(1.0)).sign == 0
    more = gain(carries(1.1), carries(1.0))
    assert more.sign == 1 and more.relative == pytest.approx(0.1) and more.doubt == pytest.approx(0.02)
    assert more.text == "10 % ± 2.0 % more"
    assert gain(carries(0.9), carries(1.0)).sign == -1


def test_gain_without_a_bracket_says_only_which_carries_more() -> None:
    endless = carries(50.0, inf, high=inf)
    assert gain(endless, carries(1.0)) == (more := gain(carries(1.0), carries(0.0, inf, 0.0))) and more.sign == 1
    assert more.relative is None and gain(endless, endless).sign == 0
    assert gain(carries(0.0, inf, 0.0), carries(1.0)).sign == -1


def test_measure_does_equal_work_once_and_goes_on_after_a_failure() -> None:
    asked: list[Job] = []

    def evaluate(jobs: Sequence[Job]) -> list[Outcome]:
        asked.extend(jobs)
        return serially(jobs)

    case = a_case(QUEUE, "workload.requests=200")
    bench = Bench(Slo({"ttft_mean": 0.15}), Effort(100, 0.05), Near(1.0), 0.5, least_requests=100)
    same = Case(case.written, ("engine.max_num_seqs=1",))
    broken = Case(case.written, ("tiers.dram.capacity=lots",))
    found = measure({"one": case, "same": same, "broken": broken}, bench, evaluate)
    assert len(asked) == 2 == len({job.key for job in asked}), "a search and a run at the planned load"
    assert found.measured["one"].carries == found.measured["same"].carries
    assert list(found.failed) == ["broken"] and "lots" in found.failed["broken"]
    planned = found.measured["one"].planned
    assert planned is not None and planned["ttft_s"]["mean"] < 0.15


# ---- sensitivity ------------------------------------------------------------------------------


def of_queue(ttft_s: float, service_s: float, step_s: float) -> float:
    """Return the arrivals a second at which mean TTFT of M/D/1 is ``ttft_s``: its wait, and one step."""
    waits = 2 * (ttft_s - step_s) / service_s
    return waits / (1 + waits) / service_s


def bench_of(slo: float, load: float, planned: float = 0.6, requests: int = 1500) -> Bench:
    return Bench(Slo({"ttft_mean": slo}), Effort(requests, 0.01), Near(load, 4.0), planned, requests)


def test_sensitivity_of_a_queue_is_that_of_its_closed_form() -> None:
    case = a_case(QUEUE)
    asked, left_out = cases(case, case.resolve())
    assert set(asked) == {BASE, "vram", "compute"}
    found = measure(asked, bench_of(0.16, 1.5), serially)
    base = found.measured[BASE].carries
    assert base is not None and base.load * 5 == pytest.approx(of_queue(0.16, 0.1, 0.01), rel=0.05)
    answer = sensitivity(found, left_out)
    expected = of_queue(0.16, 0.1 / 1.1, 0.01 / 1.1) / of_queue(0.16, 0.1, 0.01) - 1
    compute = answer["compute"]
    assert compute["load_change"] == pytest.approx(expected, abs=0.02) and 0.1 < expected < 0.15
    assert compute["measurable"] and compute["cost_change"] == pytest.approx(1 / (1 + compute["load_change"]) - 1)
    assert compute["ttft_p95_change"] < -0.05 and "compute carries 1" in compute["because"]
    assert answer["vram"]["load_change"] == 0 and not answer["vram"]["measurable"]
    assert "nothing measurable" in answer["vram"]["because"]
    assert list(answer)[:2] == ["compute", "vram"] and set(answer) == set(RESOURCES) == set(MORE_OF)
    assert answer["ssd"]["load_change"] is None and answer["ssd"]["because"] == "Left out: there is no SSD tier."


def test_sensitivity_of_a_link_bound_machine_is_the_link() -> None:
    case = a_case(LINKED)
    asked, left_out = cases(case, case.resolve())
    kept = {name: asked[name] for name in (BASE, "link", "dram")}
    answer = sensitivity(measure(kept, bench_of(0.4, 2.7, requests=400), serially), left_out)
    assert answer["link"]["load_change"] == pytest.approx(0.11, abs=0.025)
    assert next(iter(answer)) == "link" and answer["link"]["ttft_p95_change"] < -0.05
    assert not answer["dram"]["measurable"]


def test_sensitivity_leaves_out_what_is_not_there_or_has_no_end() -> None:
    queue, linked = a_case(QUEUE).resolve(), a_case(LINKED).resolve()
    assert absent(queue, "memory_bandwidth") == "an abstract machine has none"
    assert {absent(queue, name) for name in ("link", "dram", "dram_bandwidth")} == {"there is no tier below VRAM"}
    assert absent(linked, "dram_bandwidth") == "it is unlimited already" and not absent(linked, "dram")
    assert absent(linked, "ssd_bandwidth") == "there is no SSD tier"
    with_ssd = a_case(LINKED, "tiers.ssd.capacity=1TB").resolve()
    assert not absent(with_ssd, "ssd") and not absent(with_ssd, "vram")


def test_sensitivity_without_its_base_says_why_for_all() -> None:
    answer = sensitivity(Comparison({}, {BASE: "it broke"}), {"ssd": "there is no SSD tier"})
    assert set(answer) == set(RESOURCES) and {row["because"] for row in answer.values()} == {"Left out: it broke."}


def test_sensitivity_orders_by_what_is_bought() -> None:
    loads = {BASE: 1.0, "link": 1.01, "vram": 1.08, "dram": 1.2}
    found = Comparison({name: Measured(a_case(QUEUE), carries(load), {}) for name, load in loads.items()})
    answer = sensitivity(found, {})
    assert list(answer) == ["dram", "vram", "link"]
    assert [row["measurable"] for row in answer.values()] == [True, True, False]
    assert answer["dram"]["ttft_p95_change"] is None and answer["dram"]["because"].endswith("load.")
