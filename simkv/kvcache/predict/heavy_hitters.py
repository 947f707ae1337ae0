"""What was read most so far is read again.

After H2O (Zhang et al., NeurIPS 2023), which keeps the tokens with the largest accumulated attention. A simulator of
bytes has no attention weights: steps that read a unit are counted instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simkv.kvcache.predict.base import NOTHING, AnyUnits, Units
from simkv.kvcache.residency.ranked import lowest


class _Counts:
    """Reads of every unit of a sequence, and the step of the last."""

    def __init__(self) -> None:
        self.reads: NDArray[np.int32] = np.zeros(0, np.int32)
        self.last: NDArray[np.int32] = np.zeros(0, np.int32)

    def ensure(self, units: int) -> None:
        """Have room for units below ``units``, doubling."""
        short = max(units, 2 * self.reads.size) - self.reads.size
        if units > self.reads.size:
            self.reads = np.append(self.reads, np.zeros(short, np.int32))
            self.last = np.append(self.last, np.zeros(short, np.int32))


class HeavyHitters:
    """The units read in most steps; ties go to the more recent, then to the tail."""

    def __init__(self) -> None:
        self._counts: dict[int, _Counts] = {}

    def seen(self, sequence: int, step: int, units: AnyUnits) -> None:
        """Count ``units``."""
        counts = self._counts.setdefault(sequence, _Counts())
        if units.size:
            counts.ensure(int(units.max()) + 1)
            counts.reads[units] += 1
            counts.last[units] = step

    def predict(self, sequence: int, step: int, most_units: int) -> Units:
        """Return the units with the highest counts."""
        counts = self._counts.get(sequence)
        if counts is None:
            return NOTHING
        read = np.flatnonzero(counts.reads)
        keys = (lambda ids: -counts.reads[ids], lambda ids: -counts.last[ids], lambda ids: -ids)
        return lowest(read, most_units, keys).astype(np.int32)

    def forget(self, sequence: int) -> None:
        """Drop the counts."""
        self._counts.pop(sequence, None)
