"""Carries one block out: its bytes go over the host's lanes, its computation takes the GPU, a barrier ends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simkv.formulas.placement import Block
from simkv.formulas.placement.blocks import Chain, Leg, Stage, stages
from simkv.sim.batchmode.config import BatchConfig
from simkv.sim.clock import Clock, Timer
from simkv.sim.fabric import NEXT_STEP, WRITE_BACK, Lane
from simkv.sim.gauge import Gauge
from simkv.sim.tiers import ReplicaTiers

_PRIORITY = dict.fromkeys(("h2d", "ssd_read", "cpu", "copy"), NEXT_STEP) | dict.fromkeys(
    ("d2h", "ssd_write"), WRITE_BACK
)
_WITHIN_DRAM = ("cpu", "copy")


class BlockRunner:
    """Runs the stages of a block one after the other, the chains of a stage side by side."""

    def __init__(
        self, clock: Clock, batch: BatchConfig, tiers: ReplicaTiers, gauge: Gauge, rank: int, chunk_bytes: int
    ) -> None:
        self.clock = clock
        self.batch = batch
        self.gauge = gauge
        self.rank = rank
        fabric = tiers.host.fabric
        own = {name: Lane(fabric, name, batch.rates.lane(name)[0], 0.0, chunk_bytes) for name in _WITHIN_DRAM}
        for lane in own.values():
            fabric.add_reader(lane)
        self.lanes: dict[str, Lane] = {
            "h2d": tiers.h2d,
            "d2h": tiers.d2h,
            "ssd_read": tiers.host.ssd_read,
            "ssd_write": tiers.host.ssd_write,
            **own,
        }
        self.sent_bytes = dict.fromkeys(self.lanes, 0)
        """Bytes handed to each lane so far."""
        self._stages: list[Stage] = []
        self._open = 0
        """Chains of the stage that haven't ended."""
        self._done: Callable[[], None] = lambda: None

    def run(self, block: Block, done: Callable[[], None]) -> None:
        """Start ``block``; ``done()`` is called behind its barrier, never before this returns."""
        self._stages = stages(block, self.batch.layer, self.batch.policy, self.batch.rates)[::-1]
        self._done = done
        self._next_stage()

    def _next_stage(self, timer: Timer | None = None) -> None:
        if not self._stages:
            self._later(lambda _: self._done())
            return
        stage = self._stages.pop()
        self._open = len(stage)
        for chain in stage:
            self._walk(chain, 0)

    def _walk(self, chain: Chain, place: int) -> None:
        """Start leg ``place`` of a chain, or end the chain."""
        if place == len(chain):
            self._open -= 1
            if not self._open:
                self._later(self._next_stage)
            return
        leg = chain[place]
        if leg.lane == "gpu":
            self._compute(leg.amount, lambda: self._walk(chain, place + 1))
        else:
            self._send(leg, lambda: self._walk(chain, place + 1))

    def _send(self, leg: Leg, done: Callable[[], None]) -> None:
        lane, nbytes = self.lanes[leg.lane], int(leg.amount)
        self.sent_bytes[leg.lane] += nbytes
        lane.submit(nbytes, int(leg.lane not in _WITHIN_DRAM), _PRIORITY[leg.lane], done, most_bytes_per_s=leg.most)

    def _compute(self, seconds: float, done: Callable[[], None]) -> None:
        now = self.clock.now
        self.gauge.update(now)
        self.gauge.busy = True

        def ended(timer: Timer) -> None:
            self.gauge.update(self.clock.now)
            self.gauge.busy = False
            done()

        self.clock.at(now + seconds, self.rank, ended)

    def _later(self, call: Callable[[Any], None]) -> None:
        """Go on in this engine's turn at this instant: what arrives now is there by then."""
        self.clock.at(self.clock.now, self.rank, call)
