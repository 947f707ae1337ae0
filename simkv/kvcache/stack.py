"""LRU at every capacity at once: stack distances (Mattson et al., 1970), in numpy.

LRU holds the ``c`` blocks used last, so a reference hits in every cache larger than the number of
other blocks used since its block was used last: its *stack distance*.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]

FIRST_USE = -1
"""The distance of a reference to a block that was never used before."""


def stack_distances(references: ArrayLike) -> Ints:
    """Return for each reference how many other blocks came between it and the last use of its block.

    Of the references in between, those repeat a block whose own last use lies in between too. They
    are counted for all at once: they are the earlier references whose last use is later.
    """
    blocks: Ints = np.asarray(references, dtype=np.int64)
    last = last_uses(blocks)
    again = np.flatnonzero(last >= 0)
    since = last[again]
    distances = np.full(blocks.size, FIRST_USE, dtype=np.int64)
    distances[again] = again - since - 1 - earlier_and_larger(since)
    return distances


def last_uses(blocks: Ints) -> Ints:
    """Return for each reference where its block was used last before it, -1 for nowhere."""
    order = np.argsort(blocks, kind="stable")
    last = np.full(blocks.size, -1, dtype=np.int64)
    same = blocks[order[1:]] == blocks[order[:-1]]
    last[order[1:][same]] = order[:-1][same]
    return last


def earlier_and_larger(values: Ints) -> Ints:
    """Return for each of some distinct values how many before it are larger.

    Places are halved again and again, as in a merge sort from the top: at each level, of the values
    in order, each in a right half counts those of its left half that come later. O(n log n).
    """
    size = values.size
    count = np.zeros(size, dtype=np.int64)
    places = np.argsort(values, kind="stable")  # in order of value; grouped by halves more finely at each level
    index = np.arange(size)
    for bit in range(max(size - 1, 0).bit_length() - 1, -1, -1):
        right = (places >> bit) & 1 == 1
        start = (index >> (bit + 1)) << (bit + 1)  # of the group: groups are as large as their range of places
        lefts = np.concatenate(([0], np.cumsum(~right)))
        before = lefts[:-1] - lefts[start]  # of the left half, in the group
        in_group = np.minimum(size - start, 1 << bit)
        count[places[right]] += (in_group - before)[right]
        target = start + np.where(right, in_group + index - start - before, before)
        grouped = np.empty_like(places)
        grouped[target] = places
        places = grouped
    return count


class LruCurve:
    """Hits of LRU over capacity."""

    def __init__(self, distances: Ints) -> None:
        """``distances`` are those of :func:`stack_distances`."""
        self.references = int(distances.size)
        self._hits: Ints = np.cumsum(np.bincount(distances[distances != FIRST_USE]), dtype=np.int64)

    @property
    def infinite_hits(self) -> int:
        """Return the hits of a cache that never evicts."""
        return int(self._hits[-1]) if self._hits.size else 0

    @property
    def enough_blocks(self) -> int:
        """Return the smallest capacity that hits as often as one without limit."""
        return int(self._hits.size)

    def hits(self, capacity_blocks: int) -> int:
        """Return the hits with room for so many blocks."""
        if capacity_blocks <= 0 or not self._hits.size:
            return 0
        return int(self._hits[min(capacity_blocks, self._hits.size) - 1])

    def capacity_for(self, hits: int) -> int:
        """Return the smallest capacity with at least ``hits`` hits, which must not be above the infinite ones."""
        return int(np.searchsorted(self._hits, hits)) + 1 if hits > 0 else 0
