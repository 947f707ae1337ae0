"""Victims chosen one at a time by a policy of ``kvcache/eviction``, which keeps an object a unit.

What a step reads is out of the policy's hands from its read until the first admission that doesn't protect it; what
arrives, likewise. Then it becomes the most recent candidate: among those that come back together by step of last
use, the tails of a step first, so that the order in which a step's reads were named decides nothing. A unit whose
transfer outlasts a step counts as used when it came. A prefetched unit has one use from the start, and the read that
it was fetched for is none more: policies of entries count from 1.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from simkv.kvcache.eviction import EvictionPolicy
from simkv.kvcache.eviction.queued import Queued
from simkv.kvcache.eviction.s3fifo import S3Fifo
from simkv.kvcache.residency.units import AnyIds, Flags, Ids, Units


class UnitEntry:
    """One unit as an eviction policy sees it; the same object as long as its sequence is open."""

    __slots__ = ("counted", "depth", "inserted", "key", "last_use", "priority", "queue", "unit", "uses")
    blocks = 1

    def __init__(self, unit: int, key: int, depth: int, priority: int) -> None:
        self.unit = unit
        self.key = key
        self.depth = depth
        self.priority = priority
        self.uses = self.last_use = self.inserted = 0
        self.queue = self.counted = 0


class OneByOne:
    """An adapter between columns of units and a policy of entries."""

    def __init__(self, units: Units, policy: EvictionPolicy[UnitEntry]) -> None:
        self._units = units
        self._policy = policy
        self._entries: dict[int, UnitEntry] = {}
        self._candidate: Flags = np.zeros(0, np.bool_)  # in the policy
        self._held: Flags = np.zeros(0, np.bool_)  # resident, not in the policy
        self._keys = 0
        self._adds = 0

    def opened(self, base: int, units: int) -> None:
        """Keep up with the columns' size."""
        more = np.zeros(len(self._units) - self._held.size, np.bool_)
        if more.size:
            self._candidate, self._held = np.append(self._candidate, more), np.append(self._held, more)

    def closed(self, base: int, units: int) -> None:
        """Tell the policy that the region's units have left, and drop their entries."""
        region = slice(base, base + units)
        self._add(base + np.flatnonzero(self._held[region]))
        for entry in self._entries_of(base + np.flatnonzero(self._candidate[region])):
            self._policy.discard(entry)
            self._policy.evicted(entry)
        self._candidate[region] = False
        for unit in range(base, base + units):
            self._entries.pop(unit, None)

    def touched(self, ids: Ids) -> None:
        """Hold what was read."""
        self._discard(ids[self._candidate[ids]])

    def arrived(self, ids: Ids) -> None:
        """Hold what came."""
        self._held[ids] = True

    def offer(self, protect: AnyIds, capacity_units: int) -> int:
        """Hand what is held back to the policy, unless protected, and hold what is protected."""
        if isinstance(self._policy, Queued | S3Fifo):
            self._policy.resize(capacity_units)
        guarded = self._units.scratch
        guarded[protect] = True
        self._discard(np.flatnonzero(self._candidate & guarded))
        returning = np.flatnonzero(self._held & ~guarded)
        guarded[protect] = False
        self._add(returning)
        return len(self._policy)

    def victims(self, most: int, incoming: Ids) -> Ids:
        """Return victims, the last of ``incoming`` announced one by one ahead of the eviction that lets it in."""
        policy, chosen = self._policy, []
        keys = [entry.key for entry in self._entries_of(incoming)] if policy.remembers else []
        coming = iter(keys)
        for key in islice(coming, max(0, incoming.size - most)):
            policy.coming(key)
        for _ in range(most):
            for key in islice(coming, 1):
                policy.coming(key)
            entry = policy.victim()
            assert entry is not None, "fewer candidates than were offered"
            policy.discard(entry)
            policy.evicted(entry)
            chosen.append(entry.unit)
        gone: Ids = np.array(chosen, np.intp)
        self._candidate[gone] = False
        return gone

    def known(self) -> Ids:
        """Return what is in the policy or held."""
        assert np.count_nonzero(self._candidate) == len(self._policy), "candidates"
        assert not (self._candidate & self._held).any(), "held and in the policy"
        return np.flatnonzero(self._candidate | self._held)

    def _entries_of(self, ids: Ids) -> list[UnitEntry]:
        """Return the entries of ``ids``, new ones for units that never had one."""
        try:
            return list(map(self._entries.__getitem__, ids.tolist()))
        except KeyError:
            self._make([unit for unit in ids.tolist() if unit not in self._entries])
            return list(map(self._entries.__getitem__, ids.tolist()))

    def _make(self, new: list[int]) -> None:
        depths, priorities = self._units.local[new].tolist(), self._units.priority[new].tolist()
        keys = range(self._keys, self._keys + len(new))
        self._entries.update(zip(new, map(UnitEntry, new, keys, depths, priorities), strict=True))
        self._keys = keys.stop

    def _discard(self, ids: Ids) -> None:
        discard = self._policy.discard
        for entry in self._entries_of(ids):
            discard(entry)
        self._candidate[ids] = False
        self._held[ids] = True

    def _add(self, ids: Ids) -> None:
        units, add = self._units, self._policy.add
        ids = ids[np.lexsort((ids, -units.local[ids], units.last[ids]))]
        uses = np.maximum(units.uses[ids], 1).tolist()
        rows = zip(self._entries_of(ids), uses, units.entered[ids].tolist(), strict=True)
        for last_use, (entry, used, entered) in enumerate(rows, start=self._adds):
            entry.uses, entry.last_use, entry.inserted = used, last_use, entered
            add(entry)
        self._adds += ids.size
        self._candidate[ids] = True
        self._held[ids] = False
