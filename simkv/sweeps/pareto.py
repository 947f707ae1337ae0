"""Points that no other point beats: better or equal in every objective, and better in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem

Direction = Literal["min", "max"]
DIRECTIONS: tuple[Direction, ...] = ("min", "max")
_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric, and which way is better."""

    metric: str
    direction: Direction

    def __str__(self) -> str:
        return f"{self.metric}:{self.direction}"


DEFAULT = (
    Objective("itl_s.p95", "min"),
    Objective("ttft_s.p95", "min"),
    Objective("output_tokens_per_s", "max"),
    Objective("cost_per_million_output_tokens", "min"),
)


def parse_objectives(text: str) -> tuple[Objective, ...]:
    """Read ``ttft_s.p95:min,output_tokens_per_s:max``, each metric once; raises InputError."""
    found = tuple(_objective(part.strip()) for part in text.split(","))
    metrics = [objective.metric for objective in found]
    for metric in metrics:
        if metrics.count(metric) > 1:
            raise InputError(
                Problem("is there twice", "name it once, with min or max", path="--objective", value=metric)
            )
    return found


def _objective(text: str) -> Objective:
    metric, colon, written = text.rpartition(":")
    for direction in DIRECTIONS:
        if metric and written.strip() == direction:
            return Objective(metric.strip(), direction)
    what = "is no direction" if colon else "doesn't say which way is better"
    mend = "write METRIC:min or METRIC:max, like ttft_s.p95:min,output_tokens_per_s:max"
    raise InputError(Problem(what, mend, path="--objective", value=text))


def costs(values: NDArray[np.float64], objectives: Sequence[Objective]) -> NDArray[np.float64]:
    """Return ``values`` (points by objectives) so that less is better in every column."""
    signs = np.array([1.0 if objective.direction == "min" else -1.0 for objective in objectives])
    turned: NDArray[np.float64] = values * signs
    return turned


def front(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say of each row of ``values`` (points by objectives, less is better) whether no other row dominates it.

    Equal rows are all on the front. A row with a nan is not on it and dominates nothing.
    """
    chosen = np.zeros(len(values), dtype=bool)
    whole = np.flatnonzero(~np.isnan(values).any(axis=1))
    if not len(whole) or not values.shape[1]:
        chosen[whole] = True
        return chosen
    distinct, place = np.unique(values[whole], axis=0, return_inverse=True)
    kept = _two(distinct) if distinct.shape[1] <= 2 else _many(distinct)
    chosen[whole] = kept[place.reshape(-1)]
    return chosen


def _two(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Of distinct rows in lexicographic order, with one or two columns: each must lower the last column."""
    kept: NDArray[np.bool_]
    if rows.shape[1] == 1:
        kept = rows[:, 0] == rows[0, 0]
        return kept
    before = np.concatenate(([np.inf], np.minimum.accumulate(rows[:-1, 1])))
    kept = rows[:, 1] < before
    kept[0] = True
    return kept


def _many(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Of distinct rows in lexicographic order, where nothing is dominated by what comes after it."""
    kept = np.zeros(len(rows), dtype=bool)
    best = rows[:0]
    for begin in range(0, len(rows), _BLOCK):
        block = rows[begin : begin + _BLOCK]
        left = np.flatnonzero(~_dominated(block, best))
        left = left[~_dominated(block[left], block[left])]
        kept[begin + left] = True
        best = np.concatenate((best, block[left]))
    return kept


def _dominated(rows: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which of ``rows`` are dominated by one of ``others``; an equal row doesn't dominate."""
    found = np.zeros(len(rows), dtype=bool)
    for begin in range(0, len(others), _BLOCK):
        part = others[begin : begin + _BLOCK]
        left = np.flatnonzero(~found)
        as_good = np.ones((len(left), len(part)), dtype=bool)
        better = np.zeros((len(left), len(part)), dtype=bool)
        for column in range(rows.shape[1]):
            ours, theirs = rows[left, column][:, None], part[:, column][None, :]
            as_good &= theirs <= ours
            better |= theirs < ours
        found[left] = (as_good & better).any(axis=1)
    return found
