"""Dense access: a pinned share of every sequence stays, the rest streams through in every step.

Nothing is evicted and nothing earned: a scan of all blocks under any eviction policy would only displace what it
is about to read. The newest blocks stay.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq

from simkv.sim.active.sequence import Sequence
from simkv.sim.active.share import ResidentShare, SharedBudget
from simkv.sim.active.traffic import Pieces
from simkv.sim.active.work import Work


class PinnedShare:
    """Which blocks stream, and which of them must be written down once."""

    def __init__(self, share: ResidentShare, layers: int, keep: Callable[[Sequence, int], None]) -> None:
        """``keep(sequence, blocks)`` keeps its newest ``blocks`` in VRAM and sees to the others."""
        self.share = share
        self.layers = layers
        self.keep = keep
        self.blocks_managed = 0
        self._raised: list[Sequence] = []

    def begin(self, seq: Sequence, step: int) -> None:
        """``seq`` decodes from here on."""
        self.keep(seq, max(seq.resident, 1) if self._budget else self.share.resident(seq.blocks))

    def end(self, seq: Sequence) -> None:
        """``seq`` is over: there is nothing to forget."""

    def grow(self, seq: Sequence, step: int) -> None:
        """``seq`` has more blocks than before."""
        self.keep(seq, seq.resident + 1 if self._budget else self.share.resident(seq.blocks))

    def settle(self) -> None:
        """The step is over: what it streamed is gone again, but for what now has room to stay."""
        for seq in self._raised:
            if seq.here:
                self.keep(seq, seq.part)
        self._raised = []

    def divide(self, here: Seq[Sequence]) -> None:
        """With a budget for all, give every sequence its part by length; one that grows does when it was read next."""
        if self._budget is None:
            return
        parts = self._budget.parts([self._budget.length(seq) for seq in here])
        for seq, part in zip(here, parts, strict=True):
            seq.part = part
            if part < seq.resident:
                self.keep(seq, part)
        self._raised = [seq for seq in here if seq.decoding and 0 < seq.resident < seq.part]

    @property
    def _budget(self) -> SharedBudget | None:
        return self.share if isinstance(self.share, SharedBudget) else None

    def gather(self, decoding: Seq[Sequence], step: int) -> Work:
        """Return what the decode step that begins now reads."""
        resident = sum(seq.resident for seq in decoding)
        work = Work(self.layers, [resident], [streamed(decoding)], streams=True)
        work.streamed = {seq: (seq.cold_dram, seq.cold_ssd) for seq in decoding}
        work.read_tokens = sum(seq.live.tokens + 1 for seq in decoding)
        work.count_reads()
        self.blocks_managed = sum(seq.blocks for seq in decoding)
        return work


def streamed(sequences: Seq[Sequence]) -> Pieces:
    """Return what one layer of ``sequences`` streams: each sequence's in one piece a tier."""
    dram = ssd = dram_pieces = ssd_pieces = 0
    for seq in sequences:
        dram += seq.cold_dram
        ssd += seq.cold_ssd
        dram_pieces += seq.cold_dram > 0
        ssd_pieces += seq.cold_ssd > 0
    return Pieces(dram, ssd, dram_pieces, ssd_pieces)
