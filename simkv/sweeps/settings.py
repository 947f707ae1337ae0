"""The seeds of one combination of values taken together: means, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simkv.sweeps.leaves import leaf, number
from simkv.sweeps.point import Ended


@dataclass(frozen=True, slots=True)
class Mean:
    """Of one metric over the seeds that have it."""

    value: float
    half: float | None
    """Half width of the 95 % interval by Student's t; None: one seed."""
    seeds: int


@dataclass(frozen=True, slots=True)
class Setting:
    """One combination of values with what its seeds gave."""

    ended: tuple[Ended, ...]
    """By seed; never empty."""
    found: tuple[Mapping[str, Any], ...]
    """Summaries of those that are done."""

    @property
    def params(self) -> Mapping[str, str]:
        """Value by axis, as written."""
        return self.ended[0].point.params

    @property
    def keys(self) -> tuple[str, ...]:
        """The runs that answer it."""
        return tuple(one.point.key for one in self.ended)

    def mean(self, metric: str) -> Mean | None:
        """Return the metric's mean over seeds; None: no seed has a number there."""
        values = [value for each in self.found if (value := number(leaf(each, metric))) is not None]
        if len(values) < 2:
            return Mean(values[0], None, 1) if values else None
        return Mean(float(np.mean(values)), half_width(values), len(values))

    def text(self, metric: str) -> str | None:
        """Return what a metric that is no number says, where all seeds say the same."""
        said = list(dict.fromkeys(value for each in self.found if isinstance(value := leaf(each, metric), str)))
        return said[0] if len(said) == 1 else " or ".join(said) or None


def settings(ended: Sequence[Ended]) -> list[Setting]:
    """Return the points by combination of values, in the order of the first of each."""
    groups: dict[tuple[tuple[str, str], ...], list[Ended]] = {}
    for one in ended:
        groups.setdefault(tuple(one.point.params.items()), []).append(one)
    return [
        Setting(tuple(group), tuple(one.summary for one in group if one.summary is not None))
        for group in groups.values()
    ]


def half_width(values: Sequence[float]) -> float | None:
    """Return the half width of the 95 % interval of the mean of independent values; None for fewer than two."""
    if len(values) < 2:
        return None
    from scipy.special import stdtrit

    return float(stdtrit(len(values) - 1, 0.975) * np.std(values, ddof=1) / math.sqrt(len(values)))
