"""Laws checked while a run goes on (``--audit``); INVARIANTS.md lists them by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simkv.errors import LawError
from simkv.kvcache.pool import KVPool
from simkv.sim.active.engine import ActiveEngine
from simkv.sim.active.laws import at_end, breaches, promised

if TYPE_CHECKING:
    from simkv.sim.fabric import Fabric, Lane
    from simkv.sim.system import System

RELATIVE = 1e-9
ROUNDING = 1e-6
"""Of busy seconds: each is the difference of two rounded times, late in a run."""


class Audit:
    """Looks at the clock after every event, at every pool and lane now and then, at all requests in the end."""

    def __init__(self, system: System, every: int = 64) -> None:
        self.system = system
        self.every = every
        self.checks = 0
        self._seen = 0
        self._last_s = 0.0
        self._present = 0
        self._present_time_s = 0.0

    def after_event(self) -> None:
        """Book Little's integral and check what holds between any two events."""
        now = self.system.clock.now
        if now < self._last_s:
            self._broken("L8", "clock", f"went back from {self._last_s} s")
        self._present_time_s += self._present * (now - self._last_s)
        self._last_s = now
        self._present = self._live()
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
            for lane in host.fabric.readers:
                self._lane(f"host {number} {lane.name}", lane)
            self._caps(number, host.fabric)
        self._active()
        live = self._live()
        if system.arrived != system.finished + system.rejected + live:
            self._broken("L1", "requests", f"{system.arrived} in, {system.finished} finished, {live} live")

    def finish(self) -> None:
        """Check what must hold once everything has ended."""
        self.check()
        system = self.system
        for number, engine in enumerate(system.engines):
            if engine.pool.private_blocks or self._live():
                self._broken("L4", f"replica {number}", "the run ended with requests in it")
            for law, what in at_end(engine) if isinstance(engine, ActiveEngine) else ():
                self._broken(law, f"replica {number}", what)
        sojourn_s = system.recorder.sojourn_s
        if abs(self._present_time_s - sojourn_s) > RELATIVE * max(1.0, sojourn_s):
            self._broken("L10", "Little", f"requests present {self._present_time_s} s, their sojourns {sojourn_s} s")
        self._released()
        self._carried()

    def _active(self) -> None:
        """Look at what running sequences keep below VRAM."""
        engines = [engine for engine in self.system.engines if isinstance(engine, ActiveEngine)]
        for engine in engines:
            for law, what in breaches(engine):
                self._broken(law, f"replica {engine.number}", what)
        for number, host in enumerate(self.system.hosts):
            stores = [engine.store for engine in engines if engine.tiers.host is host]
            for law, what in promised(stores, host.promises):
                self._broken(law, f"host {number}", what)

    def _released(self) -> None:
        """Nobody is there, so nothing is held anywhere."""
        for tier, pools in self.system.pools().items():
            if any(pool.private_blocks or pool.index.evictable_blocks != pool.index.resident_blocks for pool in pools):
                self._broken("L4", tier.upper(), "blocks are held, and nobody is there to hold them")

    def _carried(self) -> None:
        """What was hit below VRAM and what was written down went over a lane."""
        system = self.system
        block_bytes, block_tokens = system.config.engine.block_bytes, system.config.engine.block_tokens
        moved, written = system.moved_bytes(), system.tier_written_blocks()
        own = [carried for engine in system.engines if (carried := engine.carried_bytes()) is not None]
        if own:
            self._as_asked(moved, own)
            return
        hit = system.recorder.requests.total("hit_dram_tokens") + system.recorder.requests.total("hit_ssd_tokens")
        if moved["h2d"] * block_tokens < hit * block_bytes:
            self._broken("L21", "h2d", f"{moved['h2d']} bytes loaded for {hit} tokens hit below VRAM")
        if moved["d2h"] + moved["ssd_read"] != written["dram"] * block_bytes:
            self._broken("L21", "DRAM", f"{written['dram']} blocks written, {moved['d2h'] + moved['ssd_read']} bytes")
        if moved["ssd_write"] != written["ssd"] * block_bytes:
            self._broken("L21", "SSD", f"{written['ssd']} blocks written, {moved['ssd_write']} bytes")

    def _as_asked(self, moved: dict[str, int], own: list[dict[str, int]]) -> None:
        """Engines that move KV themselves: the lanes carried what they asked for, and nothing else did."""
        for lane in ("h2d", "d2h", "ssd_read", "ssd_write"):
            asked = sum(carried[lane] for carried in own)
            if moved[lane] != asked:
                self._broken("L21", lane, f"{moved[lane]} bytes carried, {asked} asked for")

    def _live(self) -> int:
        """Requests in the system, counted where they are (not from the records)."""
        return sum(engine.live_requests for engine in self.system.engines)

    def _pool(self, name: str, pool: KVPool) -> None:
        try:
            pool.check_integrity()
        except AssertionError as error:
            self._broken("L3", name, str(error))

    def _lane(self, name: str, lane: Lane) -> None:
        if lane.submitted_bytes != lane.delivered_bytes + lane.in_flight_bytes():
            self._broken("L6", name, f"{lane.submitted_bytes} bytes in, {lane.delivered_bytes} out")
        busy_s = lane.busy_until(self.system.clock.now)
        if lane.delivered_bytes > lane.bytes_per_s * (busy_s * (1 + ROUNDING) + ROUNDING):
            self._broken("L20", name, f"{lane.delivered_bytes} bytes in {busy_s} busy seconds")

    def _caps(self, number: int, fabric: Fabric) -> None:
        """Lanes that share something carry no more than it does."""
        for lanes, cap in fabric.caps():
            rate = sum(lane.rate for lane in lanes if lane.active is not None)
            if rate > cap * (1 + RELATIVE):
                names = ", ".join(lane.name for lane in lanes)
                self._broken("L22", f"host {number}, {names}", f"{rate} bytes/s where {cap} is the most")

    def _private(self, number: int) -> None:
        """Blocks that requests hold add up to what the pool says is private."""
        engine = self.system.engines[number]
        held = engine.held_blocks
        if held != engine.pool.private_blocks:
            self._broken("L3", f"replica {number}", f"{engine.pool.private_blocks} private, requests hold {held}")

    def _broken(self, law: str, thing: str, what: str) -> None:
        raise LawError(f"law {law} broken at {self.system.clock.now:.9g} s, {thing}: {what}")
