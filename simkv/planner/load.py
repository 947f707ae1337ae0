"""More or less of a scenario's load, for runs that are long enough to judge and no longer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Any

from simkv import units
from simkv.errors import InputError, Problem
from simkv.planner.offered import Offered, offered, ramp_s
from simkv.scenario.base import Section
from simkv.scenario.resolve import Resolved
from simkv.scenario.workload_schema import (
    BatchWorkload,
    ClientsWorkload,
    ClosedLoopArrival,
    FittedWorkload,
    TraceWorkload,
)
from simkv.sweep.simulate import Case

ALWAYS: tuple[str, ...] = ("run.baselines=[]",)
"""Set in every run of the planner."""
LEAST_WARM_UP_S = 1e-9


def at_load(case: Case, resolved: Resolved, load: float, requests: int) -> Case:
    """Return ``case`` at ``load`` times its own load, with about ``requests`` to judge by.

    ``resolved`` is what ``case`` resolves to. Open arrivals come ``load`` times as often, closed loops have ``load``
    times as many users (:func:`real_load` says what is left of a fraction of one), a trace's times are divided by it.
    The requests to judge by, never more than the scenario has, come behind a warm-up in which sessions and batches
    grow to what they are later (:func:`simkv.planner.offered.ramp_s`); where the scenario has no time for its warm-up
    itself, that is it. Raises InputError for a workload that comes all at once.
    """
    load_one = offered(resolved, resolved.scenario.run.seed)
    check(resolved, load_one)
    ramp = ramp_s(resolved, load_one)
    settings = _scaled(resolved, load_one, load, _judged(resolved, requests), ramp)
    if resolved.scenario.run.warm_up == "auto" and load_one.users is None:
        settings["run.warm_up"] = units.exact(max(ramp, LEAST_WARM_UP_S), "time")
    return replace(case, assignments=(*case.assignments, *(f"{k}={v}" for k, v in settings.items()), *ALWAYS))


def real_load(resolved: Resolved, load: float) -> float:
    """Return the load that is simulated for ``load``: users come whole."""
    arrival = getattr(resolved.scenario.workload, "arrival", None)
    return max(1, round(arrival.users * load)) / arrival.users if isinstance(arrival, ClosedLoopArrival) else load


def check(resolved: Resolved, load_one: Offered) -> None:
    """Raise InputError where there is no load to scale."""
    if load_one.users is None and not load_one.requests_per_s:
        kind = resolved.scenario.workload.kind
        mend = (
            "give workload.interval"
            if kind == "batch"
            else "give workload.arrival a process with a rate or with users (poisson, gamma, constant, closed_loop)"
        )
        what = "everything comes at once, so there is no load to plan for"
        raise InputError(Problem(what, mend, resolved.layers.file, None, "workload"))


def _judged(resolved: Resolved, requests: int) -> int:
    """Return ``requests``, or as many as the scenario has where that is fewer."""
    workload = resolved.scenario.workload
    own = getattr(workload, "requests", None) or getattr(workload, "limit", None)
    return min(requests, own) if own else requests


def _scaled(resolved: Resolved, load_one: Offered, load: float, requests: int, ramp: float) -> dict[str, str]:
    """Return what is set for the load and for the length of the run."""
    workload = resolved.scenario.workload
    if load_one.users is not None:
        users = max(1, round(load_one.users * load))
        return {"workload.arrival.users": str(users)} | _closed(workload, users, load_one, requests)
    assert load_one.requests_per_s is not None
    per_s = load_one.requests_per_s * load
    total = requests + ceil(ramp * per_s)
    return _OPEN.get(type(workload), _synthetic)(workload, load_one, load, total)


def _closed(workload: Any, users: int, load_one: Offered, requests: int) -> dict[str, str]:
    """Return how much a closed loop takes: each user has been through two sessions when the judged requests begin."""
    total = requests + ceil(2 * users * load_one.turns)
    if isinstance(workload, TraceWorkload):
        return {"workload.limit": str(_at_most(workload.limit, ceil(total / load_one.turns)))}
    return {"workload.requests": str(total)} | ({"run.duration": "null"})


def _synthetic(workload: Any, load_one: Offered, load: float, total: int) -> dict[str, str]:
    """Bound the run by time: a number of requests would cut the last sessions short, and with them the load."""
    assert load_one.requests_per_s is not None
    return {
        "workload.arrival.rate": units.exact(workload.arrival.rate * load, "request_rate"),
        "workload.requests": "null",
        "run.duration": units.exact(total / (load_one.requests_per_s * load), "time"),
    }


def _batches(workload: Any, load_one: Offered, load: float, total: int) -> dict[str, str]:
    return {"workload.interval": units.exact(workload.interval / load, "time"), "workload.requests": str(total)}


def _trace(workload: Any, load_one: Offered, load: float, total: int) -> dict[str, str]:
    limit = str(_at_most(workload.limit, ceil(total / load_one.turns)))
    rate = getattr(workload.arrival, "rate", None)
    if rate is not None:
        return {"workload.arrival.rate": units.exact(rate * load, "request_rate"), "workload.limit": limit}
    return {"workload.time_scale": repr(workload.time_scale / load), "workload.limit": limit}


def _rates(workload: Any, load_one: Offered, load: float, total: int) -> dict[str, str]:
    requests = str(_at_most(workload.requests, total))
    return {"workload.rate_scale": repr(workload.rate_scale * load), "workload.requests": requests}


def _at_most(own: int | None, wanted: int) -> int:
    return min(own, wanted) if own else wanted


_OPEN: dict[type[Section], Callable[[Any, Offered, float, int], dict[str, str]]] = {
    BatchWorkload: _batches,
    TraceWorkload: _trace,
    ClientsWorkload: _rates,
    FittedWorkload: _rates,
}
"""By kind of workload; the others have arrivals with a rate."""
