"""What becomes of the requests of one replica's engine: they come, are held, take part, have tokens, give way, leave.

When its steps begin and end is no matter here: :mod:`simkv.sim.engine`.
"""

from __future__ import annotations

from abc import abstractmethod

from simkv.sim.batch import DecodeBatch
from simkv.sim.coming import Coming
from simkv.sim.holdings import Holdings
from simkv.sim.live import DECODE, PREEMPTED, PREFILL, QUEUE, RECOMPUTE, Live
from simkv.sim.prefetch import Prefetcher
from simkv.sim.replica import ReplicaEngine, Surroundings
from simkv.sim.scheduler import Chunk, Scheduler
from simkv.sim.swap import Swapper
from simkv.workload.request import Request


class Roster(ReplicaEngine):
    """The requests that wait for one replica's forward steps or take part in them."""

    scheduler: Scheduler
    coming: Coming
    prefetcher: Prefetcher | None

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self.batch = DecodeBatch(self.config.block_tokens)
        self.chunks: list[Chunk] = []
        """What the step in progress computes of prompts."""
        self.holdings = Holdings(self.config, around.mover)
        self.swapper = Swapper(self.config, around.mover) if self.config.preemption == "swap" else None
        self._asleep = True
        self._allocated = 0
        """Decode blocks are allocated for all steps before this one."""

    @abstractmethod
    def wake(self) -> None:
        """Try to schedule at the next step boundary (now, when idle)."""

    def enqueue(self, live: Live) -> None:
        """Put an arrival into the waiting queue; interrupt the batch where it could be admitted."""
        live.owner = self.tiers.owners[live.cls]
        self.backlog.add(live)
        idle = self._asleep
        if not self.coming.add(live, returns=False):
            was_empty = not self.scheduler.waiting
            self.scheduler.push(live)
            if was_empty or self.scheduler.waiting[0][1] is live:
                self.wake()
        if self.prefetcher is not None:
            self.prefetcher.arrived(live, idle)

    def can_ever_fit(self, request: Request) -> bool:
        """Whether ``request`` could be served if nobody else were here."""
        tokens = request.prompt_tokens + request.output_tokens
        return self.config.most_blocks(tokens - 1) <= self.config.num_gpu_blocks

    @property
    def held_blocks(self) -> int:
        """Private blocks that running requests hold now."""
        return sum(self.blocks_of(live) for live in self.running)

    def blocks_of(self, live: Live) -> int:
        """Private blocks that a running request holds now."""
        if live.step0 < 0:
            return live.blocks_held + live.side_blocks
        assert live.handle is not None
        tokens = live.context(max(self._allocated, live.step0))
        return self.config.blocks(tokens) - live.handle.end + live.side_blocks

    # ---- tokens

    def _complete_chunks(self, now: float) -> None:
        chunks, self.chunks = self.chunks, []
        for chunk in chunks:
            live = chunk.live
            live.tokens += chunk.tokens
            self.holdings.commit_prompt(live)
            if live.tokens == live.target:
                self._first_output(live, now)

    def _first_output(self, live: Live, now: float) -> None:
        """The step that ends now gave ``live`` an output token: it decodes from here on, or is over."""
        live.generated += 1
        if live.first_token_s < 0.0:
            live.first_token_s = now
        else:
            self.recorder.gaps.append((now, now - live.last_token_s))
        live.last_token_s = now
        remaining = live.request.output_tokens - live.generated
        if remaining <= 0:
            self._finish(live, now)
            return
        live.enter(DECODE, now)
        self.holdings.end_prefill(live)
        self.batch.add(live, self.step, remaining)

    def _finish(self, live: Live, now: float) -> None:
        live.enter(DECODE, now)
        live.last_token_s = now
        self._leave(live, now, keep_outputs=True)
        mover = self.mover
        if self.tiers.dram is not None and self.config.prefix_caching:
            mover.touch(live.request.spans, live.request.prompt_tokens // self.config.block_tokens, live.owner)
        self.finished(live, self.number)

    def _leave(self, live: Live, now: float, keep_outputs: bool) -> None:
        self.holdings.release(live, live.context(self.step), keep_outputs)
        self.running.pop(live, None)
        if self.scheduler.shares is not None:
            self.scheduler.let_go(live)
        self.gauge.set_running(now, len(self.running))

    def preempt(self, live: Live, now: float) -> None:
        """Take ``live`` out of the batch: all its blocks go back, and it loads or computes them again later."""
        step = self.step
        made = live.made(step)
        tokens = live.context(step)
        if live.step0 >= 0:
            self.batch.remove(live)
            live.last_token_s = now
        if live is self.partial:
            self.partial = None
        self._leave(live, now, keep_outputs=False)
        if self.swapper is not None:
            self.swapper.out(live, tokens)
        live.step0 = -1
        live.computed_once = max(live.computed_once, tokens)
        live.generated = made
        live.target = live.request.prompt_tokens + made
        live.tokens = 0
        live.preemptions += 1
        live.asked_ssd = False
        self.preemptions += 1
        live.enter(PREEMPTED, now)
        self.backlog.add(live)
        self.scheduler.push_front(live)

    # ---- holding and admitting

    def hold(self, live: Live, state: int, now: float) -> None:
        """Keep ``live`` out of the queue while something is brought in for it."""
        live.enter(state, now)
        self.gauge.update(now)
        self.gauge.held += 1
        self.load_waits += 1

    def resume(self, live: Live) -> None:
        """Put a held request back into its place in the queue."""
        now = self.clock._now
        live.enter(PREEMPTED if live.preemptions else QUEUE, now)
        self.gauge.update(now)
        self.gauge.held -= 1
        idle = self._asleep
        if not self.coming.add(live, returns=True):
            self.scheduler.put_back(live)
            self.wake()
        if self.prefetcher is not None and not idle:
            self.prefetcher.look_ahead()

    def admitted(self, live: Live, now: float) -> None:
        """Note that a step is about to compute something of ``live``."""
        self.backlog.remove(live)
        live.enter(RECOMPUTE if live.preemptions else PREFILL, now)
        if live.scheduled_s < 0.0:
            live.scheduled_s = now
        self.running[live] = None
        self.gauge.set_running(now, len(self.running))
