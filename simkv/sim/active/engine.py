"""One replica's engine under active offload: continuous batching, one step at a time.

Every step is a decision (what is read, what must move), so there are no macro-steps; a step itself is a handful of
events (:mod:`simkv.sim.active.pipeline`). Who takes part in it: :mod:`simkv.sim.active.lineup`.
"""

from __future__ import annotations

from simkv.sim.active.lineup import Lineup
from simkv.sim.active.measured import Measured
from simkv.sim.active.pinned import streamed
from simkv.sim.active.sequence import Sequence
from simkv.sim.active.work import Work
from simkv.sim.clock import Timer
from simkv.sim.live import DECODE, Live
from simkv.sim.replica import Surroundings
from simkv.workload.request import Request


class ActiveEngine(Lineup):
    """The forward steps of one replica whose running sequences keep part of their KV below VRAM."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._work = Work(1, [0], [])
        self._begun_s = 0.0
        self._fires = False
        self._writes_before = 0
        self._waited_s = 0.0
        """How long the step to come waited for what the steps before wrote down."""
        self.store.promises.taken_back.append(self._look_again)

    # ---- what others call

    def enqueue(self, live: Live) -> None:
        """Put an arrival into the waiting queue."""
        live.owner = self.tiers.owners[live.cls]
        self.scheduler.push(live)
        self.backlog.add(live)
        self.wake()

    def wake(self) -> None:
        """Schedule now, when idle; a step under way is followed by a look at the queue anyway."""
        if not self._stepping and not self._fires:
            self._fires = True
            self.clock.at(self.clock._now, self._rank, self._on_boundary)

    def _look_again(self) -> None:
        """There is more room below VRAM than before, perhaps for who waits here."""
        if self.scheduler.waiting:
            self.wake()

    def can_ever_fit(self, request: Request) -> bool:
        """Whether ``request`` could be served if nobody else were here."""
        return self.store.fits_alone(request.prompt_tokens + request.output_tokens - 1)

    def measured(self) -> Measured:
        """What steps that only decode waited for."""
        return self.parts.steps

    def carried_bytes(self) -> dict[str, int]:
        """Bytes by lane that steps asked for and wrote down."""
        kinds = (self.parts.steps, self.parts.prefills)
        return {
            "h2d": sum(kind.loaded_bytes for kind in kinds),
            "d2h": sum(kind.written_bytes for kind in kinds),
            "ssd_read": sum(kind.ssd_read_bytes for kind in kinds),
            "ssd_write": sum(kind.ssd_written_bytes for kind in kinds),
        }

    @property
    def work(self) -> Work:
        """What the step under way, or the last one, has to do."""
        return self._work

    def under_way(self) -> tuple[float, int, int] | None:
        """Return when the step under way began, who decodes in it, and its prompt tokens; None between steps."""
        tokens = sum(tokens for _, tokens in self._chunks)
        return (self._begun_s, len(self._decoding), tokens) if self._chunks or self._decoding else None

    @property
    def held_blocks(self) -> int:
        """Private blocks that running requests hold now."""
        return self.store.held_blocks

    # ---- the boundary between two steps

    def _on_boundary(self, timer: Timer) -> None:
        self._fires = False
        if not self._stepping:
            self._begun_s = self.clock._now
            self._waited_s = 0.0
            self._next_step()

    def _over(self) -> None:
        """The step under way is over."""
        now = self.clock._now
        self._stepping = False
        self._book(now)
        self._complete(now)
        if self.store.watch is not None:
            self.store.watch.look()
        self._begun_s = now
        self._after_writes()

    def _after_writes(self) -> None:
        """Begin the next step, once what steps before the last wrote down is through: staging holds no more."""
        traffic = self.store.traffic
        wanted, self._writes_before = self._writes_before, traffic.begun_writes
        if traffic.ended_writes >= wanted:
            self._next_step()
            return
        begun_s = self.clock._now
        self._stepping = True

        def through() -> None:
            self._waited_s = self.clock._now - begun_s
            self._stepping = False
            self._next_step()

        traffic.when_written(wanted, through)

    def _next_step(self) -> None:
        now = self.clock._now
        self._schedule(now)
        if self.store.watch is not None:
            self.store.watch.look()
        if not self._chunks and not self._decoding:
            return
        self._begin(now)

    # ---- booking the step that is over

    def _book(self, now: float) -> None:
        measured, work = self.store.traffic.measured, self._work
        measured.steps += 1
        measured.step_s += now - self._begun_s
        measured.carried_s = min(measured.carried_s, measured.step_s)
        measured.compute_s += work.compute_s
        intervals = sum(seq.live.last_token_s == self._begun_s for seq in self._decoding)
        if intervals:
            self.recorder.step_row((self._begun_s, now - self._begun_s, 0.0, 1, intervals))
        if self.log is not None:
            self._tell_pass(self.log, now)
        self.store.residency.settle()
        if self.store.watch is not None:
            self.store.watch.settled()
        self.step += 1
        self.macro_steps += 1

    def _complete(self, now: float) -> None:
        chunks, self._chunks = self._chunks, []
        decoding, self._decoding = self._decoding, []
        for seq in decoding:
            self._made_token(seq, now)
        for seq, tokens in chunks:
            live = seq.live
            live.tokens += tokens
            self.store.computed(seq)
            if live.tokens == live.target:
                self._end_prefill(seq, now)

    def _made_token(self, seq: Sequence, now: float) -> None:
        live = seq.live
        live.tokens += 1
        if live.tokens % self.config.block_tokens == 0:
            self.store.write_new(seq)
        self._output(seq, now, between=live.last_token_s == self._begun_s)

    def _end_prefill(self, seq: Sequence, now: float) -> None:
        self._output(seq, now, between=False)
        if seq.live in self.running:
            seq.live.enter(DECODE, now)
            self._decode(seq)

    def _output(self, seq: Sequence, now: float, between: bool) -> None:
        """``seq`` has one more output token, and may be over; ``between``: its last one came as the step began."""
        live = seq.live
        live.generated += 1
        if live.first_token_s < 0.0:
            live.first_token_s = now
            live.enter(DECODE, now)
        elif not between:
            self.recorder.gaps.append((now, now - live.last_token_s))
        live.last_token_s = now
        if live.generated >= live.request.output_tokens:
            self._finish(seq, now)

    def _finish(self, seq: Sequence, now: float) -> None:
        live = seq.live
        live.enter(DECODE, now)
        live.hit_vram = max(0, live.hit_vram)
        self.store.leave(seq)
        self._stop(live, now)
        self.finished(live, self.number)

    # ---- beginning the next step

    def _begin(self, now: float) -> None:
        self._stepping = True
        store = self.store
        ranks = [seq.live.owner.rank for seq in self._decoding] + [seq.live.owner.rank for seq, _ in self._chunks]
        store.traffic.rank = min(ranks)
        store.traffic.measured = self.parts.prefills if self._chunks else self.parts.steps
        work = store.residency.gather(self._decoding, self.step)
        if store.watch is not None:
            store.watch.begins(work)
        foreseen = store.traffic.foreseen
        foreseen.missed += sum(len(pieces) * work.layers_of(group) for group, pieces in enumerate(work.demand))
        for seq, _ in self._chunks:
            prompt = streamed([seq])
            work.demand = [pieces + prompt for pieces in work.demand]
            work.reads += len(prompt) * work.layers
        measured = store.traffic.measured
        measured.reads += work.reads
        measured.empty += not work.reads
        measured.write_wait_s += self._waited_s
        self._waited_s = 0.0
        work.streams = work.streams and not self._chunks
        work.compute_s = self._compute_s(work)
        work.host_s = self.active.host_s_per_step + self.active.host_s_per_block * store.residency.blocks_managed
        self._work = work
        self._busy_s = self.gauge.busy_s
        self.parts.runner.run(work, self._over)

    def _compute_s(self, work: Work) -> float:
        context = work.read_tokens
        if not self._chunks:
            return self.cost.decode(len(self._decoding), context)[0]
        chunks = [(tokens, seq.live.tokens) for seq, tokens in self._chunks]
        ended = sum(seq.live.tokens + tokens == seq.live.target for seq, tokens in self._chunks)
        return self.cost.mixed(len(self._decoding), context, chunks, len(self._decoding) + ended)
