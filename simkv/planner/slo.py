"""What must hold: the plan's targets, held against the summary of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simkv.errors import InputError, Problem, unknown
from simkv.planner.types import Slo
from simkv.results.slo import split_key
from simkv.scenario.resolve import Resolved
from simkv.scenario.schema import SLO_KEYS

STATIONARY, SERVED = "stationary", "served"
"""What a run misses whose queue grows without bound, and one that turned requests away."""
CLASS_KEYS = tuple(key for key in SLO_KEYS if not key.startswith("itl_"))
"""Intervals between tokens are counted over all requests alone."""


def slo_of(resolved: Resolved) -> Slo:
    """Return the plan's targets, or the scenario's where the plan has none; raises InputError without any."""
    scenario = resolved.scenario
    own, classes = (scenario.plan.slo, scenario.plan.classes) if scenario.plan is not None else ({}, {})
    targets = dict(own) if own or classes else dict(scenario.slo)
    place = "plan.slo" if own else "slo"
    for key in targets:
        if key not in SLO_KEYS:
            raise unknown("target", key, SLO_KEYS, place)
    for name, of_class in classes.items():
        if name not in scenario.classes:
            raise unknown("class", name, tuple(scenario.classes), "plan.classes")
        for key in of_class:
            if key not in CLASS_KEYS:
                raise unknown("target of a class", key, CLASS_KEYS, f"plan.classes.{name}")
    if not targets and not any(classes.values()):
        mend = "give plan.slo (or the scenario's slo), like {ttft_p95: 2s, tpot_p95: 60ms}"
        raise InputError(Problem("nothing says what must hold", mend, resolved.layers.file, None, "plan.slo"))
    return Slo(targets, {name: dict(of_class) for name, of_class in classes.items() if of_class})


def misses(summary: Mapping[str, Any], slo: Slo) -> dict[str, tuple[float, float]]:
    """Return what doesn't hold in a run: ``(value, limit)`` by target, a class's as ``NAME.TARGET``.

    A queue that grows without bound is ``stationary: (1, 0)``, requests that were turned away are their share, as
    ``served``. A statistic of nothing (no request has a second token) misses no limit.
    """
    found = {key: (value, limit) for key, value, limit in measured(summary, slo) if value > limit}
    if any(warning["code"] == "not_stationary" for warning in summary["warnings"]):
        found[STATIONARY] = (1.0, 0.0)
    requests = summary["requests"]
    if requests["rejected"]:
        found[SERVED] = (requests["rejected"] / requests["arrived"], 0.0)
    return found


def measured(summary: Mapping[str, Any], slo: Slo) -> Iterator[tuple[str, float, float]]:
    """Yield ``(target, value, limit)`` of all targets that the run has a value for.

    A run whose requests are all of one class has no figures by class: they are its own.
    """
    yield from _measured(summary, slo.targets, "")
    classes = summary.get("classes")
    for name, targets in slo.classes.items():
        yield from _measured(summary if classes is None else classes.get(name, {}), targets, f"{name}.")


def _measured(
    figures: Mapping[str, Any], targets: Mapping[str, float], prefix: str
) -> Iterator[tuple[str, float, float]]:
    for key, limit in targets.items():
        metric, statistic = split_key(key)
        value = (figures.get(f"{metric}_s") or {}).get(statistic)
        if value is not None:
            yield prefix + key, float(value), limit
