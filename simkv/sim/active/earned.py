"""Sparse access: residency is earned. What a step reads and doesn't find comes in, and the eviction policy decides
who makes room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Seq
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkv.kvcache.access import AccessPattern
from simkv.kvcache.eviction.base import DEFAULT_PRIORITY
from simkv.kvcache.residency import ResidentSet
from simkv.sim.active.homes import DRAM, NOWHERE
from simkv.sim.active.sequence import Sequence
from simkv.sim.active.share import ResidentShare, SharedBudget
from simkv.sim.active.traffic import Pieces
from simkv.sim.active.work import Work, layers_in

if TYPE_CHECKING:
    from simkv.sim.active.ahead import NextStep
    from simkv.sim.active.watch import Watch

Ids = NDArray[Any]
NOBODY: Ids = np.zeros(0, np.int64)


class Reads(NamedTuple):
    """What one decode step reads, over all sequences."""

    sequences: list[Sequence]
    ids: Ids
    """Arena ids, sequence by sequence."""
    ends: Ids
    """Where each sequence's ids end."""

    def parts(self) -> Iterator[tuple[Sequence, int, int]]:
        """Yield every sequence, and where its ids begin and end."""
        ends = self.ends.tolist()
        yield from zip(self.sequences, [0, *ends][:-1], ends, strict=True)

    def split(self, mask: NDArray[np.bool_]) -> list[tuple[Sequence, Ids]]:
        """Return the ids that ``mask`` picks by sequence, those with none left out."""
        picked = ((seq, self.ids[begin:end][mask[begin:end]]) for seq, begin, end in self.parts())
        return [(seq, ids) for seq, ids in picked if len(ids)]


class EarnedShare:
    """The resident set of one replica, and what its steps find in it."""

    def __init__(
        self, share: ResidentShare, pattern: AccessPattern, resident: ResidentSet, layers: int, computed_here: bool,
        exclusive: bool,
        keep: Callable[[Sequence, int], None],
        write_down: Callable[[Sequence, Ids, int], None],
    ) -> None:  # fmt: skip
        """``keep(sequence, blocks)`` keeps no more of a prompt's newest blocks in VRAM.

        ``write_down(sequence, blocks, pieces)`` takes care of evicted units that lie nowhere else.
        """
        self.share = share
        self.pattern = pattern
        self.set = resident
        self.groups = pattern.groups
        self.layers = layers
        self.layers_of: Ids = np.array([layers_in(group, layers, self.groups) for group in range(self.groups)])
        """By layer group: how many layers it has."""
        self.computed_here = computed_here
        self.exclusive = exclusive
        self.keep = keep
        self.write_down = write_down
        self.ahead: NextStep | None = None
        """What is fetched for the steps to come; None: nothing."""
        self.watch: Watch | None = None
        self.entered: Ids = NOBODY
        """What the step under way loads on demand and keeps."""
        self.reading: Ids = NOBODY
        """What the step under way reads of what is in VRAM, or will be."""
        self.evicted = 0
        self._step = 0
        self.blocks_managed = 0
        """Units that the CPU looked up, let in or evicted for the step under way."""
        self._prefilling: dict[Sequence, int] = {}
        """With a budget for all: blocks of it that prompts under way may keep."""
        self._owners: list[Sequence] = []
        self._bases: Ids = np.zeros(0, np.int64)

    # ---- sequences come, grow and go

    def begin(self, seq: Sequence, step: int) -> None:
        """``seq`` decodes from here on; what its prefill left in VRAM is its newest share."""
        self._step = step
        last = self.share.total(seq.live.last_tokens) + 1
        worth = seq.live.owner.retention
        seq.base = self.set.open(last * self.groups, DEFAULT_PRIORITY if worth is None else worth)
        self._owners.append(seq)
        self._owners.sort(key=lambda one: one.base)
        self._bases = np.array([one.base for one in self._owners], np.int64)
        self._prefilling.pop(seq, None)
        self.resize()
        if seq.resident:
            self._place(seq, np.arange(seq.blocks - seq.resident, seq.blocks), step)

    def end(self, seq: Sequence) -> None:
        """``seq`` is over."""
        if seq.base < 0:
            self._prefilling.pop(seq, None)
            return
        if self.ahead is not None:
            self.ahead.end(seq)
        self.set.close(seq.base)
        self._owners.remove(seq)
        self._bases = np.array([one.base for one in self._owners], np.int64)
        seq.base = -1
        self.resize()

    def grow(self, seq: Sequence, step: int) -> None:
        """``seq`` is about to write into a new block, which is in VRAM from here on."""
        self._step = step
        self.resize()
        if seq.base >= 0:
            self._place(seq, np.arange(seq.blocks - 1, seq.blocks), step)

    def resize(self) -> None:
        """Let the resident set have what the sequences' shares sum to."""
        if isinstance(self.share, SharedBudget):
            blocks = self.share.budget_blocks - sum(self._prefilling.values())
        else:
            blocks = sum(self.share.resident(seq.blocks) for seq in self._owners)
        self.set.capacity_units = blocks * self.groups
        if self.set.used_units > self.set.capacity_units:
            trimmed = self.set.trim(self._step, NOBODY)
            self.went(trimmed.evicted, trimmed.evicted_dirty)

    def divide(self, here: Seq[Sequence]) -> None:
        """Of a budget for all, keep free what prompts that are being computed may leave in VRAM; the rest is earned."""
        if not isinstance(self.share, SharedBudget):
            return
        parts = zip(here, self.share.parts([self.share.length(seq) for seq in here]), strict=True)
        self._prefilling = {seq: part for seq, part in parts if not seq.decoding}
        for seq, part in self._prefilling.items():
            seq.part = part
            if seq.resident > part:
                self.keep(seq, part)
        self.resize()

    def _place(self, seq: Sequence, blocks: Ids, step: int) -> None:
        """Make freshly computed blocks resident, the newest first where room lacks."""
        ids = self._ids(seq, blocks[::-1])
        placed = self.set.place(ids, step)
        fresh = blocks[blocks >= seq.written]
        self.set.mark_dirty(self._ids(seq, fresh))
        self.went(placed.evicted, placed.evicted_dirty)
        outside = self._ids(seq, fresh)
        outside = outside[~self.set.resident(outside)]
        if len(outside):
            self.write_down(seq, np.unique((outside - seq.base) // self.groups), len(outside))

    def _ids(self, seq: Sequence, blocks: Ids) -> Ids:
        if self.groups == 1:
            return seq.base + blocks
        ids: Ids = seq.base + np.add.outer(blocks * self.groups, np.arange(self.groups))
        return ids.ravel()

    def unwritten(self, seq: Sequence) -> tuple[int, Ids]:
        """Return how many units of ``seq`` lie in VRAM alone, and their blocks."""
        ids = seq.base + np.arange(seq.blocks * self.groups)
        alone = self.set.dirty(ids)
        if self.exclusive:
            alone |= self.set.resident(ids) & (seq.homes.at[: seq.blocks] == NOWHERE)
        units = np.flatnonzero(alone)
        return len(units), np.unique(units // self.groups)

    def written(self, seq: Sequence, blocks: Ids) -> None:
        """``blocks`` of ``seq`` are written down: evicting them costs nothing."""
        if seq.base >= 0:
            self.set.clean(self._ids(seq, blocks))

    # ---- a step

    def gather(self, decoding: Seq[Sequence], step: int) -> Work:
        """Find what the decode step that begins now reads, let in what is missing, and look ahead."""
        self._step = step
        reads = self.read(decoding)
        here, pending = self.set.resident(reads.ids), self.set.pending(reads.ids)
        self.set.touch(reads.ids, step)
        missing = ~(here | pending)
        work = Work(self.layers, self.by_group(reads, here), self.demand(reads, missing))
        work.read_tokens = self._read_tokens(reads)
        if self.ahead is not None:
            work.late = self.ahead.late(reads, pending)
            self.ahead.read(reads.ids[~missing])
        work.count_reads()
        admitted = self.set.admit(reads.ids[missing], step, reads.ids)
        self.moved_up(admitted.entered)
        self.went(admitted.evicted, admitted.evicted_dirty)
        self.entered = admitted.entered
        self.reading = np.concatenate((reads.ids[~missing], admitted.entered))
        self.blocks_managed = len(reads.ids) + len(admitted.entered) + len(admitted.evicted)
        if self.ahead is not None:
            work.flights = self.ahead.launch(reads, step)
        return work

    def _read_tokens(self, reads: Reads) -> int:
        block_tokens = self.share.block_tokens
        units = np.diff(reads.ends, prepend=0) * block_tokens // self.groups
        return sum(min(seq.live.tokens + 1, int(n)) for seq, n in zip(reads.sequences, units, strict=True))

    def settle(self) -> None:
        """The step is over: what it loaded on demand is resident."""
        self.set.arrived(self.entered)
        self.entered = self.reading = NOBODY

    def read(self, decoding: Seq[Sequence]) -> Reads:
        """Return what the step that begins now reads."""
        found = [NOBODY]
        for seq in decoding:
            assert seq.access is not None
            found.append(seq.base + seq.access.reads(seq.step(self.computed_here)).astype(np.int64))
        ends = np.cumsum([len(ids) for ids in found[1:]], dtype=np.int64)
        return Reads(list(decoding), np.concatenate(found), ends)

    def by_group(self, reads: Reads, mask: NDArray[np.bool_]) -> list[int]:
        """Return by layer group how many of the ids that ``mask`` picks are read."""
        counts = np.zeros(self.groups, np.int64)
        for seq, ids in reads.split(mask):
            counts += np.bincount((ids - seq.base) % self.groups, minlength=self.groups)
        return [int(count) for count in counts]

    def demand(self, reads: Reads, missing: NDArray[np.bool_]) -> list[Pieces]:
        """Return by layer group what a layer must load."""
        dram, ssd = np.zeros(self.groups, np.int64), np.zeros(self.groups, np.int64)
        for seq, ids in reads.split(missing):
            self.count(seq, ids, dram, ssd)
        return [Pieces(int(d), int(s)) for d, s in zip(dram, ssd, strict=True)]

    def count(self, seq: Sequence, ids: Ids, dram: Ids, ssd: Ids) -> None:
        """Add by layer group how many of ``ids`` come from DRAM and from SSD."""
        units = ids - seq.base
        places = seq.homes.at[units // self.groups]
        assert places.all(), "law L31: a read of what lies nowhere"
        from_dram = places == DRAM
        groups = units % self.groups
        dram += np.bincount(groups[from_dram], minlength=self.groups)
        ssd += np.bincount(groups[~from_dram], minlength=self.groups)

    def moved_up(self, ids: Ids) -> None:
        """``ids`` are on their way up: in exclusive tiers they leave their homes."""
        if self.exclusive:
            for seq, own in self.by_owner(ids):
                seq.homes.leave(own - seq.base)

    def went(self, evicted: Ids, dirty: Ids) -> None:
        """Take care of what was evicted: what lies nowhere else is written down."""
        if not len(evicted):
            return
        self.evicted += len(evicted)
        if self.ahead is not None:
            self.ahead.went(evicted)
        for seq, own in self.by_owner(evicted if self.exclusive else dirty):
            self.write_down(seq, np.unique((own - seq.base) // self.groups), len(own))

    def by_owner(self, ids: Ids) -> list[tuple[Sequence, Ids]]:
        """Return ``ids`` by the sequence that they are of."""
        if not len(ids):
            return []
        owner = np.searchsorted(self._bases, ids, side="right") - 1
        return [(self._owners[number], ids[owner == number]) for number in np.unique(owner).tolist()]
