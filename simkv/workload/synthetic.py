"""Synthetic workloads: from a scenario's workload section, already in SI units, to a source.

``build`` is the whole interface. The kinds: ``plain`` (private prompts), ``sessions`` (growing
contexts), ``documents`` (questions about shared documents) and ``batch`` (many at once). System
prompts and documents come on top of ``prompt_tokens``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from simkv.errors import InputError, Problem
from simkv.workload.arrivals import batch_times, users
from simkv.workload.bodies import DocumentBodies, PlainBodies
from simkv.workload.readyqueue import ReadyQueueSource
from simkv.workload.request import Source
from simkv.workload.sessions import SessionContent, SessionSource
from simkv.workload.single import ClosedSource, Limits, OpenSource
from simkv.workload.spec import Spec, choose, need, number, whole
from simkv.workload.stages import StagedSource
from simkv.workload.starts import open_times, session_starts, user_pauses
from simkv.workload.streams import Streams

WHERE = "workload"


def build(spec: Spec, seed: int, duration_s: float | None = None) -> Source:
    """Return the source that ``spec`` describes; equal arguments give equal requests.

    ``spec["requests"]`` bounds the number of requests, ``duration_s`` their arrival times (which
    stay below it). Raises InputError where a value is missing or wrong, or nothing bounds the
    workload.
    """
    make = choose(_KINDS, need(spec, "kind", WHERE), f"{WHERE}.kind")
    return make(spec, Streams(seed), _limits(spec, duration_s))


def _limits(spec: Spec, duration_s: float | None) -> Limits:
    requests = spec.get("requests")
    process = (spec.get("arrival") or {}).get("process")
    bounded = process in ("stages", "ready_queue") or (spec["kind"] == "batch" and spec.get("interval") is None)
    if requests is None and duration_s is None and not bounded:
        raise _unbounded("nothing bounds the workload", "give workload.requests or run.duration")
    if requests is None and process == "all_at_once":
        raise _unbounded("nothing bounds what arrives at once", "give workload.requests")
    most = None if requests is None else whole(requests, f"{WHERE}.requests", 1)
    return Limits(most, None if duration_s is None else number(duration_s, "run.duration", 0))


def _unbounded(what: str, mend: str) -> InputError:
    return InputError(Problem(what, mend, path=f"{WHERE}.requests"))


def _single(content: PlainBodies, spec: Spec, streams: Streams, limits: Limits) -> Source:
    arrival, where = need(spec, "arrival", WHERE), f"{WHERE}.arrival"
    if arrival.get("process") == "closed_loop":
        return ClosedSource(content, users(arrival, where), user_pauses(arrival, streams, where), limits)
    if arrival.get("process") == "stages":
        return StagedSource(content, arrival, streams, limits, where)
    return OpenSource(content, open_times(arrival, streams, where), limits)


def _plain(spec: Spec, streams: Streams, limits: Limits) -> Source:
    return _single(PlainBodies(spec, streams, WHERE), spec, streams, limits)


def _documents(spec: Spec, streams: Streams, limits: Limits) -> Source:
    return _single(DocumentBodies(spec, streams, WHERE), spec, streams, limits)


def _batch(spec: Spec, streams: Streams, limits: Limits) -> Source:
    size = whole(need(spec, "size", WHERE), f"{WHERE}.size", 1)
    every = spec.get("interval")
    interval_s = None if every is None else number(every, f"{WHERE}.interval", 0, above=True)
    return OpenSource(PlainBodies(spec, streams, WHERE), partial(batch_times, size, interval_s), limits)


def _sessions(spec: Spec, streams: Streams, limits: Limits) -> Source:
    content, where = SessionContent(spec, streams, WHERE), f"{WHERE}.arrival"
    arrival = need(spec, "arrival", WHERE)
    if arrival.get("process") == "ready_queue":
        return ReadyQueueSource(content, arrival, streams, limits, where)
    return SessionSource(content, limits, *session_starts(arrival, streams, where))


_KINDS: dict[str, Callable[[Spec, Streams, Limits], Source]] = {
    "plain": _plain,
    "sessions": _sessions,
    "documents": _documents,
    "batch": _batch,
}
