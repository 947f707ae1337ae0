"""Where the blocks of running sequences lie below VRAM: DRAM while it has room, else SSD."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simkv.kvcache.pool import KVPool
from simkv.sim.tiers import ReplicaTiers

NOWHERE, DRAM, SSD = 0, 1, 2

Blocks = NDArray[np.int64]


class Homes:
    """The homes of one sequence's blocks: which of them have one, and in which tier."""

    __slots__ = ("_number", "_pools", "_promises", "at", "dram", "ssd")

    def __init__(self, tiers: ReplicaTiers, blocks: int) -> None:
        self.at: NDArray[np.int8] = np.zeros(blocks, np.int8)
        """By block: ``NOWHERE``, ``DRAM`` or ``SSD``."""
        self.dram = 0
        self.ssd = 0
        self._pools: tuple[KVPool | None, KVPool | None] = (tiers.dram, tiers.ssd)
        self._promises = tiers.host.promises
        self._number = tiers.dram_number

    def settle(self, blocks: Blocks, lowest: bool = False) -> tuple[int, int] | None:
        """Give every one of ``blocks`` that has none a home, in order: DRAM first (``lowest``: spare SSD first).

        Returns how many went to DRAM and to SSD, or None, changing nothing, where both are short.
        """
        homeless = blocks[self.at[blocks] == NOWHERE]
        free = [pool.available_blocks if pool is not None else 0 for pool in self._pools]
        if len(homeless) > sum(free):
            return None
        first, second = (1, 0) if lowest else (0, 1)
        split = min(len(homeless), free[first], self._promises.spare_ssd(self._number) if lowest else free[first])
        counts = [0, 0]
        counts[first], counts[second] = split, len(homeless) - split
        self.at[homeless[:split]] = first + 1
        self.at[homeless[split:]] = second + 1
        for pool, count in zip(self._pools, counts, strict=True):
            if count:
                assert pool is not None
                pool.take(count)
        self.dram += counts[0]
        self.ssd += counts[1]
        self._promises.on_ssd[self._number] += counts[1]
        return counts[0], counts[1]

    def leave(self, blocks: Blocks) -> None:
        """Give up the homes of ``blocks`` (they moved up; tiers are exclusive)."""
        self._give(self.at[blocks])
        self.at[blocks] = NOWHERE

    def release(self, done: Callable[[], None]) -> None:
        """Give up every home: the sequence is over; ``done`` is called when all are free, here at once."""
        self._give(self.at)
        self.at[:] = NOWHERE
        done()

    def _give(self, places: NDArray[np.int8]) -> None:
        dram, ssd = int(np.count_nonzero(places == DRAM)), int(np.count_nonzero(places == SSD))
        for pool, count in zip(self._pools, (dram, ssd), strict=True):
            if count:
                assert pool is not None
                pool.give(count)
        self.dram -= dram
        self.ssd -= ssd
        self._promises.on_ssd[self._number] -= ssd

    def split(self, blocks: Blocks) -> tuple[int, int]:
        """Return how many of ``blocks`` lie in DRAM and on SSD."""
        places = self.at[blocks]
        return int(np.count_nonzero(places == DRAM)), int(np.count_nonzero(places == SSD))
