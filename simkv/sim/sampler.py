"""The time series: samples at a fixed interval that doubles as the run grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simkv.sim.clock import SAMPLER_RANK, Timer

if TYPE_CHECKING:
    from simkv.sim.system import System

MOST_SAMPLES = 1024
FIRST_INTERVAL_S = 0.25


class Sampler:
    """Looks at the system without changing it; a run's end keeps at most ``MOST_SAMPLES`` rows."""

    def __init__(self, system: System, interval_s: float | None) -> None:
        self.system = system
        self.interval_s = interval_s or FIRST_INTERVAL_S
        self.ticks = 0
        self._begin_s = 0.0

    def start(self, begin_s: float) -> None:
        """Take the first sample at ``begin_s``, when the first request arrives: nothing is to be seen before."""
        self._begin_s = begin_s
        self.system.clock.at(begin_s, SAMPLER_RANK, self._tick)

    def _tick(self, timer: Timer) -> None:
        system = self.system
        if system.clock.is_idle and self.ticks:
            return  # nothing else will ever happen
        self._sample()
        self.ticks += 1
        rows = system.recorder.samples.rows
        if len(rows) >= MOST_SAMPLES:
            del rows[1::2]
            self.interval_s *= 2
            self.ticks = self.ticks // 2 + self.ticks % 2
        next_s = max(system.clock.now, self._begin_s + self.ticks * self.interval_s)
        if system.windows is not None:
            system.windows.tick(system.clock.now, next_s)
        system.clock.at(next_s, SAMPLER_RANK, self._tick)

    def _sample(self) -> None:
        system = self.system
        now = system.clock.now
        system.clock.take_turn(SAMPLER_RANK)
        engines, hosts, unit_blocks = system.engines, system.hosts, system.config.offload.unit_blocks
        for engine in engines:
            engine.sync()
            engine.gauge.update(now)
        busy = system.busy_s(now)
        moved = system.moved_bytes()
        system.recorder.samples.append(
            (
                now,
                sum(engine.scheduler.queued for engine in engines),
                sum(len(engine.running) for engine in engines),
                sum(engine.gauge.held for engine in engines),
                sum(engine.pool.used_blocks - engine.pool.index.evictable_blocks for engine in engines),
                sum(engine.pool.index.evictable_blocks for engine in engines),
                sum(pool.used_blocks for host in hosts for pool in host.dram) * unit_blocks,
                sum(host.ssd.used_blocks for host in hosts if host.ssd) * unit_blocks,
                busy["gpu"],
                busy["h2d"],
                busy["d2h"],
                busy["ssd_read"],
                busy["ssd_write"],
                moved["dram"],
                moved["h2d"],
                moved["d2h"],
                moved["ssd_read"],
                moved["ssd_write"],
                system.finished,
            )
        )

    def finish(self) -> None:
        """Take the last sample."""
        self._sample()

    def mean_used(self) -> dict[str, float]:
        """Mean share of each tier's capacity in use over the samples."""
        rows = np.array(self.system.recorder.samples.rows)
        capacity = self.system.tier_capacity_blocks()
        used = {"vram": rows[:, 4] + rows[:, 5], "dram": rows[:, 6], "ssd": rows[:, 7]}
        return {tier: float(used[tier].mean() / capacity[tier]) if capacity[tier] else 0.0 for tier in used}
