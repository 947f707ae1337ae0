"""Reads taken one block at a time, as the article's program does: each is loaded before the next is looked for."""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np

from simkv.kvcache.access import ReplayAccess
from simkv.kvcache.residency.in_order import InOrder
from simkv.sim.active.earned import EarnedShare
from simkv.sim.active.homes import NOWHERE, SSD
from simkv.sim.active.sequence import Sequence
from simkv.sim.active.traffic import Pieces
from simkv.sim.active.work import Work


class InTurnShare(EarnedShare):
    """A resident set whose loads and evictions alternate, in the order of the log."""

    prefetches = False
    """The log's own prefetches are loaded after each step's reads."""

    def gather(self, decoding: Seq[Sequence], step: int) -> Work:
        """Read, load and evict block by block; what is loaded goes up in the same order."""
        self._step = step
        hits = managed = reads = 0
        chain: list[bool] = []
        for seq in decoding:
            assert isinstance(seq.access, ReplayAccess)
            at = seq.step(self.computed_here)
            for block in seq.access.reads(at).tolist():
                ids = np.array([seq.base + block])
                place = int(seq.homes.at[block])
                moved = self.set.read_in_order(ids, step)
                reads += 1
                hits += not len(moved.missed)
                managed += 1 + len(moved.evicted)
                self._moved(moved, place, chain)
            for block in seq.access.prefetches(at).tolist() if self.prefetches else ():
                ids = np.array([seq.base + block])
                place = int(seq.homes.at[block])
                moved = self.set.prefetch_in_order(ids)
                managed += len(moved.missed) + len(moved.evicted)
                self._moved(moved, place, chain)
        self.blocks_managed = managed
        work = Work(self.layers, [hits], [Pieces()], one_by_one=chain)
        work.reads = reads * self.layers
        work.read_tokens = sum(seq.live.tokens + 1 for seq in decoding)
        return work

    def _moved(self, moved: InOrder, place: int, chain: list[bool]) -> None:
        if len(moved.missed):
            assert place != NOWHERE, "law L31: a read of what lies nowhere"
            chain.append(place == SSD)
            self.moved_up(moved.missed)
        self.went(moved.evicted, moved.evicted_dirty)
