"""Simulated time: SimPy's environment with absolute times and fixed tie ranks.

Decisions are callbacks pushed at absolute times (``now + (t - now)`` is not ``t``), and events
at one instant run in the order of their rank, so that no result depends on insertion order.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import simpy
from simpy.events import Event

TRANSFER_RANK = 2
ARRIVAL_RANK = 3
ENGINE_RANK = 10
SAMPLER_RANK = 1 << 30


class Timer(Event):
    """An event that fires at a given time and hands ``payload`` to its callback."""

    _value = None
    _ok = True

    def __init__(self, env: simpy.Environment, callbacks: list[Callable[[Any], None]], payload: Any = None) -> None:
        self.env = env
        self.callbacks = callbacks
        self.payload = payload


class Clock(simpy.Environment):
    """SimPy's environment; time in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._turn_s = -1.0
        self._turn_rank = 0

    def take_turn(self, rank: int) -> None:
        """Note that events of ``rank`` have their turn at this instant."""
        if self._turn_s != self._now:
            self._turn_s = self._now
        elif rank <= self._turn_rank:
            return
        self._turn_rank = rank

    def had_turn(self, rank: int) -> bool:
        """Whether events of ``rank`` at this instant are over: one that comes after them was seen."""
        return self._turn_s == self._now and self._turn_rank > rank

    def until(self, time_s: float, rank: int) -> Timer:
        """Return an event for a process to wait for: it fires at ``time_s`` (absolute, not in the past)."""
        timer = Timer(self, [])
        heappush(self._queue, (time_s, rank, next(self._eid), timer))  # type: ignore[misc]
        return timer

    def at(self, time_s: float, rank: int, call: Callable[[Any], None], payload: Any = None) -> None:
        """Run ``call(timer)`` at ``time_s``; ``timer.payload`` is ``payload``."""
        entry = (time_s, rank, next(self._eid), Timer(self, [call], payload))
        heappush(self._queue, entry)  # type: ignore[misc]

    def drain(self, most: int) -> bool:
        """Process up to ``most`` events; True while there are more. (SimPy's ``step``, without its guard a step.)"""
        queue = self._queue
        while queue and most:
            self._now, _, _, event = heappop(queue)
            callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
            for callback in callbacks:
                callback(event)
            if not event._ok and not hasattr(event, "_defused"):
                raise event._value
            most -= 1
        return bool(queue)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to happen."""
        return not self._queue

    def count_events(self) -> int:
        """Return how many events were scheduled so far (drawing a number of SimPy's own count, which hurts nobody)."""
        return next(self._eid)
