"""One replica's engine in batch mode: a static batch is taken together, prefilled, decoded to its longest output.

Whatever waits when the engine is free becomes a batch, at most ``gpu_batch_size * num_gpu_batches`` requests: their
prompts are padded to the longest, and all decode for as long as the longest output (FlexGen's ``generate``, which
returns when everything has been generated). A request whose output is shorter has its last token when the batch ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from simkv.formulas.placement import Block, Job, blocks, check_memory, needs
from simkv.sim.batchmode.holdings import BatchHoldings
from simkv.sim.batchmode.queue import BatchQueue
from simkv.sim.batchmode.runner import BlockRunner
from simkv.sim.clock import Timer
from simkv.sim.live import DECODE, PREFILL, Live
from simkv.sim.replica import ReplicaEngine, Surroundings
from simkv.workload.request import Request


class BatchEngine(ReplicaEngine):
    """The batches of one replica, and the requests that wait for one; its steps are passes over all layers."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        config, tiers = around.config, around.tiers
        assert config.batch is not None, "a batch-mode engine without a batch"
        self.batch = config.batch
        self.scheduler: BatchQueue = BatchQueue()
        self.runner = BlockRunner(self.clock, config.batch, tiers, self.gauge, self._rank, config.link.chunk_bytes)
        self.holdings = BatchHoldings(tiers, config.batch.policy.placement.kv)
        self._asleep = True
        self._blocks: Iterator[Block] = iter(())
        self._job = Job(0, 0, 0)
        self._token = -1
        """The output token that the block in progress works on."""
        self._begun_s = 0.0
        self._made_s: list[float] = []
        """When each output token of the batch was there."""

    # ---- what others call

    def enqueue(self, live: Live) -> None:
        """Put an arrival into the waiting queue; an engine that is free takes a batch at this instant."""
        self.scheduler.push(live)
        self.backlog.add(live)
        if self._asleep:
            self._asleep = False
            self.clock.at(self.clock.now, self._rank, self._take)

    def can_ever_fit(self, request: Request) -> bool:
        """Whether a batch of ``request`` alone would fit the tiers."""
        job = Job(1, request.prompt_tokens, request.output_tokens)
        found = needs(self.batch.layer, self.batch.policy, job)
        return all(found[tier].total <= limit for tier, limit in self.batch.room.limits().items())

    def carried_bytes(self) -> dict[str, int]:
        """Bytes by lane of all blocks so far."""
        return dict(self.runner.sent_bytes)

    @property
    def held_blocks(self) -> int:
        """Blocks of VRAM that running requests hold."""
        return sum(live.blocks_held for live in self.running)

    # ---- a batch

    def _take(self, timer: Timer) -> None:
        """Start a batch of what waits, or fall asleep."""
        lives = self.scheduler.take(self.batch.policy.sequences)
        if not lives:
            self._asleep = True
            return
        now = self.clock.now
        self.clock.take_turn(self._rank)
        prompt = max(live.request.prompt_tokens for live in lives)
        output = max(live.request.output_tokens for live in lives)
        self._job = Job(len(lives), prompt, output)
        check_memory(self.batch.layer, self.batch.policy, self._job, self.batch.room)
        self.holdings.take(lives, self.config.blocks(prompt + output))
        for live in lives:
            self.backlog.remove(live)
            live.enter(PREFILL, now)
            live.scheduled_s = now
            live.hit_vram = 0
            self.running[live] = None
        self.gauge.set_running(now, len(self.running))
        self._blocks = blocks(self.batch.layer, self.batch.policy, self.batch.rates, self._job)
        self._token = -1
        self._made_s = []
        self._begun_s, self._busy_s = now, self.gauge.busy_s
        self._next_block()

    def _next_block(self) -> None:
        block = next(self._blocks, None)
        if self._token >= 0 and (block is None or block.token != self._token):
            self._token_made(self.clock.now)
        if block is None:
            self._end()
            return
        self._token = block.token
        self.runner.run(block, self._next_block)

    def _token_made(self, now: float) -> None:
        """Book the pass that ends now: everybody has one more output token."""
        self.step += 1
        self.macro_steps += 1
        self._made_s.append(now)
        if self.log is not None:
            self._tell_pass(self.log, now)
        self._begun_s, self._busy_s = now, self.gauge.busy_s
        if self._token == 0:
            for live in self.running:
                live.first_token_s = now
                live.enter(DECODE, now)
            return
        decodes = sum(self._is_regular(live) for live in self.running)
        if decodes:
            begun_s = self._made_s[-2]
            self.recorder.step_row((begun_s, now - begun_s, 0.0, 1, decodes))

    def under_way(self) -> tuple[float, int, int] | None:
        """Return when the pass under way began, who decodes in it, and its prompt tokens; None between batches."""
        size = len(self.running)
        if not size:
            return None
        return (self._begun_s, size, 0) if self._token > 0 else (self._begun_s, 0, size * self._job.prompt_tokens)

    def _is_regular(self, live: Live) -> bool:
        """Say whether the pass gives ``live`` a token right away: its last one it has at the end of the batch."""
        output = live.request.output_tokens
        return output == self._job.output_tokens or self._token < output - 1

    def _end(self) -> None:
        now = self.clock.now
        lives = list(self.running)
        self.holdings.give(lives)
        self.running.clear()
        self.gauge.set_running(now, 0)
        for live in lives:
            output = live.request.output_tokens
            if output == 1:
                live.first_token_s = now
            elif output < self._job.output_tokens:
                self.recorder.gaps.append((now, now - self._made_s[output - 2]))
            live.enter(DECODE, now)
            self.finished(live, self.number)
        self.clock.at(now, self._rank, self._take)
