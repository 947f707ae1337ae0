"""Laws checked while a run goes on (``--audit``); INVARIANTS.md lists them by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simkv.errors import SimkvError
from simkv.sim.clock import SAMPLER_RANK, Timer

if TYPE_CHECKING:
    from simkv.sim.fabric import Lane
    from simkv.sim.system import System


class LawBroken(SimkvError):
    """A law of the model doesn't hold: a fault of simkv's."""


class Audit:
    """Looks at every pool and lane after every so many events, and at all requests in the end."""

    def __init__(self, system: System, every: int = 64) -> None:
        self.system = system
        self.every = every
        self.checks = 0
        self._seen = 0
        self._last_s = 0.0

    def after_event(self) -> None:
        """Look at the clock after every event, at everything else now and then."""
        now = self.system.clock.now
        if now < self._last_s:
            self._broken("clock", "time", f"went back from {self._last_s} s")
        self._last_s = now
        self._seen += 1
        if self._seen % self.every == 0:
            self.check()

    def check(self) -> None:
        """Check every law that can be checked between two events."""
        self.checks += 1
        system = self.system
        for number, engine in enumerate(system.engines):
            self._pool(f"replica {number} VRAM", engine.pool)
            self._lane(f"replica {number} h2d", engine.tiers.h2d)
            self._lane(f"replica {number} d2h", engine.tiers.d2h)
            self._private(number)
        for number, host in enumerate(system.hosts):
            for pool in host.dram:
                self._pool(f"host {number} DRAM", pool)
            if host.ssd is not None:
                self._pool(f"host {number} SSD", host.ssd)
            self._lane(f"host {number} ssd_read", host.ssd_read)
            self._lane(f"host {number} ssd_write", host.ssd_write)
        live = sum(
            len(engine.running) + len(engine.scheduler.waiting) + engine.gauge.held for engine in system.engines
        )
        if system.arrived != system.finished + system.rejected + live:
            self._broken("requests", "system", f"{system.arrived} in, {system.finished} out, {live} live")

    def _pool(self, name: str, pool: object) -> None:
        try:
            pool.check_integrity()  # type: ignore[attr-defined]
        except AssertionError as error:
            self._broken("blocks", name, str(error))

    def _lane(self, name: str, lane: Lane) -> None:
        if lane.submitted_bytes != lane.delivered_bytes + lane.in_flight_bytes():
            self._broken("bytes", name, f"{lane.submitted_bytes} in, {lane.delivered_bytes} out")

    def _private(self, number: int) -> None:
        """Blocks that requests hold add up to what the pool says is private."""
        engine = self.system.engines[number]
        held = 0
        for live in engine.running:
            if live.step0 < 0:
                held += live.blocks_held
            else:
                assert live.handle is not None
                tokens = live.context(max(engine._allocated, live.step0))
                held += -(-tokens // engine.config.block_tokens) - live.handle.end
        loading = engine.pool.private_blocks - held
        if loading < 0 or (loading and not engine.gauge.held):
            self._broken("blocks", f"replica {number}", f"{engine.pool.private_blocks} private, requests hold {held}")

    def finish(self) -> None:
        """Check what must hold once everything has ended."""
        self.check()
        system = self.system
        for number, engine in enumerate(system.engines):
            if engine.pool.private_blocks or engine.running or engine.scheduler.waiting or engine.gauge.held:
                self._broken("requests", f"replica {number}", "the run ended with requests in it")

    def _broken(self, law: str, thing: str, what: str) -> None:
        raise LawBroken(f"law of {law} broken at {self.system.clock.now:.9g} s, {thing}: {what}")


__all__ = ["SAMPLER_RANK", "Audit", "LawBroken", "Timer"]
