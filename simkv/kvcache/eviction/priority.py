"""Lowest priority first, the least recent of those (TensorRT-LLM: ``kvCacheManager``, ``LRUEvictionPolicy``)."""

from __future__ import annotations

from simkv.kvcache.eviction.base import E
from simkv.kvcache.eviction.heaped import Heaped


class Priority(Heaped[E]):
    """Where all priorities are equal it orders as lru; a head that others need is no leaf, whatever its priority."""

    __slots__ = ()

    def rank(self, e: E) -> tuple[int, int]:
        """Return its priority and when it was used last."""
        return e.priority, e.last_use
