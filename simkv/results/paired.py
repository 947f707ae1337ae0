"""Two runs of the same requests compared request by request (common random numbers)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simkv.results.stats import Floats, around, batch_means, finite, half_width
from simkv.results.window import LATENCIES, Rows, Window, finished
from simkv.sim.rundata import RunData


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of (run - baseline) of one latency over the pairs, with its 95 % interval."""

    mean_s: float
    half_s: float | None
    run_s: float
    baseline_s: float
    pairs: int

    @property
    def certain(self) -> int:
        """-1 or 1 where the whole interval lies on that side of zero, else 0."""
        if self.half_s is None or abs(self.mean_s) <= self.half_s:
            return 0
        return 1 if self.mean_s > 0 else -1

    @property
    def relative(self) -> float | None:
        """Difference over the baseline's mean."""
        return finite(self.mean_s / self.baseline_s) if self.baseline_s > 0 else None

    @property
    def relative_half(self) -> float | None:
        """Half width over the baseline's mean."""
        if self.half_s is None or self.baseline_s <= 0:
            return None
        return self.half_s / self.baseline_s

    def as_dict(self) -> dict[str, object]:
        """Return what goes into the summary."""
        return {
            "mean": self.mean_s,
            "ci95": around(self.mean_s, self.half_s),
            "relative": self.relative,
            "pairs": self.pairs,
        }


def differences(run: RunData, baseline: RunData, window: Window) -> dict[str, Difference]:
    """Return differences of TTFT, TPOT, E2E and queue over requests of the window that both runs finished."""
    ours, theirs = _pairs(run, baseline, window.rows)
    found = {}
    for name, latency in LATENCIES.items():
        difference = _difference(run, ours, baseline, theirs, latency)
        if difference is not None:
            found[name] = difference
    return found


def _pairs(run: RunData, baseline: RunData, rows: Rows) -> tuple[Rows, Rows]:
    candidates = finished(baseline)
    ids = baseline.requests["id"][candidates]
    order = np.argsort(ids, kind="stable")
    candidates, ids = candidates[order], ids[order]
    if not len(ids) or not len(rows):
        return rows[:0], candidates[:0]
    wanted = run.requests["id"][rows]
    place = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    found = ids[place] == wanted
    return rows[found], candidates[place[found]]


def _difference(
    run: RunData, ours: Rows, baseline: RunData, theirs: Rows, latency: Callable[[RunData, Rows], Floats]
) -> Difference | None:
    one, other = latency(run, ours), latency(baseline, theirs)
    both = np.isfinite(one) & np.isfinite(other)
    one, other = one[both], other[both]
    if not len(one):
        return None
    delta = one - other
    half = half_width(batch_means(delta))
    return Difference(float(delta.mean()), half, float(one.mean()), float(other.mean()), len(delta))
