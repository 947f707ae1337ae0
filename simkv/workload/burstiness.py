"""How arrivals bunch: the rate, the spread of gaps, and the spread of counts over windows of time.

A Poisson process has gaps with a coefficient of variation of 1 and counts with an index of
dispersion (variance over mean) of 1 at every window; traffic that bunches has more, and where
the index grows with the window, the rate itself moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

WINDOWS_S = (1.0, 10.0, 60.0)
FEWEST_WINDOWS = 10
"""With fewer, the spread of counts says nothing."""


def arrival_figures(times_s: Sequence[float] | NDArray[np.float64]) -> dict[str, Any]:
    """Return rate, gaps and counts of ``times_s`` (any order) as plain values; None where too few tell.

    Rates are per second, gaps in seconds; ``counts`` has one entry a window of :data:`WINDOWS_S`.
    """
    times = np.sort(np.asarray(times_s, dtype=np.float64))
    span_s = float(times[-1] - times[0]) if len(times) else 0.0
    gaps = np.diff(times)
    mean_s = float(gaps.mean()) if len(gaps) else 0.0
    return {
        "rate_per_s": 1 / mean_s if mean_s > 0 else None,
        "distinct_times": int(np.count_nonzero(gaps)) + 1 if len(times) else 0,
        "gap_mean_s": mean_s if len(gaps) else None,
        "gap_cv": float(gaps.std()) / mean_s if mean_s > 0 else None,
        "gap_max_s": float(gaps.max()) if len(gaps) else None,
        "counts": [_counts(times, span_s, window_s) for window_s in WINDOWS_S],
    }


def _counts(times: NDArray[np.float64], span_s: float, window_s: float) -> dict[str, Any]:
    """Count arrivals over the whole windows from the first arrival on; the cut-off last one is left out."""
    windows = int(span_s / window_s)
    figures: dict[str, Any] = {"window_s": window_s, "windows": windows}
    if windows < FEWEST_WINDOWS:
        return {**figures, "mean": None, "peak": None, "peak_to_mean": None, "index_of_dispersion": None}
    numbers = np.floor((times - times[0]) / window_s)
    counts = np.unique(numbers[numbers < windows], return_counts=True)[1].astype(np.float64)
    mean = float(counts.sum()) / windows
    variance = float((counts**2).sum()) / windows - mean**2
    peak = float(counts.max())
    return {
        **figures,
        "mean": mean,
        "peak": int(peak),
        "peak_to_mean": peak / mean,
        "index_of_dispersion": variance / mean,
    }
