"""What one pool tells of its blocks, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simkv.kvcache.pool import KVPool
from simkv.sim.record.extents import latest
from simkv.sim.record.instant import Instant
from simkv.sim.record.labels import Labels
from simkv.sim.record.log import COMING, GONE, HERE, USED
from simkv.sim.record.marks import Marks
from simkv.workload.request import Spans

if TYPE_CHECKING:
    from simkv.sim.record.log import Log


class PoolLog:
    """Turns what happens in a pool into rows; blocks count as the pool counts them."""

    def __init__(self, pool: KVPool, tier: int, number: int, labels: Labels, instant: Instant) -> None:
        self.pool = pool
        self.tier = tier
        self.number = number
        self.marks = Marks()
        self.named = 0
        """Private blocks that rows name all the same: of sequences under active offload."""
        self.waits = False
        """Rows that name blocks are behind: what is private isn't told until they aren't."""
        self._labels = labels
        self._instant = instant
        self._block_tokens = pool.index.block_tokens

    # ---- what is told (see kvcache.watch)

    def entered(self, spans: Spans, start: int, end: int, transfer: int) -> None:
        """Blocks have room, or are here."""
        self._rows(COMING if transfer else HERE, spans, start, end, transfer)

    def arrived(self, spans: Spans, start: int, end: int, transfer: int) -> None:
        """Blocks are here."""
        self._rows(HERE, spans, start, end, transfer)

    def used(self, spans: Spans, start: int, end: int) -> None:
        """Blocks were used."""
        self._rows(USED, spans, start, end)

    def left(self, spans: Spans, start: int, end: int) -> None:
        """Blocks are gone."""
        self._rows(GONE, spans, start, end)

    def held(self) -> None:
        """Requests hold another number of blocks."""
        if not self.waits:
            self._instant.stale(self)

    def _rows(self, what: int, spans: Spans, start: int, end: int, transfer: int = 0) -> None:
        for label, first, last in self._labels.stretches(spans, start, end, self._block_tokens):
            self.row(what, label, first, last, transfer)

    def row(self, what: int, label: int, first: int, end: int, transfer: int = 0) -> None:
        """Write one row."""
        self._instant.row(self, what, label, first, end, transfer)

    @property
    def private_blocks(self) -> int:
        """Blocks that running requests hold and no row names."""
        private = self.pool.private_blocks - self.named
        return private if private > 0 else 0

    # ---- as a window begins

    def begin(self) -> None:
        """Nobody was told until now: no row names anything."""
        self.named, self.waits = 0, False

    def note(self, now: float) -> None:
        """Note when uses were that have been counted so far."""
        self.marks.note(now, self.pool.index.sequence)

    def tell(self, log: Log, most: int) -> tuple[int, int]:
        """Tell what is there, at most ``most`` extents; returns how many were told, and the blocks left out."""
        index = self.pool.index
        nodes = latest(index, most)
        for node in nodes:
            last_use_s = self.marks.when_s(node.last_use)
            start = node.end - node.blocks
            for label, first, end in self._labels.stretches(node.spans, start, node.end, self._block_tokens):
                log.there(self.tier, self.number, label, first, end, node.pending, last_use_s, node.uses)
        return len(nodes), index.resident_blocks - sum(node.blocks for node in nodes)
