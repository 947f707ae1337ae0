"""Which requests take part in the next step, as vLLM v1 decides it.

Running requests come first; when their blocks can't be had the last admitted is preempted
(priority scheduling: the least urgent). Then, unless somebody was preempted, waiting requests
are admitted in order while token budget, sequences and blocks allow. A request whose prefix lies
in a lower tier is held while it is loaded, and others pass it.
"""

from __future__ import annotations

from functools import partial
from heapq import heappop
from typing import TYPE_CHECKING

from simkv.kvcache.node import Match, unpinned_blocks
from simkv.sim.fabric import DEMAND
from simkv.sim.live import LOAD_DRAM, LOAD_SSD, Live
from simkv.sim.mover import Load
from simkv.sim.prefetch import promote
from simkv.sim.record.errand import LOAD, SWAP_IN, Errand
from simkv.sim.shares import VramShares
from simkv.sim.waiting import WaitingQueue

if TYPE_CHECKING:
    from simkv.sim.engine import Engine


class Chunk:
    """Part of a prompt that one step computes, after an optional load from DRAM under the same step."""

    __slots__ = ("live", "load", "tokens")

    def __init__(self, live: Live, tokens: int, load: Load | None = None) -> None:
        self.live = live
        self.tokens = tokens
        self.load = load
        """Starts the load under the step; None where nothing is to be loaded."""


class Scheduler(WaitingQueue):
    """The waiting queue and the rules of admission and preemption of one engine."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine.config.scheduling)
        self.engine = engine
        self.config = engine.config
        classes = engine.tiers.classes
        self.shares = VramShares(engine.config, classes) if any(one.vram_share for one in classes) else None
        self.look_again = False
        """Something happened since the queue was last looked at that may let its head in: look at the next boundary.

        Where nothing happened the head isn't tried again, however many steps end meanwhile.
        """
        self._places = 0

    @property
    def queued(self) -> int:
        """How many requests wait, those that stepped aside or have just come included."""
        return len(self.waiting) + len(self.engine.coming) + (self.shares.aside if self.shares is not None else 0)

    def let_go(self, live: Live) -> None:
        """Note that ``live`` holds no blocks any more: who stepped aside for it has its turn."""
        if self.shares is not None and (following := self.shares.let_go(live)) is not None:
            self.put_back(following)

    # ---- one step

    def schedule(self, now: float, changed: bool) -> bool:
        """Decide the next step; ``changed`` and the result: the batch isn't what it was in the step before."""
        engine = self.engine
        if engine.partial is None and engine.try_decode():
            if not self.waiting:  # nothing to decide
                self.look_again = False
                return changed
            preempted, budget = False, self.config.max_num_batched_tokens - engine.batch.size
        else:
            preempted, budget = self._schedule_running(now)
        look = self.look_again or changed or preempted
        self.look_again = False
        if preempted and (engine.batch.size or engine.chunks):
            self.look_again = bool(self.waiting)
            return True
        changed |= preempted or bool(engine.chunks)
        if engine.swapping:  # nobody ran on, and nobody is let in before the room is free
            self.look_again = bool(self.waiting)
            return changed
        if self.waiting and look:
            changed |= self._admit(now, budget)
        if not engine.running and not engine.gauge.held and self.waiting:
            changed |= self._make_way(now)
        return changed

    def _schedule_running(self, now: float) -> tuple[bool, int]:
        """Give every running request its tokens and blocks; preempt until they fit."""
        engine, pool = self.engine, self.engine.pool
        batch = engine.batch
        preempted = False
        while True:
            budget = self.config.max_num_batched_tokens - batch.size
            decode_need = batch.phases[engine.step % batch.block_tokens] if batch.size else 0
            chunk, chunk_need = self._partial_chunk(budget) if engine.partial is not None else (0, 0)
            if decode_need + chunk_need <= pool.available_blocks:
                break
            if len(engine.running) == 1 and self._give_way():  # alone: it would come back to the same
                self.look_again = True
                continue
            self._preempt_one(now)
            preempted = True
        engine.allocate_step(decode_need)
        partial = engine.partial
        if partial is not None and chunk:
            if chunk_need:
                engine.holdings.take(chunk_need)
                partial.blocks_held += chunk_need
            self._add_chunk(partial, Chunk(partial, chunk))
            budget -= chunk
        return preempted, budget

    def _partial_chunk(self, budget: int) -> tuple[int, int]:
        partial = self.engine.partial
        if budget <= 0:
            return 0, 0
        assert partial is not None
        chunk = min(partial.target - partial.tokens, budget)
        assert partial.handle is not None
        held = partial.handle.end + partial.blocks_held
        return chunk, max(0, self.config.blocks(partial.tokens + chunk) - held)

    def _preempt_one(self, now: float) -> None:
        running = self.engine.running
        assert running, "blocks are short with nothing running"
        if self.by_priority:
            victim = max(running, key=_urgency)
        else:
            victim = next(reversed(running))
        self.engine.preempt(victim, now)

    def _add_chunk(self, live: Live, chunk: Chunk) -> None:
        engine = self.engine
        engine.chunks.append(chunk)
        engine.partial = live if live.tokens + chunk.tokens < live.target else None
        if live.computed_once:
            live.recomputed += max(0, min(live.tokens + chunk.tokens, live.computed_once) - live.tokens)

    # ---- admission

    def _admit(self, now: float, budget: int) -> bool:
        engine = self.engine
        changed = False
        most = self.config.max_num_seqs
        while self.waiting and budget > 0 and len(engine.running) < most:
            live = self.waiting[0][1]
            used = self._try(live, now, budget)
            if used < 0:
                break
            changed |= used > 0
            budget -= used
        return changed

    def _try(self, live: Live, now: float, budget: int) -> int:
        """Admit the head of the queue, or hold it for a load (0 tokens); -1 where it must wait."""
        engine, config = self.engine, self.config
        if live.handle is not None:  # loaded before
            return self._start_loaded(live, now, budget)
        if self.shares is not None and not self.shares.admits(live, engine.step):
            heappop(self.waiting)
            self.shares.step_aside(live)
            return 0
        spans = live.request.spans
        limit = config.most_hit_blocks(live.target)
        if not config.keeps_vram:
            engine.mover.forget()
        match = engine.pool.index.match(spans, limit)
        if match.pending:
            return self._wait_for(live, match.pending, LOAD_DRAM, now)
        if not engine.tiers.can_load:
            return self._claim(live, now, budget, match, match.end, None)
        dram = live.owner.dram
        if live.fetch is not None and engine.prefetcher is not None and engine.prefetcher.has_wait(live, now):
            heappop(self.waiting)
            engine.hold(live, LOAD_SSD, now)
            return 0
        lower = engine.tiers.lookup(spans, live.target, limit, match.end, dram)
        if lower.pending and not (live.fetch is not None and live.fetch.gave_up(lower.pending)):
            return self._wait_for(live, lower.pending, LOAD_DRAM, now)
        if live.foreseen:
            live.judge_late(lower.pending)
            live.judge(match.end, lower.dram_end)
        if lower.ssd_end > lower.dram_end and not live.asked_ssd and engine.reads_on_demand:
            live.asked_ssd = True
            transfer = promote(engine, live, lower, DEMAND)
            if transfer:
                if engine.blocks_batch:
                    return self._claim(live, now, budget, match, lower.ssd_end, None, transfer)
                return self._wait_for(live, transfer, LOAD_SSD, now)
            # the attempt may have cut what was matched
            lower = engine.tiers.lookup(spans, live.target, limit, match.end, dram)
        return self._claim(live, now, budget, match, lower.dram_end, lower.dram)

    def _claim(
        self, live: Live, now: float, budget: int, match: Match, hit_end: int, dram: Match | None, coming: int = 0
    ) -> int:
        """Take the VRAM hit and, where there is one, the DRAM hit up to ``hit_end``; side effects only if all fits.

        ``coming``: a transfer that brings into DRAM what of that it lacks.
        """
        engine, pool, config = self.engine, self.engine.pool, self.config
        vram_end = match.end
        holds = hit_end > vram_end and not engine.load_in_step
        tokens = hit_end * config.block_tokens
        chunk = min(live.target - tokens, budget)
        side = config.side_admitted(live.target, live.last_tokens)
        own = 0 if holds else self.config.blocks(tokens + chunk) - hit_end
        need = hit_end - vram_end + own + (0 if holds else side)
        if config.reserve_full_prompt:
            need = max(need, self.config.blocks(live.target) - vram_end + side)
        if need > pool.available_blocks - unpinned_blocks(match):
            return -1
        self._note_hits(live, vram_end, hit_end)
        if live.swapped is not None:
            engine.mover.ledger.swaps.in_blocks += hit_end - vram_end
        live.handle = pool.index.pin(match, not live.preemptions, live.owner.retention)
        live.tokens = tokens
        load = None
        if hit_end > vram_end:
            live.handle, load = engine.mover.receive(
                live.handle, live.request.spans, hit_end, dram, DEMAND, live.owner, coming,
                Errand(LOAD if live.swapped is None else SWAP_IN, live.request.id),
            )  # fmt: skip
        if engine.tiers.can_load:
            engine.host.managed(config.blocks(live.target), holds)
        if holds:
            assert load is not None
            heappop(self.waiting)
            engine.hold(live, LOAD_DRAM, now)
            engine.host.then(partial(load, lambda: engine.resume(live)))
        else:
            self._start(live, now, chunk, own, side, load)
        if self.shares is not None and (following := self.shares.hold(live)) is not None:
            self.put_back(following)
        return 0 if holds else chunk

    def _start_loaded(self, live: Live, now: float, budget: int) -> int:
        """Start a request whose load is through; -1 where its blocks can't be had."""
        assert live.handle is not None
        chunk = min(live.target - live.tokens, budget)
        need = self.config.blocks(live.tokens + chunk) - live.handle.end
        most = self.config.blocks(live.target) - live.handle.end if self.config.reserve_full_prompt else need
        side = self.config.side_admitted(live.target, live.last_tokens)
        if max(most, need) + side > self.engine.pool.available_blocks:
            return -1
        self._start(live, now, chunk, need, side, None)
        return chunk

    def _start(self, live: Live, now: float, chunk: int, need: int, side: int, load: Load | None) -> None:
        """Put the head of the queue into the batch with its first chunk and the blocks that it takes.

        ``need`` of them are of its tokens, ``side`` of its windows and states.
        """
        heappop(self.waiting)
        if live.swapped is not None and self.engine.swapper is not None:
            load = self.engine.swapper.back(live, load)
        if need + side:
            self.engine.holdings.take(need + side)
            live.blocks_held = need
            live.side_blocks = side
        self._places += 1
        live.place = self._places
        self.engine.admitted(live, now)
        self._add_chunk(live, Chunk(live, chunk, load))

    def _wait_for(self, live: Live, transfer: int, state: int, now: float) -> int:
        engine = self.engine
        heappop(self.waiting)
        engine.hold(live, state, now)
        live.judge_late(transfer)
        engine.mover.ledger.wait(transfer, lambda: engine.resume(live), live.owner.rank)
        return 0

    def _note_hits(self, live: Live, vram_end: int, hit_end: int) -> None:
        """Book the first admission's hits on the tiers that served them (the prompt's tokens only)."""
        if live.hit_vram >= 0:
            return
        block_tokens = self.config.block_tokens
        if vram_end == hit_end and not live.fetched:
            live.hit_vram = vram_end * block_tokens
            return
        fetched = [(start, min(end, vram_end)) for start, end in live.fetched if start < vram_end]
        in_time = sum(end - start for start, end in fetched)
        below = [*fetched, (vram_end, hit_end)]
        ssd = sum(_common(one, other) for one in below for other in _merged(live.promoted))
        live.hit_vram = (vram_end - in_time) * block_tokens
        live.hit_dram = (hit_end - vram_end + in_time - ssd) * block_tokens
        live.hit_ssd = ssd * block_tokens
        self.engine.mover.used_blocks += in_time if self.engine.reads_on_demand else ssd

    def _make_way(self, now: float) -> bool:
        """Nothing runs and the head is blocked by loaded requests behind it: the last of them gives way."""
        engine = self.engine
        changed = False
        while not engine.running and self.waiting:
            if not self._give_way(but=self.waiting[0][1]):
                break
            changed |= self._admit(now, self.config.max_num_batched_tokens)
            if engine.gauge.held:
                break
        return changed

    def _give_way(self, but: Live | None = None) -> bool:
        """Have the last of the waiting requests whose loaded prefix takes memory let it go; False where none does."""
        holders = [live for _, live in self.waiting if live.handle is not None and live is not but]
        if not holders:
            return False
        last = max(holders, key=lambda live: live.order)
        assert last.handle is not None
        self.engine.pool.index.unpin(last.handle)
        last.handle = None
        last.tokens = 0
        last.asked_ssd = False
        last.gave_way = True
        self.let_go(last)
        return True


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the union, ranges apart: what was pushed out of DRAM again may have been promoted twice."""
    apart: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if apart and start <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


def _common(one: tuple[int, int], other: tuple[int, int]) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def _urgency(live: Live) -> tuple[int, float, int]:
    return (live.priority, live.request.arrival_s, live.place)
