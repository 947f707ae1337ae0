"""What a resident set knows of every unit: a column a property, indexed by unit id."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.intp]
"""Unit ids of the arena."""
AnyIds = NDArray[np.integer[Any]]
"""Unit ids as callers hold them, of any width."""
Flags = NDArray[np.bool_]

ABSENT, PENDING, RESIDENT = 0, 1, 2
NEVER = -1
"""``last`` of a unit that was never used."""
NOBODY: Ids = np.empty(0, np.intp)
_FIRST_UNITS = 1024


class Units:
    """Columns that grow by doubling; ``uses`` is whole numbers, or float64 where ``decayed``."""

    def __init__(self, decayed: bool) -> None:
        self.state: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.dirty: Flags = np.empty(0, np.bool_)
        self.last: NDArray[np.int32] = np.empty(0, np.int32)
        """Step (or turn) of the last use, a unit's entry included."""
        self.entered: NDArray[np.int32] = np.empty(0, np.int32)
        """Step in which it got its room."""
        self.uses: NDArray[Any] = np.empty(0, np.float64 if decayed else np.int32)
        self.local: NDArray[np.int32] = np.empty(0, np.int32)
        """Position in its region; higher is nearer the sequence's tail."""
        self.priority: NDArray[np.int16] = np.empty(0, np.int16)
        self.scratch: Flags = np.empty(0, np.bool_)
        """All False between calls."""
        self.decayed = decayed
        self._unused: float = -np.inf if decayed else 0

    def __len__(self) -> int:
        return self.state.size

    def ensure(self, units: int) -> None:
        """Make room for ids below ``units``; what is there stays."""
        if units <= len(self):
            return
        size = max(_FIRST_UNITS, len(self))
        while size < units:
            size *= 2
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                grown = np.zeros(size, column.dtype)
                grown[: column.size] = column
                setattr(self, name, grown)

    def blank(self, base: int, units: int, priority: int) -> None:
        """Set a region's columns to those of units that were never here."""
        region = slice(base, base + units)
        self.state[region] = ABSENT
        self.dirty[region] = False
        self.last[region] = NEVER
        self.entered[region] = NEVER
        self.uses[region] = self._unused
        self.local[region] = np.arange(units, dtype=np.int32)
        self.priority[region] = priority

    def absent(self, ids: AnyIds) -> Ids:
        """Return those of ``ids`` that are not in, each once, in their order."""
        wanted: Ids = np.asarray(ids, np.intp)
        wanted = wanted[self.state[wanted] == ABSENT]
        self.scratch[wanted] = True
        repeats = np.count_nonzero(self.scratch) < wanted.size
        self.scratch[wanted] = False
        if repeats:
            wanted = wanted[np.sort(np.unique(wanted, return_index=True)[1])]
        return wanted

    def candidates(self, protect: AnyIds) -> Ids:
        """Return the resident units without ``protect``, ascending."""
        self.scratch[protect] = True
        free = np.flatnonzero((self.state == RESIDENT) & ~self.scratch)
        self.scratch[protect] = False
        return free
