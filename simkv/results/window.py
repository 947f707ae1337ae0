"""Which requests the latencies are over, and each latency of those requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simkv.results.stats import Floats
from simkv.results.warmup import warm_up_s
from simkv.sim.rundata import RunData

Rows = NDArray[np.intp]


def column(data: RunData, name: str, rows: Rows | None = None) -> Floats:
    """Return a request column as float64, all of it or the given rows."""
    values = data.requests[name]
    chosen = values if rows is None else values[rows]
    return chosen.astype(np.float64, copy=False)


def finished(data: RunData) -> Rows:
    """Return the rows of the requests that finished, in the order of the records."""
    return np.flatnonzero(~data.requests["rejected"].astype(bool))


def finished_by_arrival(data: RunData) -> Rows:
    """Return the rows of the requests that finished, in order of arrival."""
    rows = finished(data)
    return rows[np.argsort(data.requests["arrival_s"][rows], kind="stable")]


def ttft_s(data: RunData, rows: Rows) -> Floats:
    """First token minus arrival."""
    return column(data, "first_token_s", rows) - column(data, "arrival_s", rows)


def e2e_s(data: RunData, rows: Rows) -> Floats:
    """Finish minus arrival."""
    return column(data, "finish_s", rows) - column(data, "arrival_s", rows)


def tpot_s(data: RunData, rows: Rows) -> Floats:
    """Mean time per output token after the first; nan for a single token."""
    after_first = column(data, "output_tokens", rows) - 1
    span = column(data, "finish_s", rows) - column(data, "first_token_s", rows)
    means: Floats = np.divide(span, after_first, out=np.full(len(span), np.nan), where=after_first > 0)
    return means


def queue_s(data: RunData, rows: Rows) -> Floats:
    """Time in the waiting queue before the first admission."""
    return column(data, "queue_time_s", rows)


LATENCIES: dict[str, Callable[[RunData, Rows], Floats]] = {
    "ttft_s": ttft_s,
    "tpot_s": tpot_s,
    "e2e_s": e2e_s,
    "queue_s": queue_s,
}


@dataclass(frozen=True, slots=True)
class Window:
    """Finished requests that arrived after the warm-up, by arrival."""

    rows: Rows
    warm_up_s: float
    from_s: float
    """When the window begins, in the run's own time."""


def open_window(data: RunData, warm_up: Literal["auto"] | float) -> Window:
    """Return the window of the finished requests after ``warm_up``."""
    rows = finished_by_arrival(data)
    if not len(rows):
        return Window(rows, 0.0, 0.0)
    arrival = column(data, "arrival_s", rows)
    series = (ttft_s(data, rows), e2e_s(data, rows)) if warm_up == "auto" else ()
    cut = warm_up_s(warm_up, arrival, series)
    start = float(arrival[0]) + cut
    return Window(rows[np.searchsorted(arrival, start) :], cut, start if cut else -np.inf)


def same_window(data: RunData, other: RunData, window: Window) -> Window:
    """Return the window of ``data`` that holds the requests of ``other``'s ``window``, as far as both finished them.

    By request and not by time: where requests follow each other's answers, they arrive at other times.
    """
    wanted = np.isin(data.requests["id"], other.requests["id"][window.rows])
    rows = np.flatnonzero(wanted & ~data.requests["rejected"].astype(bool))
    arrival = column(data, "arrival_s", rows)
    order = np.argsort(arrival, kind="stable")
    start = float(arrival[order[0]]) if window.warm_up_s and len(rows) else -np.inf
    return Window(rows[order], window.warm_up_s, start)


def first_arrival_s(data: RunData) -> float:
    """Return when the first recorded request arrived; 0 for none."""
    arrival = data.requests["arrival_s"]
    return float(arrival.min()) if len(arrival) else 0.0


def arrivals_end_s(data: RunData) -> float:
    """Return when the last request arrived that follows no answer: any of a log, else a first turn; 0 for none."""
    first_turns = column(data, "arrival_s")[data.requests["turn"] == 0]
    return max(data.fixed_until_s, float(first_turns.max())) if len(first_turns) else data.fixed_until_s


def makespan_s(data: RunData) -> float:
    """Return the time from the first arrival to the last end."""
    return max(0.0, float(data.end_s) - first_arrival_s(data))
