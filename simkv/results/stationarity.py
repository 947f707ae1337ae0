"""Does the queue grow without bound? From the waits by arrival; a drain or a burst is not growth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simkv.results.bottleneck import is_batch, utilization_while_arriving
from simkv.results.stats import Floats
from simkv.results.window import Rows, arrivals_end_s, column, finished_by_arrival, first_arrival_s
from simkv.sim.rundata import RunData

SLICES = 20
MIN_REQUESTS = 100
_TREND = 0.7
_LATE_TREND = 0.5
_LATE_GROWTH = 0.3
_BACKLOG_SHARE = 0.03
_BACKLOG = 10
_LONG_DRAIN = 0.1


@dataclass(frozen=True, slots=True)
class Growth:
    """A queue that grows over the whole of the arrivals and hasn't levelled off."""

    first_half_waiting: float
    second_half_waiting: float
    arrivals_per_s: float
    served_per_s: float
    gpu: float | None


def growth(data: RunData) -> Growth | None:
    """Return how the queue grew, or None where it didn't.

    Growth means all of: waits (queue, loads, preemptions) rise from slice to slice of the
    arrivals (Kendall's tau over 20 slices) and still do in the second half, by no less than a
    levelling queue would (or have doubled, with a long drain afterwards); and many requests are
    left waiting when the arrivals end (those that follow no answer). A batch (arrivals in
    the first tenth of the run) has no rate to compare with, and is never growth.
    """
    rows = finished_by_arrival(data)
    rows = rows[column(data, "arrival_s", rows) <= arrivals_end_s(data)]
    if len(rows) < MIN_REQUESTS or is_batch(data):
        return None
    waits = _wait_by_slice(data, rows)
    if not (_left_waiting(data, rows) and (_rises(waits) or _drains_long_after(data, waits))):
        return None
    return _describe(data, rows)


def _wait_by_slice(data: RunData, rows: Rows) -> Floats:
    waits = np.zeros(len(rows))
    for part in ("queue", "load_dram", "load_ssd", "preempted"):
        waits += column(data, f"{part}_time_s", rows)
    size = len(rows) // SLICES
    means: Floats = waits[len(rows) - size * SLICES :].reshape(SLICES, size).mean(axis=1)
    return means


def _left_waiting(data: RunData, rows: Rows) -> bool:
    """Whether many were still waiting to be scheduled when arrivals ended, or in flight when interrupted."""
    left = int((column(data, "scheduled_s", rows) > arrivals_end_s(data)).sum()) + data.live
    return left >= max(_BACKLOG, _BACKLOG_SHARE * len(rows))


def _rises(waits: Floats) -> bool:
    half = SLICES // 2
    if _tau(waits) < _TREND or _tau(waits[half:]) < _LATE_TREND:
        return False
    early, late = waits[half] - waits[0], waits[-1] - waits[half]
    return bool(late > 0 and late >= _LATE_GROWTH * early)


def _drains_long_after(data: RunData, waits: Floats) -> bool:
    """Whether the waits doubled over the arrivals, and working off what was left took a tenth of their span more."""
    half = SLICES // 2
    first, last = first_arrival_s(data), arrivals_end_s(data)
    doubled = _tau(waits) >= _LATE_TREND and waits[half:].mean() > 2 * waits[:half].mean()
    return bool(doubled and data.end_s - last > _LONG_DRAIN * (last - first))


def _tau(values: Floats) -> float:
    """Kendall's tau of a series against its order; ties count as neither."""
    signs = np.sign(values[None, :] - values[:, None])
    return float(np.triu(signs, 1).sum()) / (len(values) * (len(values) - 1) / 2)


def _describe(data: RunData, rows: Rows) -> Growth:
    begin, end = first_arrival_s(data), arrivals_end_s(data)
    middle = (begin + end) / 2
    finish = column(data, "finish_s", rows)
    arrival = column(data, "arrival_s", rows)
    span = end - middle
    return Growth(
        first_half_waiting=_mean_waiting(data, rows, begin, middle),
        second_half_waiting=_mean_waiting(data, rows, middle, end),
        arrivals_per_s=float((arrival >= middle).sum() + data.live) / span,
        served_per_s=float(((finish >= middle) & (finish < end)).sum()) / span,
        gpu=utilization_while_arriving(data, "gpu"),
    )


def _mean_waiting(data: RunData, rows: Rows, begin: float, end: float) -> float:
    """Return the time average of requests between arrival and first step."""
    arrived = np.clip(column(data, "arrival_s", rows), begin, end)
    scheduled = np.clip(column(data, "scheduled_s", rows), begin, end)
    return float((scheduled - arrived).sum()) / (end - begin)
