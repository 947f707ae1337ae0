"""Prompt tokens that wait for a replica, by how urgent they are."""

from __future__ import annotations

from simkv.sim.config import Scheduling
from simkv.sim.live import Live


class Backlog:
    """Tokens to compute of requests that wait or are held, hits not taken off; first come first served: one level."""

    __slots__ = ("_by_priority", "_tokens")

    def __init__(self, scheduling: Scheduling) -> None:
        self._by_priority = scheduling == "priority"
        self._tokens: dict[int, int] = {}

    def add(self, live: Live) -> None:
        """Count what ``live``, which waits from now on, has to compute."""
        level = live.priority if self._by_priority else 0
        self._tokens[level] = self._tokens.get(level, 0) + live.target

    def remove(self, live: Live) -> None:
        """Count ``live`` no longer; its ``target`` is what it was when it was added."""
        self._tokens[live.priority if self._by_priority else 0] -= live.target

    def ahead_of(self, live: Live) -> int:
        """Return the tokens that a newcomer would come after."""
        if not self._by_priority:
            return self._tokens.get(0, 0)
        return sum(tokens for level, tokens in self._tokens.items() if level <= live.priority)
