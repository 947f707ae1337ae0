"""Samples as points: those of one kind, repeats of the same settings taken together, and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from simkv.profile.schema import Residual, Sample

Setting: TypeAlias = float | int | str | bool
Pairs: TypeAlias = tuple[tuple[float, float], ...]
"""(x, y), x strictly rising."""


@dataclass(frozen=True)
class Point:
    """The median of every repeat that was taken at the same settings."""

    at: Mapping[str, Setting]
    seconds: float

    def number(self, key: str, otherwise: float = 1.0) -> float:
        """Return a setting as a number; ``otherwise`` where it isn't told."""
        return float(self.at.get(key, otherwise))


def points_of(samples: Iterable[Sample], kind: str) -> list[Point]:
    """Return the points of ``kind``, in the order in which their settings first occur."""
    repeats: dict[tuple[tuple[str, Setting], ...], list[float]] = {}
    for sample in samples:
        if sample.kind == kind:
            repeats.setdefault(tuple(sorted(sample.at.items())), []).extend(sample.seconds)
    return [Point(dict(at), median(seconds)) for at, seconds in repeats.items()]


def table(pairs: Iterable[tuple[float, float]]) -> Pairs:
    """Return ``pairs`` by rising x, those of the same x as their median; nothing is smoothed."""
    together: dict[float, list[float]] = {}
    for x, y in pairs:
        together.setdefault(x, []).append(y)
    return tuple((x, median(together[x])) for x in sorted(together))


def interpolate(points: Sequence[tuple[float, float]], x: float) -> float:
    """Return y at ``x`` on the straight lines between ``points``; outside, those of the first or last two go on."""
    if len(points) == 1:
        return points[0][1]
    k = next((k for k in range(1, len(points) - 1) if x <= points[k][0]), len(points) - 1)
    (x0, y0), (x1, y1) = points[k - 1], points[k]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def largest(points: Sequence[Point], key: str, within: float = 4.0) -> list[Point]:
    """Return the points whose ``key`` is at least the largest one over ``within``."""
    most = max((point.number(key) for point in points), default=0.0)
    return [point for point in points if point.number(key) >= most / within]


def residual_of(fitted: Iterable[float], measured: Iterable[float]) -> Residual:
    """Return how far ``fitted`` is from ``measured``."""
    shares = [abs(float(a) - float(b)) / float(b) for a, b in zip(fitted, measured, strict=True)]
    return Residual(points=len(shares), median=median(shares) if shares else 0.0, largest=max(shares, default=0.0))
