"""Who takes part in the next step of a replica under active offload.

As :class:`simkv.sim.engine.Engine` schedules: running sequences first, the last admitted gives way when room lacks,
then the queue in order while token budget, seats and the resident share allow.
"""

from __future__ import annotations

from abc import abstractmethod

from simkv.sim.active.assembly import Parts, assemble
from simkv.sim.active.sequence import Sequence
from simkv.sim.fabric import DEMAND
from simkv.sim.live import DECODE, LOAD_DRAM, PREEMPTED, PREFILL, RECOMPUTE, Live
from simkv.sim.record.errand import LOAD, SWAP_IN, Errand
from simkv.sim.replica import ReplicaEngine, Surroundings
from simkv.sim.waiting import WaitingQueue


class Lineup(ReplicaEngine):
    """The running sequences of one replica, and those that are let in and give way between two steps."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        assert around.config.active is not None
        self.active = around.config.active
        self.scheduler: WaitingQueue = WaitingQueue(self.config.scheduling)
        self.parts = self._assemble(around)
        self.store = self.parts.store
        self._chunks: list[tuple[Sequence, int]] = []
        self._decoding: list[Sequence] = []
        self._stepping = False
        self._places = 0

    def _assemble(self, around: Surroundings) -> Parts:
        """Return the parts that it works with; what runs steps otherwise than in simulated time returns its own."""
        return assemble(around.clock, around.config, around.tiers, self.gauge, around.mover.ledger)

    def _schedule(self, now: float) -> None:
        preempted = self._make_room(now)
        self._decoding = [self.store.sequences[live] for live in self.running if self.store.sequences[live].decoding]
        budget = self.config.max_num_batched_tokens - len(self._decoding)
        if self.partial is not None and budget > 0:
            budget -= self._add_chunk(self.store.sequences[self.partial], budget)
        if not preempted or not self.running:
            self._admit(now, budget)
        if self.active.budget_blocks is not None:
            self.store.residency.divide([seq for seq in self.store.sequences.values() if seq.here])

    def _make_room(self, now: float) -> bool:
        """Give every decoding sequence the block that its next token needs; True where somebody had to give way."""
        preempted = False
        for live in list(self.running):
            seq = self.store.sequences.get(live)
            if seq is None or live not in self.running or not seq.decoding:
                continue
            blocks = self.store.share.total(live.tokens + 1)
            while live in self.running and blocks > seq.blocks and not self.store.grow(seq, blocks, self.step):
                self._preempt(self._victim(), now)
                preempted = True
        return preempted

    def _victim(self) -> Live:
        if self.scheduler.by_priority:
            return max(self.running, key=lambda live: (live.priority, live.request.arrival_s, live.place))
        return next(reversed(self.running))

    def _preempt(self, live: Live, now: float) -> None:
        seq = self.store.sequences[live]
        self.preemptions += 1
        live.preemptions += 1
        if live is self.partial:
            self.partial = None
        self._stop(live, now)
        live.enter(PREEMPTED, now)
        if not (self.active.swap and seq.decoding and self.store.swap_out(seq)):
            self._begin_anew(seq)
        self.backlog.add(live)
        self.scheduler.push_front(live)

    def _begin_anew(self, seq: Sequence) -> None:
        """Nothing of ``seq`` stays: it computes again what it had."""
        live = seq.live
        live.computed_once = max(live.computed_once, live.tokens)
        live.target = live.request.prompt_tokens + live.generated
        live.tokens = 0
        self.store.leave(seq)

    def _add_chunk(self, seq: Sequence, budget: int) -> int:
        live = seq.live
        tokens = min(live.target - live.tokens, budget)
        self._chunks.append((seq, tokens))
        self.partial = live if live.tokens + tokens < live.target else None
        if live.computed_once:
            live.recomputed += max(0, min(live.tokens + tokens, live.computed_once) - live.tokens)
        return tokens

    def _admit(self, now: float, budget: int) -> None:
        while self.scheduler.waiting and budget > 0 and self.partial is None:
            if len(self.running) + self.gauge.held >= self.config.max_num_seqs:
                return
            seq = self._let_in(self.scheduler.waiting[0][1])
            if seq is None and not self.running and not self.gauge.held:
                seq = self._out_of_turn()
            if seq is None:
                return
            self.scheduler.take(seq.live)
            budget -= self._start(seq, now, budget)

    def _let_in(self, live: Live) -> Sequence | None:
        """Give ``live`` what it needs to run; None, giving nothing, where that can't be had."""
        seq = self.store.sequences.get(live)
        if seq is None:
            seq = self.store.admit(live)
            self.parts.steps.short_below += seq is None and self.store.short_below
            return seq
        return seq if self.store.resume(seq) else None

    def _out_of_turn(self) -> Sequence | None:
        """Nobody runs and there is no room for the first: those that wait with their KV below VRAM hold it.

        The first of them that can goes on; where none can, the last ones let go of it and compute it again.
        """
        below = [live for _, live in sorted(self.scheduler.waiting) if live in self.store.sequences]
        for live in below:
            if (seq := self._let_in(live)) is not None:
                return seq
        while below and self.active.keeps_prompts:
            live = below.pop()
            self.backlog.remove(live)
            self._begin_anew(self.store.sequences[live])
            self.backlog.add(live)
            if (seq := self._let_in(self.scheduler.waiting[0][1])) is not None:
                return seq
        return None

    def _start(self, seq: Sequence, now: float, budget: int) -> int:
        """Let an admitted sequence take part; returns the tokens of the step that it uses."""
        live = seq.live
        self.backlog.remove(live)
        if self.active.keeps_prompts and not seq.decoding:
            self._join(seq, now, RECOMPUTE if live.preemptions else PREFILL)
            self.store.find(seq, self.config.most_hit_blocks(live.target))
            return self._add_chunk(seq, budget)
        if not seq.decoding:
            self.store.restore(seq)
        pieces = self.store.to_load(seq)
        if not len(pieces):
            self._ready(seq, now)
            return 1
        live.enter(LOAD_DRAM, now)
        self.gauge.update(now)
        self.gauge.held += 1
        self.load_waits += 1
        purpose = SWAP_IN if live.preemptions else LOAD
        self.store.traffic.up(pieces, DEMAND, lambda: self._loaded(seq), Errand(purpose, live.request.id))
        return 0

    def _loaded(self, seq: Sequence) -> None:
        now = self.clock._now
        self.gauge.update(now)
        self.gauge.held -= 1
        if self._stepping:
            self._join(seq, now, DECODE)
            self._decode(seq)
        else:
            self._ready(seq, now, decode_now=False)
            self.wake()
        if self.store.watch is not None:
            self.store.watch.look()

    def _ready(self, seq: Sequence, now: float, decode_now: bool = True) -> None:
        self._join(seq, now, DECODE)
        self._decode(seq)
        if decode_now:
            blocks = self.store.share.total(seq.live.tokens + 1)
            grown = blocks == seq.blocks or self.store.grow(seq, blocks, self.step)
            assert grown, "its next token was counted when it was let in"
            self._decoding.append(seq)

    def _join(self, seq: Sequence, now: float, state: int) -> None:
        live = seq.live
        live.enter(state, now)
        if live.scheduled_s < 0.0:
            live.scheduled_s = now
        self._places += 1
        live.place = self._places
        self.running[live] = None
        self.gauge.set_running(now, len(self.running))

    def _decode(self, seq: Sequence) -> None:
        """``seq`` decodes from its next step on."""
        self.store.begin_decoding(seq, self.step)

    def _stop(self, live: Live, now: float) -> None:
        del self.running[live]
        self.gauge.set_running(now, len(self.running))

    @abstractmethod
    def wake(self) -> None:
        """Look at the queue now, unless a step is under way."""
