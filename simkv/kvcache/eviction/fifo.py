"""First in, first out: the oldest insertion first, whatever was used since."""

from __future__ import annotations

from simkv.kvcache.eviction.base import E
from simkv.kvcache.eviction.heaped import Heaped


class Fifo(Heaped[E]):
    """A parent is older than its children, and goes after them all the same: it is no leaf before."""

    __slots__ = ()

    def rank(self, e: E) -> tuple[int, int]:
        """Return when it came in, the deeper first of what came at once."""
        return e.inserted, -e.depth
