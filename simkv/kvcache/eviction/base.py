"""What an eviction policy sees of the cache, and what the cache asks of a policy.

A policy orders *candidates*: entries that may be evicted now (resident, not pinned, not in
flight). It keeps no clock and no counters; the caller does. Two rules bind the caller:

- **adds come in order of use**: an entry is added when its last use ends, and the deepest of a
  path first. The order of ``add`` calls is therefore the order of recency, for every policy.
- **frozen while a candidate**: ``uses`` doesn't change between ``add`` and ``discard``. A hit is
  ``discard``, count, ``add``.

Parents are used whenever their children are and are added after them, so a policy that goes by
recency or by frequency meets a child before its parent. A policy for which that isn't so sets
``needs_leaves`` and is offered leaves only.
"""

from __future__ import annotations

from typing import Protocol, TypeVar


class Entry(Protocol):
    """What a policy sees of a cached run of blocks; compared and hashed by identity."""

    uses: int
    """Uses since it entered the cache (in-cache frequency)."""
    last_use: int
    """Sequence number of its last use; strictly increasing over the run."""
    inserted: int
    """Sequence number of its insertion into the cache."""
    depth: int
    """Blocks from the root of its prefix to its end; deeper is nearer the tail."""


E = TypeVar("E", bound=Entry)


class EvictionPolicy(Protocol[E]):
    """Orders candidates for eviction. Deterministic: equal calls, equal victims."""

    needs_leaves: bool
    """True: only leaves of the prefix tree may be added."""

    def add(self, e: E) -> None:
        """Make ``e`` the most recently used candidate; it must not be one yet."""

    def discard(self, e: E) -> None:
        """Forget candidate ``e`` (used again, or evicted); KeyError where it is none."""

    def victim(self) -> E | None:
        """Return the candidate to evict first, None without candidates; changes nothing."""

    def __len__(self) -> int:
        """Return the number of candidates."""
