"""What every kind of engine has, and offers to those who run, route to, sample and audit it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from simkv.sim.active.measured import Measured
from simkv.sim.backlog import Backlog
from simkv.sim.clock import ENGINE_RANK, Clock
from simkv.sim.config import SystemConfig
from simkv.sim.gauge import Gauge, Together
from simkv.sim.live import Live
from simkv.sim.mover import Mover
from simkv.sim.recorder import Recorder
from simkv.sim.tiers import ReplicaTiers
from simkv.workload.request import Request

if TYPE_CHECKING:
    from simkv.sim.record.sink import Sink


class Waiting(Protocol):
    """Where requests wait."""

    @property
    def waiting(self) -> list[tuple[tuple[int, int], Live]]:
        """Those that may have their turn, the first at the front."""

    @property
    def queued(self) -> int:
        """How many wait, those included that can't have their turn yet."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an engine works in and on."""

    clock: Clock
    config: SystemConfig
    number: int
    """Of the replica, from 0."""
    tiers: ReplicaTiers
    mover: Mover
    recorder: Recorder
    together: Together
    finished: Callable[[Live, int], None]
    """To be called with a request that is over and the replica's number."""


class ReplicaEngine(ABC):
    """One replica: its requests, its memory, its counters."""

    scheduler: Waiting

    def __init__(self, around: Surroundings) -> None:
        self.clock = around.clock
        self.config = around.config.engine
        self.cost = around.config.cost
        self.number = around.number
        self._rank = ENGINE_RANK + around.number
        self.tiers = around.tiers
        self.pool = around.tiers.vram
        self.mover = around.mover
        self.recorder = around.recorder
        self.finished = around.finished
        self.gauge = Gauge(around.together)
        self.running: dict[Live, None] = {}
        self.partial: Live | None = None
        """The one request whose prompt is partly computed: always the last admitted."""
        self.backlog = Backlog(self.config.scheduling)
        self.step = 0
        """The step in progress, or the next one when idle."""
        self.macro_steps = 0
        self.preemptions = 0
        self.load_waits = 0
        self.log: Sink | None = None
        """Whom to tell of steps; None while nobody records."""
        self._busy_s = 0.0
        """How long the GPU had computed in all when the pass under way began (kept where it waits within one)."""

    @property
    def live_requests(self) -> int:
        """Requests that run, wait or are held here."""
        return len(self.running) + self.scheduler.queued + self.gauge.held

    @property
    def steps_ended(self) -> int:
        """How many steps have ended by now."""
        return self.step

    def tokens_ahead(self, live: Live) -> int:
        """Prompt tokens that are not computed yet and come before those of ``live``, a newcomer."""
        partial = self.partial
        return self.backlog.ahead_of(live) + (partial.target - partial.tokens if partial else 0)

    @property
    @abstractmethod
    def held_blocks(self) -> int:
        """Private blocks of VRAM that running requests hold now."""

    @abstractmethod
    def can_ever_fit(self, request: Request) -> bool:
        """Whether ``request`` could be served if nobody else were here."""

    @abstractmethod
    def enqueue(self, live: Live) -> None:
        """Take in an arrival."""

    def under_way(self) -> tuple[float, int, int] | None:
        """Return when the steps under way began, who decodes in them, and their prompt tokens; None when idle."""
        return None

    def _tell_pass(self, log: Sink, now: float) -> None:
        """Have the step that ends now recorded; the GPU has paused in it wherever it wasn't busy."""
        begun = self.under_way()
        assert begun is not None, "a step ends that never began"
        begun_s, decodes, tokens = begun
        wait_s = now - begun_s - (self.gauge.busy_s - self._busy_s)
        log.step(self.number, begun_s, now, 1, decodes, tokens, max(0.0, wait_s))

    def sync(self) -> None:  # noqa: B027 (where every step is an event there is nothing to do)
        """Bring the replica's memory up to now."""

    def measured(self) -> Measured | None:
        """What decode steps waited for under active offload; None for other engines."""
        return None

    def carried_bytes(self) -> dict[str, int] | None:
        """Bytes by lane that the engine itself had carried; None where the mover did all of it."""
        return None
