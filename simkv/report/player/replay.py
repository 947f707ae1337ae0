"""What lies on each shelf as a recording's rows come about; state without a clock."""

from __future__ import annotations

from collections.abc import Sequence

from simkv.report.player.cells import Cells
from simkv.report.player.ground import GONE, THERE, USED, Pool, Row


def untold(pools: Sequence[Pool], rows: Sequence[Row], cells: Cells) -> list[tuple[int, int]]:
    """Return (pool, cell) of what must have been there as the window began though no row says so: what is used, or
    leaves, before it comes. No more than the recording says that it left out."""
    left = [pool.left_out_blocks * pool.scale for pool in pools]
    told = [bytearray(len(cells.label)) for _ in pools]
    found = []
    for row in rows:
        for cell in cells.of(row):
            if told[row.pool][cell]:
                continue
            told[row.pool][cell] = 1
            size = cells.end[cell] - cells.first[cell]
            if row.what in (USED, GONE) and size <= left[row.pool]:
                left[row.pool] -= size
                found.append((row.pool, cell))
    return found


class Shelves:
    """Which cells each pool holds or has taken room for, and how many blocks that is."""

    def __init__(self, pools: Sequence[Pool], cells: Cells, before: Sequence[tuple[int, int]]) -> None:
        """``before``: what :func:`untold` finds."""
        self._pools = pools
        self._cells = cells
        self._held = [bytearray(len(cells.label)) for _ in pools]
        self._units = [0] * len(pools)
        self._hidden = [0] * len(pools)
        self._came = [0] * len(pools)
        self._left = [0] * len(pools)
        self.private = [0] * len(pools)
        """Blocks that running requests hold for themselves, by pool."""

        for index, pool in enumerate(pools):
            self._units[index] = self._hidden[index] = pool.left_out_blocks * pool.scale
        for index, cell in before:
            self._held[index][cell] = 1
            if cells.drawn[cell] >= 0:
                self._hidden[index] -= cells.end[cell] - cells.first[cell]

    def apply(self, row: Row) -> None:
        """Do what ``row`` says."""
        if row.what == USED:
            return
        held, to = self._held[row.pool], int(row.what != GONE)
        cells = self._cells
        for cell in cells.of(row):
            if held[cell] != to:
                held[cell] = to
                size = cells.end[cell] - cells.first[cell]
                change = size if to else -size
                self._units[row.pool] += change
                if cells.drawn[cell] < 0:
                    self._hidden[row.pool] += change
                if row.what != THERE:
                    (self._came if to else self._left)[row.pool] += size

    def cached(self, pool: int) -> int:
        """Return the blocks of content on a shelf, in its own blocks."""
        return self._units[pool] // self._pools[pool].scale

    def hidden(self, pool: int) -> int:
        """Return how many of these aren't drawn."""
        return self._hidden[pool] // self._pools[pool].scale

    def moved(self, pool: int) -> tuple[int, int]:
        """Return how many blocks of content came to a shelf and left it since the window began."""
        scale = self._pools[pool].scale
        return self._came[pool] // scale, self._left[pool] // scale

    def used(self, pool: int) -> int:
        """Return all blocks that aren't free."""
        return self.cached(pool) + self.private[pool]
