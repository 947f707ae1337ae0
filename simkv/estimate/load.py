"""How many requests a workload makes, how long they are, and how many are there at once: from its first ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, inf
from statistics import fmean
from typing import Any

from simkv.scenario.build import cost, kv_bytes_of_token, link_config, workload_source
from simkv.scenario.resolve import Resolved, replaced
from simkv.scenario.workload_schema import (
    AllAtOnceArrival,
    BatchWorkload,
    ClientsWorkload,
    ClosedLoopArrival,
    FittedWorkload,
    ReadyQueueArrival,
    SessionsWorkload,
    StagesArrival,
    TraceWorkload,
    spec,
)
from simkv.sim.warm import AssumedService
from simkv.workload.ceiling import Ceiling
from simkv.workload.course import Course
from simkv.workload.lengths import lengths
from simkv.workload.request import Countable, Request, Source
from simkv.workload.streams import Streams

SAMPLE = 1000
"""Requests that are looked at."""
_USERS = SAMPLE // 10
"""Of a closed loop: each is seen coming back."""
_MOST = 1e18
_RECORDED = TraceWorkload | ClientsWorkload | FittedWorkload


@dataclass(frozen=True, slots=True)
class Load:
    """What comes, about."""

    requests: float
    prompt_tokens: float
    """Mean of a prompt."""
    computed_tokens: float
    """The same, without what a cache might know of it by then."""
    output_tokens: float
    """Mean of an answer."""
    together: float
    """Requests in the system at once, were there room for all."""


@dataclass(slots=True)
class _Seen:
    """What the first requests were."""

    count: int = 0
    whole: bool = False
    """There are no more."""
    span_s: float = 0.0
    half_s: float = 0.0
    """When the first half had come: sessions begin slowly."""
    prompt_tokens: int = 0
    computed_tokens: int = 0
    """Of prompts, were nothing ever forgotten."""
    output_tokens: int = 0
    service_s: float = 0.0
    """Sums over the requests."""


def load_of(resolved: Resolved, seed: int) -> Load:
    """Return what the workload of ``resolved`` makes; looks at its first requests, which nobody serves.

    Raises InputError for a trace that doesn't read.
    """
    source = workload_source(_short(resolved), seed)
    seen = _look(source, _service(resolved))
    requests = min(_MOST, _requests(resolved, source, seen, seed))
    count = max(1, seen.count)
    offered = seen.service_s / seen.span_s if seen.span_s > 0 else inf
    return Load(
        requests,
        seen.prompt_tokens / count,
        seen.computed_tokens / count,
        seen.output_tokens / count,
        min(requests, _at_once(resolved.scenario.workload) or max(1.0, offered)),
    )


def _service(resolved: Resolved) -> Callable[[Request, int], float]:
    """Return what says how long a request stays among so many: served, and waiting where there are no seats for all."""
    scenario = resolved.scenario
    seats = scenario.engine.max_num_seqs * scenario.replicas.count
    assumed = AssumedService(cost(resolved), scenario.engine.max_num_seqs, scenario.replicas.count)
    users = max(1.0, (_at_once(scenario.workload) or 0) / _USERS)
    below_bytes = max(0.0, 1 - (scenario.offload.residency or 0.0)) * kv_bytes_of_token(resolved)
    rate = link_config(resolved).h2d_bytes_per_s
    below_s = below_bytes / rate if rate else 0.0  # over a link that carries nothing nobody is served, says the run

    def stay_s(request: Request, under_way: int) -> float:
        there = ceil(under_way * users)
        served = min(there, seats)
        streamed_s = request.output_tokens * served * request.prompt_tokens * below_s / scenario.replicas.count
        return (assumed(request, 0, served) + streamed_s) * max(1.0, there / seats)

    return stay_s


def _short(resolved: Resolved) -> Resolved:
    """Return the scenario with as few requests and users as are looked at, and nothing that passes before it."""
    scenario = replaced(resolved.scenario, ["run", "warm_tiers"], None)
    load = scenario.workload
    if not isinstance(load, _RECORDED):
        scenario = replaced(scenario, ["workload", "requests"], min(load.requests or SAMPLE, SAMPLE))
        arrival = getattr(load, "arrival", None)
        if isinstance(arrival, ClosedLoopArrival | ReadyQueueArrival):
            scenario = replaced(scenario, ["workload", "arrival", "users"], min(arrival.users, _USERS))
    return replace(resolved, scenario=scenario)


def _look(source: Source, service: Callable[[Request, int], float]) -> _Seen:
    seen, under_way = _Seen(), 0

    def lasts(request: Request) -> float:
        time_s = service(request, under_way + 1)
        seen.service_s += time_s
        return time_s

    course, ceiling = Course(source, lasts), Ceiling(1)
    while seen.count < SAMPLE and course.next_s < inf:
        now_s, request, arrived = course.step()
        under_way += 1 if arrived else -1
        if arrived:
            seen.count += 1
            seen.span_s = now_s
            seen.half_s = now_s if seen.count <= SAMPLE // 2 else seen.half_s
            seen.prompt_tokens += request.prompt_tokens
            seen.computed_tokens += request.prompt_tokens - ceiling.add_uncapped(request)
            seen.output_tokens += request.output_tokens
    seen.whole = course.next_s == inf and seen.count < SAMPLE
    return seen


def _requests(resolved: Resolved, source: Source, seen: _Seen, seed: int) -> float:
    load: Any = resolved.scenario.workload
    if isinstance(load, _RECORDED):
        assert isinstance(source, Countable)
        return float(seen.count if seen.whole else max(seen.count, source.expected_requests()))
    return min(_by_number(load, seen), _by_time(resolved.scenario.run.duration, load, seen, seed))


def _by_number(load: Any, seen: _Seen) -> float:
    """Return how many requests the workload has by itself."""
    most = float(load.requests or inf)
    arrival = getattr(load, "arrival", None)
    if isinstance(load, BatchWorkload):
        return min(most, load.size if load.interval is None else inf)
    if isinstance(arrival, StagesArrival):
        return min(most, sum(ceil(stage.rate * stage.duration) for stage in arrival.stages))
    if isinstance(arrival, ReadyQueueArrival) and seen.whole:
        return min(most, seen.count * max(1.0, arrival.users / _USERS))
    return most


def _by_time(duration_s: float | None, load: Any, seen: _Seen, seed: int) -> float:
    """Return how many requests arrive before the run takes in no more."""
    if duration_s is None:
        return inf
    if isinstance(load, BatchWorkload):
        return load.size * (ceil(duration_s / load.interval) if load.interval else 1.0)
    rate = getattr(getattr(load, "arrival", None), "rate", None)
    if isinstance(load, SessionsWorkload) and rate is not None and not seen.whole:
        return max(float(seen.count), float(rate) * duration_s * _turns(load, seed))
    more_users = max(1.0, (_at_once(load) or 0) / _USERS)
    number = float(seen.count)
    if not seen.whole:
        width_s, left_s = seen.span_s - seen.half_s, max(0.0, duration_s - seen.span_s)
        number += left_s * (SAMPLE - SAMPLE // 2) / width_s if width_s > 0 else inf
    return number * more_users


def _turns(load: SessionsWorkload, seed: int) -> float:
    """Return how many turns a session has, on average."""
    return fmean(islice(lengths(spec(load)["turns"], Streams(seed)("estimate"), "workload.turns"), SAMPLE))


def _at_once(load: Any) -> float | None:
    """Return how many requests are there at once because somebody said so; None: times decide."""
    arrival = getattr(load, "arrival", None)
    if isinstance(load, BatchWorkload):
        return float(load.size)
    if isinstance(arrival, AllAtOnceArrival):
        return float(load.requests or inf)
    if isinstance(arrival, ClosedLoopArrival | ReadyQueueArrival):
        return float(arrival.users)
    return None
