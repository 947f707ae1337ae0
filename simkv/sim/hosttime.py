"""CPU time that an engine spends between two steps on the blocks of lower tiers: nothing else of it runs meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from simkv.sim.clock import TRANSFER_RANK, Clock, Timer
from simkv.sim.config import EngineConfig


class HostTime:
    """What the scheduling under way has cost so far; the step after it begins when that is over."""

    def __init__(self, clock: Clock, config: EngineConfig) -> None:
        self._clock = clock
        self._block_s = config.host_block_s
        self._load_s = config.host_load_s
        self._spent_s = 0.0
        self.last_s = 0.0
        """What the scheduling before the step under way cost."""

    def managed(self, blocks: int, loads: bool) -> None:
        """Count a request whose ``blocks`` blocks lower tiers were asked about, and whether it is held for a load."""
        self._spent_s += blocks * self._block_s + loads * self._load_s

    def then(self, start: Callable[[], object]) -> None:
        """Call ``start`` when what has been counted so far is over; now, where nothing has."""
        if self._spent_s:
            self._clock.at(self._clock.now + self._spent_s, TRANSFER_RANK, _call, start)
        else:
            start()

    def take(self) -> float:
        """Return what the scheduling has cost in all; the next one starts from nothing."""
        self.last_s, self._spent_s = self._spent_s, 0.0
        return self.last_s


def _call(timer: Timer) -> None:
    timer.payload()
