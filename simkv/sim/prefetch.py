"""The look-ahead prefetcher: promotes what waiting requests will need, SSD to DRAM to VRAM.

It looks only at the first few of the waiting queue (fetching at queue entry thrashes under
overload), once a request. It takes VRAM that holds nothing, and evicts what is cached there only
while all waiting requests up to that one fit together: nobody before it in the queue goes short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simkv.kvcache.node import Match
from simkv.sim.config import OffloadConfig
from simkv.sim.fabric import LOOK_AHEAD
from simkv.sim.live import PREEMPTED, QUEUE, Live
from simkv.sim.tiers import LowerHit

if TYPE_CHECKING:
    from simkv.sim.engine import Engine


class QueuePrefetcher:
    """One engine's look-ahead over its waiting queue (CachedAttention, ATC'24, section 3.3)."""

    def __init__(self, engine: Engine, offload: OffloadConfig) -> None:
        self.engine = engine
        self.window = offload.prefetch_window

    def look_ahead(self) -> None:
        """Start the transfers of waiting requests that came into the window."""
        for live in self.engine.scheduler.first(self.window):
            if not live.prefetched and live.handle is None:
                live.prefetched = self._fetch(live)

    def _look(self, live: Live) -> tuple[Match, LowerHit]:
        engine = self.engine
        spans, limit = live.request.spans, engine.config.most_hit_blocks(live.target)
        found = engine.pool.index.match(spans, limit)
        return found, engine.tiers.lookup(spans, limit, found.end, live.owner.dram)

    def _fetch(self, live: Live, promoted: bool = False) -> bool:
        """Start what can be started; False where a later look may find more: room, or what is on its way now."""
        engine = self.engine
        if live.handle is not None or live.state not in (QUEUE, PREEMPTED):
            return True
        engine.sync()
        found, lower = self._look(live)
        if found.pending or lower.pending:
            return False
        if lower.ssd_end > lower.dram_end and not promoted:
            transfer = engine.mover.promote(live.request.spans, lower, LOOK_AHEAD, live.owner)
            if transfer:
                live.promoted.append((lower.dram_end, lower.ssd_end))
                engine.mover.ledger.follow(transfer, lambda: self._promoted(live))
                return True
            found, lower = self._look(live)  # the attempt may have cut what was matched
        blocks = lower.dram_end - found.end
        if blocks <= 0:
            return True
        if blocks > engine.pool.free_blocks and not self._room_for(live):
            return False
        live.fetched.append((found.end, lower.dram_end))
        engine.mover.prefetch(live.request.spans, found, lower, live.owner)
        engine.replan()
        return True

    def _promoted(self, live: Live) -> None:
        live.prefetched = self._fetch(live, promoted=True)

    def _room_for(self, live: Live) -> bool:
        """Whether the waiting requests up to ``live`` would all fit now."""
        engine = self.engine
        blocks = 0
        for other in engine.scheduler.first(self.window):
            blocks += engine.config.blocks(other.target)
            blocks += engine.config.side_admitted(other.target, other.last_tokens)
            if other is live:
                return blocks <= engine.pool.available_blocks
        return False
