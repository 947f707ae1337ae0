"""The best few once more: at the planned number of units and load, with several seeds that the search has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from simkv.errors import SimkvError
from simkv.planner.found import Confirmed, Estimate, Rated
from simkv.planner.load import at_load, timed_requests
from simkv.planner.means import Means
from simkv.planner.objective import MOST_UNITS, Aim
from simkv.planner.slo import SERVED, STATIONARY, measured, misses
from simkv.planner.space import COUNT, HOSTS
from simkv.planner.types import Slo
from simkv.scenario.resolve import Resolved
from simkv.sweeps.leaves import leaves
from simkv.sweeps.settings import half_width
from simkv.sweeps.simulate import Case, job_of

REQUESTS = 4_000
"""Judged in each run."""
COMPARED = 600
"""Judged in the run by which candidates are compared at their planned loads."""
AFFORDABLE = 30_000
"""Requests of a run of all units together; more, and one unit stands for all."""
FIGURES = (
    "ttft_s.p50", "ttft_s.p95", "ttft_s.p99", "itl_s.p50", "itl_s.p95", "tpot_s.p50", "tpot_s.p95", "e2e_s.p50",
    "e2e_s.p95", "queue_s.p95", "hit_rate.vram", "hit_rate.dram", "hit_rate.ssd", "hit_rate.miss", "hit_rate.ceiling",
    "utilization.gpu", "utilization.h2d", "utilization.d2h", "concurrency.mean", "requests_per_s",
    "output_tokens_per_s", "goodput_requests_per_s", "slo_attainment.overall",
)  # fmt: skip


Wanted = tuple[Rated, int]
"""A candidate and how many units of it."""


@dataclass(frozen=True, slots=True)
class _Deployment:
    """What is simulated for a candidate."""

    rated: Rated
    units: int
    load: float
    whole: bool
    case: Case
    resolved: Resolved


def confirm(wanted: Sequence[Wanted], aim: Aim, slo: Slo, means: Means) -> list[Confirmed]:
    """Return what becomes of each candidate with so many units, in the order given.

    With the first of ``plan.confirm`` seeds at first; where that holds, with all of them. At the planned load, and with
    the headroom used up too, unless the most is planned for: that is what one seed just carried. Raises SimkvError
    where a simulation fails.
    """
    deployments = [_deployment(rated, aim, units) for rated, units in wanted]
    strain = 1 / (1 - aim.plan.headroom) if aim.of_load else 1.0
    seeds = range(means.seed + 1, means.seed + 1 + aim.plan.confirm)
    first = _runs(deployments, strain, seeds[:1], means)
    found = [_estimated(one, [], summaries, slo) for one, summaries in zip(deployments, first, strict=True)]
    left = [number for number, one in enumerate(found) if one.holds]
    held = [deployments[number] for number in left]
    more = _runs(held, strain, seeds[1:], means)
    strained = [first[number] + others for number, others in zip(left, more, strict=True)]
    planned = _runs(held, 1.0, seeds, means) if strain > 1 else strained
    for number, one, at_planned, at_strain in zip(left, held, planned, strained, strict=True):
        found[number] = _estimated(one, at_planned, at_strain if strain > 1 else [], slo)
    return found


def with_planned(rated: Sequence[Rated], aim: Aim, means: Means) -> tuple[Rated, ...]:
    """Return the candidates, each with a run of one unit at its planned load, so that they can be compared."""
    jobs = {}
    for one in rated:
        if one.units is not None:
            load = aim.planned(one.units, one.capacity.load)
            case = at_load(one.candidate.case, one.choice.resolved, load, COMPARED)
            jobs[one.candidate.name] = job_of(case, means.seed, one.candidate.name)
    answers = {one.job.key: one.answer for one in means.do(list(jobs.values()), "at the planned load")}
    return tuple(
        replace(one, planned=answers.get(jobs[name].key)) if (name := one.candidate.name) in jobs else one
        for one in rated
    )


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


def _runs(
    deployments: Sequence[_Deployment], strain: float, seeds: Sequence[int], means: Means
) -> list[list[Mapping[str, Any]]]:
    """Return the summaries of each deployment at ``strain`` times its planned load, one a seed."""
    jobs = [
        [job_of(at_load(one.case, one.resolved, one.load * strain, REQUESTS), seed, one.rated.candidate.name)
         for seed in seeds]
        for one in deployments
    ]  # fmt: skip
    answers: dict[str, Mapping[str, Any]] = {}
    for outcome in means.do([job for some in jobs for job in some], "confirming the best"):
        if outcome.answer is None:
            assert outcome.failure is not None
            raise SimkvError(f"{outcome.job.label}: {outcome.failure.message}")
        answers[outcome.job.key] = outcome.answer
    return [[answers[job.key] for job in some] for some in jobs]


def _estimated(
    one: _Deployment, planned: Sequence[Mapping[str, Any]], strained: Sequence[Mapping[str, Any]], slo: Slo
) -> Confirmed:
    """Return what runs at the planned load and with the headroom used up say together."""
    missed = [name for each in (*planned, *strained) for name in misses(each, slo) if name in (STATIONARY, SERVED)]
    return Confirmed(
        rated=one.rated,
        units=one.units,
        load=one.load,
        whole=one.whole,
        case=at_load(one.case, one.resolved, one.load, REQUESTS),
        targets=_targets(planned, slo),
        figures=_figures(planned),
        summaries=tuple(planned),
        missed=tuple(dict.fromkeys(missed)),
        strained=_targets(strained, slo),
        runs=len(planned) + len(strained),
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
