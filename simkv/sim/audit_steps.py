"""Laws of an engine's steps: what each takes, and that it computes what was missed and nothing of what was hit."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, NoReturn

from simkv.sim.audit_moves import loads_under_way

if TYPE_CHECKING:
    from simkv.sim.config import StepCost
    from simkv.sim.engine import Engine
    from simkv.sim.live import Live
    from simkv.sim.scheduler import Chunk

Broken = Callable[[str, str, str], NoReturn]
"""Raises LawError, given a law's id, the thing and what was found."""
RELATIVE = 1e-9
LATE = 1e-12
"""Of the time: what differences of times lose late in a run."""


class Prompt:
    """What has been computed of a request since it was let in."""

    __slots__ = ("first", "preemptions", "start", "tokens")

    def __init__(self, live: Live) -> None:
        self.start = live.tokens
        self.tokens = 0
        self.preemptions = live.preemptions
        self.first = not live.preemptions and not live.gave_way
        """Its hits are those that were noted."""


class Under:
    """The steps under way: when they began, what they compute, how long that takes."""

    __slots__ = (
        "begun_s",
        "chunks",
        "first_s",
        "growth_s",
        "lone_s",
        "step",
        "submitted",
        "through_s",
        "waits",
        "works",
    )

    def __init__(self, step: int, begun_s: float) -> None:
        self.step = step
        self.begun_s = begun_s
        self.works = False
        self.waits = False
        self.chunks: list[Chunk] = []
        self.first_s = self.growth_s = 0.0
        self.through_s = begun_s
        """When what it waited for was through."""
        self.lone_s = -1.0
        """What its loads take, where nothing else is on any lane; below 0 where something is."""
        self.submitted = 0

    def computing_s(self, steps: int) -> float:
        """Return what ``steps`` steps take without any wait."""
        return steps * (self.first_s + self.growth_s * (steps - 1) * 0.5)


class StepWatch:
    """Looks after each event whether an engine began or ended steps."""

    def __init__(self, engine: Engine, cost: StepCost, broken: Broken) -> None:
        """``cost``: of the audit's own, with the times of the engine's."""
        self.engine = engine
        self.cost = cost
        self.broken = broken
        self.name = f"replica {engine.number}"
        self.computed = 0
        self.steps_s = 0.0
        self._under = Under(-1, -1.0)
        self._prompts: dict[Live, Prompt] = {}
        self._version = -1
        host = engine.tiers.host
        self._lanes = [*(lane for link in host.links for lane in link), host.ssd_read, host.ssd_write]

    def look(self, now: float) -> None:
        """Note what has changed by ``now``."""
        engine, under = self.engine, self._under
        if engine.step != under.step or engine._begun_s != under.begun_s or not (under.works or engine._asleep):
            self._end(under)
            self._begin()
        elif engine._version != self._version:
            self._version = engine._version
            if under.waits:
                self._through(under, now)

    def finish(self) -> None:
        """Hold the whole run's sums against each other."""
        engine = self.engine
        busy_s = engine.gauge.busy_s
        if abs(busy_s - self.steps_s) > 1e-6 * max(busy_s, self.steps_s):
            self.broken("L50", self.name, f"busy for {busy_s} s, its steps took {self.steps_s} s")
        if self._prompts:
            live = next(iter(self._prompts))
            self.broken("L49", f"{self.name}, request {live.request.id}", "its prompt was never computed to its end")

    # ---- a step begins

    def _begin(self) -> None:
        engine = self.engine
        under = self._under = Under(engine.step, engine._begun_s)
        self._version = engine._version
        batch, chunks = engine.batch, engine.chunks
        if not batch.size and not chunks:
            return
        under.works = True
        under.waits = engine._alone_s < inf
        context = batch.context_tokens(engine.step) if batch.size else 0
        if chunks:
            under.chunks = chunks
            work = [(chunk.tokens, chunk.live.tokens) for chunk in chunks]
            ended = sum(chunk.live.tokens + chunk.tokens == chunk.live.target for chunk in chunks)
            under.first_s = self.cost.mixed(batch.size, context, work, batch.size + ended)
            for chunk in chunks:
                self._computes(chunk)
        else:
            under.first_s, under.growth_s, _ = self.cost.decode(batch.size, context)
        under.first_s += engine.host.last_s
        if under.waits:
            self._alone(under)

    def _computes(self, chunk: Chunk) -> None:
        live = chunk.live
        self.computed += chunk.tokens
        prompt = self._prompts.get(live)
        if prompt is None or prompt.preemptions != live.preemptions:
            prompt = self._prompts[live] = Prompt(live)
            hit = live.hit_vram + live.hit_dram + live.hit_ssd
            if prompt.first and hit != live.tokens:
                what = f"{hit} tokens were hit, and it begins to compute after {live.tokens}"
                self.broken("L49", f"{self.name}, request {live.request.id}", what)
        prompt.tokens += chunk.tokens

    def _alone(self, under: Under) -> None:
        """Work out what the loads of a step take that has the host's lanes to itself."""
        h2d = self.engine.tiers.h2d
        loads = sum(chunk.load is not None for chunk in under.chunks)
        own = list(h2d.in_flight())
        if len(own) != loads or any(lane.active is not None for lane in self._lanes if lane is not h2d):
            return
        most = min(h2d.alone_bytes_per_s, h2d.fabric.dram_bytes_per_s)
        under.lone_s = sum(load.bytes / min(load.cap_bytes_per_s, most) for load in own)
        under.submitted = self._submitted()

    def _submitted(self) -> int:
        return sum(lane.submitted_bytes for lane in self._lanes)

    def _through(self, under: Under, now: float) -> None:
        """All that the step waited for is through."""
        under.through_s = now
        if under.lone_s >= 0 and self._submitted() != under.submitted:
            under.lone_s = -1.0

    # ---- a step has ended

    def _end(self, under: Under) -> None:
        if not under.works:
            return
        engine = self.engine
        now = engine._begun_s
        steps, took_s = engine.step - under.step, now - under.begun_s
        computing_s = under.computing_s(steps)
        self.steps_s += took_s
        slack_s = RELATIVE * max(took_s, computing_s) + LATE * now
        most_s = self._most(under, computing_s)
        if not computing_s - slack_s <= took_s <= most_s + slack_s:
            what = f"took {took_s} s, where computing takes {computing_s} s and with its waits {most_s} s is the most"
            self.broken("L50", f"{self.name}, step {under.step}", what)
        for chunk in under.chunks:
            self._ended(chunk.live)

    def _most(self, under: Under, computing_s: float) -> float:
        """Return the longest that steps may take: computing, waiting, and one layer's load that nothing hides."""
        if not under.waits:
            return computing_s
        waited_s = under.through_s - under.begun_s
        if under.lone_s >= 0:
            waited_s = min(waited_s, under.lone_s)
        return computing_s + waited_s * (1 + 1 / self.cost.layers)

    def _ended(self, live: Live) -> None:
        prompt = self._prompts.get(live)
        if prompt is None or prompt.start + prompt.tokens < live.target:
            return
        del self._prompts[live]
        thing = f"{self.name}, request {live.request.id}"
        missed = live.request.prompt_tokens - live.hit_vram - live.hit_dram - live.hit_ssd
        if prompt.first and prompt.tokens != missed:
            self.broken("L49", thing, f"{prompt.tokens} tokens of its prompt were computed, {missed} were missed")
        if prompt.start + prompt.tokens != live.target:
            self.broken("L49", thing, f"{prompt.start} + {prompt.tokens} of {live.target} tokens")
        if live.first_token_s < 0:
            self.broken("L51", thing, "its prompt is computed, and it has no first token")
        left = loads_under_way(self.engine.tiers.h2d, live.request.id)
        if left:
            self.broken("L51", thing, f"it has a first token, and {left} bytes of what it hit are on their way")
