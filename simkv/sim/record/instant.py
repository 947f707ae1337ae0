"""The instant that rows are written at: what is held privately is told once, as it is when the instant is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simkv.sim.clock import Clock

if TYPE_CHECKING:
    from simkv.sim.record.pools import PoolLog
    from simkv.sim.record.sink import Sink


class Instant:
    """Where all pools of a run write their rows."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at_s = 0.0
        self._stale: dict[PoolLog, int] = {}
        self.sink: Sink | None = None
        """Where rows go; None: nowhere."""

    def row(self, pool: PoolLog, what: int, label: int, first: int, end: int, transfer: int) -> None:
        """Write one row of ``blocks`` now."""
        now = self._clock._now
        if now > self._at_s:
            self._go_on(now)
        if self.sink is not None:
            self.sink.blocks(now, pool.tier, pool.number, what, label, first, end, transfer)

    def stale(self, pool: PoolLog) -> None:
        """What ``pool`` holds privately has changed now."""
        now = self._clock._now
        if now > self._at_s:
            self._go_on(now)
        self._stale[pool] = pool.private_blocks

    def begin(self, sink: Sink | None) -> None:
        """Write to ``sink`` from now on; who was told until now is told what is left to tell."""
        self.settle()
        self.sink = sink
        self._at_s = self._clock._now

    def _go_on(self, now: float) -> None:
        self.settle()
        self._at_s = now

    def settle(self) -> None:
        """The instant is over: tell what is held privately since."""
        if not self._stale:
            return
        stale, self._stale = self._stale, {}
        at_s = self._at_s  # who is told may end its window, and then others are told from now on
        for pool, blocks in stale.items():
            if self.sink is not None:
                self.sink.private(at_s, pool.tier, pool.number, blocks)
