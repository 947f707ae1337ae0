"""Transfers: a slice for each stretch that a lane served one, a span where it queued, an arrow to who waited."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from math import inf, isnan
from typing import Any, NamedTuple

from simkv.chrometrace.events import Event, arrow, complete, span
from simkv.chrometrace.layout import Layout
from simkv.sim.record.recording import FATES, KINDS, PURPOSES, Recording

_COLORS = {
    "load": "thread_state_runnable",
    "promote": "rail_animation",
    "stream": "rail_idle",
    "store": "light_memory_dump",
    "spill": "detailed_memory_dump",
    "cascade": "background_memory_dump",
    "swap_out": "olive",
    "swap_in": "vsync_highlight_color",
    "other": "generic_work",
}
_FATE_COLORS = {"useful": "good", "late": "bad", "wasted": "terrible", "open": "yellow"}
_ARROWS = ("load", "swap_in")


class Moved(NamedTuple):
    """A transfer in words."""

    number: int
    lane: int
    submitted_s: float
    end_s: float
    nbytes: int
    kind: str
    purpose: str
    request: int
    fate: str

    @property
    def name(self) -> str:
        """What it is for; of prefetches also what became of them."""
        return self.purpose if self.fate == "none" else f"{self.purpose}, {self.fate}"

    @property
    def color(self) -> str:
        """A colour that chrome://tracing knows."""
        return _FATE_COLORS.get(self.fate) or _COLORS.get(self.purpose, "generic_work")


class _Served:
    """When a transfer was served: first, last, and in how many stretches."""

    __slots__ = ("first_s", "last_s", "stretches")

    def __init__(self, first_s: float) -> None:
        self.first_s = first_s
        self.last_s = first_s
        self.stretches = 0


def transfers(recording: Recording, layout: Layout) -> Iterator[Event]:
    """Yield lane after lane, each in order of time; then what queued, and who waited for what."""
    moved = {one.number: one for one in _moved(recording)}
    served = _served(recording)
    columns = zip(*(recording.slices[name] for name in ("transfer", "begin_s", "end_s")), strict=True)
    stretches = sorted((moved[number].lane, begin_s, end_s, number) for number, begin_s, end_s in columns)
    for lane, begin_s, end_s, number in stretches:
        one = moved[int(number)]
        args = _args(one, served[one.number].first_s, recording.begin_s)
        yield complete(layout.lane(lane), one.name, f"transfer,{one.purpose}", begin_s, end_s, args, one.color)
    for one in moved.values():
        yield from _queued(one, served.get(one.number), recording, layout)
    yield from _arrows(recording, layout, moved, served)


def _moved(recording: Recording) -> Iterator[Moved]:
    table = recording.transfers
    columns = zip(*(table[name] for name in table), strict=True)
    for number, lane, submitted_s, end_s, nbytes, kind, purpose, request, fate in columns:
        words = KINDS[int(kind)], PURPOSES[int(purpose)], int(request), FATES[int(fate)]
        yield Moved(int(number), int(lane), submitted_s, end_s, int(nbytes), *words)


def _served(recording: Recording) -> dict[int, _Served]:
    found: dict[int, _Served] = {}
    columns = zip(*(recording.slices[name] for name in ("transfer", "begin_s", "end_s")), strict=True)
    for number, begin_s, end_s in columns:
        one = found.setdefault(int(number), _Served(begin_s))
        one.last_s = end_s
        one.stretches += 1
    return found


def _args(one: Moved, first_s: float, begin_s: float) -> dict[str, Any]:
    args: dict[str, Any] = {"bytes": one.nbytes, "kind": one.kind}
    if one.request >= 0:
        args["request"] = one.request
    if one.fate != "none":
        args["fate"] = one.fate
    if one.submitted_s >= begin_s:
        args["queued_ms"] = round((first_s - one.submitted_s) * 1e3, 3)
    if isnan(one.end_s):
        args["cut"] = "it goes on beyond the window"
    return args


def _queued(one: Moved, served: _Served | None, recording: Recording, layout: Layout) -> list[Event]:
    """A span from submission to end, where the transfer had to wait, at first or in between."""
    if served is not None and served.stretches == 1 and served.first_s <= max(one.submitted_s, recording.begin_s):
        return []
    end_s = recording.end_s if isnan(one.end_s) else one.end_s
    begin_s = max(one.submitted_s, recording.begin_s)
    first_s = inf if served is None else served.first_s
    args = _args(one, min(first_s, end_s), recording.begin_s) | {"stretches": served.stretches if served else 0}
    name = f"queued: {recording.lanes[one.lane].rsplit(' ', 1)[1]}"
    return span(layout.lane(one.lane), name, "queue", f"transfer {one.number}", begin_s, end_s, args)


def _arrows(
    recording: Recording, layout: Layout, moved: dict[int, Moved], served: dict[int, _Served]
) -> Iterator[Event]:
    """Yield an arrow from each load to the step that had waited for it, or that came next."""
    steps = _steps_by_replica(recording)
    for one in moved.values():
        if one.purpose not in _ARROWS or isnan(one.end_s) or one.number not in served:
            continue
        lane = recording.lanes[one.lane]
        found = _step_after(steps.get(int(lane.split()[1]), []), one.end_s) if lane.startswith("replica") else None
        if found is not None:
            begin = (layout.lane(one.lane), served[one.number].last_s)
            end = (layout.steps(int(lane.split()[1])), found)
            yield from arrow(one.purpose, f"transfer {one.number}", begin, end)


def _steps_by_replica(recording: Recording) -> dict[int, list[tuple[float, float, float]]]:
    found: dict[int, list[tuple[float, float, float]]] = {}
    table = recording.steps
    for replica, begin_s, end_s, wait_s in zip(
        *(table[name] for name in ("replica", "begin_s", "end_s", "wait_s")), strict=True
    ):
        found.setdefault(int(replica), []).append((begin_s, end_s, wait_s))
    return found


def _step_after(steps: list[tuple[float, float, float]], time_s: float) -> float | None:
    """Return when the step that waited until ``time_s`` went on, or else when the next one began."""
    place = bisect_right(steps, (time_s, -inf, 0.0))
    if place and steps[place - 1][1] > time_s and steps[place - 1][2]:
        return time_s
    return steps[place][0] if place < len(steps) else None
