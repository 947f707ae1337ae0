"""Laws checked while a run goes on (``--audit``); INVARIANTS.md lists them by id.

Steps of an engine: :mod:`simkv.sim.audit_steps`; transfers and bytes by tier: :mod:`simkv.sim.audit_moves`; active
offload: :mod:`simkv.sim.active.laws`.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, NoReturn

from simkv.errors import LawError, broken_law
from simkv.kvcache.integrity import Breach
from simkv.kvcache.pool import KVPool
from simkv.sim.active.engine import ActiveEngine
from simkv.sim.active.laws import at_end, breaches, promised
from simkv.sim.audit_moves import Moves, held_blocks_are_here
from simkv.sim.audit_steps import StepWatch
from simkv.sim.engine import Engine

if TYPE_CHECKING:
    from simkv.sim.fabric import Fabric, Lane
    from simkv.sim.system import System
    from simkv.sim.tiers import Host

RELATIVE = 1e-9
ROUNDING = 1e-6
"""Of busy seconds: each is the difference of two rounded times, late in a run."""
EVENTS = 64
"""At least so many events pass between two looks at everything."""
NODES_AN_EVENT = 8
"""And so many for each node of an index looked at: the looks cost about as much as the events between them."""


class Audit:
    """Looks at clock and steps after every event, at every pool and lane now and then, at all requests in the end."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.every: int | None = None
        """Events between two looks at everything; None: the more, the more there is to look at."""
        self.checks = 0
        self._distance = EVENTS
        self._seen = 0
        self._last_s = 0.0
        self._present = 0
        self._present_time_s = 0.0
        self._nodes = 0
        self._moves = Moves(system)
        cost = deepcopy(system.config.cost)  # asked by the audit alone: some costs note what they were asked
        plain = [engine for engine in system.engines if isinstance(engine, Engine)]
        self._steps = [StepWatch(engine, cost, self._broken) for engine in plain]

    def drain(self, most: int) -> bool:
        """Process up to ``most`` events and look up after each; True while there are more."""
        drain = self.system.clock.drain
        for _ in range(most):
            more = drain(1)
            self.after_event()
            if not more:
                return False
        return True

    def after_event(self) -> None:
        """Book Little's integral and check what holds between any two events."""
        now = self.system.clock._now
        if now != self._last_s:
            if now < self._last_s:
                self._broken("L8", "clock", f"went back from {self._last_s} s")
            self._present_time_s += self._present * (now - self._last_s)
            self._last_s = now
        self._present = self._live()
        for steps in self._steps:
            steps.look(now)
        self._seen += 1
        if self._seen >= (self.every or self._distance):
            self.check()

    def check(self) -> None:
        """Check every law that can be checked between two events."""
        self.checks += 1
        self._nodes = self._seen = 0
        system = self.system
        for number, engine in enumerate(system.engines):
            if isinstance(engine, Engine):
                for law, thing, what in held_blocks_are_here(engine):
                    self._broken(law, f"replica {number}, {thing}", what)
            self._lane(f"replica {number} h2d", engine.tiers.h2d)
            self._lane(f"replica {number} d2h", engine.tiers.d2h)
            self._pool(f"replica {number} VRAM", engine.pool, engine.tiers.host)
            self._private(number)
        for number, host in enumerate(system.hosts):
            for pool in host.dram:
                self._pool(f"host {number} DRAM", pool, host)
            if host.ssd is not None:
                self._pool(f"host {number} SSD", host.ssd, host)
            self._lane(f"host {number} ssd_read", host.ssd_read)
            self._lane(f"host {number} ssd_write", host.ssd_write)
            for lane in host.fabric.readers:
                self._lane(f"host {number} {lane.name}", lane)
            self._caps(number, host.fabric)
        self._active()
        for law, thing, what in self._moves.under_way():
            self._broken(law, thing, what)
        live = self._live()
        if system.arrived != system.finished + system.rejected + live:
            what = f"{system.arrived} in, {system.finished} finished, {system.rejected} rejected, {live} live"
            self._broken("L1", "requests", what)
        self._distance = max(EVENTS, self._nodes // NODES_AN_EVENT)

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
        for law, thing, what in self._moves.at_end():
            self._broken(law, thing, what)
        for steps in self._steps:
            steps.finish()

    def _active(self) -> None:
        """Look at what running sequences keep below VRAM."""
        engines = [engine for engine in self.system.engines if isinstance(engine, ActiveEngine)]
        if not engines:
            return
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

    def _live(self) -> int:
        """Requests in the system, counted where they are (not from the records)."""
        return sum([engine.live_requests for engine in self.system.engines])

    def _pool(self, name: str, pool: KVPool, host: Host) -> None:
        try:
            looked = pool.check_integrity()
        except Breach as breach:
            self._broken(breach.law, name, str(breach))
        except AssertionError as error:
            self._broken("L3", name, str(error))
        self._nodes += looked.nodes
        waiters = self._moves.ledger_of(host).waiters
        for transfer in looked.transfers:
            if transfer not in waiters:
                self._broken("L5", name, f"blocks are on their way by transfer {transfer}, which is over")

    def _lane(self, name: str, lane: Lane) -> None:
        if lane.submitted_bytes != lane.delivered_bytes + lane.in_flight_bytes():
            what = f"{lane.submitted_bytes} bytes in, {lane.delivered_bytes} out, {lane.in_flight_bytes()} in flight"
            self._broken("L6", name, what)
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
            what = f"{engine.pool.private_blocks} private, requests hold {held}"
            self._broken("L3", f"replica {number} VRAM", what)

    def _broken(self, law: str, thing: str, what: str) -> NoReturn:
        raise LawError(broken_law(law, self.system.clock.now, thing, what))
