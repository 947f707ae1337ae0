"""Is the mean of numbers that depend on their neighbours what theory says? Batch means, 99.9 %."""

from __future__ import annotations

from math import sqrt
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
    """Return the mean of ``values``, in their order, by the means of batches so long that these are independent."""
    settled = values[int(WARM_UP * values.size) :]
    means = np.array([batch.mean() for batch in np.array_split(settled, BATCHES)])
    return Mean(float(means.mean()), float(T_999 * means.std(ddof=1) / sqrt(BATCHES)))


def beside(name: str, values: NDArray[Any], oracle: float) -> dict[str, float]:
    """Return a metric, the oracle that is expected of it, and how far it may be from that: half its interval."""
    mean = batch_mean(values)
    return {name: mean.value, f"{name}.expected": oracle, f"{name}.tolerance": mean.half_width / oracle}


def narrow(found: dict[str, float]) -> dict[str, float]:
    """Return ``found``. Raises InputError where an interval is too wide to tell."""
    for name, tolerance in found.items():
        if name.endswith(".tolerance") and not tolerance <= NARROW:
            what = f"leave {name.removesuffix('.tolerance')} known to {tolerance:.0%} only, and {NARROW:.0%} would tell"
            raise InputError(Problem(what, "give more, or a smaller load", path="queue.requests"))
    return found
