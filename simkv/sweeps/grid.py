"""The points of a sweep: every combination of the axes' values, or some spread evenly over them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from simkv import units
from simkv.errors import InputError, Problem
from simkv.sweeps.axes import Axis
from simkv.sweeps.paths import quantity_at

MOST = 100_000
"""Points of one sweep."""
SAMPLE = "--sample"

Values = dict[str, str]
"""Value by axis."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Points spread over the axes."""

    points: tuple[Values, ...]
    notes: tuple[str, ...] = ()
    """What the user should know of them, in sentences."""


def size(axes: Sequence[Axis]) -> int:
    """Return how many points the grid has; raises InputError for an axis that only has ends."""
    problems = [
        axis.problem("has no step", "give one, like 0.1:1.0:0.1, or take points between the ends with --sample N")
        for axis in axes if axis.span is not None
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
    return math.prod(len(axis.values) for axis in axes)


def grid(axes: Sequence[Axis]) -> Iterator[Values]:
    """Return all combinations, one by one, the last axis fastest.

    Raises InputError for more than :data:`MOST`, at once, and for an axis that only has ends.
    """
    count = size(axes)
    if count > MOST:
        factors = " x ".join(f"{len(axis.values):,}" for axis in axes)
        what = f"has {count:,} points" + (f" ({factors})" if len(axes) > 1 else "")
        mend = f"the most is {MOST:,}; {SAMPLE} N spreads N points over the same axes"
        place = ", ".join(axis.place for axis in axes)
        raise InputError(Problem(what, mend, axes[0].file, None, place if len(place) < 200 else ""))
    names = [axis.name for axis in axes]
    return (dict(zip(names, values, strict=True)) for values in itertools.product(*(axis.values for axis in axes)))


def sample(axes: Sequence[Axis], n: int, seed: int = 0) -> Sample:
    """Return ``n`` points of a scrambled Sobol sequence over the axes; the whole grid where that isn't more.

    Between ends values have four digits (whole numbers where the path takes only those); points that come out equal
    are there once. The same seed gives the same points. Raises InputError for more than :data:`MOST`.
    """
    if not 1 <= n <= MOST:
        raise InputError(Problem(f"{n:,} points", f"write 1 to {MOST:,}", SAMPLE))
    if not axes:
        raise InputError(Problem("there is nothing to sample", "name what varies with --grid", SAMPLE))
    if all(axis.span is None for axis in axes) and size(axes) <= n:
        note = [f"The grid has {size(axes)} points: all of them are taken."] if size(axes) < n else []
        return Sample(tuple(grid(axes)), tuple(note))
    whole = [_whole(axis) for axis in axes]
    drawn = [
        {axis.name: _at(axis, share, one) for axis, share, one in zip(axes, row, whole, strict=True)}
        for row in _sobol(len(axes), n, seed)
    ]
    points = list({tuple(point.items()): point for point in drawn}.values())
    notes = []
    if n & (n - 1):
        below = 1 << (n.bit_length() - 1)
        notes.append(f"A sample is spread evenly where it has {below} or {2 * below} points, rather than {n}.")
    if len(points) < n:
        notes.append(f"{n - len(points)} of {n} points came out equal to others and are there once.")
    return Sample(tuple(points), tuple(notes))


def _sobol(dimensions: int, n: int, seed: int) -> list[list[float]]:
    """Return ``n`` rows of shares from 0 up to 1, in the sequence's order."""
    from scipy.stats import qmc

    engine = qmc.Sobol(dimensions, scramble=True, rng=seed)
    rows: list[list[float]] = engine.random_base2((n - 1).bit_length())[:n].tolist()
    return rows


def _at(axis: Axis, share: float, whole: bool) -> str:
    if axis.span is not None:
        return axis.span.at(share, whole)
    return axis.values[min(int(share * len(axis.values)), len(axis.values) - 1)]


def _whole(axis: Axis) -> bool:
    quantity = quantity_at(axis.path)
    if quantity is None:
        return False
    dimension = units.DIMENSIONS[quantity.dimension]
    return dimension.integer and not dimension.base
