"""Laws that a finished run's records must keep; ``--audit`` calls this after the run.

The same laws inside the run, at every event, are ``sim``'s to watch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isnan, nan
from typing import NamedTuple

import numpy as np

from simkv.errors import LawError, broken_law
from simkv.results.summary import PARTS, TIERS, hit_rate
from simkv.results.window import Rows, column, e2e_s, finished
from simkv.sim.rundata import REQUEST_COLUMNS, RunData

RELATIVE = 1e-9
_SHOWN = 3


class Breach(NamedTuple):
    """What was found, of what, and when (NaN: when the run ended)."""

    what: str
    thing: str
    time_s: float = nan


def check_run(data: RunData) -> None:
    """Raise :class:`LawError` that names each broken law; return None where all hold."""
    broken = violations(data)
    if broken:
        raise LawError("in the records of a run, " + "\n".join(broken))


def violations(data: RunData) -> list[str]:
    """Return a line for each breach: the law's name, when, of what, and what was found."""
    found: list[str] = []
    for law, check in LAWS.items():
        found += [_told(law, breach, data) for breach in check(data)]
        if found and law == "columns":  # there is nothing to look at
            break
    return found


def _told(law: str, breach: Breach, data: RunData) -> str:
    time_s = data.end_s if isnan(breach.time_s) else breach.time_s
    return broken_law(law, time_s, breach.thing, breach.what)


def _conserved(data: RunData) -> Iterator[Breach]:
    rejected = int(data.requests["rejected"].sum())
    finished = data.requests["rejected"].size - rejected
    if data.arrived != data.finished + data.live + data.rejected:
        yield Breach(
            f"{data.arrived} arrived, {data.finished} finished + {data.live} live + {data.rejected} rejected",
            "requests",
        )
    if (finished, rejected) != (data.finished, data.rejected):
        yield Breach(
            f"records of {finished} finished, {rejected} rejected; counters say {data.finished}, {data.rejected}",
            "requests",
        )
    ids = data.requests["id"]
    numbers, times = np.unique(ids, return_counts=True)
    if numbers.size != ids.size:
        first = int(numbers[times > 1][0])
        ended_s = float(data.requests["finish_s"][ids == first][-1])
        yield Breach(f"{ids.size - numbers.size} requests are recorded twice", f"request {first}", ended_s)


def _columns(data: RunData) -> Iterator[Breach]:
    sizes = {name: data.requests[name].size for name in REQUEST_COLUMNS if name in data.requests}
    if set(sizes) != set(REQUEST_COLUMNS) or len(set(sizes.values())) > 1:
        yield Breach(f"columns and their lengths: {sizes}", "columns")


def _ordered(data: RunData) -> Iterator[Breach]:
    rows = finished(data)
    times = [column(data, f"{name}_s", rows) for name in ("arrival", "scheduled", "first_token", "finish")]
    names = ("arrival", "scheduled", "first token", "finish")
    for place in range(3):
        yield from _rows(data, rows, ~(times[place] <= times[place + 1]), f"{names[place]} is after {names[place + 1]}")
    late = ~(times[3] <= data.end_s * (1 + RELATIVE))
    yield from _rows(data, rows, late, f"finish is after the run's end at {data.end_s}")


def _recorded_in_order(data: RunData) -> Iterator[Breach]:
    finish = column(data, "finish_s", finished(data))
    if (np.diff(finish) < 0).any():
        yield Breach(
            f"records are not in the order in which requests ended ({int((np.diff(finish) < 0).sum())} times)",
            "records",
        )


def _parts_sum(data: RunData) -> Iterator[Breach]:
    rows = finished(data)
    parts = np.zeros(len(rows))
    for part in PARTS:
        values = column(data, f"{part}_time_s", rows)
        yield from _rows(data, rows, ~(values >= -RELATIVE * data.end_s), f"{part} time is negative")
        parts += values
    total = e2e_s(data, rows)
    scale = np.maximum(column(data, "finish_s", rows), 1e-9)
    off = ~(np.abs(parts - total) <= 1e-7 * scale)
    yield from _rows(data, rows, off, "the parts of its time do not sum to finish - arrival")


def _hits(data: RunData) -> Iterator[Breach]:
    rows = finished(data)
    hits = np.zeros(len(rows))
    for tier in TIERS:
        found = column(data, f"hit_{tier}_tokens", rows)
        yield from _rows(data, rows, found < 0, f"{tier} hits are negative")
        hits += found
    yield from _rows(data, rows, hits > column(data, "prompt_tokens", rows), "more hits than prompt tokens")
    rates = hit_rate(data)
    if rates and abs(rates["vram"] + rates["dram"] + rates["ssd"] + rates["miss"] - 1) > RELATIVE:
        yield Breach(f"hits by tier and misses do not sum to one: {rates}", "hit rates")


def _sums(data: RunData) -> Iterator[Breach]:
    rows = finished(data)
    for name, total in (("preemptions", data.preemptions), ("recomputed_tokens", data.recomputed_tokens)):
        found = int(data.requests[name][rows].sum(dtype="i8"))
        if found > total or (found != total and not data.live):
            yield Breach(f"{name}: {found} in the records, {total} counted", name)


def _intervals(data: RunData) -> Iterator[Breach]:
    if data.live:
        return
    rows = finished(data)
    steps = {name: values.astype("f8") for name, values in data.steps.items()}
    weight = steps["decodes"] * steps["count"]
    mean = steps["first_s"] + steps["growth_s"] * (steps["count"] - 1) / 2
    number = int(weight.sum()) + len(data.gaps["gap_s"])
    expected = int((data.requests["output_tokens"][rows].astype("i8") - 1).sum())
    if number != expected:
        yield Breach(f"{number} inter-token intervals, the finished requests have {expected}", "inter-token intervals")
    time = float((weight * mean).sum() + np.sum(data.gaps["gap_s"]))
    spans = float((column(data, "finish_s", rows) - column(data, "first_token_s", rows)).sum())
    if abs(time - spans) > 1e-6 * max(spans, 1e-9):
        yield Breach(f"inter-token intervals sum to {time} s, requests decoded for {spans} s", "inter-token intervals")


def _busy(data: RunData) -> Iterator[Breach]:
    for name, busy in data.busy_s.items():
        most = data.instances.get(name, 0) * data.end_s * (1 + 1e-6)
        if not 0 <= busy <= most:
            yield Breach(f"{name} was busy for {busy} s of at most {most}", name)
    if data.load_hidden_s > data.load_held_s * (1 + RELATIVE):
        yield Breach(f"{data.load_hidden_s} s of {data.load_held_s} s of held loads hidden", "held loads")


def _little(data: RunData) -> Iterator[Breach]:
    """The integral of N(t), N counted by sweeping arrivals and ends, equals the sum of sojourns."""
    rows = finished(data)
    if not len(rows):
        return
    arrival, finish = column(data, "arrival_s", rows), column(data, "finish_s", rows)
    times = np.concatenate([arrival, finish])
    order = np.argsort(times, kind="stable")
    number = np.cumsum(np.where(order < len(rows), 1, -1))
    if (number < 0).any() or number[-1] != 0:
        yield Breach("the number in the system falls below zero or does not end at zero", "number in the system")
    integral = float((number[:-1] * np.diff(times[order])).sum())
    sojourns = float((finish - arrival).sum())
    if abs(integral - sojourns) > 1e-6 * max(sojourns, 1e-9):
        yield Breach(
            f"integral of the number in the system is {integral} s, sojourns sum to {sojourns} s",
            "number in the system",
        )
    if data.running_time_s > sojourns * (1 + 1e-6) and not data.live:
        yield Breach(
            f"requests ran for {data.running_time_s} s in all, but were in the system for {sojourns} s",
            "number in the system",
        )


def _rows(data: RunData, rows: Rows, broken: np.ndarray, what: str) -> Iterator[Breach]:
    if broken.any():
        ids = [str(number) for number in data.requests["id"][rows][broken][:_SHOWN]]
        others = f" ({int(broken.sum())} requests, the first {', '.join(ids)})" if len(ids) > 1 else ""
        yield Breach(what + others, f"request {ids[0]}", float(column(data, "finish_s", rows)[broken][0]))


LAWS: dict[str, Callable[[RunData], Iterator[Breach]]] = {
    "columns": _columns,
    "requests_conserved": _conserved,
    "clock_monotone": _recorded_in_order,
    "cause_before_effect": _ordered,
    "time_parts_sum": _parts_sum,
    "hits_sum_to_one": _hits,
    "counters_agree": _sums,
    "intervals_conserved": _intervals,
    "busy_within_time": _busy,
    "littles_identity": _little,
}
"""By id, as INVARIANTS.md lists them."""
