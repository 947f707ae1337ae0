"""Caches under independent references, beside the approximations of their hit rates."""

from __future__ import annotations

import numpy as np

from simkv.formulas import cache
from simkv.kvcache.eviction import make_policy
from simkv.kvcache.pool import KVPool
from simkv.kvcache.replay import replay
from simkv.validation.asks.queue_sections import Fifo, Lru

NEAR = 0.02
"""How near an approximation is taken to be: its own error (below 1 % where capacity and items aren't few), what
chance leaves at some 100,000 references, and the misses that fill the cache."""


def lru(asked: Lru) -> dict[str, float]:
    """Hit rate of LRU, beside Che's approximation."""
    references, popularity = _references(asked)
    if asked.through == "pool":
        hits, _ = through_pool(references, asked.capacity)
    else:
        hits = replay(references, asked.capacity, make_policy("lru"))
    return _beside(hits, asked, cache.lru_hit_rate(popularity, asked.capacity))


def fifo(asked: Fifo) -> dict[str, float]:
    """Hit rate of FIFO, beside the approximation of Fricker, Robert and Roberts."""
    references, popularity = _references(asked)
    hits = replay(references, asked.capacity, make_policy("fifo"))
    return _beside(hits, asked, cache.fifo_hit_rate(popularity, asked.capacity))


def _beside(hits: int, asked: Lru | Fifo, oracle: float) -> dict[str, float]:
    return {"hit_rate": hits / asked.references, "hit_rate.expected": oracle, "hit_rate.tolerance": NEAR}


def _references(asked: Lru | Fifo) -> tuple[list[int], list[float]]:
    popularity = cache.zipf(asked.items, asked.exponent)
    rng = np.random.default_rng(asked.seed)
    drawn: list[int] = rng.choice(asked.items, asked.references, p=popularity).tolist()
    return drawn, popularity


def through_pool(references: list[int], capacity: int) -> tuple[int, KVPool]:
    """Return the hits of prompts of one block each, and the pool that they went through: the kind that runs have."""
    pool = KVPool(capacity, 1, "lru")
    hits = 0
    for item in references:
        spans = ((item, 0, 1),)
        match = pool.index.match(spans, 1)
        hits += match.end
        handle = pool.index.pin(match)
        if not match.end:
            pool.take(1)
            handle, _ = pool.commit(handle, spans, 1)
        pool.index.unpin(handle)
    pool.check_integrity()
    return hits, pool
