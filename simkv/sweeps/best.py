"""The Pareto front of a sweep: which objectives tell its settings apart, and which settings nothing beats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem
from simkv.sweeps.leaves import chosen, columns
from simkv.sweeps.pareto import DEFAULT, Objective, costs, front
from simkv.sweeps.settings import Setting

ANY = "any"
"""Stands for every value of an axis."""
_NAMED = 3
"""Values of an axis that are named one by one."""


@dataclass(frozen=True, slots=True)
class Front:
    """What nothing beats."""

    objectives: tuple[Objective, ...]
    """Those that are compared; empty: no objective tells one setting from another."""
    settings: tuple[Setting, ...]
    without: int = 0
    """Settings that lack one of the figures: not compared."""


def front_of(found: Sequence[Setting], objectives: Sequence[Objective] | None = None) -> Front:
    """Return the settings that are best for ``objectives``, by their means over seeds.

    None: latency, throughput and cost, as far as they are there and differ. Raises InputError for
    an objective that no setting has a number for.
    """
    done = [setting for setting in found if setting.found]
    if objectives is not None and done:
        names = columns(setting.found for setting in done)
        chosen([objective.metric for objective in objectives], names, "--objective")
    given = DEFAULT if objectives is None else tuple(objectives)
    table = _table(done, given)
    some: NDArray[np.bool_] = np.array([not np.isnan(column).all() for column in table.T], dtype=bool)
    if objectives is not None and done and not some.all():
        lacking = given[int(np.argmin(some))]
        what = "no point has a number there"
        raise InputError(Problem(what, "name a metric that has one", path="--objective", value=str(lacking)))
    differs = some
    if objectives is None:
        differs = np.array([_differs(column) for column in table.T], dtype=bool)
    used = tuple(objective for objective, keep in zip(given, differs, strict=True) if keep)
    values = costs(table[:, differs], used)
    kept = front(values)
    whole = ~np.isnan(values).any(axis=1)
    return Front(used, tuple(s for s, keep in zip(done, kept, strict=True) if keep), int((~whole).sum()))


def _table(found: Sequence[Setting], objectives: Sequence[Objective]) -> NDArray[np.float64]:
    rows = [[mean.value if (mean := s.mean(o.metric)) else np.nan for o in objectives] for s in found]
    return np.array(rows, dtype=float).reshape(len(found), len(objectives))


def _differs(column: NDArray[np.float64]) -> bool:
    values = column[~np.isnan(column)]
    return bool(len(values)) and bool((values != values[0]).any())


def lines(found: Front, axes: Mapping[str, Sequence[str]]) -> Iterator[tuple[dict[str, str], Setting]]:
    """Yield the front's settings, those that are equal in every objective as one, with one that stands for them.

    ``axes``: every value of each; an axis that takes all of them in equal settings reads ``any``.
    """
    groups: dict[tuple[float, ...], list[Setting]] = {}
    for setting in found.settings:
        values = (mean.value if (mean := setting.mean(o.metric)) else np.nan for o in found.objectives)
        groups.setdefault(tuple(values), []).append(setting)
    for group in groups.values():
        rows = [_Row({name: (value,) for name, value in s.params.items()}, s) for s in group]
        for axis in reversed(list(axes)):
            rows = _merged(rows, axis)
        for row in rows:
            yield {name: _said(values, axes[name]) for name, values in row.values.items()}, row.first


@dataclass(frozen=True, slots=True)
class _Row:
    """Equal settings that are every combination of these values."""

    values: dict[str, tuple[str, ...]]
    first: Setting


def _merged(rows: Sequence[_Row], axis: str) -> list[_Row]:
    """Return ``rows`` with those that differ in ``axis`` alone as one."""
    groups: dict[tuple[tuple[str, ...], ...], list[_Row]] = {}
    for row in rows:
        groups.setdefault(tuple(values for name, values in row.values.items() if name != axis), []).append(row)
    return [
        _Row({**group[0].values, axis: tuple(v for row in group for v in row.values[axis])}, group[0].first)
        for group in groups.values()
    ]


def _said(values: Sequence[str], all_values: Sequence[str]) -> str:
    if len(values) > 1 and set(values) >= set(all_values):
        return ANY
    return ", ".join(values) if len(values) <= _NAMED else f"{values[0]}, ..., {values[-1]} ({len(values)})"
