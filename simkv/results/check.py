"""Laws that a finished run's records must keep; ``--audit`` calls this after the run.

The same laws inside the run, at every event, are ``sim``'s to watch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from simkv.errors import LawError
from simkv.results.summary import PARTS, TIERS, hit_rate
from simkv.results.window import Rows, column, e2e_s, finished
from simkv.sim.rundata import REQUEST_COLUMNS, RunData

RELATIVE = 1e-9
_SHOWN = 3


def check_run(data: RunData) -> None:
    """Raise :class:`LawError` that names each broken law; return None where all hold."""
    broken = violations(data)
    if broken:
        raise LawError("laws broken by this run:\n" + "\n".join(f"  {line}" for line in broken))


def violations(data: RunData) -> list[str]:
    """Return one line for each broken law: its id, and what was found."""
    return [f"{law}: {text}" for law, check in LAWS.items() for text in check(data)]


def _conserved(data: RunData) -> Iterator[str]:
    rejected = int(data.requests["rejected"].sum())
    finished = data.requests["rejected"].size - rejected
    if data.arrived != data.finished + data.live + data.rejected:
        yield f"{data.arrived} arrived, {data.finished} finished + {data.live} live + {data.rejected} rejected"
    if (finished, rejected) != (data.finished, data.rejected):
        yield f"records of {finished} finished, {rejected} rejected; counters say {data.finished}, {data.rejected}"
    ids = data.requests["id"]
    if np.unique(ids).size != ids.size:
        yield f"{ids.size - np.unique(ids).size} requests are recorded twice"


def _columns(data: RunData) -> Iterator[str]:
    sizes = {name: data.requests[name].size for name in REQUEST_COLUMNS if name in data.requests}
    if set(sizes) != set(REQUEST_COLUMNS) or len(set(sizes.values())) > 1:
        yield f"columns and their lengths: {sizes}"


def _ordered(data: RunData) -> Iterator[str]:
    rows = finished(data)
    times = [column(data, f"{name}_s", rows) for name in ("arrival", "scheduled", "first_token", "finish")]
    names = ("arrival", "scheduled", "first token", "finish")
    for place in range(3):
        yield from _rows(data, rows, ~(times[place] <= times[place + 1]), f"{names[place]} is after {names[place + 1]}")
    late = ~(times[3] <= data.end_s * (1 + RELATIVE))
    yield from _rows(data, rows, late, f"finish is after the run's end at {data.end_s}")


def _recorded_in_order(data: RunData) -> Iterator[str]:
    finish = column(data, "finish_s", finished(data))
    if (np.diff(finish) < 0).any():
        yield f"records are not in the order in which requests ended ({int((np.diff(finish) < 0).sum())} times)"


def _parts_sum(data: RunData) -> Iterator[str]:
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


def _hits(data: RunData) -> Iterator[str]:
    rows = finished(data)
    hits = np.zeros(len(rows))
    for tier in TIERS:
        found = column(data, f"hit_{tier}_tokens", rows)
        yield from _rows(data, rows, found < 0, f"{tier} hits are negative")
        hits += found
    yield from _rows(data, rows, hits > column(data, "prompt_tokens", rows), "more hits than prompt tokens")
    rates = hit_rate(data)
    if rates and abs(rates["vram"] + rates["dram"] + rates["ssd"] + rates["miss"] - 1) > RELATIVE:
        yield f"hits by tier and misses do not sum to one: {rates}"


def _sums(data: RunData) -> Iterator[str]:
    rows = finished(data)
    for name, total in (("preemptions", data.preemptions), ("recomputed_tokens", data.recomputed_tokens)):
        found = int(data.requests[name][rows].sum(dtype="i8"))
        if found > total or (found != total and not data.live):
            yield f"{name}: {found} in the records, {total} counted"


def _intervals(data: RunData) -> Iterator[str]:
    if data.live:
        return
    rows = finished(data)
    steps = {name: values.astype("f8") for name, values in data.steps.items()}
    weight = steps["decodes"] * steps["count"]
    mean = steps["first_s"] + steps["growth_s"] * (steps["count"] - 1) / 2
    number = int(weight.sum()) + len(data.gaps["gap_s"])
    expected = int((data.requests["output_tokens"][rows].astype("i8") - 1).sum())
    if number != expected:
        yield f"{number} inter-token intervals, the finished requests have {expected}"
    time = float((weight * mean).sum() + np.sum(data.gaps["gap_s"]))
    spans = float((column(data, "finish_s", rows) - column(data, "first_token_s", rows)).sum())
    if abs(time - spans) > 1e-6 * max(spans, 1e-9):
        yield f"inter-token intervals sum to {time} s, requests decoded for {spans} s"


def _busy(data: RunData) -> Iterator[str]:
    for name, busy in data.busy_s.items():
        most = data.instances.get(name, 0) * data.end_s * (1 + 1e-6)
        if not 0 <= busy <= most:
            yield f"{name} was busy for {busy} s of at most {most}"
    if data.load_hidden_s > data.load_held_s * (1 + RELATIVE):
        yield f"{data.load_hidden_s} s of {data.load_held_s} s of held loads hidden"


def _little(data: RunData) -> Iterator[str]:
    """The integral of N(t), N counted by sweeping arrivals and ends, equals the sum of sojourns."""
    rows = finished(data)
    if not len(rows):
        return
    arrival, finish = column(data, "arrival_s", rows), column(data, "finish_s", rows)
    times = np.concatenate([arrival, finish])
    order = np.argsort(times, kind="stable")
    number = np.cumsum(np.where(order < len(rows), 1, -1))
    if (number < 0).any() or number[-1] != 0:
        yield "the number in the system falls below zero or does not end at zero"
    integral = float((number[:-1] * np.diff(times[order])).sum())
    sojourns = float((finish - arrival).sum())
    if abs(integral - sojourns) > 1e-6 * max(sojourns, 1e-9):
        yield f"integral of the number in the system is {integral} s, sojourns sum to {sojourns} s"
    if data.running_time_s > sojourns * (1 + 1e-6) and not data.live:
        yield f"requests ran for {data.running_time_s} s in all, but were in the system for {sojourns} s"


def _rows(data: RunData, rows: Rows, broken: np.ndarray, what: str) -> Iterator[str]:
    if broken.any():
        ids = ", ".join(str(i) for i in data.requests["id"][rows][broken][:_SHOWN])
        yield f"{what}: {int(broken.sum())} requests, first {ids}"


LAWS: dict[str, Callable[[RunData], Iterator[str]]] = {
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
