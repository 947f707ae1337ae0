"""Sums of terms none of which is negative, fitted to times so that a few wrong ones don't matter.

Minimised are relative errors r = (measured - fitted) / fitted under Cauchy's loss log(1 + (r/s)^2): least squares below
s, and a point that is several times off hardly counts, fast or slow. Solved by least squares without negative solutions
(Lawson, Hanson 1974), reweighted until it stands still; since that loss has more than one valley, it begins at least
squares and at the solution under "soft L1", which hardly has, and keeps the better one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

_SCALE = 0.1
"""s: the relative error from which a point counts less and less."""
_ROUNDS = 200
_STILL = 1e-10
_REACH = 100.0
"""How many times too small or too large a fitted value may be taken to be, while errors are made shares of it."""


def nonnegative_fit(terms: Array, seconds: Array, weights: Array | None = None, given: Array | None = None) -> Array:
    """Return x >= 0 with ``terms @ x + given`` near ``seconds``.

    ``terms``: [points, unknowns], of which no column is all zero; ``weights`` of the points' losses; ``given``: what is
    known of ``seconds``.
    """
    known = np.zeros_like(seconds) if given is None else given
    roots = np.ones_like(seconds) if weights is None else np.sqrt(weights)
    plain = _solve(terms, seconds - known, roots / seconds)
    first = _reweighted(terms, seconds, known, roots, plain, _by_distance)
    found = [_reweighted(terms, seconds, known, roots, start, _by_logarithm) for start in (first, plain)]
    return min(found, key=lambda solution: _loss(_fitted(terms, solution, known, seconds), seconds, roots))


def _by_distance(errors: Array) -> Array:
    """Soft L1: 2 (sqrt(1 + r^2) - 1)."""
    return 1 / np.sqrt(1 + errors**2)


def _by_logarithm(errors: Array) -> Array:
    """Cauchy: log(1 + r^2)."""
    return 1 / (1 + errors**2)


def _reweighted(
    terms: Array, seconds: Array, known: Array, roots: Array, start: Array, trust: Callable[[Array], Array]
) -> Array:
    """Return the solution that stands still when every point counts by ``trust`` in its error."""
    solution, fitted = start, _fitted(terms, start, known, seconds)
    for _ in range(_ROUNDS):
        rows = roots * np.sqrt(trust((seconds - fitted) / fitted / _SCALE)) / fitted
        solution = _solve(terms, seconds - known, rows)
        before, fitted = fitted, _fitted(terms, solution, known, seconds)
        if np.max(np.abs(fitted - before) / before) < _STILL:
            break
    return solution


def _loss(fitted: Array, seconds: Array, roots: Array) -> float:
    errors = np.log(seconds / fitted)
    return float(np.sum(roots**2 * np.log(1 + (errors / _SCALE) ** 2)))


def separable(terms: Array) -> bool:
    """Say whether no column of ``terms`` is a sum of multiples of the others."""
    return bool(np.linalg.matrix_rank(terms / np.linalg.norm(terms, axis=0), tol=1e-6) == terms.shape[1])


def _solve(terms: Array, seconds: Array, rows: Array) -> Array:
    from scipy.optimize import nnls

    scaled = terms * rows[:, None]
    sizes = np.linalg.norm(scaled, axis=0)
    solution: Array = nnls(scaled / sizes, seconds * rows)[0] / sizes
    return solution


def _fitted(terms: Array, solution: Array, known: Array, seconds: Array) -> Array:
    fitted: Array = np.clip(terms @ solution + known, seconds / _REACH, seconds * _REACH)
    return fitted
