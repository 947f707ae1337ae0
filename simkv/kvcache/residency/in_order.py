"""Reads taken one at a time, each with a load and an eviction of its own before the next: lru by turns.

Recency is a counter of reads (*turns*), not the step. With ``incoming="candidate"`` the unit that is being loaded
may itself be the victim, by the turn of its last use (never used: the lowest): it was transferred, read, and is gone.
That is what the article's toy program does; 298 of its 539 loads without prefetch evict themselves. With
``incoming="protected"`` the victim is one of those that were there before, as an LRU cache has it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simkv.errors import unknown
from simkv.kvcache.residency.ranked import Key, lowest
from simkv.kvcache.residency.units import ABSENT, NOBODY, RESIDENT, Ids, Units

INCOMING = ("protected", "candidate")


class InOrder(NamedTuple):
    """What reads in order moved; the last ``evicted.size`` of ``missed`` made one room each."""

    missed: Ids
    """Units that were loaded, in order."""
    evicted: Ids
    """Units that went, in order; those that evicted themselves among them."""
    evicted_dirty: Ids = NOBODY
    """Those of ``evicted`` that were not written down yet, ascending."""


class Turns:
    """The counter of reads, and the loads that it orders. Each eviction looks at every resident unit."""

    def __init__(self, units: Units, incoming: str) -> None:
        if incoming not in INCOMING:
            raise unknown("way to let units in", incoming, INCOMING, "incoming")
        self._units = units
        self._incoming_may_go = incoming == "candidate"
        self._turn = 0
        self._keys: tuple[Key, ...] = (
            lambda ids: units.last[ids],
            lambda ids: -units.local[ids],
            lambda ids: ids,
        )

    def read(self, ids: Ids, room: int) -> InOrder:
        """Read ``ids`` in order with ``room`` free units to begin with; each read is a turn."""
        return self._walk(ids, room, True)

    def prefetch(self, ids: Ids, room: int) -> InOrder:
        """Load those of ``ids`` that aren't in, in order; they count as used in the turn of the last read."""
        return self._walk(ids, room, False)

    def _walk(self, ids: Ids, room: int, reading: bool) -> InOrder:
        units = self._units
        missed: list[int] = []
        evicted: list[int] = []
        for unit in ids.tolist():
            absent = units.state[unit] == ABSENT
            if absent:
                missed.append(unit)
                victim = self._let_in(unit, room)
                if victim is None:
                    room -= 1
                else:
                    evicted.append(victim)
            self._turn += reading
            if reading or absent:
                units.last[unit] = self._turn
        return InOrder(np.array(missed, np.intp), np.array(evicted, np.intp))

    def _let_in(self, unit: int, room: int) -> int | None:
        """Load ``unit``; returns what went for it, itself where nothing else may, None where there was room."""
        units = self._units
        itself = np.array([unit])
        before = np.flatnonzero(units.state == RESIDENT)
        units.state[unit] = RESIDENT
        units.entered[unit] = self._turn
        if room > 0:
            return None
        candidates = np.append(before, itself) if self._incoming_may_go or not before.size else before
        victim = int(lowest(candidates, 1, self._keys)[0])
        units.state[victim] = ABSENT
        return victim
