"""The best few once more: at the planned number of units and load, with several seeds that the search has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from simkv.errors import SimkvError
from simkv.jobs.execute import execute
from simkv.jobs.job import Job
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from simkv.planner.found import Confirmed, Estimate, Rated
from simkv.planner.halving import Report
from simkv.planner.load import at_load, timed_requests
from simkv.planner.objective import MOST_UNITS, Aim
from simkv.planner.slo import SERVED, STATIONARY, measured, misses
from simkv.planner.space import COUNT, HOSTS
from simkv.planner.types import Slo
from simkv.scenario.resolve import Resolved
from simkv.sweep.leaves import leaves
from simkv.sweep.settings import half_width
from simkv.sweep.simulate import Case, job_of

REQUESTS = 4_000
"""Judged in each run."""
COMPARED = 800
"""Judged in the run by which candidates are compared at their planned loads."""
AFFORDABLE = 30_000
"""Requests of a run of all units together; more, and one unit stands for all."""
FIGURES = (
    "ttft_s.p50", "ttft_s.p95", "ttft_s.p99", "itl_s.p50", "itl_s.p95", "tpot_s.p50", "tpot_s.p95", "e2e_s.p50",
    "e2e_s.p95", "queue_s.p95", "hit_rate.vram", "hit_rate.dram", "hit_rate.ssd", "hit_rate.miss", "hit_rate.ceiling",
    "utilization.gpu", "utilization.h2d", "utilization.d2h", "concurrency.mean", "requests_per_s",
    "output_tokens_per_s", "goodput_requests_per_s", "slo_attainment.overall",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Deployment:
    """What is simulated for a candidate."""

    rated: Rated
    units: int
    load: float
    whole: bool
    case: Case
    resolved: Resolved


def confirm(
    rated: Sequence[Rated], aim: Aim, slo: Slo, workers: Workers, store: Store | None, seed: int
) -> list[Confirmed]:
    """Return the candidates with estimates over ``plan.confirm`` seeds after ``seed``, in the order given.

    Each has the units of its plan, or one more where its targets don't hold to the ends of their intervals and one
    more is allowed. Raises what a simulation raises.
    """
    first = _confirmed([_deployment(one, aim, one.units or 1) for one in rated], aim, slo, workers, store, seed)
    again = {
        number: _deployment(one.rated, aim, one.units + 1)
        for number, one in enumerate(first)
        if not one.surely and _may_grow(one, aim)
    }
    second = _confirmed(list(again.values()), aim, slo, workers, store, seed)
    better = {number: found for number, found in zip(again, second, strict=True) if _worth_it(first[number], found)}
    return [better.get(number, one) for number, one in enumerate(first)]


def with_planned(
    rated: Sequence[Rated], aim: Aim, workers: Workers, store: Store | None, report: Report | None, seed: int
) -> tuple[Rated, ...]:
    """Return the candidates, each with a run of one unit at its planned load, so that they can be compared."""
    jobs = {}
    for one in rated:
        if one.units is not None:
            load = aim.planned(one.units, one.capacity.load)
            case = at_load(one.candidate.case, one.choice.resolved, load, COMPARED)
            jobs[one.candidate.name] = job_of(case, seed, one.candidate.name)
    answers: dict[str, Mapping[str, Any] | None] = {}
    for number, outcome in enumerate(execute(list(jobs.values()), workers, store), start=1):
        answers[outcome.job.key] = outcome.answer
        if report is not None:
            report("at the planned load", number, len(jobs))
    return tuple(
        replace(one, planned=answers.get(jobs[name].key)) if (name := one.candidate.name) in jobs else one
        for one in rated
    )


def _worth_it(before: Confirmed, after: Confirmed) -> bool:
    """Whether a unit more is what makes the plan hold."""
    return (after.surely and not before.surely) or (after.holds and not before.holds)


def _may_grow(one: Confirmed, aim: Aim) -> bool:
    choice = one.rated.choice
    return aim.of_load and choice.units is None and one.units + 1 <= aim.most_units(choice)


def _deployment(rated: Rated, aim: Aim, units: int) -> _Deployment:
    """Return all units at the whole load, or one at its share of it where that is too much to simulate."""
    candidate = rated.candidate
    each = aim.planned(units, rated.capacity.load)
    unit = rated.choice.resolved
    affordable = timed_requests(unit, aim.load_one, each * units, REQUESTS) <= AFFORDABLE
    replicas = candidate.unit.replicas * units
    if units == 1 or not affordable or replicas > MOST_UNITS:
        return _Deployment(rated, units, each, units == 1, candidate.case, unit)
    settings = (f"{COUNT}={replicas}", f"{HOSTS}={units}")
    case = replace(candidate.case, assignments=(*candidate.case.assignments, *settings))
    return _Deployment(rated, units, each * units, True, case, case.resolve())


def _confirmed(
    deployments: Sequence[_Deployment], aim: Aim, slo: Slo, workers: Workers, store: Store | None, seed: int
) -> list[Confirmed]:
    seeds = range(seed + 1, seed + 1 + aim.plan.confirm)
    strains = (1.0, 1 / (1 - aim.plan.headroom)) if aim.plan.headroom else (1.0,)
    jobs: dict[tuple[int, float], list[Job]] = {}
    for number, one in enumerate(deployments):
        for strain in strains:
            case = at_load(one.case, one.resolved, one.load * strain, REQUESTS)
            jobs[number, strain] = [job_of(case, seed, one.rated.candidate.name) for seed in seeds]
    answers: dict[str, Mapping[str, Any]] = {}
    for outcome in execute([job for some in jobs.values() for job in some], workers, store):
        if outcome.answer is None:
            assert outcome.failure is not None
            raise SimkvError(f"{outcome.job.label}: {outcome.failure.message}")
        answers[outcome.job.key] = outcome.answer
    return [
        _estimated(
            one, [[answers[job.key] for job in jobs[number, strain]] for strain in strains], jobs[number, 1.0], slo
        )
        for number, one in enumerate(deployments)
    ]


def _estimated(
    one: _Deployment, runs: Sequence[Sequence[Mapping[str, Any]]], planned: Sequence[Job], slo: Slo
) -> Confirmed:
    """Return what ``runs`` say: at the planned load (``planned``: their jobs) and, behind it, with no headroom left."""
    summaries = runs[0]
    missed = [name for some in runs for each in some for name in misses(each, slo) if name in (STATIONARY, SERVED)]
    return Confirmed(
        rated=one.rated,
        units=one.units,
        load=one.load,
        whole=one.whole,
        case=planned[0].args[0],
        targets=_targets(summaries, slo),
        figures=_figures(summaries),
        summaries=tuple(summaries),
        missed=tuple(dict.fromkeys(missed)),
        strained=_targets(runs[-1], slo) if len(runs) > 1 else {},
    )


def _targets(summaries: Sequence[Mapping[str, Any]], slo: Slo) -> dict[str, Estimate]:
    found: dict[str, list[float]] = {}
    limits: dict[str, float] = {}
    for summary in summaries:
        for key, value, limit in measured(summary, slo):
            found.setdefault(key, []).append(value)
            limits[key] = limit
    return {key: _estimate(values, limits[key]) for key, values in found.items()}


def _figures(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
    flat = [dict(leaves(summary)) for summary in summaries]
    found = {}
    for name in FIGURES:
        values = [float(value) for each in flat if isinstance(value := each.get(name), int | float)]
        if values:
            found[name] = _estimate(values)
    return found


def _estimate(values: Sequence[float], limit: float | None = None) -> Estimate:
    return Estimate(fmean(values), half_width(values), tuple(values), limit)
