"""Reads taken one block at a time, as the article's program does: each is loaded before the next is looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Seq
from functools import partial
from typing import Any

import numpy as np

from simkv.kvcache.access import ReplayAccess
from simkv.kvcache.residency.in_order import InOrder
from simkv.sim.active.earned import EarnedShare, Ids
from simkv.sim.active.homes import NOWHERE, SSD
from simkv.sim.active.sequence import Sequence
from simkv.sim.active.traffic import Pieces
from simkv.sim.active.watch import Move
from simkv.sim.active.work import Whole, Work
from simkv.sim.record.errand import OPEN, PREFETCH, STREAM, USEFUL, WASTED, Errand


class InTurnShare(EarnedShare):
    """A resident set whose loads and evictions alternate, in the order of the log."""

    prefetches = False
    """The log's own prefetches are loaded after each step's reads."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._unread: dict[int, Whole] = {}
        """By arena id: what was fetched ahead, and nobody has read."""

    def gather(self, decoding: Seq[Sequence], step: int) -> Work:
        """Read, load and evict block by block; what is loaded goes up in the same order."""
        self._step = step
        self._chain: list[Whole] = []
        self._moves: list[Move] = []
        if self.watch is not None:
            self.watch.deciding()
        hits = managed = reads = 0
        for seq in decoding:
            assert isinstance(seq.access, ReplayAccess)
            at = seq.step(self.computed_here)
            for block in seq.access.reads(at).tolist():
                moved = self._take(seq, block, partial(self.set.read_in_order, step=step), True)
                reads += 1
                hits += not len(moved.missed)
                managed += 1 + len(moved.evicted)
            for block in seq.access.prefetches(at).tolist() if self.prefetches else ():
                moved = self._take(seq, block, self.set.prefetch_in_order, False)
                managed += len(moved.missed) + len(moved.evicted)
        if self.watch is not None:
            self.watch.in_turn(self._moves)
        self.blocks_managed = managed
        work = Work(self.layers, [hits], [Pieces()], one_by_one=self._chain)
        work.reads = reads * self.layers
        work.read_tokens = sum(seq.live.tokens + 1 for seq in decoding)
        return work

    def _take(self, seq: Sequence, block: int, take: Callable[[Ids], InOrder], read: bool) -> InOrder:
        """Have ``block`` of ``seq`` in, by ``take``, and see to what that moves."""
        place = int(seq.homes.at[block])
        moved = take(np.array([seq.base + block]))
        if len(moved.missed):
            assert place != NOWHERE, "law L31: a read of what lies nowhere"
            self._chain.append(self._load(seq, block, place == SSD, read))
            self.moved_up(moved.missed)
        self._judge([seq.base + block] if read else [], USEFUL)
        self._judge(moved.evicted.tolist(), WASTED)
        self.went(moved.evicted, moved.evicted_dirty)
        if self.watch is not None:
            self._moves.append(self._move(seq, block, place, moved, read))
        return moved

    def _load(self, seq: Sequence, block: int, from_ssd: bool, read: bool) -> Whole:
        """Return the load of a block that is read, or (in vain or not) may be."""
        request = seq.live.request.id
        if read:
            return Whole(from_ssd, Errand(STREAM, request))
        whole = self._unread[seq.base + block] = Whole(from_ssd, Errand(PREFETCH, request, fate=OPEN))
        return whole

    def _judge(self, units: Iterable[int], fate: int) -> None:
        """Settle what became of those of ``units`` that were fetched ahead and not read yet."""
        for unit in units:
            if (whole := self._unread.pop(unit, None)) is not None:
                whole.judge(fate)

    def end(self, seq: Sequence) -> None:
        """``seq`` is over: what it hasn't read it never will."""
        self._judge(range(seq.base, seq.base + len(seq.homes.at)), WASTED)
        super().end(seq)

    def _move(self, seq: Sequence, block: int, place: int, moved: InOrder, read: bool) -> Move:
        """Return what a read or prefetch of ``block``, which lay in ``place``, has moved."""
        evicted = [(owner, int(unit) - owner.base) for owner, ids in self.by_owner(moved.evicted) for unit in ids]
        below = [(seq, block, place)] if len(moved.missed) else []
        if self.exclusive:
            below += [(owner, other, NOWHERE) for owner, other in evicted if (owner, other) != (seq, block)]
        homes = [(owner, one, was, int(owner.homes.at[one])) for owner, one, was in below]
        return Move(seq, block, bool(len(moved.missed)), read, evicted, [one for one in homes if one[2] != one[3]])
