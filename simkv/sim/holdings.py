"""What running requests hold in VRAM: blocks taken, made shareable, written down, given back."""

from __future__ import annotations

from simkv.kvcache.node import used_depth
from simkv.sim.config import EngineConfig
from simkv.sim.live import Live
from simkv.sim.mover import Mover


class Holdings:
    """The VRAM of one replica as its requests come to hold it and let it go."""

    def __init__(self, config: EngineConfig, mover: Mover) -> None:
        self.config = config
        self.mover = mover
        self.pool = mover.tiers.vram
        self._when_full = mover.when_full
        self.refused: dict[Live, None] = {}
        """Running requests of which DRAM refused a store that it will be asked for again."""

    def take(self, blocks: int) -> None:
        """Take private blocks now; what that evicts goes down a tier where the policy says so."""
        if self.mover.spills:
            self.mover.make_room(blocks)
        self.pool.take(blocks)

    def commit_prompt(self, live: Live) -> None:
        """Make the full blocks computed so far shareable, and write them down as the policy says."""
        if not self.config.prefix_caching:
            return
        full = live.tokens // self.config.block_tokens
        handle = live.handle
        assert handle is not None
        before = handle.end
        live.handle, _ = self.pool.commit(handle, live.request.spans, full, live.owner.retention)
        live.blocks_held -= full - before
        if self.mover.exclusive:
            self.mover.drop_copies(live.request.spans, before, full, live.owner)
        self._store(live)

    def _store(self, live: Live) -> None:
        write = self.mover.write
        handle = live.handle
        if handle is None or write == "never" or write == "write_back" or not self.mover.tiers.can_store:
            return
        if live.store_refused and self._when_full in ("part", "drop"):
            return
        most = live.request.prompt_tokens
        if self.config.store_outputs:
            most += live.request.output_tokens
        end = min(handle.end, most // self.config.block_tokens)
        if write == "write_through_selective":
            end = min(end, used_depth(handle, 2))
        if end:
            request = live.request
            live.store_refused = not self.mover.store(handle, request.spans, end, live.owner, request.id)
        if self._when_full == "retry":
            self.refused.pop(live, None)
            if live.store_refused:
                self.refused[live] = None

    def offer_again(self) -> None:
        """Offer DRAM what it refused; a transfer has ended since."""
        for live in list(self.refused):
            self._store(live)

    def end_prefill(self, live: Live) -> None:
        """Give back what only the prefill needed of windows: from here on ``live`` computes a token a step."""
        side = self.config.side
        if side is not None:
            keep = side.decoding(live.last_tokens)
            self.pool.give(live.side_blocks - keep)
            live.side_blocks = keep

    def release(self, live: Live, tokens: int, keep_outputs: bool) -> None:
        """Give back what ``live`` holds for ``tokens`` tokens; full blocks stay cached, to be evicted tails first."""
        block_tokens = self.config.block_tokens
        held = self.config.blocks(tokens)
        handle = live.handle
        assert handle is not None
        if live.step0 < 0:
            held = handle.end + live.blocks_held
        full = tokens // block_tokens if self.config.prefix_caching else 0
        private = held - handle.end
        if full > handle.end:
            private -= full - handle.end
            handle, _ = self.pool.commit(handle, live.request.spans, full, live.owner.retention)
            live.handle = handle
        if keep_outputs and (self.config.store_outputs or live.store_refused):
            self._store(live)
        self.refused.pop(live, None)
        self.pool.give(private + live.side_blocks)
        self.pool.index.unpin(handle)
        live.handle = None
        live.blocks_held = live.side_blocks = 0
