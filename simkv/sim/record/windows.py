"""When what is asked to be recorded begins and ends: windows open and close, and hooks are set and cleared.

Nothing is scheduled for it: windows open at the first arrival and at the sampler's ticks, and close when they are told
of something that happened after their end, or have all the rows that they may have.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from simkv.sim.record.blocks import Blocks
from simkv.sim.record.log import Log
from simkv.sim.record.names import Names
from simkv.sim.record.recording import POOLS, TIERS, Recording, Table, Wanted
from simkv.sim.record.sink import together

if TYPE_CHECKING:
    from simkv.sim.fabric import Lane
    from simkv.sim.system import System

GROWTH = 4
"""A ``latest`` window begins anew when simulated time has grown so many times."""


class Windows:
    """The windows of one run, in the order asked."""

    def __init__(self, system: System, wanted: Sequence[Wanted]) -> None:
        self.system = system
        self.lanes = named_lanes(system)
        self.names = Names()
        self.blocks = Blocks(system, self.names)
        settle = self.blocks.settle
        self.logs = [Log(one, self.lanes, system.engines, self.names, settle, self._set_hooks) for one in wanted]
        self._first_s = 0.0
        self._again_s: dict[Log, float] = {}

    # ---- the run's course

    def start(self, now: float, interval_s: float) -> None:
        """The first request is about to arrive; the sampler looks every ``interval_s`` to begin with."""
        self._first_s = now
        for log in self.logs:
            if log.wanted.rule == "asked":
                self._look(log, now, now + interval_s)
            else:
                self._open(log, now)
                self._again_s[log] = now + GROWTH * interval_s

    def tick(self, now: float, next_s: float) -> None:
        """The sampler looks, and will again at ``next_s``."""
        self.blocks.note(now)
        for log in self.logs:
            rule = log.wanted.rule
            if rule == "latest" and now >= self._again_s[log]:
                self._again_s[log] = self._first_s + GROWTH * (now - self._first_s)
                if not log.is_open:
                    self._open(log, now)
            elif rule == "asked":
                self._look(log, now, next_s)

    def _look(self, log: Log, now: float, next_s: float) -> None:
        """Open ``log`` where what was asked begins before the next look, and close it where it has ended."""
        wanted = log.wanted
        if log.is_open:
            if wanted.end_s is not None and now > wanted.end_s:
                log.close(wanted.end_s)
        elif isnan(log.begin_s) and wanted.begin_s <= next_s:
            self._open(log, now)

    def _open(self, log: Log, now: float) -> None:
        asked = log.wanted.rule == "asked" and not log.wanted.blocks  # what is there is only known as of now
        log.open(max(now, log.wanted.begin_s) if asked else now)
        self._set_hooks()
        if log.wanted.blocks:
            self.blocks.snapshot(log)

    def finish(self, run_end_s: float) -> tuple[Recording, ...]:
        """The run is over: return what was recorded, in the order asked."""
        pools = self._pools()
        return tuple(log.finish(pools, run_end_s, self._first_s) for log in self.logs)

    # ---- who is told

    def _set_hooks(self) -> None:
        sink = together([log for log in self.logs if log.is_open])
        for _, lane in self.lanes:
            lane.log = sink
        for engine in self.system.engines:
            engine.log = sink
        self.blocks.tell(together([log for log in self.logs if log.is_open and log.wanted.blocks]))

    def _pools(self) -> Table:
        config, pools = self.system.config, self.system.pools()
        rows = []
        for tier, name in enumerate(TIERS):
            unit = 1 if name == "vram" else config.offload.unit_blocks
            rows += [
                (
                    tier,
                    number,
                    pool.capacity_blocks,
                    config.engine.block_bytes * unit,
                    config.engine.block_tokens * unit,
                )
                for number, pool in enumerate(pools[name])
            ]
        return dict(zip(POOLS, zip(*rows, strict=True), strict=True))


def named_lanes(system: System) -> list[tuple[str, Lane]]:
    """Return every lane by the name that people read, replicas first."""
    lanes: list[tuple[str, Lane]] = []
    for engine in system.engines:
        lanes += [(f"replica {engine.number} {lane.name}", lane) for lane in (engine.tiers.h2d, engine.tiers.d2h)]
    for number, host in enumerate(system.hosts):
        lanes += [(f"host {number} {lane.name}", lane) for lane in (host.ssd_read, host.ssd_write)]
        lanes += [(f"host {number} {lane.name}", lane) for lane in host.fabric.readers]
    return lanes
