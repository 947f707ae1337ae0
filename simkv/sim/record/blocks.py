"""Which blocks are in which tier, when they come, are used and go, in the windows that record it.

Each tier counts blocks in its own unit (``Recording.pools``). A window that begins in the middle of a run begins with
what is there, the most recently used first, ``most // 2`` extents at most; what that leaves out is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simkv.sim.record.instant import Instant
from simkv.sim.record.labels import Labels
from simkv.sim.record.pools import PoolLog
from simkv.sim.record.recording import TIERS

if TYPE_CHECKING:
    from simkv.sim.record.log import Log
    from simkv.sim.record.names import Names
    from simkv.sim.record.sequences import SequenceLog
    from simkv.sim.record.sink import Sink
    from simkv.sim.system import System


class Blocks:
    """All pools of one run, told to whoever records them."""

    def __init__(self, system: System, names: Names) -> None:
        self.system = system
        self.labels = Labels(system.source, names)
        self.instant = Instant(system.clock)
        pools = system.pools()
        self.pools = [
            PoolLog(pool, tier, number, self.labels, self.instant)
            for tier, name in enumerate(TIERS)
            for number, pool in enumerate(pools[name])
        ]
        self.sequences = self._sequences(names)

    def _sequences(self, names: Names) -> list[SequenceLog]:
        """Return who looks at running sequences, a replica each; active offload is only imported where it is used."""
        if self.system.config.active is None:
            return []
        from simkv.sim.active.engine import ActiveEngine
        from simkv.sim.record.sequences import SequenceLog

        found = []
        by_pool = {one.pool: one for one in self.pools}
        for engine in self.system.engines:
            if not isinstance(engine, ActiveEngine):
                continue
            tiers = engine.tiers
            pools = [by_pool[pool] if pool is not None else None for pool in (tiers.vram, tiers.dram, tiers.ssd)]
            found.append(SequenceLog(engine.store, engine.parts.runner, pools, self.labels, names))
        return found

    def tell(self, sink: Sink | None) -> None:
        """Tell ``sink`` of all that happens from now on; None: nobody.

        Windows end as rows are written, so who is telling at that time may go on with what it is at, to nobody.
        """
        begins = sink is not None and self.instant.sink is None
        self.instant.begin(sink)
        for one in self.pools:
            one.pool.tell(None if sink is None else one)
            if begins:
                one.begin()
        for each in self.sequences:
            each.tell(sink is not None)

    def note(self, now: float) -> None:
        """Note when uses were that have been counted so far; windows that begin later want to know."""
        for one in self.pools:
            one.note(now)

    def snapshot(self, log: Log) -> None:
        """Tell ``log``, whose window begins now, what is there."""
        self.note(log.begin_s)
        left = log.wanted.most // 2
        unnamed: dict[PoolLog, int] = {}
        for each in self.sequences:
            left -= each.snapshot(log, left, unnamed)
        for place, one in enumerate(self.pools):
            told, left_out = one.tell(log, left // (len(self.pools) - place))
            left -= told
            log.leave_out(left_out + unnamed.get(one, 0))
            log.private(log.begin_s, one.tier, one.number, one.private_blocks)

    def settle(self) -> None:
        """The run is over: tell what is left to tell."""
        self.instant.settle()
