"""The waiting queue of one engine: first come first served, or by priority."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from simkv.sim.config import Scheduling
from simkv.sim.live import Live


class WaitingQueue:
    """Requests in the order in which they are to be admitted."""

    def __init__(self, scheduling: Scheduling) -> None:
        self.by_priority = scheduling == "priority"
        self.waiting: list[tuple[tuple[int, int], Live]] = []
        self._arrivals = 0
        self._fronts = 0

    def first(self, count: int) -> list[Live]:
        """Return the first ``count`` waiting requests in order, at a cost that doesn't grow with the queue."""
        waiting = self.waiting
        out: list[Live] = []
        edge = [(waiting[0][0], 0)] if waiting else []
        while edge and len(out) < count:
            _, index = heappop(edge)
            out.append(waiting[index][1])
            for child in (2 * index + 1, 2 * index + 2):
                if child < len(waiting):
                    heappush(edge, (waiting[child][0], child))
        return out

    @property
    def queued(self) -> int:
        """How many requests wait."""
        return len(self.waiting)

    def push(self, live: Live) -> None:
        """Queue an arrival."""
        self._arrivals += 1
        live.order = (live.priority if self.by_priority else 0, self._arrivals)
        self.put_back(live)

    def push_front(self, live: Live) -> None:
        """Queue a preempted request: before all others (priority scheduling: in its old place)."""
        if not self.by_priority:
            self._fronts -= 1
            live.order = (0, self._fronts)
        self.put_back(live)

    def take(self, live: Live) -> None:
        """Take a request out of the queue, quickly where it is the first."""
        if self.waiting[0][1] is live:
            heappop(self.waiting)
        else:
            self.waiting.remove((live.order, live))
            heapify(self.waiting)

    def put_back(self, live: Live) -> None:
        """Queue a request in the place that it has already."""
        heappush(self.waiting, (live.order, live))
