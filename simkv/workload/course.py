"""A workload taken through without serving it: requests last as long as somebody says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from math import inf

from simkv.workload.request import Request, Source

Lasts = Callable[[Request], float]
"""Seconds from a request's arrival to its end, asked for when it arrives."""

END, ARRIVAL = 0, 1


class Course:
    """The arrivals and ends of a source in order of time, each end asking the source what follows.

    The source starts over. Between two events whoever drives it may stop and take what is under way: :meth:`under_way`.
    """

    def __init__(self, source: Source, lasts: Lasts) -> None:
        self.source = source
        self._lasts = lasts
        self._open = source.arrivals()
        self._first: Request | None = next(self._open, None)
        """The next of the open arrivals."""
        self._due: list[tuple[float, int, int, Request]] = []

    @property
    def next_s(self) -> float:
        """When the next event is; infinite where there is none."""
        first = self._first
        return min(first.arrival_s if first is not None else inf, self._due[0][0] if self._due else inf)

    @property
    def arrives(self) -> bool:
        """Whether the next event is an arrival."""
        return self._takes_open() or bool(self._due and self._due[0][1] == ARRIVAL)

    def step(self) -> tuple[float, Request, bool]:
        """Let the next event happen; return when it is, whose it is and whether it is an arrival.

        Raises IndexError where there is none.
        """
        if self._takes_open():
            request = self._first
            assert request is not None
            self._first = next(self._open, None)
            now = request.arrival_s
        else:
            now, kind, _, request = heappop(self._due)
            if kind == END:
                for follower in self.source.after(request, now, True):
                    heappush(self._due, (max(now, follower.arrival_s), ARRIVAL, follower.id, follower))
                return now, request, False
        heappush(self._due, (now + self._lasts(request), END, request.id, request))
        return now, request, True

    def under_way(self) -> Iterator[tuple[float, Request, bool]]:
        """Take the ends to come of what has arrived, and then the arrivals that are due, each in order of time.

        The source is asked at once what follows what ends. Open arrivals stay: :meth:`open`.
        """
        ends = sorted(entry for entry in self._due if entry[1] == END)
        self._due = [entry for entry in self._due if entry[1] == ARRIVAL]
        for now, _, _, request in ends:
            for follower in self.source.after(request, now, True):
                self._due.append((max(now, follower.arrival_s), ARRIVAL, follower.id, follower))
            yield now, request, False
        due, self._due = sorted(self._due), []
        for now, _, _, request in due:
            yield now, request, True

    def open(self) -> Iterator[Request]:
        """Yield the open arrivals that are left."""
        while self._first is not None:
            request, self._first = self._first, next(self._open, None)
            yield request

    def _takes_open(self) -> bool:
        """Say whether the next event is an open arrival; ends come before arrivals, and of these the lowest number."""
        first, due = self._first, self._due
        if first is None:
            return False
        return not due or (first.arrival_s, ARRIVAL, first.id) < due[0][:3]
