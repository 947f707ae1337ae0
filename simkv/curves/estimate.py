"""What several seeds say of one figure: their mean, and how far off it may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from simkv.sweeps.settings import half_width

Summary = Mapping[str, Any]
Figure = Callable[[Summary], float | None]
"""Takes one figure out of ``summary.json``; None where the run has none."""

_ROUNDING = 1e-12
"""Values that differ by less, relatively, are equal."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds with its 95 % interval; of one seed, or of equal values, the interval is the value itself."""

    mean: float
    low: float
    high: float

    def row(self, name: str) -> dict[str, float]:
        """Return the three as columns ``name``, ``name_low``, ``name_high``."""
        return {name: self.mean, f"{name}_low": self.low, f"{name}_high": self.high}

    def times(self, factor: float) -> Estimate:
        """Return the same in another unit."""
        return Estimate(self.mean * factor, self.low * factor, self.high * factor)


def estimate(values: Sequence[float | None]) -> Estimate | None:
    """Return what ``values``, one a seed, say; None where a seed has none."""
    found = [value for value in values if value is not None and math.isfinite(value)]
    if not found or len(found) < len(values):
        return None
    half = 0.0 if max(found) - min(found) <= _ROUNDING * abs(found[0]) else half_width(found)
    if not half:
        return Estimate(found[0], found[0], found[0])
    mean = fmean(found)
    return Estimate(mean, mean - half, mean + half)


def over(summaries: Sequence[Summary], figure: Figure) -> Estimate | None:
    """Return what ``figure`` is over the runs of one point."""
    return estimate([figure(summary) for summary in summaries])


def against(summaries: Sequence[Summary], others: Sequence[Summary], figure: Figure) -> Estimate | None:
    """Return by how much ``figure`` is larger than in ``others``, seed by seed."""
    pairs = [(figure(one), figure(other)) for one, other in zip(summaries, others, strict=True)]
    return estimate([None if one is None or other is None else one - other for one, other in pairs])
