"""Prefix reuse under active offload: full blocks that sequences write down to DRAM can be found there by others.

What a finished sequence wrote stays in the DRAM pool's prefix index until it is evicted. A newcomer that begins alike
pins what it finds, streams it while the rest of its prompt is computed, and computes none of it. VRAM keeps nothing of
finished sequences: it holds the resident shares of running ones.
"""

from __future__ import annotations

from functools import partial

from simkv.kvcache.node import Node
from simkv.kvcache.pool import KVPool
from simkv.sim.active.homes import DRAM, NOWHERE, Homes
from simkv.sim.ledger import Done, Ledger
from simkv.sim.tiers import ReplicaTiers
from simkv.workload.request import Spans


class SharedHomes(Homes):
    """Homes whose leading blocks lie in the DRAM pool's index; what comes after them is private."""

    __slots__ = ("_handle", "_ledger", "_over", "_pool", "_retention", "_shares", "_spans", "_writes")

    def __init__(
        self, tiers: ReplicaTiers, blocks: int, spans: Spans, ledger: Ledger, retention: int | None = None
    ) -> None:
        super().__init__(tiers, blocks)
        assert tiers.dram is not None
        self._pool: KVPool = tiers.dram
        self._spans = spans
        self._ledger = ledger
        self._retention = retention
        self._handle: Node | None = None
        self._shares = True
        self._writes = 0
        self._over: Done | None = None
        """Called when it is over and what it wrote is there."""

    def find(self, limit: int) -> int:
        """Pin what DRAM has of the first ``limit`` blocks without a gap; returns how many that are."""
        found = self._pool.index.match(self._spans, limit)
        if not found.end:
            return 0
        self._handle = self._pool.index.pin(found)
        self.at[: found.end] = DRAM
        return found.end

    def share(self, start: int, end: int) -> tuple[int, int, Done] | None:
        """Enter blocks ``start .. end-1`` in DRAM's index, pinned.

        Returns how many must be written there (the others are there, or on their way, by somebody else), by which
        transfer of the ledger, and what to call when that is through. None, changing nothing, where DRAM has no room:
        they and all that follow are private.
        """
        index = self._pool.index
        if not self._shares or self.shared != start:
            self._shares = False
            return None
        transfer = self._ledger.open()
        stored = self._pool.store(self._spans, start, end, transfer, priority=self._retention)
        if stored is None:
            self._ledger.drop(transfer)
            self._shares = False
            return None
        before, (self._handle, added) = self._handle, stored
        if before is not None:
            index.unpin(before)
        self._give(self.at[start:end])  # a block that left VRAM before it was full had a private home
        self.at[start:end] = DRAM
        if not added:
            self._ledger.close(transfer)
            return 0, 0, lambda: None
        self._writes += 1
        return added, transfer, partial(self._written, transfer)

    def _written(self, transfer: int) -> None:
        assert self._handle is not None
        self._writes -= 1
        self._pool.index.arrived(self._handle, self._spans, transfer)
        self._ledger.close(transfer)
        if self._over is not None and not self._writes:
            self._unpin()

    @property
    def shared(self) -> int:
        """How many of its first blocks lie in the index."""
        return self._handle.end if self._handle is not None else 0

    def release(self, done: Done) -> None:
        """Give up every private home, and leave the others to whoever begins alike, once they are written."""
        self.at[: self.shared] = NOWHERE
        super().release(lambda: None)
        self._over = done
        if not self._writes:
            self._unpin()

    def _unpin(self) -> None:
        assert self._over is not None
        if self._handle is not None:
            self._pool.index.unpin(self._handle)
            self._handle = None
        self._over()
