"""One replica's engine: continuous batching with macro-steps.

Between two decisions the batch is constant and its steps are an arithmetic series, so the engine
sleeps until the next decision (an end, a knot of the cost curve, a block that can't be had, an
interrupt at the next boundary) and books all steps at once. ``step_exact`` wakes at every
boundary instead; both use :mod:`simkv.sim.series`, so their times agree to the last bit.
"""

from __future__ import annotations

from math import inf

from simkv.sim.clock import Timer
from simkv.sim.coming import Coming
from simkv.sim.hosttime import HostTime
from simkv.sim.prefetch import make_prefetcher
from simkv.sim.replica import Surroundings
from simkv.sim.roster import Roster
from simkv.sim.scheduler import Scheduler
from simkv.sim.series import Series
from simkv.sim.waits import begin_waiting


class Engine(Roster):
    """The forward steps of one replica: who takes part, when they begin and end."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        config, mover = around.config, around.mover
        self.step_exact = config.step_exact
        self.load_in_step = self.config.load != "hold"
        """A request takes part at once, and its step waits for its load."""
        self.blocks_batch = self.config.load == "block"
        """What is read from SSD first is waited for in the step too."""
        self.reads_on_demand = config.offload.prefetch != "arrival"
        """What lies on SSD is read when its request has its turn, and not only ahead of it."""
        self.host = HostTime(self.clock, self.config)
        self.scheduler: Scheduler = Scheduler(self)
        self.coming = Coming(self)
        self.prefetcher = make_prefetcher(self, config.offload)
        self.series = Series()
        self._target = 0
        """Step before which the scheduled event fires."""
        self._begun_s = 0.0
        self._alone_s = inf
        """What the step under way, which waits for transfers, takes without; inf: it doesn't wait."""
        self._version = 0
        self._offer_again = False
        """DRAM may have room for what it refused: offer it at the next boundary."""
        mover.sync = self.sync
        mover.wake = self.wake
        if config.offload.when_full == "retry":
            mover.ledger.room.append(self.room_below)

    @property
    def swapping(self) -> bool:
        """VRAM is free in name only: what was in it is still being copied from it."""
        return self.swapper is not None and self.swapper.under_way > 0

    # ---- what others call

    def room_below(self) -> None:
        """DRAM let go of something: offer it what it refused at the next step boundary."""
        if not self.holdings.refused:
            return
        self._offer_again = True
        if not self.chunks and self._target > self.step + 1:
            self.cut(self._next_boundary(self.clock._now))

    def next_step(self) -> int:
        """The first step that has not begun; one that began at this instant has."""
        now = self.clock._now
        return self.step + 1 if self._begun_s == now else min(self._next_boundary(now), self._target)

    @property
    def steps_ended(self) -> int:
        """How many steps have ended by now, those included that will be booked with others."""
        if not (self.batch.size or self.chunks):
            return self.step
        return max(self.step, min(self._next_boundary(self.clock._now), self._target) - 1)

    def cut(self, step: int) -> None:
        """End the steps under way where ``step`` begins, or sooner."""
        target = max(step, self.step + 1)
        if target < self._target:
            self._target = target
            self._fire_at(self.series.begins_s(target))

    def wake(self) -> None:
        """Try to schedule at the next step boundary (now, when idle)."""
        if not self.scheduler.waiting:
            return
        self.scheduler.look_again = True
        now = self.clock._now
        if self._asleep:
            self._asleep = False
            self._fire_at(now)
            return
        if self.chunks or self._target <= self.step + 1 or not self.batch.size:
            return
        if len(self.running) >= self.config.max_num_seqs:
            return
        self.cut(self._next_boundary(now))

    def sync(self) -> None:
        """Allocate the decode blocks of every step that has begun by now."""
        if self._asleep or not self.batch.size or self._allocated >= self._target:
            return
        self._allocate_to(min(self._next_boundary(self.clock._now), self._target))

    def replan(self) -> None:
        """Room was taken for somebody else under way: decide earlier where the batch would run short."""
        if self._asleep or self.chunks or not self.batch.size:
            return
        step = max(self._allocated, self.step + 1)
        target = step + self.batch.steps_within(step, self._room(), self._target - step)
        if target < self._target:
            self._target = target
            self._fire_at(self.series.begins_s(target))

    def under_way(self) -> tuple[float, int, int] | None:
        """Return when the steps under way began, who decodes in them, and their prompt tokens; None when idle."""
        tokens = sum(chunk.tokens for chunk in self.chunks)
        return (self._begun_s, self.batch.size, tokens) if self.batch.size or self.chunks else None

    # ---- the event

    def _fire_at(self, time_s: float) -> None:
        self._version += 1
        self.clock.at(time_s, self._rank, self._on_boundary, self._version)

    def _on_boundary(self, timer: Timer) -> None:
        if timer.payload != self._version:
            return
        now = self.clock._now
        self.clock.take_turn(self._rank)
        if self.mover.waited:
            self.mover.waited.clear()
        changed = self._complete(now)
        if self._offer_again:
            self._offer_again = False
            self.holdings.offer_again()
        changed = self.coming.decide(now, changed)
        if changed and self.prefetcher is not None:
            self.prefetcher.look_ahead()
        self._begin(now, changed)

    def _complete(self, now: float) -> bool:
        """Book the steps that end now; True where that changed the batch."""
        steps = self._target - self.step if self.batch.size or self.chunks else 0
        if steps <= 0:
            return False
        self.macro_steps += 1
        size = self.batch.size
        if size:
            series = self.series
            self.recorder.step_row((self._begun_s, series.step_s(self.step), series.growth_s, steps, size))
            self._allocate_to(self._target)
        if self.log is not None:
            tokens = sum(chunk.tokens for chunk in self.chunks)
            wait_s = max(0.0, now - self._begun_s - self._alone_s)
            self.log.step(self.number, self._begun_s, now, steps, size, tokens, wait_s)
        self.step = self._target
        changed = False
        if self.chunks:
            self._complete_chunks(now)
            changed = True
        if self.batch.size and self.batch.next_end() <= self.step:
            for live in self.batch.pop_ended(self.step):
                self._finish(live, now)
            changed = True
        return changed

    # ---- beginning the next step

    def _begin(self, now: float, changed: bool) -> None:
        chunks = self.chunks
        gauge = self.gauge
        self._begun_s, self._alone_s = now, inf
        host_s = self.host.take()
        works = bool(chunks or self.batch.size)
        if gauge.busy != works:
            gauge.update(now)
            gauge.busy = works
        self._asleep = not works and not host_s
        if not works:
            self.series.valid_to = 0
            if host_s:
                self._target = self.step
                self._fire_at(now + host_s)
            return
        if chunks or self.mover.waited or host_s:
            self._begin_one(now, host_s)
            return
        batch, step, series = self.batch, self.step, self.series
        if changed or step >= series.valid_to:
            first_s, growth_s, valid = self.cost.decode(batch.size, batch.context_tokens(step))
            series.anchor(now, step, first_s, growth_s, step + valid)
        last = batch.next_end()
        if last > series.valid_to:
            last = series.valid_to
        if self.step_exact or self.scheduler.look_again or self._offer_again:
            last = step + 1
        if self.coming:
            last = max(step + 1, min(last, self.coming.first_step()))
        if last > step + 1:
            last = step + 1 + batch.steps_within(step + 1, self._room(), last - step - 1)
        self._target = last
        self._fire_at(series.begins_s(last))

    def _room(self) -> int:
        """Blocks that steps under way may take without anybody having to decide something."""
        return self.pool.free_blocks if self.mover.spills else self.pool.available_blocks

    def _begin_one(self, now: float, host_s: float) -> None:
        """Begin a step that is of its own kind: it computes of prompts, or waits for transfers or for the host."""
        batch = self.batch
        if self.chunks:
            compute_s = host_s + self._mixed_s()
        else:
            compute_s = host_s + self.cost.decode(batch.size, batch.context_tokens(self.step))[0]
            self.series.valid_to = 0
        self._target = self.step + 1
        self.series.once(now, self.step, compute_s)
        if begin_waiting(self, now, compute_s):
            self._alone_s = compute_s
        else:
            self._fire_at(self.series.begins_s(self._target))

    def _mixed_s(self) -> float:
        """Return the time of the step that is about to begin, without any waiting."""
        batch = self.batch
        work = [(chunk.tokens, chunk.live.tokens) for chunk in self.chunks]
        sampled = batch.size + len(work) - (self.partial is not None)
        context = batch.context_tokens(self.step) if batch.size else 0
        return self.cost.mixed(batch.size, context, work, sampled)

    def step_ends(self, begun_s: float, end_s: float) -> None:
        """Have the step that began at ``begun_s``, and waited, end at ``end_s``."""
        self.series.once(begun_s, self.step, end_s - begun_s)
        self._fire_at(max(self.series.begins_s(self._target), self.clock._now))

    def _next_boundary(self, now: float) -> int:
        """The first step that has not begun: one that begins now counts until this engine's turn is over."""
        step = self.series.first_at(now)
        if self.clock.had_turn(self._rank) and self.series.begins_s(step) == now:
            step += 1
        return step

    def _allocate_to(self, step: int) -> None:
        if step > self._allocated:
            need = self.batch.blocks_needed(self._allocated, step - self._allocated)
            if need > self.pool.free_blocks and self.pool.index.policy.remembers:
                self._allocate_in_turn(step)
            elif need:
                self.pool.take(need)
            self._allocated = step

    def _allocate_in_turn(self, step: int) -> None:
        """Take what each step up to ``step`` needs, one after the other: whom the policy lets go depends on that."""
        phases = self.batch.phases
        for taking in range(self._allocated, step):
            need = phases[taking % len(phases)]
            if need:
                self.pool.take(need)

    def try_decode(self) -> bool:
        """Take the decode blocks of the step that is about to begin; False, taking none, where they can't be had."""
        batch, pool = self.batch, self.pool
        need = batch.phases[self.step % batch.block_tokens]
        if need > pool.available_blocks:
            return False
        self.allocate_step(need)
        return True

    def allocate_step(self, need: int) -> None:
        """Take the decode blocks of the step that is about to begin (the scheduler made sure of them)."""
        if need:
            self.holdings.take(need)
        self._allocated = self.step + 1
