"""Eviction policies, by name; ``base`` says what the cache and a policy expect of each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from simkv.errors import InputError, Problem, unknown
from simkv.kvcache.eviction.arc import Arc
from simkv.kvcache.eviction.base import DEFAULT_PRIORITY, E, Entry, EvictionPolicy
from simkv.kvcache.eviction.counts import Counter, CountMode, Decayed, InCache, Lifetime
from simkv.kvcache.eviction.fifo import Fifo
from simkv.kvcache.eviction.lfu import Lfu
from simkv.kvcache.eviction.lru import Lru
from simkv.kvcache.eviction.priority import Priority
from simkv.kvcache.eviction.s3fifo import S3Fifo
from simkv.kvcache.eviction.score import Score
from simkv.kvcache.eviction.slru import Slru

__all__ = [
    "COUNTING",
    "COUNT_MODES",
    "DEFAULT_LAMBDA",
    "DEFAULT_PRIORITY",
    "POLICIES",
    "CountMode",
    "Entry",
    "EvictionPolicy",
    "make_policy",
]

COUNT_MODES: tuple[CountMode, ...] = get_args(CountMode)
COUNTING = ("lfu", "score")
"""Policies that go by how often something was used."""
DEFAULT_LAMBDA = 0.7
"""Of ``score``, where nobody says."""


@dataclass(frozen=True)
class _Parameters:
    lam: float | None
    capacity_blocks: int | None
    count: CountMode
    half_life_uses: float | None

    def counter(self) -> Counter[Any]:
        """Return a new counter of uses."""
        if self.count not in COUNT_MODES:
            raise unknown("way to count uses", str(self.count), COUNT_MODES, "count")
        if self.count != "decayed":
            return InCache() if self.count == "in_cache" else Lifetime()
        if self.half_life_uses is None or not 0 < self.half_life_uses < float("inf"):
            value = "" if self.half_life_uses is None else str(self.half_life_uses)
            mend = "say after how many uses of anything a use counts half, such as 10000"
            raise InputError(Problem("decayed counts need a half life above zero", mend, path="half_life", value=value))
        return Decayed(self.half_life_uses)


def _score(given: _Parameters) -> Score[Any]:
    if given.lam is None:
        raise InputError(Problem("policy score needs a λ", "give a lambda from 0 (lfu) to 1 (lru)"))
    return Score(given.lam, given.counter())


POLICIES: dict[str, Callable[[_Parameters], EvictionPolicy[Any]]] = {
    "lru": lambda given: Lru(),
    "lfu": lambda given: Lfu(given.counter()),
    "fifo": lambda given: Fifo(),
    "slru": lambda given: Slru(given.capacity_blocks),
    "arc": lambda given: Arc(given.capacity_blocks),
    "s3fifo": lambda given: S3Fifo(given.capacity_blocks),
    "score": _score,
    "priority": lambda given: Priority(),
}
"""Every policy's maker; each takes the parameters that mean something to it."""


def make_policy(
    name: str,
    lam: float | None = None,
    *,
    capacity_blocks: int | None = None,
    count: CountMode = "in_cache",
    half_life_uses: float | None = None,
) -> EvictionPolicy[E]:
    """Return a new, empty policy; InputError for an unknown name, or for parameters that it can't use.

    ``lam`` is for ``score``; ``count`` and ``half_life_uses`` (with ``decayed``) for ``score`` and
    ``lfu``; ``capacity_blocks`` for ``slru``, ``arc``, ``s3fifo``: without it they take for the
    capacity the most that was ever here.
    """
    maker = POLICIES.get(name)
    if maker is None:
        raise unknown("eviction policy", name, POLICIES, "eviction")
    return maker(_Parameters(lam, capacity_blocks, count, half_life_uses))
