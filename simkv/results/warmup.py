"""Where the warm-up ends: MSER-5 on the latencies, or a given time.

Source: White, "An effective truncation heuristic for bias reduction in simulation output" (1997);
Spratt (1998) for batches of five. The truncation point minimises the variance of what is kept
over the square of its length.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from simkv.results.stats import Floats

BATCH = 5
MIN_REQUESTS = 100
_ROUNDING = 1e-12
_UNDECIDED = 0.95
"""A minimum in the last 5 % of what may be cut means that the series has not settled."""


def mser5(values: Floats) -> int:
    """Return how many leading values to cut: at most half, and none where the series is too short.

    None either where the best cut is the largest allowed one: the series has not settled then
    (a batch that drains, a queue that grows), and no cut makes it stationary.
    """
    if len(values) < MIN_REQUESTS:
        return 0
    size = len(values) // BATCH
    means = values[: size * BATCH].reshape(size, BATCH).mean(axis=1)
    means = means - means.mean()
    kept = np.arange(size, 0, -1, dtype="f8")
    total = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum((means**2)[::-1])[::-1]
    limit = size // 2
    spread = np.maximum(squares - total**2 / kept, _ROUNDING * squares[0])
    error = (spread / kept**2)[: limit + 1]
    best = int(np.argmin(error))
    return 0 if best >= _UNDECIDED * limit else best * BATCH


def warm_up_s(warm_up: Literal["auto"] | float, arrival_s: Floats, series: tuple[Floats, ...]) -> float:
    """Return the warm-up in seconds after the first arrival.

    ``arrival_s`` and each of ``series`` are in order of arrival. A given time that would leave
    nothing is not applied.
    """
    if not len(arrival_s):
        return 0.0
    if warm_up != "auto":
        return float(warm_up) if arrival_s[0] + warm_up <= arrival_s[-1] else 0.0
    cut = max(mser5(values) for values in series)
    return float(arrival_s[cut] - arrival_s[0]) if cut else 0.0
