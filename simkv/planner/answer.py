"""A plan, start to end: fit, search, what the winner is weighed with; and its answer as plain data.

:func:`plan` is the whole interface. ``PlanResult.answer`` is what ``simkv plan --json`` prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from math import inf, isfinite
from typing import Any

from simkv import __version__
from simkv.errors import InputError
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from simkv.planner.compare import Bench
from simkv.planner.crossing import near
from simkv.planner.emit import Emitted, emit
from simkv.planner.found import Confirmed, Estimate, Found, NoPlan, Pruned, Rated
from simkv.planner.means import Means, Report
from simkv.planner.observed import Fitted, fit, read_observed
from simkv.planner.search import search
from simkv.planner.slo import measured
from simkv.planner.types import Unit
from simkv.planner.weigh import weigh
from simkv.planner.why import why
from simkv.scenario.as_measured import Measured
from simkv.sweeps.simulate import Case, Written

SCHEMA_VERSION = 1
ENGINE_OF: Mapping[str, str] = {
    "vllm": "vllm",
    "vllm-tiering": "vllm",
    "lmcache": "lmcache",
    "sglang-hicache": "sglang",
    "tensorrt-llm": "tensorrt-llm",
}
"""By preset: whose flags are emitted."""

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What came of a plan."""

    answer: Answer
    found: Found
    emitted: Mapping[str, Emitted] = field(default_factory=dict)
    """By engine; empty where nothing holds the SLO."""
    fitted: Fitted | None = None

    @property
    def feasible(self) -> bool:
        """Whether there is a winner."""
        return self.found.winner is not None


def plan(
    written: Written,
    *,
    workers: Workers,
    store: Store | None = None,
    observed: str | None = None,
    engines: Sequence[str] = (),
    report: Report | None = None,
) -> PlanResult:
    """Return the answer to the scenario's plan; the machine is fitted to the measured run in ``observed`` first.

    ``engines``: whose flags are emitted, beside the winner's own. A plan that nothing satisfies is an answer too,
    without a winner. Raises InputError for a plan, a file or an engine that makes no sense.
    """
    means = Means(workers, store, report)
    fitting = partial(means.do, doing="fitting the machine")
    fitted = fit(read_observed(observed), written, fitting) if observed is not None else None
    measured = fitted.measured if fitted is not None else None
    try:
        found = search(written, workers=workers, store=store, report=report, measured=measured)
    except NoPlan as error:
        return PlanResult(_answer(written, error.found, measured, fitted), error.found, fitted=fitted)
    answer = _answer(written, found, measured, fitted)
    assert found.winner is not None
    case, unit = _unit_of(found.winner)
    bench = bench_of(found)
    sensitivity, verdict = weigh(case, unit, bench, partial(means.do, doing="weighing the winner"))
    emitted = emitted_of(case, engines)
    answer |= {
        "why": why(found),
        "sensitivity": sensitivity,
        "verdict": verdict,
        "engine_flags": {name: one.flags for name, one in emitted.items()},
        "engine_missing": {name: one.missing for name, one in emitted.items()},
    }
    return PlanResult(answer, found, emitted, fitted)


def bench_of(found: Found) -> Bench:
    """Return under which conditions variations of the winner are compared."""
    assert found.winner is not None
    rated = found.winner.rated
    load = rated.capacity.load
    planned = found.aim.planned(found.winner.units, load)
    return Bench(found.slo, rated.effort, near(rated.capacity, found.slo), planned)


def emitted_of(case: Case, engines: Sequence[str]) -> dict[str, Emitted]:
    """Return the winner in the words of its own engine and of those asked for."""
    resolved = case.resolve()
    own = ENGINE_OF.get(resolved.scenario.engine.preset)
    names = dict.fromkeys([*([own] if own is not None else []), *engines])
    found = {}
    for name in names:
        try:
            found[name] = emit(name, resolved)
        except InputError:
            if name in engines:
                raise
    return found


def _unit_of(winner: Confirmed) -> tuple[Case, Unit]:
    return winner.rated.candidate.case, winner.rated.candidate.unit


# ---- as plain data ----------------------------------------------------------------------------


def _answer(written: Written, found: Found, measured: Measured | None, fitted: Fitted | None) -> Answer:
    """Return everything that the search itself tells."""
    first = Case(written, measured=measured).resolve() if found.winner is None else found.winner.case.resolve()
    s = first.scenario
    aim = found.aim
    tried = (found.winner, *found.runners_up, *found.refuted)
    confirmed = {one.rated.candidate.name: one for one in tried if one is not None}
    rows = [_row(one, found, confirmed.get(one.candidate.name)) for one in found.candidates]
    by_name = {row["name"]: row for row in rows}
    return {
        "schema_version": SCHEMA_VERSION,
        "simkv_version": __version__,
        "scenario": s.name,
        "question": s.question or None,
        "objective": aim.plan.objective,
        "slo": {
            "targets": dict(found.slo.targets),
            "classes": {name: dict(of_class) for name, of_class in found.slo.classes.items()},
            "limits": found.slo.limits,
        },
        "load": {
            "requests_per_s": aim.load_one.requests_per_s,
            "users": aim.load_one.users,
            "output_tokens_per_s": aim.load_one.output_tokens_per_s,
            "prompt_tokens": aim.load_one.prompt_tokens,
            "output_tokens": aim.load_one.output_tokens,
        },
        "headroom": aim.plan.headroom,
        "budget": aim.plan.budget,
        "currency": found.currency or None,
        "winner": by_name[found.winner.rated.candidate.name] if found.winner is not None else None,
        "runners_up": [by_name[one.rated.candidate.name] for one in found.runners_up],
        "candidates": rows,
        "pruned": [_pruned(one) for one in found.pruned],
        "left_out": [{"name": one.name, "values": dict(one.values), "reason": one.reason} for one in found.left_out],
        "pareto": [
            {"name": one.rated.candidate.name, "cost_per_hour": one.cost, one.latency: one.latency_s,
             "load_of_a_unit": one.carried}
            for one in found.pareto
        ],
        "pareto_names": [one.rated.candidate.name for one in found.pareto],
        "why": [],
        "sensitivity": {},
        "verdict": None,
        "engine_flags": {},
        "engine_missing": {},
        "nearest": found.nearest.sentence if found.nearest is not None else None,
        "observed": fitted.as_dict() if fitted is not None else None,
        "runs": found.runs,
    }  # fmt: skip


def _row(one: Rated, found: Found, confirmed: Confirmed | None) -> Answer:
    """Return one candidate; where it was confirmed, with its estimates over several seeds."""
    unit, capacity = one.candidate.unit, one.capacity
    units = confirmed.units if confirmed is not None else one.units
    hour = found.aim.hour(one.choice, units) if units is not None else None
    per_million = one.per_million
    if units is not None and units != one.units and capacity.load > 0:
        per_million = found.aim.per_million(one.choice, units, capacity.load, capacity.summary)
    rate = found.aim.load_one.requests_per_s
    return {
        "name": one.candidate.name,
        "values": dict(one.candidate.values),
        "also": list(one.choice.also),
        "unit": {"name": unit.name, "gpus": unit.gpus, "replicas": unit.replicas},
        "price": asdict(unit.price) if unit.price is not None else None,
        "units": units,
        "gpus": units * unit.gpus if units is not None else None,
        "cost_per_hour": hour,
        "cost_per_million_output_tokens": per_million,
        "carries": {
            "load": capacity.load,
            "over": _finite(capacity.over),
            "requests_per_s": rate * capacity.load if rate is not None else None,
            "binds": capacity.binds or None,
            "at_most": _finite(one.bounds.load),
            "bottleneck": capacity.summary.get("bottleneck"),
            "bottleneck_because": capacity.summary.get("bottleneck_because"),
        },
        "latency": _latency(one, found, confirmed),
        "hit_rate": capacity.summary.get("hit_rate"),
        "confirmed": _confirmed(confirmed) if confirmed is not None else None,
        "warnings": capacity.summary.get("warnings") or [],
    }


def _latency(one: Rated, found: Found, confirmed: Confirmed | None) -> dict[str, float | None]:
    """Return what the SLO names, at the planned load: over several seeds where that was confirmed."""
    if confirmed is not None and confirmed.targets:
        return {key: confirmed.targets[key].mean for key in found.slo.limits if key in confirmed.targets}
    if one.planned is None:
        return dict.fromkeys(found.slo.limits)
    return dict.fromkeys(found.slo.limits) | {key: value for key, value, _ in measured(one.planned, found.slo)}


def _confirmed(one: Confirmed) -> Answer:
    return {
        "seeds": len(one.summaries),
        "load": one.load,
        "whole": one.whole,
        "holds": one.holds,
        "surely": one.surely,
        "targets": {key: _estimate(value) for key, value in one.targets.items()},
        "without_headroom": {key: _estimate(value) for key, value in one.strained.items()},
        "figures": {key: _estimate(value) for key, value in one.figures.items()},
    }


def _estimate(one: Estimate) -> Answer:
    interval = [one.mean - one.half, one.mean + one.half] if one.half is not None else None
    return {"mean": one.mean, "ci95": interval, "limit": one.limit}


def _pruned(one: Pruned) -> Answer:
    candidate = one.choice.candidate
    return {"name": candidate.name, "values": dict(candidate.values), "at_most": _finite(one.bounds.load),
            "reason": one.reason}  # fmt: skip


def _finite(value: float) -> float | None:
    return value if isfinite(value) and value < inf else None
