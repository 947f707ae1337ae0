"""Least squares where every answer trembles: a simulated run has waves of admission that come early or late.

Around a point several are tried, a plane is laid through all answers, and the point moves to where the plane's squares
are least. A plane through many answers averages out what slopes between two would follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Errors = Callable[[Sequence[Vector]], Sequence[Vector]]
"""What is wrong at each of several points, one vector each."""
ROUNDS = 6
REACH = 5.0
"""Steps: the farthest that one round moves."""
NEAR = 0.4
"""Steps: a move below this ends the search."""


@dataclass(frozen=True, slots=True)
class Box:
    """Where to look, and how far apart points are tried."""

    low: Vector
    high: Vector
    steps: Vector

    def clipped(self, x: Vector) -> Vector:
        """Return the nearest point inside."""
        return np.clip(x, self.low, self.high)


def least(errors: Errors, start: Vector, box: Box) -> Vector:
    """Return where the sum of squared errors is least, near ``start``, within ``box``."""
    x = box.clipped(start)
    tried: list[tuple[Vector, Vector]] = []
    for _ in range(ROUNDS):
        tried += _try(errors, x, box, _star(len(x)))
        x, moved = _moved(x, box, tried, REACH)
        if moved < NEAR:
            break
    tried += _try(errors, x, box, _grid(len(x)))
    return _moved(x, box, tried, 2.0)[0]


def _try(errors: Errors, x: Vector, box: Box, pattern: Sequence[Vector]) -> list[tuple[Vector, Vector]]:
    points = [box.clipped(x + move * box.steps) for move in pattern]
    return list(zip(points, errors(points), strict=True))


def _star(n: int) -> list[Vector]:
    """Return the middle, and a step each way along every axis."""
    return [np.zeros(n), *np.eye(n), *-np.eye(n)]


def _grid(n: int) -> list[Vector]:
    """Return every combination of half a step and of one and a half, each way, along every axis."""
    return [np.array(move) for move in product((-1.5, -0.5, 0.5, 1.5), repeat=n)]


def _moved(x: Vector, box: Box, tried: Sequence[tuple[Vector, Vector]], reach: float) -> tuple[Vector, float]:
    """Return where the plane through what was tried near ``x`` is least, and how many steps that is away."""
    from scipy.optimize import lsq_linear

    near = [(point - x) / box.steps for point, _ in tried]
    answers = [answer for _, answer in tried]
    kept = [n for n, away in enumerate(near) if np.abs(away).max() <= 2.0 + 1e-9]
    design = np.array([[1.0, *near[n]] for n in kept])
    plane, *_ = np.linalg.lstsq(design, np.array([answers[n] for n in kept]), rcond=None)
    low, high = (box.low - x) / box.steps, (box.high - x) / box.steps
    low, high = np.maximum(np.minimum(low, high), -reach), np.minimum(np.maximum(low, high), reach)
    found = lsq_linear(plane[1:].T, -plane[0], (low - 1e-12, high + 1e-12)).x
    return box.clipped(x + found * box.steps), float(np.abs(found).max())
