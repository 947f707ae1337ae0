"""The largest load within an SLO: known queues, brackets, what counts as carried, and loads of every kind."""

from __future__ import annotations

import json
from math import exp, factorial, inf

import pytest

from simkv.errors import InputError
from simkv.formulas.queueing import md1_wait_s
from simkv.planner.capacity import capacity_job, first_to_fail, from_answer, largest_load, to_answer
from simkv.planner.load import at_load, real_load
from simkv.planner.offered import offered
from simkv.planner.slo import misses, slo_of
from simkv.planner.types import Capacity, Effort, Slo, Trial
from simkv.sweeps.simulate import simulate
from tests.planner_factory import SINGLE_SERVER, SMALL, case, planned

SERVICE_S, RATE = 0.1, 5.0
CLOSED = SINGLE_SERVER.replace("{process: poisson, rate: 5 req/s}", "{process: closed_loop, users: 4}")


def md1_waits_longer(rate: float, wait_s: float) -> float:
    """Probability that an M/D/1 customer waits longer (A. K. Erlang 1909)."""
    terms = 0.0
    for k in range(int(wait_s / SERVICE_S) + 1):
        behind = rate * (k * SERVICE_S - wait_s)
        terms += behind**k / factorial(k) * exp(-behind)
    return 1 - (1 - rate * SERVICE_S) * terms


def rate_of(waits_longer: float, wait_s: float) -> float:
    """Return the rate at which that share waits longer."""
    low, high = 0.01, 9.99
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if md1_waits_longer(middle, wait_s) < waits_longer else (low, middle)
    return low


def test_largest_load_mean_wait_of_md1_is_where_the_formula_has_it() -> None:
    rate = 20 / 3
    assert md1_wait_s(rate, SERVICE_S) == pytest.approx(0.1)
    found = largest_load(case(SINGLE_SERVER), Slo({"queue_mean": 0.1}), Effort(10_000, 0.03), start=1.25)
    assert found.load * RATE == pytest.approx(rate, rel=0.04)
    assert found.load < found.over <= 1.03 * found.load * (1 + 1e-9)
    assert found.binds == "queue_mean"


def test_largest_load_p95_wait_of_md1_is_where_the_formula_has_it() -> None:
    rate = rate_of(0.05, 0.35)
    found = largest_load(case(SINGLE_SERVER), Slo({"queue_p95": 0.35}), Effort(10_000, 0.03), start=1.25)
    assert found.load * RATE == pytest.approx(rate, rel=0.04)


@pytest.mark.parametrize("start", [0.05, 20.0])
def test_largest_load_from_any_start_comes_to_the_same(start: float) -> None:
    found = largest_load(case(SINGLE_SERVER), Slo({"queue_mean": 0.1}), Effort(1000, 0.1), start)
    assert found.load * RATE == pytest.approx(20 / 3, rel=0.15)
    assert found.over / found.load <= 1.1 + 1e-9


def test_largest_load_answer_lies_between_what_was_tried() -> None:
    found = largest_load(case(SINGLE_SERVER), Slo({"queue_mean": 0.1}), Effort(500, 0.1))
    carried = [trial.load for trial in found.trials if not trial.misses]
    failed = [trial.load for trial in found.trials if trial.misses]
    assert max(carried) == found.load < found.over == min(failed)
    assert found.summary["queue_s"]["mean"] <= 0.1


def test_largest_load_slo_that_no_load_holds_is_zero_and_says_what_binds() -> None:
    found = largest_load(case(SINGLE_SERVER), Slo({"e2e_p50": 0.05}), Effort(200, 0.2))
    assert (found.load, found.binds) == (0.0, "e2e_p50")
    assert found.trials[0].load == found.over < 1e-3
    assert found.summary["e2e_s"]["p50"] == pytest.approx(SERVICE_S)


def test_largest_load_without_a_latency_target_ends_where_the_queue_grows() -> None:
    found = largest_load(case(SINGLE_SERVER), Slo({"tpot_p95": 1.0}), Effort(2000, 0.1), start=40.0)
    assert found.load * RATE == pytest.approx(1 / SERVICE_S, rel=0.15)
    assert found.binds == "stationary"


def test_largest_load_of_requests_too_long_to_serve_is_zero() -> None:
    text = SINGLE_SERVER.replace("prompt_tokens: 1\n", "prompt_tokens: {dist: uniform, low: 1, high: 200}\n")
    found = largest_load(case(text, "engine.max_model_len=100"), Slo({"queue_mean": 100.0}), Effort(200, 0.2))
    assert (found.load, found.binds) == (0.0, "served")


def test_largest_load_closed_loop_counts_whole_users() -> None:
    found = largest_load(case(CLOSED), Slo({"e2e_mean": 0.75}), Effort(400, 0.01))
    assert found.load * 4 == pytest.approx(7)  # eight would take 0.8 s each
    assert found.over * 4 == pytest.approx(8)


@pytest.mark.parametrize("over", [1.5, inf])
def test_capacity_answer_survives_json(over: float) -> None:
    trials = (Trial(1.0, {}), Trial(1.5, {"ttft_p95": (3.0, 2.0)}))
    found = Capacity(1.0, over, trials, {"ttft_s": {"p95": 0.5}}, "ttft_p95")
    assert from_answer(json.loads(json.dumps(to_answer(found)))) == found


def test_capacity_job_key_tells_apart_all_that_decides_the_answer() -> None:
    base = case(SINGLE_SERVER), Slo({"queue_mean": 0.1}), Effort(200, 0.3)
    same = capacity_job(*base, label="called otherwise")
    assert capacity_job(*base).key == same.key
    others = [
        capacity_job(case(SINGLE_SERVER, "engine.max_num_seqs=2"), *base[1:]),
        capacity_job(base[0], Slo({"queue_mean": 0.2}), base[2]),
        capacity_job(base[0], Slo({}, {"a": {"queue_mean": 0.1}}), base[2]),
        capacity_job(*base[:2], Effort(201, 0.3)),
        capacity_job(*base[:2], Effort(200, 0.3, seed=1)),
        capacity_job(*base, start=2.0),
    ]
    assert len({same.key, *(job.key for job in others)}) == 7
    assert from_answer(same.work(*same.args)).binds == "queue_mean"


def test_first_to_fail_is_the_latency_missed_by_most() -> None:
    missed = {"stationary": (1.0, 0.0), "ttft_p95": (3.0, 2.0), "tpot_p95": (0.2, 0.1)}
    assert first_to_fail(missed) == "tpot_p95"
    assert first_to_fail({"stationary": (1.0, 0.0)}) == "stationary"
    assert first_to_fail({}) == ""


# ---- loads ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "process", ["poisson, rate: 5 req/s", "gamma, rate: 5 req/s, cv: 2", "constant, rate: 5 req/s"]
)
def test_at_load_open_arrivals_come_that_much_faster(process: str) -> None:
    base = case(SINGLE_SERVER.replace("poisson, rate: 5 req/s", process))
    summary = simulate(at_load(base, base.resolve(), 0.5, 2000), 0)
    assert summary["requests"]["arrived"] / summary["makespan_s"] == pytest.approx(2.5, rel=0.1)
    assert summary["baselines"] == {}


def test_at_load_sessions_are_all_there_from_the_beginning() -> None:
    base = case(SMALL)
    resolved = base.resolve()
    load_one = offered(resolved, 0)
    assert load_one.requests_per_s == pytest.approx(load_one.turns)  # a session a second
    summary = simulate(at_load(base, resolved, 1.0, 400), 0)
    assert summary["requests"]["arrived"] / summary["makespan_s"] == pytest.approx(load_one.requests_per_s, rel=0.15)
    assert summary["warm_tiers"]["requests"] > 0


@pytest.mark.parametrize(("load", "real"), [(0.01, 0.25), (1.0, 1.0), (1.1, 1.0), (1.4, 1.5)])
def test_real_load_users_come_whole(load: float, real: float) -> None:
    assert real_load(case(CLOSED).resolve(), load) == real


def test_at_load_batches_come_that_much_more_often() -> None:
    text = SINGLE_SERVER.replace("kind: plain", "kind: batch\n  size: 3\n  interval: 6s").replace(
        "  arrival: {process: poisson, rate: 5 req/s}\n", ""
    )
    base = case(text)
    assert offered(base.resolve(), 0).requests_per_s == 0.5
    scaled = at_load(base, base.resolve(), 2.0, 300).resolve().scenario
    assert scaled.workload.interval == 3.0  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["plain\n  arrival: {process: all_at_once}", "batch\n  size: 5"])
def test_at_load_everything_at_once_has_no_load_to_scale(kind: str) -> None:
    text = SINGLE_SERVER.replace("kind: plain", f"kind: {kind}").replace(
        "  arrival: {process: poisson, rate: 5 req/s}\n", ""
    )
    base = case(text, "workload.requests=50", "run.warm_tiers=null")
    with pytest.raises(InputError, match="no load to plan for; give workload"):
        at_load(base, base.resolve(), 1.0, 100)


# ---- what must hold ---------------------------------------------------------------------------


def test_slo_of_the_plan_wins_over_the_scenarios() -> None:
    plan = "{vary: {tp: [1]}, slo: {ttft_p50: 1s}}"
    resolved = case(planned(SMALL, plan).text).resolve()
    assert slo_of(resolved) == Slo({"ttft_p50": 1.0})
    assert slo_of(case(SMALL).resolve()) == Slo({"ttft_p95": 0.4, "tpot_p95": 0.03})


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("slo: {ttft_p96: 1s}", "no such target"),
        ("classes: {chat: {ttft_p95: 1s}}", "no such class"),
        ("slo: {ttft_p95: 1s}, classes: {a: {itl_p95: 1s}}", "no such target of a class"),
    ],
)
def test_slo_that_no_run_has_is_refused(plan: str, said: str) -> None:
    text = SMALL.replace("slo:", "classes: {a: {}}\nslo:").replace("  requests:", "  mix: {a: 1}\n  requests:")
    with pytest.raises(InputError, match=said):
        slo_of(case(planned(text, f"{{vary: {{tp: [1]}}, {plan}}}").text).resolve())


def test_slo_of_nobody_says_where_to_give_one() -> None:
    text = SMALL.partition("slo:")[0]
    with pytest.raises(InputError, match=r"plan.slo: nothing says what must hold; give plan.slo .*ttft_p95: 2s"):
        slo_of(case(planned(text, "{vary: {tp: [1]}}").text).resolve())


def test_misses_are_by_target_class_queue_and_rejection() -> None:
    summary = {
        "ttft_s": {"p95": 1.5},
        "tpot_s": None,
        "classes": {"chat": {"ttft_s": {"p95": 0.9}}},
        "warnings": [{"code": "not_stationary"}],
        "requests": {"arrived": 200, "rejected": 50},
    }
    slo = Slo({"ttft_p95": 1.0, "tpot_p95": 0.1}, {"chat": {"ttft_p95": 0.5}, "bulk": {"ttft_p95": 9.0}})
    assert misses(summary, slo) == {
        "ttft_p95": (1.5, 1.0),
        "chat.ttft_p95": (0.9, 0.5),
        "stationary": (1.0, 0.0),
        "served": (0.25, 0.0),
    }
