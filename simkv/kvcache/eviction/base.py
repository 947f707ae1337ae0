"""What an eviction policy sees of the cache, and what the cache asks of a policy.

A policy orders *candidates*: entries that may be evicted now (resident, not pinned, not in
flight). It keeps no clock and no use counts; the caller does. Three rules bind the caller:

- **adds come in order of use**: an entry is added when its last use ends, and the deepest of a
  path first. The order of ``add`` calls is therefore the order of recency, for every policy.
- **frozen while a candidate**: ``uses`` and ``priority`` don't change between ``add`` and
  ``discard``. A hit is ``discard``, count, ``add``; a pin without use is ``discard``, ``add``.
- **an eviction is** ``victim``, ``discard``, ``evicted``, with nothing between them.

Parents are used whenever their children are and are added after them, so a policy that goes by
recency or by frequency meets a child before its parent. A policy for which that isn't so either
sets ``needs_leaves`` and is offered leaves only (fifo, priority), or ``any_order``: the cache then
evicts the least recent tail below the victim instead (slru, arc, s3fifo).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

DEFAULT_PRIORITY = 35
"""Of 0..100, as TensorRT-LLM has it (``executor::KvCacheRetentionConfig``)."""


class Entry(Protocol):
    """What a policy sees of a cached run of blocks; compared and hashed by identity."""

    @property
    def key(self) -> Hashable:
        """What its first block holds: the same whenever that content comes back."""

    @property
    def blocks(self) -> int:
        """How many blocks it is."""

    @property
    def priority(self) -> int:
        """How much it is worth keeping, 0..100."""

    uses: int
    """Uses since it entered the cache (in-cache frequency)."""
    last_use: int
    """Sequence number of its last use; strictly increasing over the run."""
    inserted: int
    """Sequence number of its insertion into the cache."""
    depth: int
    """Blocks from the root of its prefix to its end; deeper is nearer the tail."""
    queue: int
    """The policy's own note: where it keeps the entry, from 1 up; 0 before the first ``add``."""
    counted: int
    """The policy's own note: how many of ``uses`` it has dealt with."""


E = TypeVar("E", bound=Entry)


class EvictionPolicy(Protocol[E]):
    """Orders candidates for eviction. Deterministic: equal calls, equal victims."""

    needs_leaves: bool
    """True: only leaves of the prefix tree may be added."""
    any_order: bool
    """True: the victim may be a head whose tails are still here."""
    remembers: bool
    """True: ``coming`` and ``trimmed`` tell it something; otherwise they needn't be called."""

    def add(self, e: E) -> None:
        """Make ``e`` the most recently used candidate; it must not be one yet."""

    def discard(self, e: E) -> None:
        """Let ``e`` be no candidate (pinned, used, or about to go); KeyError where it is none."""

    def victim(self) -> E | None:
        """Return the candidate to evict first, None without candidates; changes nothing."""

    def evicted(self, e: E) -> None:
        """Note that ``e`` has left the cache; it was discarded, or never added."""

    def coming(self, key: Hashable) -> None:
        """Note that what ``key`` names is not here and will be added; optional, ahead of ``victim``."""

    def trimmed(self, e: E, blocks: int, key: Hashable) -> None:
        """Note that candidate ``e`` has lost its last ``blocks`` blocks to an eviction, from ``key`` on."""

    def split(self, e: E, upper: E) -> None:
        """Note that ``upper`` has the first blocks of ``e`` now, as often used, and is no candidate yet."""

    def __len__(self) -> int:
        """Return the number of candidates."""


class Forgetful(Generic[E]):
    """What policies share that remember nothing of what has left the cache."""

    __slots__ = ()
    needs_leaves = False
    any_order = False
    remembers = False

    def evicted(self, e: E) -> None:
        """Forget it; it was discarded already."""

    def coming(self, key: Hashable) -> None:
        """Take no notice."""

    def trimmed(self, e: E, blocks: int, key: Hashable) -> None:
        """Take no notice: its place doesn't depend on its size."""

    def split(self, e: E, upper: E) -> None:
        """Take no notice: ``upper`` has the counts that decide its place."""
