"""Requests that wait for a batch."""

from __future__ import annotations

from bisect import insort

from simkv.sim.live import Live


class BatchQueue:
    """The waiting queue: by priority, then in order of arrival."""

    def __init__(self) -> None:
        self.waiting: list[tuple[tuple[int, int], Live]] = []
        self._arrived = 0

    @property
    def queued(self) -> int:
        """How many requests wait."""
        return len(self.waiting)

    def push(self, live: Live) -> None:
        """Add an arrival."""
        self._arrived += 1
        insort(self.waiting, ((live.priority, self._arrived), live))

    def take(self, most: int) -> list[Live]:
        """Remove and return the first ``most`` requests, or as many as there are."""
        taken = [live for _, live in self.waiting[:most]]
        del self.waiting[:most]
        return taken
