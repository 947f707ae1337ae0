"""Preemption by swap: what a preempted request holds goes down to DRAM, is kept for it, and comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simkv.sim.config import EngineConfig
from simkv.sim.ledger import Done
from simkv.sim.live import Live
from simkv.sim.mover import Load, Mover

if TYPE_CHECKING:
    from simkv.kvcache.pool import KVPool


class Swapper:
    """The swap space of one replica: its DRAM, pinned for each preempted request until that runs again.

    Full blocks go, prompt and generated; the last one, full in part, is computed again. They go through no staging
    buffer: the step that takes over their room waits for them, and nobody is admitted before they are down.
    """

    def __init__(self, config: EngineConfig, mover: Mover) -> None:
        self.config = config
        self.mover = mover
        self.counts = mover.ledger.swaps
        self.under_way = 0
        """Blocks are being copied from VRAM that is free in name only."""

    def out(self, live: Live, tokens: int) -> None:
        """Write the full blocks of ``tokens`` tokens of a request that has just been preempted down, and keep them.

        What DRAM has already isn't copied. Where it hasn't the room the request will compute again.
        """
        tiers = self.mover.tiers
        units = tokens // self.config.block_tokens // tiers.unit_blocks
        if not units:
            return
        kept = self.mover.put_aside(live.request.spans, units, live.owner, self._through, live.request.id)
        if kept is None:
            self.counts.refused += 1
            return
        live.swapped, added = kept
        self.counts.requests += 1
        self.counts.out_blocks += added * tiers.unit_blocks
        self.under_way += added > 0

    def _through(self) -> None:
        self.under_way -= 1

    def back(self, live: Live, load: Load | None) -> Load | None:
        """Note that ``live`` runs again; return what is to be started instead of ``load``, which its step waits for."""
        if load is None:
            self._let_go(live)
            return None

        def loading(done: Done) -> tuple[int, int]:
            def through() -> None:
                self._let_go(live)
                done()

            return load(through)

        return loading

    def _let_go(self, live: Live) -> None:
        """Keep no longer what was kept for ``live``; what the write policy wouldn't have put there leaves DRAM."""
        pool, handle = live.owner.dram, live.swapped
        assert pool is not None and handle is not None
        live.swapped = None
        pool.index.unpin(handle)
        self._drop(live, pool, handle.end)
        for call in self.mover.ledger.room:
            call()

    def _drop(self, live: Live, pool: KVPool, end: int) -> None:
        mover = self.mover
        if mover.exclusive or mover.write == "never":
            start = 0
        elif mover.write == "write_back" or self.config.store_outputs:
            return
        else:
            start = live.request.prompt_tokens // self.config.block_tokens // mover.tiers.unit_blocks
        if start < end:
            pool.index.remove(live.request.spans, start, end)
