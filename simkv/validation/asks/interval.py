"""Is the mean of numbers that depend on their neighbours what theory says? Batch means, 99.9 %."""

from __future__ import annotations

from math import inf, isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem

BATCHES = 20
T_999 = 3.883
"""Two-sided 99.9 % quantile of Student's t with 19 degrees of freedom."""
WARM_UP = 0.1
"""Share of the numbers, from the front, that belongs to the way into the steady state."""
NARROW = 0.15
"""A wider interval, relative to what theory says, tells nothing."""


class Mean(NamedTuple):
    """A mean, and half the width of its interval."""

    value: float
    half_width: float


def batch_mean(values: NDArray[Any]) -> Mean:
    """Return the mean of ``values``, in their order, by the means of batches so long that these are independent.

    Neither it nor its interval is a number where there are fewer values than batches.
    """
    settled = values[int(WARM_UP * values.size) :]
    if settled.size < BATCHES:
        return Mean(nan, nan)
    means = np.array([batch.mean() for batch in np.array_split(settled, BATCHES)])
    return Mean(float(means.mean()), float(T_999 * means.std(ddof=1) / sqrt(BATCHES)))


def beside(name: str, values: NDArray[Any], oracle: float) -> dict[str, float]:
    """Return a metric, the oracle that is expected of it, and how far it may be from that: half its interval."""
    mean = batch_mean(values)
    tolerance = mean.half_width / oracle if oracle else inf
    return {name: mean.value, f"{name}.expected": oracle, f"{name}.tolerance": tolerance}


def narrow(found: dict[str, float]) -> dict[str, float]:
    """Return ``found``. Raises InputError where an interval is too wide to tell."""
    for name, tolerance in found.items():
        if name.endswith(".tolerance") and not tolerance <= NARROW:
            known = f"known to {tolerance:.0%} only, and {NARROW:.0%} would tell" if isfinite(tolerance) else "unknown"
            what = f"leave {name.removesuffix('.tolerance')} {known}"
            raise InputError(Problem(what, "give more, or a load at which more or fewer wait", path="queue.requests"))
    return found
