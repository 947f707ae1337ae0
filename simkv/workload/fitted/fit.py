"""From a trace to a fit: one pass, in memory that grows with the trace's content, not with its rows."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem
from simkv.workload.fitted.model import MAX_CV, FittedArrivals, FittedModel, FittedRequests, Origin
from simkv.workload.fitted.reuse import ReuseDistances
from simkv.workload.readers.faults import CHECK_TIMES, LATEST_S
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import Request
from simkv.workload.streams import Streams
from simkv.workload.tick import Tick, silent, ticked

ROWS = 20_000
"""A fit holds at most so many rows unless asked otherwise."""
WINDOWS = 288
"""The most windows of a fit: five minutes each, of a day."""
BATCHES_PER_WINDOW = 100
"""A window has so many at least, in the mean: its rate is then known to a tenth."""
LEAST_SPAN_S = 1e-3
FEWEST_GAPS = 10
"""A window with fewer takes the coefficient of variation of the whole trace."""

Row = tuple[int, int, int, int]


def fit(
    requests: Iterable[Request],
    report: ReadReport,
    *,
    rows: int = ROWS,
    seed: int = 0,
    tick: Tick = silent,
    file: str = "",
) -> FittedModel:
    """Return the fit of ``requests``, which come in file order and fill ``report``.

    Of more than ``rows`` requests a uniform sample is held, the same for the same ``seed``. Raises
    InputError, which names ``file``, where all arrive at once, or nearly so, or over longer than a run lasts.
    """
    sample, reuse, every_s = _Sample(rows, seed), ReuseDistances(), array("d")
    for request in ticked(requests, tick):
        sample.add((request.prompt_tokens, request.output_tokens, *reuse.add(request)))
        every_s.append(request.arrival_s)
    times_s, sizes = np.unique(np.array(every_s, dtype=np.float64), return_counts=True)
    if len(times_s) < 2 or times_s[-1] - times_s[0] < LEAST_SPAN_S:
        what = f"{sample.count:,} requests within {LEAST_SPAN_S * 1e3:g} ms have no gaps to fit"
        raise InputError(Problem(what, "fit a longer trace", file=file))
    if times_s[-1] - times_s[0] > LATEST_S:
        raise InputError(Problem(f"lasts {times_s[-1] - times_s[0]:g} s", CHECK_TIMES, file=file, path=report.time_key))
    origin = Origin(report.format, sample.count, float(times_s[-1] - times_s[0]), report.block_tokens)
    columns = [list(column) for column in zip(*sample.rows, strict=True)]
    return FittedModel(origin, fit_arrivals(times_s, sizes), FittedRequests(*columns))


def fit_arrivals(times_s: NDArray[np.float64], sizes: NDArray[np.int64]) -> FittedArrivals:
    """Return the fit of batches of ``sizes`` requests at ``times_s``, which rise."""
    span_s = float(times_s[-1] - times_s[0])
    count = max(1, min(WINDOWS, len(times_s) // BATCHES_PER_WINDOW))
    edges = times_s[0] + np.linspace(0.0, span_s, count + 1)
    of = np.minimum(np.searchsorted(edges, times_s, side="right") - 1, count - 1)
    gaps = np.diff(times_s)
    window_s = span_s / count
    arrived = np.bincount(of[1:], weights=sizes[1:], minlength=count)
    overall = _cv(gaps)
    cvs = [_cv(own) if len(own) >= FEWEST_GAPS else overall for own in (gaps[of[1:] == k] for k in range(count))]
    shares = np.bincount(sizes)[1:] / len(sizes)
    return FittedArrivals(window_s, (arrived / window_s).tolist(), cvs, shares.tolist())


def _cv(gaps: NDArray[np.float64]) -> float:
    return min(MAX_CV, float(gaps.std() / gaps.mean()))


class _Sample:
    """A uniform sample of rows in file order, of bounded size (Vitter's reservoir)."""

    def __init__(self, most: int, seed: int) -> None:
        self.count = 0
        self._most = most
        self._rng = Streams(seed)("fit.sample")
        self._held: dict[int, tuple[int, Row]] = {}

    def add(self, row: Row) -> None:
        """Take ``row`` up, or not."""
        place = self.count if self.count < self._most else int(self._rng.integers(0, self.count + 1))
        if place < self._most:
            self._held[place] = (self.count, row)
        self.count += 1

    @property
    def rows(self) -> list[Row]:
        """The rows that are held, in file order."""
        return [row for _, row in sorted(self._held.values())]
