"""How often a unit was used: three ways of counting, for the policies that go by frequency.

- ``in_cache``: steps that read it since it came in. The read it was loaded for counts, a prefetch doesn't;
  what leaves is forgotten.
- ``lifetime``: steps that read it since its sequence began.
- ``decayed``: the same, a read ``half_life`` steps ago counting half. Kept as its binary logarithm, with step 0
  for the present: Σ 2^(step / half_life). All counts fade alike, so their order needs no updating.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from simkv.errors import InputError, Problem, unknown
from simkv.kvcache.residency.units import ABSENT, Ids, Units


class Count(Protocol):
    """Keeps the column ``uses``."""

    def read(self, units: Units, ids: Ids, step: int) -> None:
        """Count one read each; called before ``last`` is set."""

    def enters(self, units: Units, ids: Ids, step: int) -> None:
        """Start afresh, or not; called while ``last`` still tells whether this step has read them."""

    def leaves(self, units: Units, ids: Ids) -> None:
        """Forget, or not."""


class InCache:
    """Reads since the unit came in."""

    def read(self, units: Units, ids: Ids, step: int) -> None:
        """Count on for what is in; what isn't has the one read that may bring it in."""
        units.uses[ids] = np.where(units.state[ids] != ABSENT, units.uses[ids] + 1, 1)

    def enters(self, units: Units, ids: Ids, step: int) -> None:
        """Keep the read of this very step."""
        units.uses[ids] = np.where(units.last[ids] == step, units.uses[ids], 0)

    def leaves(self, units: Units, ids: Ids) -> None:
        """Forget."""
        units.uses[ids] = 0


class Lifetime:
    """Reads since the sequence began."""

    def read(self, units: Units, ids: Ids, step: int) -> None:
        """Count on, in or not."""
        units.uses[ids] += 1

    def enters(self, units: Units, ids: Ids, step: int) -> None:
        """Keep the count."""

    def leaves(self, units: Units, ids: Ids) -> None:
        """Keep the count."""


class Decayed(Lifetime):
    """Reads since the sequence began, the older ones for less."""

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life

    def read(self, units: Units, ids: Ids, step: int) -> None:
        """Add 2^(step / half_life) to what the logarithm stands for."""
        units.uses[ids] = np.logaddexp2(units.uses[ids], step / self._half_life)


def _decayed(half_life: float | None) -> Decayed:
    if half_life is None or not 0 < half_life < np.inf:
        value = "" if half_life is None else str(half_life)
        raise InputError(Problem("a decayed count needs a half-life", "give steps > 0", path="half_life", value=value))
    return Decayed(half_life)


COUNTS: dict[str, Callable[[float | None], Count]] = {
    "in_cache": lambda half_life: InCache(),
    "lifetime": lambda half_life: Lifetime(),
    "decayed": _decayed,
}
"""Every way of counting, called with the half-life, which only ``decayed`` reads."""


def make_count(name: str, half_life: float | None) -> Count:
    """Return the way of counting called ``name``; InputError for an unknown one, or a half-life out of place."""
    maker = COUNTS.get(name)
    if maker is None:
        raise unknown("way to count uses", name, COUNTS, "count")
    if half_life is not None and name != "decayed":
        mend = "leave it out, or count decayed"
        raise InputError(Problem(f"count {name} has no half-life", mend, path="half_life", value=str(half_life)))
    return maker(half_life)
