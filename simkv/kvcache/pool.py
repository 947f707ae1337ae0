"""A tier's memory: a prefix index plus the blocks that are in use but not (yet) shareable."""

from __future__ import annotations

from simkv.kvcache.eviction import CountMode, make_policy
from simkv.kvcache.index import PrefixIndex
from simkv.kvcache.integrity import Looked, hold
from simkv.kvcache.node import Extent, Match, Node, held_below
from simkv.kvcache.watch import Watch
from simkv.workload.request import Spans

UNBOUNDED_BLOCKS = 1 << 62


class KVPool:
    """``capacity_blocks`` blocks, each free, private to a request, or cached in ``index``.

    ``private`` blocks belong to running requests (partial or not yet committed). Cached blocks
    are pinned or evictable. ``resident = private + cached <= capacity`` always.
    """

    def __init__(
        self,
        capacity_blocks: int,
        block_tokens: int,
        policy: str,
        lam: float | None = None,
        merge: bool = True,
        whole: bool = False,
        count: CountMode = "in_cache",
        half_life_uses: float | None = None,
    ) -> None:
        """``whole``: nodes of the index are evicted whole, and aren't merged.

        ``policy``, ``lam``, ``count`` and ``half_life_uses`` are those of
        :func:`~simkv.kvcache.eviction.make_policy`.
        """
        self.capacity_blocks = capacity_blocks
        merge = merge and policy == "lru" and not whole
        self.index = PrefixIndex(block_tokens, make_policy(
            policy, lam, capacity_blocks=capacity_blocks, count=count, half_life_uses=half_life_uses
        ), merge, whole)  # fmt: skip
        self.private_blocks = 0
        self._watch: Watch | None = None
        self.written_blocks = 0
        """Blocks ever taken or stored: how often the tier was filled."""

    def tell(self, watch: Watch | None) -> None:
        """Tell ``watch`` of every change from now on; None: nobody."""
        self._watch = self.index.watch = watch

    @property
    def free_blocks(self) -> int:
        """Blocks that hold nothing."""
        return self.capacity_blocks - self.private_blocks - self.index.resident_blocks

    @property
    def available_blocks(self) -> int:
        """Blocks that can be had now: free or evictable."""
        return self.capacity_blocks - self.private_blocks - self.index.resident_blocks + self.index.evictable_blocks

    @property
    def used_blocks(self) -> int:
        """Blocks that hold something."""
        return self.private_blocks + self.index.resident_blocks

    def take(self, blocks: int, taken: list[Extent] | None = None) -> None:
        """Take ``blocks`` private blocks, evicting as needed; the caller checked ``available_blocks``."""
        short = blocks - self.capacity_blocks + self.private_blocks + self.index.resident_blocks
        if short > 0:
            self.index.evict(short, taken)
        self.private_blocks += blocks
        self.written_blocks += blocks
        if self._watch is not None:
            self._watch.held()

    def make_room(self, blocks: int, taken: list[Extent] | None = None) -> None:
        """Evict until ``blocks`` blocks are free; the caller checked ``available_blocks``."""
        short = blocks - self.free_blocks
        if short > 0:
            gone = self.index.evict(short, taken)
            assert gone >= short, f"wanted {short} blocks, could evict {gone}"

    def give(self, blocks: int) -> None:
        """Return private blocks that hold nothing worth keeping."""
        assert blocks <= self.private_blocks
        self.private_blocks -= blocks
        if self._watch is not None:
            self._watch.held()

    def commit(self, handle: Node, spans: Spans, end: int, priority: int | None = None) -> tuple[Node, int]:
        """Turn the private blocks from ``handle.end`` to ``end`` into shareable ones below ``handle``.

        Returns the new handle and how many blocks are newly cached; the others were known already
        and their private copies are freed. ``priority`` is what they are worth to the eviction policy.
        """
        blocks = end - handle.end
        if blocks <= 0:
            return handle, 0
        self.private_blocks -= blocks
        if self._watch is not None:
            self._watch.held()
        return self.index.extend(handle, spans, end, priority=priority)

    def store(
        self,
        spans: Spans,
        start: int,
        end: int,
        transfer: int,
        taken: list[Extent] | None = None,
        known: Match | None = None,
        part: bool = False,
        priority: int | None = None,
    ) -> tuple[Node, int] | None:
        """Reserve room for blocks ``start .. end-1`` of ``spans``, pinned and pending for ``transfer``.

        Returns the handle and the number of blocks to bring in (0: all are here or coming), or
        None, changing nothing but pins' recency, where what may be evicted does not suffice.
        ``known`` is what :meth:`PrefixIndex.match` says now, where the caller has asked already.
        ``part``: where it does not suffice, reserve for as many leading blocks as it does for; the handle tells.
        ``priority`` is what they are worth to the eviction policy.
        """
        index = self.index
        handle = index.pin(known or index.match(spans, end, start))
        if handle.end < start:
            handle, _ = index.extend(handle, spans, start, resident=False)
        need = self._lacking(handle, spans, start, end)
        most = end
        while part and need > self.available_blocks and end > handle.end:
            end -= need - self.available_blocks
            need = self._lacking(handle, spans, start, end)
        if need > self.available_blocks or (end < most and end <= start):
            index.unpin(handle)
            return None
        self.make_room(need, taken)
        handle, added = index.extend(handle, spans, end, pending=transfer, priority=priority)
        self.written_blocks += added
        return handle, added

    def _lacking(self, handle: Node, spans: Spans, start: int, end: int) -> int:
        """Return the room that blocks ``start .. end-1`` need below pinned ``handle``."""
        return end - max(handle.end, start) - held_below(handle, spans, end, self.index.block_tokens)

    def check_integrity(self) -> Looked:
        """Raise Breach (an AssertionError) unless the counters agree with the index and with the capacity."""
        looked = self.index.check_integrity()
        hold("L3", self.private_blocks >= 0, "private blocks below zero")
        hold("L3", self.used_blocks <= self.capacity_blocks, f"{self.used_blocks} of {self.capacity_blocks} blocks")
        return looked
