"""What has left the cache not long ago, by the key of its content."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable


class Ghosts:
    """Keys in order of eviction, each with how many blocks went under it."""

    __slots__ = ("blocks", "members")

    def __init__(self) -> None:
        self.members: OrderedDict[Hashable, int] = OrderedDict()
        """Key → blocks, the oldest first."""
        self.blocks = 0

    def add(self, key: Hashable, blocks: int) -> None:
        """Remember ``key`` as the newest."""
        self.blocks += blocks - self.members.pop(key, 0)
        self.members[key] = blocks

    def take(self, key: Hashable) -> bool:
        """Return whether ``key`` is remembered, and forget it."""
        if key not in self.members:
            return False
        self.blocks -= self.members.pop(key)
        return True

    def drop_oldest(self) -> None:
        """Forget the oldest."""
        self.blocks -= self.members.popitem(last=False)[1]
