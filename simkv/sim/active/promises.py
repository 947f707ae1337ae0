"""Room below VRAM that running sequences are promised, so that what must leave VRAM always has where to go."""

from __future__ import annotations

from simkv.kvcache.pool import KVPool


class Promises:
    """One host's: each replica may use its DRAM pool first, and all of them the SSD."""

    def __init__(self, dram: list[KVPool], ssd: KVPool | None) -> None:
        self._dram = [pool.capacity_blocks for pool in dram] or [0]
        self._ssd = ssd.capacity_blocks if ssd is not None else 0
        self._given = [0] * len(self._dram)

    def most(self, pool: int) -> int:
        """Return the most blocks that one sequence alone could be promised."""
        return self._dram[pool] + self._ssd

    def give(self, pool: int, blocks: int) -> bool:
        """Promise ``blocks`` more to who uses DRAM pool ``pool``; False, promising nothing, where they lack."""
        given = self._given[pool] + blocks
        spilled = sum(max(0, n - room) for n, room in zip(self._given, self._dram, strict=True))
        spilled += max(0, given - self._dram[pool]) - max(0, self._given[pool] - self._dram[pool])
        if spilled > self._ssd:
            return False
        self._given[pool] = given
        return True

    def take_back(self, pool: int, blocks: int) -> None:
        """End a promise of ``blocks``."""
        self._given[pool] -= blocks
        assert self._given[pool] >= 0, "promises below zero"
