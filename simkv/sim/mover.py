"""Carries plans out: reserves room, holds both ends, submits transfers, tells who waits.

Every byte that changes tier goes through here and over a lane of the fabric, once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from simkv.kvcache.node import Extent, Match, Node
from simkv.kvcache.pool import KVPool
from simkv.sim.config import OffloadConfig
from simkv.sim.fabric import DEMAND, LOOK_AHEAD, WRITE_BACK
from simkv.sim.ledger import Done, Ledger
from simkv.sim.record.errand import CASCADE, LOAD, PROMOTE, SPILL, STORE, SWAP_OUT, Errand
from simkv.sim.tiers import LowerHit, Owner, ReplicaTiers
from simkv.workload.request import Spans

Load = Callable[[Done], tuple[int, int]]
"""Starts a load, given what to call when it is through; returns its bytes and descriptors."""


class Reserved(NamedTuple):
    """Room in a lower tier, in its units, for what a transfer will bring: pinned by ``handle`` until it is here."""

    transfer: int
    handle: Node
    blocks: int
    """How many to bring; 0 where they are here or on their way already, and ``transfer`` is closed."""


class Mover:
    """The transfers of one replica; replicas of a host share its ledger."""

    def __init__(self, tiers: ReplicaTiers, ledger: Ledger, offload: OffloadConfig) -> None:
        self.tiers = tiers
        self.ledger = ledger
        self.exclusive = offload.relation == "exclusive"
        self.write = offload.write
        self.unit_bytes = tiers.block_bytes * tiers.unit_blocks
        self.when_full = offload.when_full
        self.keeps_part = offload.when_full == "part"
        self.spills = offload.write == "write_back" and tiers.can_store
        """Evicted blocks go down a tier, so an eviction is a decision with consequences."""
        assert tiers.unit_blocks == 1 or not (self.spills or self.exclusive), "blocks are evicted one by one"
        self._spills_block = offload.write_back_blocks and self.spills
        self.waited: list[int] = []
        """Write-downs since the engine last looked that its next step waits for: it takes over their room."""
        self.sync: Done = lambda: None
        """Brings the replica's VRAM up to now; called before anything here changes it."""
        self.wake: Done = lambda: None
        """Tells the engine that room or content may have appeared."""
        self.received_blocks = 0
        """Blocks that were entered in VRAM as on their way from DRAM."""
        self.prefetched_blocks = 0
        self.used_blocks = 0
        """Prefetched blocks that the request they were fetched for found in VRAM."""

    # ---- up

    def make_room(self, blocks: int) -> None:
        """Have ``blocks`` blocks of VRAM free now; what that evicts goes down a tier where the policy says so."""
        taken: list[Extent] | None = [] if self.spills else None
        self.tiers.vram.make_room(blocks, taken)
        if taken:
            self.spill(taken)

    def forget(self) -> None:
        """Let go of everything in VRAM that nobody holds; it goes down a tier where the policy says so."""
        index = self.tiers.vram.index
        if index.evictable_blocks:
            taken: list[Extent] | None = [] if self.spills else None
            index.evict(index.evictable_blocks, taken)
            if taken:
                self.spill(taken)

    def receive(
        self,
        held: Node,
        spans: Spans,
        end: int,
        known: Match | None,
        priority: int,
        owner: Owner,
        after: int = 0,
        errand: Errand | None = None,
    ) -> tuple[Node, Load]:
        """Make room in VRAM below the pinned path ``held`` for the blocks up to ``end`` of ``spans``.

        The owner's DRAM must have them (``known``: what it says of them), or the transfer ``after`` be bringing what
        it lacks, which the load then waits for. They are entered as on their way, so that whoever meets them waits
        instead of loading them again. Returns the new handle, to which the pins moved, and what starts the load.
        """
        dram, vram = owner.dram, self.tiers.vram
        assert dram is not None
        start = held.end
        units, below = self.tiers.units_over(end), start // self.tiers.unit_blocks
        source = dram.index.pin(known or dram.index.match(spans, units, below))  # before room is made: that may spill
        if after:
            source, lacking = dram.index.extend(source, spans, units)
            assert not lacking, "a load of what is not coming"
        assert source.end == units, "a load of what is not there"
        self.make_room(end - start)
        transfer = self.ledger.open()
        handle, added = vram.index.extend(held, spans, end, pending=transfer, priority=owner.retention)
        assert added == end - start, "a load of what is there"
        vram.written_blocks += added
        self.received_blocks += added

        def load(done: Done) -> tuple[int, int]:
            return self.load(spans, start, end, source, handle, transfer, done, priority, owner, errand)

        def load_later(done: Done) -> tuple[int, int]:
            def arrived() -> None:
                load(done)

            self.ledger.follow(after, arrived)
            return self._load_size(end - start)

        return handle, load_later if after else load

    def _load_size(self, blocks: int) -> tuple[int, int]:
        return blocks * self.tiers.block_bytes, blocks * self.tiers.descriptors_per_block

    def load(
        self,
        spans: Spans,
        start: int,
        end: int,
        source: Node,
        target: Node,
        transfer: int,
        done: Done,
        priority: int,
        owner: Owner,
        errand: Errand | None = None,
    ) -> tuple[int, int]:
        """Copy blocks ``start .. end-1`` of ``spans`` from DRAM to VRAM, where they are pending for ``transfer``.

        ``source`` holds them in DRAM and is released when they are through; ``target`` holds them in VRAM
        and stays the caller's (:meth:`receive`). Returns ``(bytes, descriptors)``.
        """
        tiers = self.tiers
        pool = owner.dram
        assert pool is not None

        def through() -> None:
            self.sync()
            pool.index.unpin(source)
            if self.exclusive:
                pool.index.remove(spans, start, end)
            tiers.vram.index.arrived(target, spans, transfer)
            done()
            self.ledger.close(transfer)
            self.wake()

        nbytes, descriptors = self._load_size(end - start)
        errand = errand or Errand(LOAD)
        errand.number = transfer
        carried = tiers.h2d.submit(nbytes, descriptors, priority, through, owner.rank, errand=errand)
        self.ledger.carriers[transfer] = tiers.h2d, carried
        return nbytes, descriptors

    def promote(
        self, spans: Spans, found: LowerHit, priority: int, owner: Owner, errand: Errand | None = None
    ) -> tuple[int, int]:
        """Copy what was ``found`` on SSD to DRAM; return the transfer's id and the blocks that are read.

        Fewer than were found where DRAM has some already, behind one that it lacks; id 0: no room (a miss).
        """
        tiers = self.tiers
        assert owner.dram is not None and tiers.ssd is not None
        ssd, dram = tiers.ssd, owner.dram
        assert found.ssd is not None
        start, end = found.dram_end // tiers.unit_blocks, found.ssd.end
        source = ssd.index.pin(found.ssd)
        assert source.end == end, "a promotion of what is not there"
        reserved = self._reserve(dram, spans, start, end, found.dram, priority=owner.retention)
        if reserved is None:
            ssd.index.unpin(source)
            return 0, 0
        transfer, handle, units = reserved
        assert units, "a promotion of what is there"

        def through() -> None:
            ssd.index.unpin(source)
            if self.exclusive:
                ssd.index.remove(spans, start, end)
            self._arrived(dram, handle, spans, transfer)

        lane = tiers.host.ssd_read
        errand = errand or Errand(PROMOTE)
        errand.number = transfer
        carried = lane.submit(units * self.unit_bytes, units, priority, through, owner.rank, errand=errand)
        self.ledger.carriers[transfer] = lane, carried
        return transfer, units * tiers.unit_blocks

    def prefetch(self, spans: Spans, found: Match, lower: LowerHit, owner: Owner, errand: Errand) -> None:
        """Copy what DRAM has beyond the VRAM hit ``found`` into VRAM ahead of need, where the caller saw room."""
        index = self.tiers.vram.index
        handle, load = self.receive(
            index.pin(found), spans, lower.dram_end, lower.dram, LOOK_AHEAD, owner, errand=errand
        )
        load(lambda: index.unpin(handle))
        self.prefetched_blocks += lower.dram_end - found.end

    # ---- down

    def store(self, handle: Node, spans: Spans, end: int, owner: Owner, request: int = -1) -> bool:
        """Write what DRAM lacks of the first ``end`` blocks of ``spans`` down; False where DRAM refused.

        ``handle`` pins them in VRAM; they are held there until they are through. ``request``: whose they are.
        """
        tiers = self.tiers
        pool = owner.dram
        if pool is None or not tiers.can_store:
            return True
        units = end // tiers.unit_blocks
        known = pool.index.match(spans, units)
        if known.end >= units:
            return True
        reserved = self._reserve(pool, spans, known.end, units, known, self.keeps_part, owner.retention)
        refused = reserved is None or reserved.handle.end < units
        if refused:
            self.ledger.refused_stores += 1
        if reserved is None or not reserved.blocks:
            return not refused
        transfer, target, blocks = reserved
        stored = target.end
        end = stored * tiers.unit_blocks
        vram = tiers.vram
        held = Match(handle, end, 0) if handle.end - handle.blocks < end else vram.index.match(spans, end)
        source = vram.index.pin(held, use=False)

        def through() -> None:
            self.sync()
            vram.index.unpin(source)
            self._arrived(pool, target, spans, transfer)
            if tiers.can_cascade and not self.spills:
                self.cascade(Extent(spans, 0, stored), owner)

        self._down(blocks, Errand(STORE, request, transfer), through, WRITE_BACK, owner.rank)
        return not refused

    def spill(self, extents: list[Extent]) -> None:
        """Write evicted VRAM blocks to DRAM through a staging buffer (they have left VRAM already)."""
        pool = self.tiers.dram
        assert pool is not None
        for extent in extents:
            span, start, end, worth = extent
            reserved = self._reserve(pool, span, start, end, part=self.keeps_part, priority=worth)
            if reserved is None or reserved.handle.end < extent.end:
                self.ledger.refused_stores += 1
            if reserved is not None and reserved.blocks:
                transfer, handle, blocks = reserved
                if self._spills_block:
                    self.waited.append(transfer)
                through = partial(self._arrived, pool, handle, extent.spans, transfer)
                self._down(blocks, Errand(SPILL, number=transfer), through, WRITE_BACK, 0)

    def put_aside(
        self, spans: Spans, units: int, owner: Owner, done: Done, request: int = -1
    ) -> tuple[Node, int] | None:
        """Write what DRAM lacks of the first ``units`` units down, out of VRAM that the next step takes over.

        Returns what holds all of them in DRAM, until the caller unpins it, and how many are written, after which
        ``done()`` is called; None where DRAM can't be used or has no room for them.
        """
        tiers, pool = self.tiers, owner.dram
        if pool is None or not (tiers.can_store and tiers.can_load):
            return None
        reserved = self._reserve(pool, spans, 0, units, priority=owner.retention)
        if reserved is None:
            return None
        transfer, handle, added = reserved
        kept = pool.index.pin(Match(handle, handle.end, 0), use=False)
        if added:

            def through() -> None:
                done()
                self._arrived(pool, handle, spans, transfer)

            self.waited.append(transfer)
            self._down(added, Errand(SWAP_OUT, request, transfer), through, DEMAND, owner.rank)
        return kept, added

    def cascade(self, extent: Extent, owner: Owner) -> None:
        """Write what SSD lacks of an extent in DRAM, in units, down to it."""
        tiers = self.tiers
        assert tiers.ssd is not None and owner.dram is not None
        ssd, dram = tiers.ssd, owner.dram
        held = dram.index.match(extent.spans, extent.end, extent.start)
        known = ssd.index.match(extent.spans, held.end)
        if known.end >= held.end:
            return
        reserved = self._reserve(ssd, extent.spans, known.end, held.end, known, self.keeps_part, owner.retention)
        if reserved is None or not reserved.blocks:
            return
        transfer, target, blocks = reserved
        source = dram.index.pin(held, use=False)

        def through() -> None:
            dram.index.unpin(source)
            self._arrived(ssd, target, extent.spans, transfer)

        errand = Errand(CASCADE, number=transfer)
        tiers.host.ssd_write.submit(blocks * self.unit_bytes, blocks, WRITE_BACK, through, owner.rank, errand=errand)

    def touch(self, spans: Spans, end: int, owner: Owner) -> None:
        """Renew the recency of a finished request's blocks in DRAM."""
        pool = owner.dram
        if pool is None:
            return
        found = pool.index.match(spans, end // self.tiers.unit_blocks)
        if found.end:
            pool.index.unpin(pool.index.pin(found, use=False))

    def drop_copies(self, spans: Spans, start: int, end: int, owner: Owner) -> None:
        """Exclusive tiers: what VRAM has (again) leaves the tiers below."""
        for pool in (owner.dram, self.tiers.ssd):
            if pool is not None:
                pool.index.remove(spans, start, end)

    def _down(self, units: int, errand: Errand, through: Done, priority: int, rank: int) -> None:
        tiers = self.tiers
        nbytes, descriptors = units * self.unit_bytes, units * tiers.unit_blocks * tiers.descriptors_per_block
        carried = tiers.d2h.submit(nbytes, descriptors, priority, through, rank, errand=errand)
        self.ledger.carriers[errand.number] = tiers.d2h, carried

    def _reserve(
        self,
        pool: KVPool,
        spans: Spans,
        start: int,
        end: int,
        known: Match | None = None,
        part: bool = False,
        priority: int | None = None,
    ) -> Reserved | None:
        """Open a transfer into ``pool``, below VRAM, and reserve its room, in units; None where there is none.

        ``part``: as much of the room as there is. What that evicts from DRAM is written to SSD where the policy
        says so.
        """
        tiers = self.tiers
        transfer = self.ledger.open()
        taken: list[Extent] | None = [] if self.spills and tiers.can_cascade and pool is not tiers.ssd else None
        stored = pool.store(spans, start, end, transfer, taken, known, part, priority)
        for extent in taken or ():
            self._spill_to_ssd(extent)
        if stored is None:
            self.ledger.drop(transfer)
            return None
        handle, blocks = stored
        if not blocks:
            self._arrived(pool, handle, spans, transfer)
        return Reserved(transfer, handle, blocks)

    def _spill_to_ssd(self, extent: Extent) -> None:
        tiers = self.tiers
        assert tiers.ssd is not None
        ssd = tiers.ssd
        span, start, end, worth = extent
        reserved = self._reserve(ssd, span, start, end, part=self.keeps_part, priority=worth)
        if reserved is None or not reserved.blocks:
            return
        transfer, handle, blocks = reserved
        through = partial(self._arrived, ssd, handle, extent.spans, transfer)
        errand = Errand(SPILL, number=transfer)
        tiers.host.ssd_write.submit(blocks * self.unit_bytes, blocks, WRITE_BACK, through, errand=errand)

    def _arrived(self, pool: KVPool, handle: Node, spans: Spans, transfer: int) -> None:
        pool.index.arrived(handle, spans, transfer)
        pool.index.unpin(handle)
        self.ledger.close(transfer)
        self.wake()
