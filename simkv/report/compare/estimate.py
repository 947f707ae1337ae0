"""Differences of means, quantiles and shares between two runs, with their 95 % intervals.

Requests follow one another, so they aren't independent: each run is cut into 20 batches in order of arrival, and the
batches are. Of the same requests (common random numbers) differences are taken batch by batch, else run by run.
Means and shares by batch means (a share's batches by the delta method), quantiles by drawing batches with
replacement (Efron and Tibshirani 1993, chapter 6; here of blocks).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot

import numpy as np
from numpy.typing import NDArray

from simkv.report.compare.columns import Floats
from simkv.results.stats import BATCHES, MIN_BATCHES, batch_means, half_width
from simkv.rng import stream

DRAWS = 400
_T_19 = 2.0930
Weights = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Difference:
    """``other - one`` of one figure; ``half``: of the 95 % interval, None where there are too few values."""

    one: float
    other: float
    half: float | None

    @property
    def value(self) -> float:
        """The difference."""
        return self.other - self.one

    @property
    def relative(self) -> float | None:
        """Over the first one's value; None where that is zero."""
        return self.value / abs(self.one) if self.one else None

    @property
    def noise(self) -> bool | None:
        """Whether the interval has zero in it; None without an interval."""
        return None if self.half is None else abs(self.value) <= self.half


def of_means(one: Floats, other: Floats, paired: bool) -> Difference | None:
    """Return the difference of two means; ``paired``: value k of both is of the same request."""
    one, other = _known(one, other, paired)
    if not len(one) or not len(other):
        return None
    if paired:
        half = half_width(batch_means(other - one))
    else:
        half = _together(half_width(batch_means(one)), half_width(batch_means(other)))
    return Difference(float(one.mean()), float(other.mean()), half)


def of_shares(one: tuple[Floats, Floats], other: tuple[Floats, Floats], paired: bool) -> Difference | None:
    """Return the difference of two ratios of sums, each ``(parts, wholes)`` request by request."""
    if not one[1].sum() or not other[1].sum():
        return None
    first, second = float(one[0].sum() / one[1].sum()), float(other[0].sum() / other[1].sum())
    residuals = [(parts - share * wholes) / wholes.mean() for (parts, wholes), share in ((one, first), (other, second))]
    if paired:
        half = half_width(batch_means(residuals[1] - residuals[0]))
    else:
        half = _together(*(half_width(batch_means(each)) for each in residuals))
    return Difference(first, second, half)


def of_quantiles(one: Floats, other: Floats, q: float, paired: bool) -> Difference | None:
    """Return the difference of the ``q``-quantiles."""
    one, other = _known(one, other, paired)
    if not len(one) or not len(other):
        return None
    first, second = float(np.quantile(one, q)), float(np.quantile(other, q))
    if min(len(one), len(other)) < 2 * BATCHES:
        return Difference(first, second, None)
    draws = stream(0, "report.compare").integers(0, BATCHES, (DRAWS, BATCHES))
    ours, theirs = _drawn(one, q), _drawn(other, q)
    again = draws if paired else stream(1, "report.compare").integers(0, BATCHES, (DRAWS, BATCHES))
    found = np.array([theirs(b) - ours(a) for a, b in zip(draws, again, strict=True)])
    return Difference(first, second, float(_T_19 * found.std(ddof=1)))


def of_series(one: Floats, other: Floats) -> Difference | None:
    """Return the difference of two means of windows of time, ``one[k]`` and ``other[k]`` being of the same time."""
    known = np.isfinite(one) & np.isfinite(other)
    if not known.any():
        return None
    delta = (other - one)[known]
    half = half_width(delta) if MIN_BATCHES <= len(delta) <= BATCHES else None
    return Difference(float(one[known].mean()), float(other[known].mean()), half)


def _known(one: Floats, other: Floats, paired: bool) -> tuple[Floats, Floats]:
    """Return the values that are numbers; of pairs, those of which both are."""
    ours, theirs = np.isfinite(one), np.isfinite(other)
    if paired:
        ours = theirs = ours & theirs
    return one[ours], other[theirs]


def _drawn(values: Floats, q: float) -> Callable[[NDArray[np.int64]], float]:
    """Return what gives the ``q``-quantile of ``values`` with each batch counted as often as it was drawn."""
    batch = np.minimum(np.arange(len(values)) * BATCHES // len(values), BATCHES - 1)
    order = np.argsort(values, kind="stable")
    ranked, owner = values[order], batch[order]

    def quantile(drawn: NDArray[np.int64]) -> float:
        weights = np.bincount(drawn, minlength=BATCHES)[owner]
        through = np.cumsum(weights)
        return float(ranked[np.searchsorted(through, q * through[-1])])

    return quantile


def _together(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else hypot(one, other)
