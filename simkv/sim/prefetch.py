"""Reading ahead for waiting requests: which of them, when, and what becomes of it when one has its turn.

A prefetcher is told of arrivals and of turns of the queue, starts transfers of the mover, and says at
admission whether a request waits for a read of its own that isn't through (the stop policies of HiCache).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from simkv.kvcache.node import Match
from simkv.sim.clock import TRANSFER_RANK, Timer
from simkv.sim.config import OffloadConfig
from simkv.sim.fabric import LOOK_AHEAD
from simkv.sim.live import PREEMPTED, QUEUE, Fetch, Live
from simkv.sim.record.errand import OPEN, PREFETCH, PROMOTE, Errand
from simkv.sim.tiers import LowerHit

if TYPE_CHECKING:
    from simkv.sim.engine import Engine

KI_TOKENS = 1024


class Prefetcher(Protocol):
    """What an engine tells and asks."""

    def arrived(self, live: Live, idle: bool) -> None:
        """``live`` has entered the waiting queue; ``idle``: the engine slept until then."""

    def look_ahead(self) -> None:
        """The queue has moved."""

    def has_wait(self, live: Live, now: float) -> bool:
        """Say whether ``live``, whose turn it is, waits for its own read; if so, resume it in time."""


def make_prefetcher(engine: Engine, offload: OffloadConfig) -> Prefetcher | None:
    """Return the configured prefetcher of ``engine``; None where there is none."""
    makers = {"none": None, "queue": QueuePrefetcher, "arrival": ArrivalPrefetcher}
    maker = makers[offload.prefetch]
    return maker(engine, offload) if maker is not None else None


class Stopping:
    """What a request whose turn it is does about its own read from SSD: wait, go on without, or wait for so long."""

    def __init__(self, engine: Engine, offload: OffloadConfig) -> None:
        self.engine = engine
        self.offload = offload

    def has_wait(self, live: Live, now: float) -> bool:
        """Say whether ``live`` waits for its read; where it doesn't, what isn't here is given up."""
        fetch = live.fetch
        if fetch is None or fetch.over or fetch.stopped:
            return False
        until_s = self._until_s(fetch)
        if now >= until_s:
            fetch.stopped = True
            return False
        fetch.waited_for = True
        live.judge_late(fetch.transfer)
        if until_s < float("inf"):
            self.engine.clock.at(until_s, TRANSFER_RANK, self._late, live)
        return True

    def _until_s(self, fetch: Fetch) -> float:
        offload = self.offload
        if offload.prefetch_stop != "timeout":
            return float("inf") if offload.prefetch_stop == "wait_complete" else fetch.begun_s
        tokens = fetch.blocks * self.engine.config.block_tokens
        wait_s = offload.timeout_base_s + offload.timeout_per_ki_token_s * tokens / KI_TOKENS
        return fetch.begun_s + min(wait_s, offload.timeout_most_s)

    def _late(self, timer: Timer) -> None:
        self._resume(timer.payload)

    def _resume(self, live: Live) -> None:
        """Let ``live`` have its turn again where it waits."""
        fetch = live.fetch
        if fetch is not None and fetch.waited_for:
            fetch.waited_for = False
            self.engine.resume(live)


class QueuePrefetcher(Stopping):
    """Looks over the first few of the waiting queue and promotes what they will need, SSD to DRAM to VRAM, once each.

    It looks no further (fetching at queue entry thrashes under overload), takes VRAM that holds nothing, and evicts
    what is cached there only while all waiting requests up to that one fit together: nobody before it in the queue
    goes short (CachedAttention, ATC'24, section 3.3).
    """

    def arrived(self, live: Live, idle: bool) -> None:
        """Look over the queue; an idle engine takes the newcomer at once instead."""
        if not idle:
            self.look_ahead()

    def look_ahead(self) -> None:
        """Start the transfers of waiting requests that came into the window."""
        for live in self.engine.scheduler.first(self.offload.prefetch_window):
            if not live.prefetched and live.handle is None:
                live.prefetched = self._fetch(live)

    def _fetch(self, live: Live, promoted: bool = False) -> bool:
        """Start what can be started; False where a later look may find more: room, or what is on its way now."""
        engine = self.engine
        if live.handle is not None or live.state not in (QUEUE, PREEMPTED):
            return True
        engine.sync()
        found, lower = look(engine, live)
        if found.pending or lower.pending:
            return False
        if lower.ssd_end > lower.dram_end and not promoted:
            transfer = promote(engine, live, lower, LOOK_AHEAD)
            if transfer:
                if self.offload.prefetch_stop != "wait_complete":
                    live.fetch = Fetch(lower.ssd_end - lower.dram_end, engine.clock.now)
                    live.fetch.transfer = transfer
                engine.mover.ledger.follow(transfer, lambda: self._promoted(live))
                return True
            found, lower = look(engine, live)  # the attempt may have cut what was matched
        blocks = lower.dram_end - found.end
        if blocks <= 0:
            return True
        if engine.swapping or (blocks > engine.pool.free_blocks and not self._room_for(live)):
            return False
        live.fetched.append((found.end, lower.dram_end))
        engine.mover.prefetch(live.request.spans, found, lower, live.owner, _foresee(live, found.end, to_vram=True))
        engine.replan()
        return True

    def _promoted(self, live: Live) -> None:
        if live.fetch is not None:
            live.fetch.over = True
            self._resume(live)
        live.prefetched = self._fetch(live, promoted=True)

    def _room_for(self, live: Live) -> bool:
        """Whether the waiting requests up to ``live`` would all fit now."""
        engine = self.engine
        blocks = 0
        for other in engine.scheduler.first(self.offload.prefetch_window):
            blocks += engine.config.blocks(other.target)
            blocks += engine.config.side_admitted(other.target, other.last_tokens)
            if other is live:
                return blocks <= engine.pool.available_blocks
        return False


class ArrivalPrefetcher(Stopping):
    """Reads from SSD to DRAM what a request will hit there, when it arrives, piece after piece (SGLang's HiCache).

    Nothing is read on demand: what isn't in DRAM when the request has its turn and no longer waits is a miss.
    """

    def __init__(self, engine: Engine, offload: OffloadConfig) -> None:
        super().__init__(engine, offload)
        self._in_flight_blocks = 0

    def arrived(self, live: Live, idle: bool) -> None:
        """Begin the newcomer's read where there is enough to read, and not too much on its way already.

        SGLang looks in its storage for whatever DRAM lacks of a prompt, and holds what DRAM has until that is answered.
        """
        engine, offload = self.engine, self.offload
        engine.sync()
        lower = look(engine, live)[1]
        block_tokens = engine.config.block_tokens
        if not engine.tiers.can_promote or live.target - lower.dram_end * block_tokens < offload.prefetch_min_tokens:
            return
        blocks = lower.ssd_end - lower.dram_end
        if blocks <= 0 or blocks * block_tokens < offload.prefetch_min_tokens:
            live.fetch = Fetch(0, engine.clock.now)
            live.fetch.over = True
            self._hold(live, live.fetch, lower.dram)
            return
        assert live.owner.dram is not None
        room = live.owner.dram.capacity_blocks * offload.unit_blocks
        if self._in_flight_blocks >= offload.prefetch_in_flight * room:
            return
        self._in_flight_blocks += blocks
        live.fetch = Fetch(blocks, engine.clock.now)
        self._next(live, live.fetch)

    def has_wait(self, live: Live, now: float) -> bool:
        """Say whether ``live`` waits for its own read; where it doesn't, what was held for it is its own to find."""
        waits = super().has_wait(live, now)
        if not waits and live.fetch is not None:
            self._hold(live, live.fetch, None)
        return waits

    def _hold(self, live: Live, fetch: Fetch, found: Match | None) -> None:
        """Hold what is ``found`` in DRAM instead of what was held before: nobody evicts what a read builds upon."""
        dram = live.owner.dram
        assert dram is not None
        before, fetch.held = fetch.held, dram.index.pin(found, use=False) if found is not None else None
        if before is not None:
            dram.index.unpin(before)

    def look_ahead(self) -> None:
        """Do nothing: what a request needs is decided when it arrives."""

    def _next(self, live: Live, fetch: Fetch) -> None:
        """Read the next piece; the last one, or the first after a stop, ends it."""
        engine = self.engine
        transfer = 0 if fetch.stopped else self._read(live)
        if transfer:
            fetch.transfer = transfer
            engine.mover.ledger.follow(transfer, lambda: self._next(live, fetch))
            return
        fetch.over = True
        self._in_flight_blocks -= fetch.blocks
        self._resume(live)

    def _read(self, live: Live) -> int:
        """Start the transfer of what comes next; 0 where nothing does, or DRAM has no room for it."""
        engine, batch = self.engine, self.offload.prefetch_batch_blocks
        engine.sync()
        lower = look(engine, live)[1]
        if lower.dram is not None and live.fetch is not None:
            self._hold(live, live.fetch, lower.dram)
            lower = look(engine, live)[1]
        if lower.pending or lower.ssd_end <= lower.dram_end:
            return 0
        lower = engine.tiers.leading(live.request.spans, lower, batch)
        transfer = promote(engine, live, lower, LOOK_AHEAD)
        if transfer:
            engine.mover.prefetched_blocks += lower.ssd_end - lower.dram_end
        return transfer


def look(engine: Engine, live: Live) -> tuple[Match, LowerHit]:
    """Return what ``live`` would find now, in VRAM and below."""
    spans, limit = live.request.spans, engine.config.most_hit_blocks(live.target)
    if not engine.config.keeps_vram:
        engine.mover.forget()
    found = engine.pool.index.match(spans, limit)
    return found, engine.tiers.lookup(spans, live.target, limit, found.end, live.owner.dram)


def promote(engine: Engine, live: Live, lower: LowerHit, priority: int) -> int:
    """Have what SSD has for ``live`` brought to DRAM, and note it for its hits; return the transfer, 0 for no room."""
    ahead = priority == LOOK_AHEAD
    errand = _foresee(live, lower.dram_end, to_vram=False) if ahead else Errand(PROMOTE, live.request.id)
    transfer, blocks = engine.mover.promote(live.request.spans, lower, priority, live.owner, errand)
    if transfer:
        live.promoted.append((lower.dram_end, min(lower.ssd_end, lower.dram_end + blocks)))
    return transfer


def _foresee(live: Live, start: int, to_vram: bool) -> Errand:
    """Return the errand of a prefetch from block ``start`` on, which is judged when ``live`` has its turn."""
    errand = Errand(PREFETCH, live.request.id, fate=OPEN)
    live.foreseen.append((errand, start, to_vram))
    return errand
