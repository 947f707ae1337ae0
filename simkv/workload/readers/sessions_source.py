"""Recorded sessions as a source: when they start is open, what follows within them is not."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import islice, repeat, takewhile
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from simkv.workload.readers.base import SessionReader
from simkv.workload.readers.faults import LATEST_S
from simkv.workload.readers.plan import RunningSession, SessionPlan
from simkv.workload.readers.report import ReadReport
from simkv.workload.readers.source import too_late
from simkv.workload.request import Request

if TYPE_CHECKING:
    from simkv.workload.starts import Times


class SessionsSource:
    """Replays sessions in a closed loop: a turn arrives its pause after what it waits for has ended.

    A turn that was turned away counts as ended, so a session goes on without it. A file or folder
    is read session by session, as they start, and anew at each ``arrivals()``; ``report`` is about
    the latest reading, and complete once the last session has started.
    """

    def __init__(
        self,
        path: Path,
        reader: SessionReader,
        time_scale: float = 1.0,
        limit: int | None = None,
        until_s: float = inf,
        starts: Times | None = None,
        gaps: Times | None = None,
    ) -> None:
        """``time_scale`` multiplies recorded times, ``limit`` takes the first sessions.

        ``starts`` are the times at which sessions start (None: as recorded); ``gaps``, the pauses of
        users between two sessions: where they are given, each session that ends is followed by one.
        """
        self.path = path
        self.reader = reader
        self.report = ReadReport(reader.name)
        self._time_scale = time_scale
        self._limit = limit
        self._until_s = until_s
        self._starts = starts
        self._make_gaps = gaps
        self._restart()

    @property
    def class_names(self) -> tuple[str, ...]:
        """Every value that ``Request.cls`` can take."""
        return ("",)

    def expected_requests(self) -> int:
        """Return about how many requests there are, for a progress bar."""
        return self.reader.expected_requests(self.path, self._limit)

    def arrivals(self) -> Iterator[Request]:
        """Yield the turns that wait for none, session by session in order of arrival; each call starts over."""
        self._restart()
        return self._arrivals()

    def _arrivals(self) -> Iterator[Request]:
        due: list[tuple[float, int, Request]] = []
        for start_s, known in self._starting():
            while due and due[0][0] <= start_s:
                yield heappop(due)[2]
            plan = known or next(self._plans, None)
            if plan is None:
                break
            for request in self._begin(plan, start_s):
                heappush(due, (request.arrival_s, request.id, request))
        while due:
            yield heappop(due)[2]

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return the turns that ``request`` held up, or in a closed loop its user's next session."""
        session = self._live[request.session]
        followers = tuple(session.ended(request, ended_s))
        if session.left:
            return followers
        del self._live[request.session]
        if self._gaps is None:
            return followers
        start_s = ended_s + next(self._gaps)
        plan = next(self._plans, None) if start_s < self._until_s else None
        return followers if plan is None else tuple(self._begin(plan, start_s))

    def content_name(self, stream: int, start: int) -> str:
        """Return what people call a shared stream from token ``start`` on."""
        return self.report.content_name(stream, start)

    def session_over(self, request: Request) -> bool:
        """Return whether all turns of the session have ended, and no other session names its content."""
        return request.session not in self._live and request.session not in self._sharing

    def _restart(self) -> None:
        self.report = ReadReport(self.reader.name)
        self._plans = islice(self.reader.sessions(self.path, self.report), self._limit)
        self._gaps = self._make_gaps() if self._make_gaps is not None else None
        self._live: dict[int, RunningSession] = {}
        self._sharing: set[int] = set()

    def _starting(self) -> Iterator[tuple[float, SessionPlan | None]]:
        """Yield the starts of sessions before the run's end, with the session where it says so itself."""
        starts: Iterator[tuple[float, SessionPlan | None]]
        if self._starts is None:
            starts = ((plan.start_s * self._time_scale, plan) for plan in self._plans)
        else:
            starts = zip(self._starts(), repeat(None), strict=False)
        return takewhile(lambda start: start[0] < self._until_s, starts)

    def _begin(self, plan: SessionPlan, start_s: float) -> Iterator[Request]:
        longest_s = max(max(turn.pause_s, turn.not_before_s) for turn in plan.turns) * self._time_scale
        if start_s + longest_s > LATEST_S:
            raise too_late(self.path, f"a turn of session {plan.number}", start_s + longest_s)
        session = self._live[plan.number] = RunningSession(plan, start_s, self._time_scale)
        if plan.shares:
            self._sharing.add(plan.number)
        return session.first()
