"""Ranks in a queue that grows at its end and loses members anywhere."""

from __future__ import annotations

from typing import Generic

from simkv.kvcache.eviction.base import E

_CHUNK_BITS = 9
_CHUNK = 1 << _CHUNK_BITS


class RecencyRanks(Generic[E]):
    """Members in order of arrival, and how many present members came before a given one.

    A member owns a slot; slots are flags in a bytearray with a count of members a chunk.
    Appending and removing are O(1), a rank sums whole chunks and counts flags in one. When
    most slots are vacant the members are numbered afresh.
    """

    __slots__ = ("_counts", "_flags", "slot_of")

    def __init__(self) -> None:
        self.slot_of: dict[E, int] = {}
        """Each member's slot, in order of arrival; a lower slot arrived earlier."""
        self._flags = bytearray()
        self._counts: list[int] = []

    def append(self, e: E) -> None:
        """Let ``e`` in at the end."""
        slot = len(self._flags)
        if slot > 2 * len(self.slot_of) + 8 * _CHUNK:
            self._renumber()
            slot = len(self._flags)
        self.slot_of[e] = slot
        self._flags.append(1)
        if slot & (_CHUNK - 1):
            self._counts[-1] += 1
        else:
            self._counts.append(1)

    def remove(self, e: E) -> None:
        """Let ``e`` go; KeyError where it isn't in."""
        slot = self.slot_of.pop(e)
        self._flags[slot] = 0
        self._counts[slot >> _CHUNK_BITS] -= 1

    def rank(self, slot: int) -> int:
        """Return how many members came before the one in ``slot``."""
        chunk = slot >> _CHUNK_BITS
        return sum(self._counts[:chunk]) + self._flags.count(1, chunk << _CHUNK_BITS, slot)

    def _renumber(self) -> None:
        size = len(self.slot_of)
        self.slot_of = {e: slot for slot, e in enumerate(self.slot_of)}
        self._flags = bytearray(b"\1") * size
        self._counts = [_CHUNK] * (size >> _CHUNK_BITS)
        if size & (_CHUNK - 1):
            self._counts.append(size & (_CHUNK - 1))

    def __len__(self) -> int:
        return len(self.slot_of)
