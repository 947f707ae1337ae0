"""What a scenario's workload offers at load 1: rates, lengths and pauses, by walking through it without a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from statistics import fmean

from simkv.errors import InputError, Problem
from simkv.scenario.base import plain
from simkv.scenario.build import cost, workload_source
from simkv.scenario.resolve import Resolved, replaced
from simkv.scenario.workload_schema import (
    BatchWorkload,
    ClientsWorkload,
    ClosedLoopArrival,
    FittedWorkload,
    ReadyQueueArrival,
    StagesArrival,
    TraceWorkload,
)
from simkv.workload.request import Request, Source

TURNS = 20_000
"""Walked through, about."""
_ENDLESS = 1_000_000_000
_ARRIVAL = "workload.arrival"


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of the sample, and what a cache without limit that was warm would leave to compute of it."""

    prompt_tokens: int
    output_tokens: int
    rest_tokens: int


@dataclass(frozen=True, slots=True)
class Offered:
    """Load 1 of a workload."""

    requests_per_s: float | None
    """None: a closed loop, whose rate is the system's."""
    users: int | None
    """Of a closed loop."""
    turns: float
    """Requests of a session, on average; 1: single requests."""
    pauses_s: float
    """Time between a session's requests, added up over a session, on average."""
    prompt_tokens: float
    """Mean length of a prompt."""
    output_tokens: float
    """Mean length of an answer."""
    sample: tuple[Turn, ...]

    @property
    def output_tokens_per_s(self) -> float | None:
        """None: a closed loop."""
        return None if self.requests_per_s is None else self.requests_per_s * self.output_tokens


def offered(resolved: Resolved, seed: int) -> Offered:
    """Return what the workload of ``resolved`` offers; the same whatever the machine is.

    Raises InputError for a trace that doesn't read.
    """
    scenario = resolved.scenario
    key = json.dumps([plain(scenario.workload), plain(scenario.run), seed], sort_keys=True, default=str)
    return _offered(_Keyed(key, resolved), seed)


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A scenario that counts as its workload."""

    key: str
    resolved: Resolved

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and other.key == self.key


@lru_cache(maxsize=64)
def _offered(of: _Keyed, seed: int) -> Offered:
    resolved = of.resolved
    workload = resolved.scenario.workload
    arrival = getattr(workload, "arrival", None)
    if isinstance(arrival, StagesArrival):
        mend = "give one of its stages as {process: poisson, rate: ...}"
        raise InputError(Problem("stages are no one load to plan for", mend, resolved.layers.file, None, _ARRIVAL))
    if isinstance(arrival, ReadyQueueArrival):
        mend = "give its users as {process: closed_loop, users: ...}"
        what = "one client's queue is no load to plan for"
        raise InputError(Problem(what, mend, resolved.layers.file, None, _ARRIVAL))
    users = arrival.users if isinstance(arrival, ClosedLoopArrival) else None
    sessions = list(_sessions(_unbounded(resolved), seed, users))
    turns = fmean(len(session) for session in sessions)
    rate = None if users is not None else _sessions_per_s(resolved, sessions) * turns
    repeats = isinstance(workload, TraceWorkload | ClientsWorkload | FittedWorkload)
    sample = tuple(turn for session in sessions for turn in _turns(session, repeats))
    return Offered(
        requests_per_s=rate,
        users=users,
        turns=turns,
        pauses_s=fmean(session[-1].arrival_s - session[0].arrival_s for session in sessions),
        prompt_tokens=fmean(turn.prompt_tokens for turn in sample),
        output_tokens=fmean(turn.output_tokens for turn in sample),
        sample=sample,
    )


def served_s(resolved: Resolved, load_one: Offered) -> float:
    """Return about how long a request is served, by steps that take twice those of one sequence alone."""
    step_s = cost(resolved).decode(1, round(load_one.prompt_tokens + load_one.output_tokens / 2))[0]
    return 2 * load_one.output_tokens * step_s


def stay_s(resolved: Resolved, load_one: Offered) -> float:
    """Return about how long a session stays: answers and the pauses between them; of single requests, one answer."""
    return load_one.pauses_s + load_one.turns * served_s(resolved, load_one)


def _unbounded(resolved: Resolved) -> Resolved:
    """Return the scenario without its own bounds, so that sessions are whole."""
    scenario = replaced(resolved.scenario, ["run", "warm_tiers"], None)
    if isinstance(scenario.workload, TraceWorkload | ClientsWorkload | FittedWorkload):
        return replace(resolved, scenario=scenario)
    scenario = replaced(scenario, ["workload", "requests"], _ENDLESS)
    return replace(resolved, scenario=replaced(scenario, ["run", "duration"], None))


def _sessions(resolved: Resolved, seed: int, users: int | None) -> Iterator[list[Request]]:
    """Yield sessions as their requests would come were every answer there at once."""
    source = workload_source(resolved, seed)
    left = TURNS
    for first in islice(source.arrivals(), users):
        session = _followed(source, first)
        left -= len(session)
        yield session
        if left <= 0:
            return


def _followed(source: Source, first: Request) -> list[Request]:
    """Return ``first`` and what follows it in its session, in order of arrival."""
    session, ended = [first], 0
    while ended < len(session) <= TURNS:
        last = session[ended]
        ended += 1
        if last.session >= 0:
            session += [one for one in source.after(last, last.arrival_s, True) if one.session == first.session]
    return sorted(session, key=lambda one: one.arrival_s)


def _sessions_per_s(resolved: Resolved, sessions: list[list[Request]]) -> float:
    """Return how many start in a second: as written, else as they came; 0 where all come at once."""
    workload = resolved.scenario.workload
    if isinstance(workload, BatchWorkload):
        return workload.size / workload.interval if workload.interval else 0.0
    rate = getattr(getattr(workload, "arrival", None), "rate", None)
    if rate is not None:
        return float(rate)
    span_s = sessions[-1][0].arrival_s - sessions[0][0].arrival_s
    return (len(sessions) - 1) / span_s if span_s > 0 else 0.0


def _turns(session: list[Request], repeats: bool) -> Iterator[Turn]:
    """Yield the turns with what is new in each; ``repeats``: any content may have been there, the last token stays."""
    before = 0
    for request in session:
        shared = sum(length for _, _, length in request.spans[:-1])
        own = request.prompt_tokens - shared
        rest = 1 if repeats else max(1, own - before)
        before = own + request.output_tokens
        yield Turn(request.prompt_tokens, request.output_tokens, rest)
