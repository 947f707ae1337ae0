"""Whole searches, against brute force with the same random numbers; headroom, budgets, and plans that nothing holds."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest

from simkv.errors import InputError
from simkv.jobs.execute import execute
from simkv.jobs.job import Failure, Job, Outcome
from simkv.jobs.store import Store
from simkv.planner import confirm, finals, halving, means
from simkv.planner import offered as sampled
from simkv.planner.capacity import largest_load
from simkv.planner.found import Confirmed, Found, NoPlan
from simkv.planner.objective import Aim
from simkv.planner.offered import offered
from simkv.planner.search import search
from simkv.planner.space import Choice, space
from simkv.planner.types import Effort
from tests.planner_factory import INSTANCES, SINGLE_SERVER, SMALL, here, jobs_done, planned

LAST = Effort(200, 0.1)
QUICK = SINGLE_SERVER.replace("max_num_seqs: 1", "max_num_seqs: 2") + "cost: {gpu_hour: 2}\n"
"""Two seats of ten requests a second each, of five that come."""


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Search with little effort; what is there before a test isn't looked through after each of its runs."""
    monkeypatch.setattr(halving, "RUNGS", (Effort(80, 0.5), Effort(120, 0.25), LAST))
    monkeypatch.setattr(halving, "WAVE", 3)
    monkeypatch.setattr(halving, "KEPT", (4, 3))
    monkeypatch.setattr(confirm, "REQUESTS", 200)
    monkeypatch.setattr(sampled, "TURNS", 2000)
    gc.freeze()
    yield
    gc.unfreeze()


def quick(plan: str, text: str = QUICK) -> Found:
    return search(planned(text, plan), workers=here())


def infeasible(plan: str, text: str = QUICK) -> NoPlan:
    with pytest.raises(NoPlan) as caught:
        quick(plan, text)
    assert caught.value.exit_code == 3
    assert caught.value.found.winner is None
    return caught.value


def small_plan(seed: int) -> tuple[str, str]:
    """Return a small scenario and a plan of it, drawn at random."""
    draw = Random(seed)
    vary = {
        "hardware.step_time": draw.sample(["50ms", "80ms", "100ms", "150ms"], 2),
        "engine.max_num_seqs": draw.sample([1, 2, 3, 4], 2),
        "dram": draw.choice([["0GiB"], ["0GiB", "1GiB"]]),
    }
    text = SINGLE_SERVER.replace("rate: 5 req/s", f"rate: {draw.choice([7, 16, 33])} req/s")
    text += f"cost: {{gpu_hour: {draw.choice([1, 2.5])}}}\n"
    chosen = ", ".join(f"{name}: {values}" for name, values in vary.items()).replace("'", "")
    objective = draw.choice(["cost", "gpus", "goodput"])
    limit = f", budget: {draw.choice([5, 8])}" if objective == "goodput" else ""
    return text, f"{{objective: {objective}, vary: {{{chosen}}}{limit}}}"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_search_finds_what_brute_force_finds(seed: int) -> None:
    text, plan = small_plan(seed)
    found = quick(plan, text)
    assert found.winner is not None
    everything = space(planned(text, plan)).choices
    assert len(everything) == len(found.candidates) + len(found.pruned) >= 4
    best = found.winner.rated.best_score
    for choice in everything:
        carried = largest_load(choice.candidate.case, found.slo, LAST)
        score = found.aim.score(choice, carried.load, carried.summary)
        assert score >= best * (1 - 1e-9) if best > 0 else score >= best * (1 + 1e-9), choice.candidate.name


def test_search_is_the_same_in_whatever_order_workers_end(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = "{vary: {engine.max_num_seqs: [1, 2], hardware.step_time: [100ms, 200ms]}}"
    once = quick(plan)
    monkeypatch.setattr(means, "execute", lambda *args, **more: iter(list(execute(*args, **more))[::-1]))
    again = quick(plan)
    assert [(one.candidate.name, one.score, one.capacity.load) for one in once.candidates] == [
        (one.candidate.name, one.score, one.capacity.load) for one in again.candidates
    ]
    assert once.winner == again.winner and once.pareto == again.pareto and once.runs == again.runs


def test_search_with_a_store_repeats_nothing(tmp_path: Path) -> None:
    plan = planned(QUICK, "{vary: {engine.max_num_seqs: [1, 2]}}")
    found = []
    for expected in (True, False):
        workers = here()
        with Store(tmp_path / "plan.sqlite") as store:
            found.append(search(plan, workers=workers, store=store))
        assert bool(jobs_done(workers)) == expected
    assert found[0] == found[1]


def test_search_winner_and_runners_up_are_confirmed_with_seeds_of_their_own() -> None:
    found = quick("{vary: {engine.max_num_seqs: [1, 2, 4]}, confirm: 2, headroom: 0.3}")
    assert found.winner is not None
    for one in (found.winner, *found.runners_up):
        assert [summary["seed"] for summary in one.summaries] == [1, 2]
        target = one.targets["queue_mean"]
        assert target.mean == pytest.approx(sum(target.values) / 2)
        assert target.half is not None and target.limit == 0.1
        assert one.holds
    assert found.winner.units * found.winner.load >= 0.999 / found.winner.units


def test_search_simulates_all_units_together() -> None:
    found = quick("{vary: {hardware.step_time: [200ms]}}", QUICK.replace("max_num_seqs: 2", "max_num_seqs: 1"))
    assert found.winner is not None and found.winner.whole and found.winner.units > 1
    replicas = found.winner.case.resolve().scenario.replicas
    assert (replicas.count, replicas.hosts) == (found.winner.units, found.winner.units)
    assert found.winner.load == pytest.approx(1.0)


def test_search_front_has_no_point_that_another_beats() -> None:
    found = quick("{vary: {engine.max_num_seqs: [1, 2, 4], hardware.step_time: [50ms, 100ms]}}")
    points = [(one.rated.score, one.latency_s, -one.carried) for one in found.pareto]
    assert points
    for point in points:
        assert not any(other != point and all(o <= p for o, p in zip(other, point, strict=True)) for other in points)


def test_search_front_has_the_latency_of_a_class_where_only_classes_have_targets() -> None:
    text = QUICK.replace("  kind: plain\n", "  kind: plain\n  mix: {chat: 1}\n") + "classes: {chat: {}}\n"
    found = quick("{vary: {engine.max_num_seqs: [1, 2]}, classes: {chat: {e2e_p95: 1s}}}", text)
    assert found.winner is not None and found.pareto
    for one in found.pareto:
        assert one.latency == "chat.e2e_p95" and 0 < one.latency_s <= 1


# ---- units and money --------------------------------------------------------------------------


def aim_of(plan: str, text: str = INSTANCES) -> tuple[Aim, Choice]:
    found = space(planned(text, plan))
    choice = found.choices[0]
    return Aim(found.plan, offered(choice.resolved, 0)), choice


@pytest.mark.parametrize(
    ("headroom", "load", "units"),
    [(0.0, 1.0, 1), (0.0, 0.5, 2), (0.1, 1.0, 2), (0.1, 1 / 0.9, 1), (0.5, 0.4, 5), (0.0, 0.34, 3), (0.0, 0.0, None)],
)
def test_units_keep_the_headroom_free(headroom: float, load: float, units: int | None) -> None:
    aim, choice = aim_of(f"{{vary: {{tp: [1]}}, headroom: {headroom}}}")
    assert aim.units(choice, load) == units


@pytest.mark.parametrize(
    ("plan", "load", "units"),
    [
        ("budget: 50", 0.5, None),  # three at 21.96
        ("budget: 50", 0.6, 2),
        ("units: 2", 0.5, None),
        ("units: 3", 0.5, 3),
        ("objective: goodput", 0.5, 1),
        ("objective: goodput, budget: 70", 0.5, 3),
        ("objective: goodput, budget: 70, units: 2", 0.5, 2),
        ("objective: goodput, budget: 20", 0.5, None),
    ],
)
def test_units_stay_within_budget_and_limit(plan: str, load: float, units: int | None) -> None:
    aim, choice = aim_of(f"{{vary: {{tp: [1]}}, {plan}}}")
    assert aim.units(choice, load) == units
    assert (aim.score(choice, load) == inf) == (units is None)


def test_units_that_vary_fixes_are_not_more() -> None:
    aim, choice = aim_of("{vary: {hosts: [2]}}")
    assert aim.units(choice, 0.6) == 2
    assert aim.units(choice, 0.5) is None


def test_per_million_is_the_hour_over_the_tokens_of_the_scenarios_load() -> None:
    aim, choice = aim_of("{vary: {tp: [1]}}")
    tokens_an_hour = 10 * 50 * 3600
    assert aim.per_million(choice, 3, 0.5, {}) == pytest.approx(3 * 21.957642 / tokens_an_hour * 1e6)


@pytest.mark.parametrize("objective", ["cost", "gpus"])
def test_score_is_never_worse_with_more_load(objective: str) -> None:
    aim, choice = aim_of(f"{{vary: {{tp: [1]}}, objective: {objective}}}")
    scores = [aim.score(choice, load / 10) for load in range(1, 30)]
    assert scores == sorted(scores, reverse=True)


def test_search_headroom_takes_more_units() -> None:
    text = QUICK.replace("rate: 5 req/s", "rate: 40 req/s")
    taken = []
    for headroom in (0.0, 0.5):
        found = quick(f"{{vary: {{engine.max_num_seqs: [2]}}, headroom: {headroom}}}", text)
        assert found.winner is not None
        taken.append(found.winner.units)
    assert taken[1] >= 2 * taken[0] - 1 > taken[0]


def test_search_nothing_with_a_price_is_refused() -> None:
    with pytest.raises(InputError, match=r"nothing has a price: inline; give plan.prices"):
        quick("{vary: {engine.max_num_seqs: [2]}}", QUICK.replace("cost: {gpu_hour: 2}\n", ""))


def test_search_what_has_no_price_is_left_out() -> None:
    found = quick("{vary: {gpu: [t4, l4]}, prices: {t4: {hour: 0.5}}}", SMALL)
    assert [one.reason for one in found.left_out] == ["has no price: give one in plan.prices"]
    assert found.winner is not None and found.winner.rated.candidate.unit.name == "t4"


# ---- nothing will do --------------------------------------------------------------------------


def test_infeasible_slo_names_what_misses_least() -> None:
    error = infeasible("{vary: {hardware.step_time: [100ms, 300ms]}, slo: {queue_mean: 1s, e2e_p50: 90ms}}")
    assert "nearest is inline hardware.step_time 100ms" in str(error)
    assert "e2e_p50 is 100 ms and 90.0 ms is asked" in str(error)
    assert error.found.candidates[0].capacity.load == 0


def test_infeasible_on_an_idle_engine_is_known_without_a_run() -> None:
    error = infeasible("{vary: {hardware.step_time: [100ms]}, slo: {ttft_p50: 90ms}}")
    assert "ttft_p50 is at least 100 ms, and 90.0 ms is asked" in str(error)
    assert error.found.runs == 0 and len(error.found.pruned) == 1


def test_infeasible_budget_says_what_it_would_cost() -> None:
    error = infeasible(
        "{vary: {engine.max_num_seqs: [2]}, budget: 3}", QUICK.replace("rate: 5 req/s", "rate: 30 req/s")
    )
    assert "plan.budget is 3; raise it" in str(error)


@pytest.mark.parametrize("objective", ["goodput", "users"])
def test_infeasible_budget_below_one_unit_says_so(objective: str) -> None:
    error = infeasible(f"{{objective: {objective}, vary: {{engine.max_num_seqs: [2]}}, budget: 1}}")
    assert "not even one unit is within plan.budget" in str(error) or "nearest is 1 x inline" in str(error)


def test_infeasible_fixed_units_say_how_many_are_wanted() -> None:
    error = infeasible("{vary: {count: [1]}}", QUICK.replace("rate: 5 req/s", "rate: 30 req/s"))
    assert "plan.vary says 1" in str(error) or "1 units don't carry all of it" in str(error)


def test_confirmed_that_does_not_hold_gets_one_more_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = halving.from_answer

    def flattered(answer: dict[str, object]) -> object:
        capacity = inner(answer)
        return replace(capacity, load=capacity.load * 2, over=capacity.over * 2)

    monkeypatch.setattr(halving, "from_answer", flattered)
    text = QUICK.replace("rate: 5 req/s", "rate: 34 req/s")
    found = quick("{vary: {engine.max_num_seqs: [1]}, headroom: 0}", text)
    assert found.winner is not None and found.winner.rated.units is not None
    assert found.winner.units == found.winner.rated.units + 1
    assert [one.cost for one in found.pareto] == [found.winner.units * 2.0]


# ---- what prunes, and what doesn't ------------------------------------------------------------


@pytest.mark.parametrize("objective", ["cost", "gpus", "goodput"])
def test_score_of_a_load_without_bound_prunes_nothing(objective: str) -> None:
    aim, choice = aim_of(f"{{vary: {{tp: [1]}}, objective: {objective}}}")
    assert aim.units(choice, inf) == 1
    assert aim.score(choice, inf) <= aim.score(choice, 1000.0)


def test_search_without_bounds_tries_what_it_can_take() -> None:
    loop = QUICK.replace("{process: poisson, rate: 5 req/s}", "{process: closed_loop, users: 2, think_time: 1s}")
    found = quick("{vary: {engine.max_num_seqs: [1, 2]}}", loop)
    assert found.winner is not None and not found.pruned


def test_search_rates_each_number_of_hosts_of_one_machine() -> None:
    found = quick("{vary: {hosts: [1, 2, 3]}, objective: goodput}")
    assert sorted(one.units or 0 for one in found.candidates) == [1, 2, 3]
    assert found.winner is not None and found.winner.units == 3


def test_search_for_the_most_confirms_at_the_planned_load_alone() -> None:
    found = quick("{vary: {engine.max_num_seqs: [1, 2]}, objective: goodput, units: 2, headroom: 0.2}")
    assert found.winner is not None and not found.winner.strained
    assert found.winner.runs == len(found.winner.summaries)


def test_search_failures_come_in_the_order_of_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    inner, failure = means.execute, Failure("SimkvError", "broken")

    def left_out(order: int) -> list[str]:
        def failing(jobs: Sequence[Job], *others: Any, **more: Any) -> list[Outcome]:
            ended = [
                one if one.job.label.endswith("4") else replace(one, answer=None, failure=failure)
                for one in inner(jobs, *others, **more)
            ]
            return ended[::order]

        monkeypatch.setattr(means, "execute", failing)
        return [one.name for one in quick("{vary: {engine.max_num_seqs: [1, 2, 4]}}").left_out]

    assert left_out(1) == left_out(-1)
    assert len(left_out(1)) == 2


def test_search_for_the_most_lowers_the_load_of_what_does_not_hold_instead_of_dropping_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = finals.confirm

    def strict(wanted: object, aim: Aim, slo: object, means: object) -> list[Confirmed]:
        found = inner(wanted, aim, slo, means)  # type: ignore[arg-type]
        most = 0.75 * first.candidates[0].capacity.load
        return [one if one.rated.capacity.load <= most else replace(one, missed=("stationary",)) for one in found]

    plan = "{objective: goodput, vary: {engine.max_num_seqs: [2, 4]}, units: 1, confirm: 2}"
    first = quick(plan)
    monkeypatch.setattr(finals, "confirm", strict)
    again = quick(plan)
    assert first.winner is not None and again.winner is not None
    assert again.winner.rated.candidate == first.winner.rated.candidate
    assert again.winner.rated.capacity.load < first.winner.rated.capacity.load
    assert again.candidates[0].capacity.load <= 0.75 * first.candidates[0].capacity.load
