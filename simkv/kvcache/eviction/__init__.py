"""Eviction policies, by name."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from simkv.errors import InputError, Problem
from simkv.kvcache.eviction.base import E, Entry, EvictionPolicy
from simkv.kvcache.eviction.fifo import Fifo
from simkv.kvcache.eviction.lfu import Lfu
from simkv.kvcache.eviction.lru import Lru
from simkv.kvcache.eviction.score import Score

__all__ = ["POLICIES", "Entry", "EvictionPolicy", "make_policy"]


def _score(lam: float | None) -> Score[Any]:
    if lam is None:
        raise InputError(Problem("policy score needs a λ", "give a lambda from 0 (lfu) to 1 (lru)"))
    return Score(lam)


POLICIES: dict[str, Callable[[float | None], EvictionPolicy[Any]]] = {
    "lru": lambda lam: Lru(),
    "lfu": lambda lam: Lfu(),
    "fifo": lambda lam: Fifo(),
    "score": _score,
}
"""Every policy's maker, called with λ, which only ``score`` reads."""


def make_policy(name: str, lam: float | None = None) -> EvictionPolicy[E]:
    """Return a new, empty policy; InputError for an unknown name, or a λ that ``score`` can't use."""
    maker = POLICIES.get(name)
    if maker is None:
        near = get_close_matches(name, POLICIES, 1)
        mend = (f"did you mean {near[0]}? " if near else "") + f"valid: {', '.join(POLICIES)}"
        raise InputError(Problem("no such eviction policy", mend, path="eviction", value=name))
    return maker(lam)
