"""What has left the cache not long ago, by the key of its content."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable


class Ghosts:
    """Keys in order of eviction, each with how many blocks went under it."""

    __slots__ = ("_members", "blocks")

    def __init__(self) -> None:
        self._members: OrderedDict[Hashable, int] = OrderedDict()
        self.blocks = 0

    def add(self, key: Hashable, blocks: int) -> None:
        """Remember ``key`` as the newest."""
        self.take(key)
        self._members[key] = blocks
        self.blocks += blocks

    def take(self, key: Hashable) -> bool:
        """Return whether ``key`` is remembered, and forget it."""
        blocks = self._members.pop(key, 0)
        self.blocks -= blocks
        return blocks > 0

    def drop_oldest(self) -> None:
        """Forget the oldest."""
        self.blocks -= self._members.popitem(last=False)[1]

    def __len__(self) -> int:
        return len(self._members)
