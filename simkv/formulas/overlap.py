"""What overlapping transfer with computation can give.

Sources: the article's T_step = max(T_c, T_t), S(beta) = (T_c + T_t) / (T_c + (1 - beta) * T_t) and
S_max = 1 + T_t / T_c. Overlap inside one step hides at most T_c of T_t, so beta can't exceed
min(1, T_c / T_t) and the speedup can't exceed (T_c + T_t) / max(T_c, T_t) <= 2; the article's bound is
reached only where T_t <= T_c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from simkv.errors import InputError, Problem


@dataclass(frozen=True, slots=True)
class SpeedupBounds:
    """Both bounds on the speedup by prefetching, and which one binds."""

    article: float
    """1 + T_t / T_c: everything hidden."""
    overlap: float
    """(T_c + T_t) / max(T_c, T_t): hidden behind this step's own computation."""
    binding: Literal["article", "overlap"]

    @property
    def value(self) -> float:
        """The smaller of the two."""
        return min(self.article, self.overlap)


def step_ideal(compute_s: float, transfer_s: float) -> float:
    """T_step with perfect overlap: the longer of the two (s)."""
    _check(compute_s, transfer_s)
    return max(compute_s, transfer_s)


def step_serial(compute_s: float, transfer_s: float) -> float:
    """T_step without overlap: the sum (s)."""
    _check(compute_s, transfer_s)
    return compute_s + transfer_s


def fill_bubble(compute_s: float, transfer_s: float, layers: int) -> float:
    """Time lost filling a pipeline of equal layers in isolation: min(T_c, T_t) / L (s)."""
    _check(compute_s, transfer_s)
    if layers < 1:
        raise InputError(Problem("is not a number of layers", path="layers", value=str(layers)))
    return min(compute_s, transfer_s) / layers


def step_pipelined(compute_s: float, transfer_s: float, layers: int) -> float:
    """T_step with layer-by-layer overlap: the longer of the two and the fill bubble (s)."""
    return step_ideal(compute_s, transfer_s) + fill_bubble(compute_s, transfer_s, layers)


def speedup(compute_s: float, transfer_s: float, beta: float) -> float:
    """S(beta) against no overlap, for any beta in 0..1 (the article's what-if; see :func:`feasible_beta`)."""
    _check(compute_s, transfer_s)
    if not 0 <= beta <= 1:
        raise InputError(Problem("is not an overlap in 0..1", "use 0.9", path="beta", value=str(beta)))
    exposed = compute_s + (1 - beta) * transfer_s
    total = compute_s + transfer_s
    if exposed == 0:
        return math.inf if total else 1.0
    return total / exposed


def feasible_beta(compute_s: float, transfer_s: float) -> float:
    """Largest overlap inside one step: min(1, T_c / T_t)."""
    _check(compute_s, transfer_s)
    return 1.0 if transfer_s <= compute_s else compute_s / transfer_s


def speedup_bounds(compute_s: float, transfer_s: float) -> SpeedupBounds:
    """Both bounds on the speedup; the article's binds where T_t <= T_c (there the two are equal)."""
    _check(compute_s, transfer_s)
    article = speedup(compute_s, transfer_s, 1.0)
    overlap = speedup(compute_s, transfer_s, feasible_beta(compute_s, transfer_s))
    return SpeedupBounds(article, overlap, "article" if transfer_s <= compute_s else "overlap")


def _check(compute_s: float, transfer_s: float) -> None:
    if compute_s < 0 or transfer_s < 0 or math.isinf(compute_s + transfer_s) or math.isnan(compute_s + transfer_s):
        raise InputError(Problem("times must be finite and not negative", value=f"{compute_s}, {transfer_s}"))
