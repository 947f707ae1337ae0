"""Requests: a span each from arrival to finish, its phases inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from simkv.chrometrace.events import Event, mark, span
from simkv.chrometrace.layout import Layout
from simkv.sim.record.recording import Recording
from simkv.sim.rundata import RunData

MOST = 50_000
"""So many requests are drawn, the first to arrive: others are left out, and counted."""

_ALWAYS = ("id", "replica", "prompt_tokens", "output_tokens")
_WHERE_ANY = ("hit_vram_tokens", "hit_dram_tokens", "hit_ssd_tokens", "recomputed_tokens", "preemptions")
_PARTS = ("queue", "load_dram", "load_ssd", "prefill", "decode", "recompute", "preempted")
_PHASES = (
    ("waiting", "arrival_s", "scheduled_s"),
    ("prefill", "scheduled_s", "first_token_s"),
    ("decode", "first_token_s", "finish_s"),
)


def in_window(recording: Recording, data: RunData) -> tuple[list[int], int]:
    """Return the rows of requests that were there in the window, by arrival, and how many of them are left out."""
    arrival_s, finish_s = (data.requests[name].astype(np.float64) for name in ("arrival_s", "finish_s"))
    here = np.flatnonzero((arrival_s <= recording.end_s) & (finish_s >= recording.begin_s))
    here = here[np.argsort(arrival_s[here], kind="stable")]
    return here[:MOST].tolist(), max(0, len(here) - MOST)


def requests(recording: Recording, data: RunData, layout: Layout, rows: list[int]) -> Iterator[Event]:
    """Yield spans of requests that have ended, cut where the window begins and ends."""
    columns = [column[rows].tolist() for column in data.requests.values()]
    for values in zip(*columns, strict=True):
        one = dict(zip(data.requests, values, strict=True))
        key, args = f"request {one['id']}", _args(one, data.class_names)
        if one["rejected"]:
            yield mark(layout.requests, "rejected", "request", key, one["arrival_s"], args)
            continue
        begin_s, end_s = _cut(one["arrival_s"], one["finish_s"], recording)
        if (begin_s, end_s) != (one["arrival_s"], one["finish_s"]):
            args["cut"] = "it goes on beyond the window"
        opened, closed = span(layout.requests, _name(args), "request", key, begin_s, end_s, args)
        yield opened
        for name, first, last in _PHASES:
            phase = _cut(one[first], one[last], recording)
            if phase[1] > phase[0]:
                yield from span(layout.requests, name, "request", key, *phase, {})
        yield closed


def _cut(begin_s: float, end_s: float, recording: Recording) -> tuple[float, float]:
    return max(begin_s, recording.begin_s), min(end_s, recording.end_s)


def _name(args: dict[str, Any]) -> str:
    """All requests of a class have one name: viewers put what has one name together."""
    return f"request, {args['class']}" if "class" in args else "request"


def _args(one: dict[str, Any], classes: tuple[str, ...]) -> dict[str, Any]:
    args: dict[str, Any] = {name: one[name] for name in _ALWAYS}
    args |= {name: one[name] for name in _WHERE_ANY if one[name]}
    if one["session"] >= 0:
        args["session"] = one["session"]
    args |= {f"{part}_ms": round(one[f"{part}_time_s"] * 1e3, 3) for part in _PARTS if one[f"{part}_time_s"]}
    if classes[one["cls"]]:
        args["class"] = classes[one["cls"]]
    return args
