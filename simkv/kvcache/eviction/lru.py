"""Least recently used first."""

from __future__ import annotations

from collections import OrderedDict

from simkv.kvcache.eviction.base import E, Forgetful


class Lru(Forgetful[E]):
    """An ordered dict whose front is the least recent; every operation is O(1).

    (A plain dict keeps order too, but finding its front walks over all that was deleted there.)
    """

    __slots__ = ("_order",)

    def __init__(self) -> None:
        self._order: OrderedDict[E, None] = OrderedDict()

    def add(self, e: E) -> None:
        """Append ``e``: the most recent candidate."""
        self._order[e] = None

    def discard(self, e: E) -> None:
        """Forget candidate ``e``."""
        del self._order[e]

    def victim(self) -> E | None:
        """Return the least recently used candidate."""
        return next(iter(self._order), None)

    def __len__(self) -> int:
        return len(self._order)
