"""Inter-token intervals from macro-steps: weighted percentiles without walking every step.

A macro-step is an arithmetic series of step times; each step gives one interval to each of its
``decodes`` sequences. Rows are dropped into logarithmic bins 0.05 % wide, a row at a time
where it fits one bin and by closed form where it spans several. A percentile is the mean of
the bin that holds it: exact where the bin's values agree, else within 0.05 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simkv.results.stats import BATCHES, PERCENTILES, Floats, around, finite, half_width
from simkv.sim.rundata import RunData

_FLOOR_S = 1e-7
_WIDTH = 5e-4
_BINS = 64_500  # up to 1e7 s
_CHUNK_ROWS = 1 << 16
_CHUNK_PIECES = 1 << 18


@dataclass(slots=True)
class Series:
    """Rows of arithmetic series: ``low + k * step`` for k < count, each with ``weight``."""

    low: Floats
    step: Floats
    count: Floats
    weight: Floats

    def rows(self, keep: NDArray[np.generic] | slice) -> Series:
        """Return the chosen rows."""
        return Series(self.low[keep], self.step[keep], self.count[keep], self.weight[keep])

    def rising(self) -> Series:
        """Return the same values with each row in rising order."""
        last = self.low + (self.count - 1) * self.step
        return Series(np.minimum(self.low, last), np.abs(self.step), self.count, self.weight)

    @property
    def high(self) -> Floats:
        """Largest value of each row."""
        return self.low + (self.count - 1) * self.step

    @property
    def sums(self) -> Floats:
        """Weighted sum of each row's values."""
        return self.weight * self.count * (self.low + 0.5 * (self.count - 1) * self.step)


@dataclass(slots=True)
class Histogram:
    """Weight and weighted sum of values by logarithmic bin."""

    weights: Floats = field(default_factory=lambda: np.zeros(_BINS))
    sums: Floats = field(default_factory=lambda: np.zeros(_BINS))
    largest: float = 0.0

    def add(self, rows: Series) -> None:
        """Add every value of ``rows``; memory is bounded whatever the number of values."""
        if not len(rows.low):
            return
        high = rows.high
        self.largest = max(self.largest, float(high.max()))
        first, last = _bin(rows.low), _bin(high)
        whole = first == last
        inside = rows.rows(whole)
        self._put(first[whole], inside.weight * inside.count, inside.sums)
        wide = ~whole
        if wide.any():
            self._add_wide(rows.rows(wide), first[wide], last[wide])

    def _add_wide(self, rows: Series, first: NDArray[np.int64], last: NDArray[np.int64]) -> None:
        bins = last - first + 1
        few = rows.count <= bins
        sparse, dense = rows.rows(few), rows.rows(~few)
        for part in _parts(sparse.count.astype(np.int64)):
            self._by_value(sparse.rows(part))
        first = first[~few]
        for part in _parts(bins[~few]):
            self._by_bin(dense.rows(part), first[part], bins[~few][part])

    def _by_value(self, rows: Series) -> None:
        owner, k = _expand(rows.count.astype(np.int64))
        values = rows.low[owner] + k * rows.step[owner]
        weight = rows.weight[owner]
        self._put(_bin(values), weight, weight * values)

    def _by_bin(self, rows: Series, first: NDArray[np.int64], bins: NDArray[np.int64]) -> None:
        owner, offset = _expand(bins)
        low, step, count = rows.low[owner], rows.step[owner], rows.count[owner]
        index = first[owner] + offset
        begin = np.where(offset == 0, 0.0, _below(low, step, count, index))
        end = np.where(offset == bins[owner] - 1, count, _below(low, step, count, index + 1))
        number = np.maximum(end - begin, 0.0)
        mean = low + step * (begin + end - 1) / 2
        weight = rows.weight[owner] * number
        self._put(index, weight, weight * mean)

    def _put(self, index: NDArray[np.int64], weight: Floats, total: Floats) -> None:
        self.weights += np.bincount(index, weight, _BINS)
        self.sums += np.bincount(index, total, _BINS)

    def quantile(self, q: float) -> float:
        """Return the smallest value at or below which a share ``q`` of the weight lies (to 0.05 %)."""
        cumulative = np.cumsum(self.weights)
        index = int(np.searchsorted(cumulative, q * cumulative[-1]))
        index = min(index, int(np.flatnonzero(self.weights)[-1]))
        return float(self.sums[index] / self.weights[index])


def itl(data: RunData, from_s: float) -> dict[str, object] | None:
    """Return the distribution of inter-token intervals that begin at or after ``from_s``."""
    histogram = Histogram()
    batch_weight, batch_sum = np.zeros(BATCHES), np.zeros(BATCHES)
    edges_s = _window_edges_s(data, from_s)
    for rows, start_s in _chunks(data, from_s):
        histogram.add(rows.rising())
        for part, window in _by_window(rows, start_s, edges_s):
            batch_weight += np.bincount(window, part.weight * part.count, BATCHES)
            batch_sum += np.bincount(window, part.sums, BATCHES)
    histogram.add(_gaps(data, from_s))
    weight = float(histogram.weights.sum())
    if not weight:
        return None
    mean = float(histogram.sums.sum()) / weight
    result: dict[str, object] = {"mean": finite(mean)}
    result |= {f"p{p}": finite(histogram.quantile(p / 100)) for p in PERCENTILES}
    result["max"] = finite(histogram.largest)
    used = batch_weight > 0
    result["ci95"] = around(mean, half_width(batch_sum[used] / batch_weight[used]))
    return result


def _window_edges_s(data: RunData, from_s: float) -> Floats:
    """Return the inner edges of the windows of equal time that batch means are taken over."""
    start = data.steps["start_s"]
    if not len(start):
        return np.zeros(0)
    last_row = int(np.argmax(start))
    low, growth, more = (float(data.steps[name][last_row]) for name in ("first_s", "growth_s", "count"))
    first, last = max(from_s, float(start.min())), float(start[last_row]) + (more - 1) * (low + growth * (more - 2) / 2)
    return np.linspace(first, max(first, last), BATCHES + 1)[1:-1]


def _by_window(rows: Series, start_s: Floats, edges_s: Floats) -> Iterator[tuple[Series, NDArray[np.int64]]]:
    """Yield the rows with the window that each begins in; what reaches into later windows is cut at their edges."""
    last_s = start_s + (rows.count - 1) * (rows.low + rows.step * (rows.count - 2) / 2)
    window = np.searchsorted(edges_s, start_s, "right")
    whole = window == np.searchsorted(edges_s, last_s, "right")
    yield rows.rows(whole), window[whole]
    rest, begin, at = rows.rows(~whole), start_s[~whole], window[~whole]
    while len(begin):
        last_window = at == len(edges_s)
        bound = edges_s[np.minimum(at, len(edges_s) - 1)]
        before = np.where(last_window, rest.count, _steps_before(begin, rest.low, rest.step, rest.count, bound))
        yield Series(rest.low, rest.step, before, rest.weight), at
        left = before < rest.count
        begin = (begin + before * (rest.low + rest.step * (before - 1) / 2))[left]
        low, count = rest.low + before * rest.step, rest.count - before
        rest, at = Series(low, rest.step, count, rest.weight).rows(left), at[left] + 1


def _chunks(data: RunData, from_s: float) -> Iterator[tuple[Series, Floats]]:
    """Yield series and the start of each, cut at ``from_s``."""
    for begin in range(0, len(data.steps["start_s"]), _CHUNK_ROWS):
        part = {name: values[begin : begin + _CHUNK_ROWS].astype("f8") for name, values in data.steps.items()}
        start, first, growth, count = part["start_s"], part["first_s"], part["growth_s"], part["count"]
        skip = _steps_before(start, first, growth, count, from_s)
        start = start + skip * (first + growth * (skip - 1) / 2)
        first, count = first + skip * growth, count - skip
        some = np.flatnonzero((count > 0) & (part["decodes"] > 0))
        yield Series(first, growth, count, part["decodes"]).rows(some), start[some]


def _steps_before(start: Floats, first: Floats, growth: Floats, count: Floats, from_s: float | Floats) -> Floats:
    """Return how many of each row's steps start before ``from_s`` (one time, or one a row)."""
    skip = np.zeros(len(start))
    early = np.flatnonzero(start < from_s)
    if not len(early):
        return skip
    # Step k starts at start + k*first + growth*k(k-1)/2: the positive root, in the form that also takes growth 0.
    until = np.broadcast_to(from_s, start.shape)[early]
    half, linear, wait = growth[early] / 2, first[early] - growth[early] / 2, until - start[early]
    root = np.sqrt(np.maximum(linear**2 + 4 * half * wait, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        k = np.ceil(2 * wait / (linear + root) - 1e-9)
    skip[early] = np.clip(np.nan_to_num(k, nan=np.inf, posinf=np.inf, neginf=np.inf), 1, count[early])
    return skip


def _gaps(data: RunData, from_s: float) -> Series:
    gap = np.asarray(data.gaps["gap_s"], dtype="f8")
    gap = gap[np.asarray(data.gaps["end_s"]) - gap >= from_s]
    return Series(gap, np.zeros(len(gap)), np.ones(len(gap)), np.ones(len(gap)))


def _bin(values: Floats) -> NDArray[np.int64]:
    scaled = np.log(np.maximum(values, _FLOOR_S) / _FLOOR_S) / _WIDTH
    return np.minimum(scaled, _BINS - 1).astype(np.int64)


def _below(low: Floats, step: Floats, count: Floats, edge: NDArray[np.int64]) -> Floats:
    """Return how many values of each row lie below the lower edge of bin ``edge``."""
    bound = _FLOOR_S * np.exp(edge * _WIDTH)
    number: Floats = np.clip(np.ceil((bound - low) / step), 0.0, count)
    return number


def _expand(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each of ``sum(counts)`` pieces its row and its place within the row."""
    owner = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - starts[owner]


def _parts(counts: NDArray[np.int64]) -> Iterator[slice]:
    """Yield runs of rows that expand to a bounded number of pieces."""
    cumulative = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        done = cumulative[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(cumulative, done + _CHUNK_PIECES, "right")))
        yield slice(begin, end)
        begin = end
