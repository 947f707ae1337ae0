"""Percentiles, means and intervals of a series in order of arrival."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PERCENTILES = (50, 90, 95, 99)
BATCHES = 20
MIN_BATCHES = 5

# 97.5 % quantile of Student's t by degrees of freedom 1..19.
_T_975 = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930,
)  # fmt: skip


def finite(value: float | np.floating | None) -> float | None:
    """Return a plain float, or None where there is no finite number."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def batch_means(values: Floats) -> Floats:
    """Return means of up to 20 equal batches in the order given; empty where the series is too short."""
    batches = min(BATCHES, len(values) // 2)
    if batches < MIN_BATCHES:
        return np.empty(0)
    size = len(values) // batches
    means: Floats = values[len(values) - batches * size :].reshape(batches, size).mean(axis=1)
    return means


def half_width(means: Floats) -> float | None:
    """Return the half width of the 95 % interval that these batch means give."""
    if len(means) < MIN_BATCHES:
        return None
    return finite(_T_975[len(means) - 2] * means.std(ddof=1) / math.sqrt(len(means)))


def interval(values: Floats) -> list[float] | None:
    """Return the 95 % interval of the mean by batch means, or None where the series is too short."""
    return around(float(values.mean()), half_width(batch_means(values))) if len(values) else None


def around(mean: float, half: float | None) -> list[float] | None:
    """Return ``[mean - half, mean + half]``, or None without a half width."""
    return None if half is None else [mean - half, mean + half]


def distribution(values: Floats) -> dict[str, object] | None:
    """Return mean, percentiles (linear between order statistics), max and ci95; None for no values."""
    if not len(values):
        return None
    result: dict[str, object] = {"mean": finite(values.mean())}
    for percent, value in zip(PERCENTILES, np.percentile(values, PERCENTILES), strict=True):
        result[f"p{percent}"] = finite(value)
    result["max"] = finite(values.max())
    result["ci95"] = interval(values)
    return result
