"""Events of the Trace Event Format, as plain dictionaries: one function a kind.

Times come in seconds of simulated time and go out in microseconds, as the format has them, to the nanosecond.
Source: Trace Event Format (Google), JSON object form; also what ui.perfetto.dev reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

Event: TypeAlias = dict[str, Any]
Args: TypeAlias = Mapping[str, Any]


class Thread(NamedTuple):
    """Where events are drawn: a row of a group of rows."""

    pid: int
    tid: int


def nanoseconds(time_s: float) -> int:
    """Return a time in whole nanoseconds."""
    return round(time_s * 1e9)


def microseconds(time_s: float) -> float:
    """Return a time in microseconds, to the nanosecond."""
    return nanoseconds(time_s) / 1000


def complete(thread: Thread, name: str, category: str, begin_s: float, end_s: float, args: Args, color: str) -> Event:
    """Something that took from ``begin_s`` to ``end_s``; ``color``: a name that chrome://tracing knows, or empty."""
    event = {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": thread.pid,
        "tid": thread.tid,
        "ts": microseconds(begin_s),
        "dur": (nanoseconds(end_s) - nanoseconds(begin_s)) / 1000,
        "args": args,
    }
    return event | {"cname": color} if color else event


def span(thread: Thread, name: str, category: str, key: str, begin_s: float, end_s: float, args: Args) -> list[Event]:
    """Begin and end of something that may overlap others of its kind; what has the same ``key`` may lie inside."""
    common = {"name": name, "cat": category, "id": key, "pid": thread.pid, "tid": thread.tid}
    return [
        {"ph": "b", **common, "ts": microseconds(begin_s), "args": args},
        {"ph": "e", **common, "ts": microseconds(end_s)},
    ]


def mark(thread: Thread, name: str, category: str, key: str, time_s: float, args: Args) -> Event:
    """An instant beside spans of ``category``."""
    place = {"pid": thread.pid, "tid": thread.tid, "ts": microseconds(time_s)}
    return {"ph": "n", "name": name, "cat": category, "id": key, **place, "args": args}


def arrow(name: str, key: str, begin: tuple[Thread, float], end: tuple[Thread, float]) -> list[Event]:
    """An arrow from what is drawn at one place and time to what is at another."""
    common = {"name": name, "cat": "flow", "id": key}
    ends = [{"pid": place.pid, "tid": place.tid, "ts": microseconds(time_s)} for place, time_s in (begin, end)]
    return [{"ph": "s", **common, **ends[0]}, {"ph": "f", "bp": "e", **common, **ends[1]}]


def counter(pid: int, name: str, time_s: float, values: Args) -> Event:
    """Values of a chart from ``time_s`` on, one upon the other."""
    return {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": microseconds(time_s), "args": values}


def process(pid: int, name: str, place: int) -> list[Event]:
    """Name a group of rows, and its place among the groups."""
    return [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}},
        {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": place}},
    ]


def thread_name(thread: Thread, name: str) -> list[Event]:
    """Name a row; rows are in the order of their numbers."""
    place = {"pid": thread.pid, "tid": thread.tid}
    return [
        {"ph": "M", "name": "thread_name", **place, "args": {"name": name}},
        {"ph": "M", "name": "thread_sort_index", **place, "args": {"sort_index": thread.tid}},
    ]
