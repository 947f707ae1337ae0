"""What every kind of engine offers to those who run, route to, sample and audit it."""

from __future__ import annotations

from typing import Protocol

from simkv.kvcache.pool import KVPool
from simkv.sim.active.measured import Measured
from simkv.sim.config import EngineConfig
from simkv.sim.gauge import Gauge
from simkv.sim.live import Live
from simkv.sim.mover import Mover
from simkv.sim.tiers import ReplicaTiers
from simkv.workload.request import Request


class Waiting(Protocol):
    """Where requests wait."""

    @property
    def waiting(self) -> list[tuple[tuple[int, int], Live]]:
        """Those that may have their turn, the first at the front."""

    @property
    def queued(self) -> int:
        """How many wait, those included that can't have their turn yet."""


class ReplicaEngine(Protocol):
    """One replica: its requests, its memory, its counters."""

    config: EngineConfig
    tiers: ReplicaTiers
    pool: KVPool
    mover: Mover
    gauge: Gauge
    running: dict[Live, None]
    step: int
    macro_steps: int
    preemptions: int
    load_waits: int

    @property
    def scheduler(self) -> Waiting:
        """The waiting queue."""

    @property
    def live_requests(self) -> int:
        """Requests that run, wait or are held here."""

    @property
    def held_blocks(self) -> int:
        """Private blocks of VRAM that running requests hold now."""

    def can_ever_fit(self, request: Request) -> bool:
        """Whether ``request`` could be served if nobody else were here."""

    def enqueue(self, live: Live) -> None:
        """Take in an arrival."""

    def sync(self) -> None:
        """Bring the replica's memory up to now."""

    def tokens_ahead(self, live: Live) -> int:
        """Prompt tokens that wait ahead of ``live``, a newcomer."""

    def measured(self) -> Measured | None:
        """What decode steps waited for under active offload; None for other engines."""

    def carried_bytes(self) -> dict[str, int] | None:
        """Bytes by lane that the engine itself had carried; None where the mover did all of it."""
