"""Rules of the Trace Event Format (JSON object form) that a file must keep for viewers to read it as it is meant."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

ROUNDING = 1.5e-3
"""Of microseconds: times are whole nanoseconds."""
_NEEDS = {
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "b": {"name", "cat", "pid", "tid", "ts", "id"},
    "e": {"name", "cat", "pid", "tid", "ts", "id"},
    "n": {"name", "cat", "pid", "tid", "ts", "id"},
    "s": {"name", "cat", "pid", "tid", "ts", "id"},
    "f": {"name", "cat", "pid", "tid", "ts", "id", "bp"},
    "C": {"name", "pid", "tid", "ts", "args"},
    "M": {"name", "pid", "tid", "args"},
}
_MAY = {"args", "cname"}


def read(file: Path) -> dict[str, Any]:
    """Read a trace file and check that it is one; numbers that JSON doesn't know are refused."""

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    found: dict[str, Any] = json.loads(file.read_text("utf-8"), parse_constant=refuse)
    assert set(found) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert found["displayTimeUnit"] in ("ms", "ns")
    check(found["traceEvents"])
    return found


def check(events: list[dict[str, Any]]) -> None:
    """Each event has what its kind needs; rows are in order of time and nobody does two things at once; pairs match."""
    for event in events:
        needs = _NEEDS[event["ph"]]
        assert needs <= set(event) <= needs | _MAY | {"ph"}, event
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and isinstance(event["name"], str)
        assert event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0
    named = {event["pid"] for event in events if event["name"] == "process_name"}
    assert named >= {event["pid"] for event in events}, "a group of rows has no name"
    rows = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert rows >= set(by_row(events)), "a row has no name"
    for row, slices in by_row(events).items():
        assert all(one["ts"] <= other["ts"] for one, other in pairwise(slices)), f"row {row} is out of order"
        for one, other in pairwise(slices):
            assert one["ts"] + one["dur"] <= other["ts"] + ROUNDING, f"two at once in row {row}: {one}, {other}"
    _check_spans(event for event in events if event["ph"] in "be")
    _check_arrows(events)
    _check_counters(events)


def by_row(events: Iterable[dict[str, Any]]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """Return complete events by row, as they stand in the file."""
    found: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            found[event["pid"], event["tid"]].append(event)
    return found


def _check_spans(events: Iterable[dict[str, Any]]) -> None:
    """Spans of one id are properly nested."""
    open_: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        stack = open_[event["cat"], event["id"]]
        if event["ph"] == "b":
            assert not stack or stack[-1]["ts"] <= event["ts"]
            stack.append(event)
        else:
            begun = stack.pop()
            assert begun["name"] == event["name"] and begun["ts"] <= event["ts"], event
            assert (begun["pid"], begun["tid"]) == (event["pid"], event["tid"])
    assert not any(open_.values()), "a span has no end"


def _check_arrows(events: list[dict[str, Any]]) -> None:
    """Arrows begin and end inside of something that is drawn, and never go back in time."""
    rows = by_row(events)
    tails = {event["id"]: event for event in events if event["ph"] == "s"}
    heads = {event["id"]: event for event in events if event["ph"] == "f"}
    assert set(tails) == set(heads)
    for key, tail in tails.items():
        assert tail["ts"] <= heads[key]["ts"] + ROUNDING
        for end in (tail, heads[key]):
            near = rows[end["pid"], end["tid"]]
            assert any(one["ts"] - ROUNDING <= end["ts"] <= one["ts"] + one["dur"] + ROUNDING for one in near), end


def _check_counters(events: list[dict[str, Any]]) -> None:
    series: dict[tuple[int, str], list[float]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            series[event["pid"], event["name"]].append(event["ts"])
            assert all(isinstance(value, (int, float)) and value >= 0 for value in event["args"].values())
    assert all(times == sorted(times) for times in series.values())
