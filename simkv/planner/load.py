"""More or less of a scenario's load, for runs that are long enough to judge and no longer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Literal

from simkv import units
from simkv.errors import InputError, Problem
from simkv.planner.offered import Offered, offered, served_s, stay_s
from simkv.scenario.base import Section
from simkv.scenario.resolve import Resolved
from simkv.scenario.warm_checks import cannot_warm
from simkv.scenario.workload_schema import (
    BatchWorkload,
    ClientsWorkload,
    ClosedLoopArrival,
    FittedWorkload,
    TraceWorkload,
)
from simkv.sweeps.simulate import Case

ALWAYS: tuple[str, ...] = ("run.baselines=[]",)
"""Set in every run of the planner."""
STAYS = 2
"""A run is as full as it will be after so many times what a request (or, from cold, a session) stays."""
BRIEF = 500
"""Fewer requests to judge by are worth no more warming than :data:`STAYS` of a session."""
SETTLED = 4
"""After so many stays of a session there are as many sessions, and as old, as later: all but two in a hundred."""
LEAST_WARM_UP_S = 1e-9


def at_load(case: Case, resolved: Resolved, load: float, requests: int) -> Case:
    """Return ``case`` at ``load`` times its own load, with about ``requests`` to judge by.

    ``resolved`` is what ``case`` resolves to. Open arrivals come ``load`` times as often, closed loops have ``load``
    times as many users (:func:`real_load` says what is left of a fraction of one), a trace's times are divided by it.
    Tiers are warmed by what comes before, where that can be (``run.warm_tiers``): by some stays of a session, fewer
    for brief runs, and without sessions until longer would change nothing. The requests to judge by, never more than
    the scenario has, come behind a warm-up in which the batch (from cold, sessions too) grows to what it is later;
    where the scenario has no time for its warm-up itself, that is it. Raises InputError for a workload that comes all
    at once.
    """
    load_one = offered(resolved, resolved.scenario.run.seed)
    check(resolved, load_one)
    warm = _warming(resolved, load_one, requests)
    fill_s = STAYS * (served_s(resolved, load_one) if warm else stay_s(resolved, load_one))
    run = _Run(resolved, load_one, load, _judged(resolved, requests), fill_s, bool(warm))
    settings = warm | run.settings()
    if resolved.scenario.run.warm_up == "auto" and load_one.users is None:
        settings["run.warm_up"] = units.exact(max(fill_s, LEAST_WARM_UP_S), "time")
    return replace(case, assignments=(*case.assignments, *(f"{k}={v}" for k, v in settings.items()), *ALWAYS))


def timed_requests(resolved: Resolved, load_one: Offered, load: float, requests: int) -> int:
    """Return about how many requests a run of :func:`at_load` simulates in its own time; of a closed loop, the users.

    Raises InputError as that does.
    """
    if load_one.requests_per_s is None:
        return requests + ceil((load_one.users or 0) * load)
    warm = _warming(resolved, load_one, requests)
    fill_s = STAYS * (served_s(resolved, load_one) if warm else stay_s(resolved, load_one))
    return requests + ceil(fill_s * load_one.requests_per_s * load)


def _warming(resolved: Resolved, load_one: Offered, requests: int) -> dict[str, str]:
    """Return how tiers are warmed: as the scenario says, else as its workload and engine allow; empty: not at all."""
    scenario = resolved.scenario
    if scenario.run.warm_tiers is not None:
        return {"run.warm_tiers": _time(scenario.run.warm_tiers)}
    if cannot_warm(scenario) is not None:
        return {}
    if load_one.requests_per_s is None or load_one.turns <= 1:
        return {"run.warm_tiers": "auto"}
    stays = STAYS if requests < BRIEF else SETTLED
    return {"run.warm_tiers": units.exact(stays * stay_s(resolved, load_one), "time")}


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


def _time(value: float | Literal["auto"]) -> str:
    return value if value == "auto" else units.exact(value, "time")


@dataclass(frozen=True, slots=True)
class _Run:
    """What is set for the load and for the length of one run."""

    resolved: Resolved
    load_one: Offered
    load: float
    requests: int
    fill_s: float
    warm: bool

    def settings(self) -> dict[str, str]:
        """Return value by path."""
        workload = self.resolved.scenario.workload
        if self.load_one.users is not None:
            return self.closed(workload, max(1, round(self.load_one.users * self.load)))
        return _OPEN.get(type(workload), _Run.synthetic)(self, workload)

    @property
    def per_s(self) -> float:
        """Requests that come in a second."""
        assert self.load_one.requests_per_s is not None
        return self.load_one.requests_per_s * self.load

    @property
    def total(self) -> int:
        """Requests of the timed run."""
        return self.requests + ceil(self.fill_s * self.per_s)

    def closed(self, workload: Any, users: int) -> dict[str, str]:
        """Bound a closed loop: from cold, each user has been through two sessions when the judged requests begin."""
        turns = self.load_one.turns
        total = self.requests + ceil(users if self.warm else STAYS * users * turns)
        found = {"workload.arrival.users": str(users), "run.duration": "null"}
        if isinstance(workload, TraceWorkload):
            return found | {"workload.limit": self.recorded(workload.limit, ceil(total / turns))}
        return found | {"workload.requests": str(total)}

    def synthetic(self, workload: Any) -> dict[str, str]:
        """Bound the run by time: a number of requests would cut the last sessions short, and with them the load."""
        return {
            "workload.arrival.rate": units.exact(workload.arrival.rate * self.load, "request_rate"),
            "workload.requests": "null",
            "run.duration": units.exact(self.total / self.per_s, "time"),
        }

    def batches(self, workload: Any) -> dict[str, str]:
        """Batches that come again and again."""
        interval = units.exact(workload.interval / self.load, "time")
        return {"workload.interval": interval, "workload.requests": str(self.total)}

    def trace(self, workload: Any) -> dict[str, str]:
        """A recording; of sessions that start at a rate, what they do in themselves stays as fast as it was."""
        limit = self.recorded(workload.limit, ceil(self.total / self.load_one.turns))
        rate = getattr(workload.arrival, "rate", None)
        if rate is not None:
            scaled = {"workload.arrival.rate": units.exact(rate * self.load, "request_rate")}
        else:
            scaled = {"workload.time_scale": repr(workload.time_scale / self.load)}
        return scaled | {"workload.limit": limit}

    def clients(self, workload: Any) -> dict[str, str]:
        """Recorded clients, whose rates are scaled."""
        requests = self.recorded(workload.requests, self.total)
        return {"workload.rate_scale": repr(workload.rate_scale * self.load), "workload.requests": requests}

    def fitted(self, workload: Any) -> dict[str, str]:
        """A fitted workload, which draws as many as it is asked for."""
        return {"workload.rate_scale": repr(workload.rate_scale * self.load), "workload.requests": str(self.total)}

    def recorded(self, own: int | None, wanted: int) -> str:
        """Return how much of a recording is used: its first half passes where tiers are warmed."""
        wanted = 2 * wanted if self.warm else wanted
        return str(min(own, wanted) if own else wanted)


_OPEN: dict[type[Section], Callable[[_Run, Any], dict[str, str]]] = {
    BatchWorkload: _Run.batches,
    TraceWorkload: _Run.trace,
    ClientsWorkload: _Run.clients,
    FittedWorkload: _Run.fitted,
}
"""By kind of workload; the others have arrivals with a rate."""
