"""Room below VRAM that running sequences are promised, so that what must leave VRAM always has where to go.

Each replica fills its DRAM pool first and then the host's SSD, which all share. What one has promised may end up on
SSD as far as it is more than its DRAM, and what lies there already stays: so much of the SSD is spoken for.
"""

from __future__ import annotations

from collections.abc import Callable

from simkv.kvcache.pool import KVPool


class Promises:
    """One host's."""

    def __init__(self, dram: list[KVPool], ssd: KVPool | None) -> None:
        self._dram = [pool.capacity_blocks for pool in dram] or [0]
        self._ssd = ssd.capacity_blocks if ssd is not None else 0
        self.given = [0] * len(self._dram)
        """By DRAM pool, blocks promised to who uses it."""
        self.on_ssd = [0] * len(self._dram)
        """By DRAM pool, blocks on SSD of who uses it."""
        self.taken_back: list[Callable[[], None]] = []
        """Called when promises end: somebody may have waited for that."""

    def most(self, pool: int) -> int:
        """Return the most blocks that one sequence alone could be promised."""
        return self._dram[pool] + self._ssd

    def give(self, pool: int, blocks: int) -> bool:
        """Promise ``blocks`` more to who uses DRAM pool ``pool``; False, promising nothing, where they lack."""
        spoken_for = self._spoken_for(pool, self.given[pool] + blocks)
        if spoken_for + self._others(pool) > self._ssd:
            return False
        self.given[pool] += blocks
        return True

    def spare_ssd(self, pool: int) -> int:
        """Return how many more blocks who uses ``pool`` may put on SSD without need."""
        return self._ssd - self._others(pool) - self.on_ssd[pool]

    def take_back(self, pool: int, blocks: int) -> None:
        """End a promise of ``blocks``."""
        self.given[pool] -= blocks
        assert self.given[pool] >= 0, "promises below zero"
        for call in self.taken_back:
            call()

    def _spoken_for(self, pool: int, given: int) -> int:
        return max(self.on_ssd[pool], given - self._dram[pool])

    def _others(self, pool: int) -> int:
        return sum(self._spoken_for(other, n) for other, n in enumerate(self.given) if other != pool)
