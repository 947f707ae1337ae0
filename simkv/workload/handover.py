"""A workload whose beginning passes untimed, and that goes on from there in a run's own time.

How much passes is told by the workload alone, never by what it is served on: runs that are compared time the same
requests, whatever their tiers hold. The workload is taken through twice: once to find how much passes, and which
requests are timed after that; once for whoever watches the beginning, up to the point of handing over.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from math import inf
from typing import Literal, Protocol

from simkv import units
from simkv.errors import InputError, Problem
from simkv.workload.course import Course
from simkv.workload.passing import MOST_ASKED, MOST_REQUESTS, UNBOUNDED, Passed, Passing, Service
from simkv.workload.request import Named, Request, Source

PATH = "run.warm_tiers"


class Watcher(Protocol):
    """Who sees what passes."""

    def arrived(self, request: Request) -> None:
        """``request`` arrives."""

    def ended(self, request: Request, over: bool) -> None:
        """A request that arrived ends; ``over``: no request will name its session's content again."""


class Handover:
    """A source that lets the beginning of another one pass and goes on with the rest, its times counted from there.

    A session that is under way goes on with its next turn when that is due, and users with their next request. What
    is being served at that moment counts as served, at the end that was estimated for it.
    """

    def __init__(
        self,
        original: Source,
        amount: float | Literal["auto"],
        service: Service,
        requests: int | None,
        endless: bool,
        file: str = "",
    ) -> None:
        """``amount``: seconds of the workload, or ``auto``; ``service`` estimates how long a request is served.

        ``requests``: how many are timed, None: all. ``endless``: the original draws as many as it is asked for; else
        it is a recording, of which at most the first half passes under ``auto``. ``file``: of the scenario, for errors.
        """
        self.original = original
        self._amount = amount
        self._service = service
        self._requests = requests
        self._endless = endless
        self._file = file
        self._passing: Passing | None = None
        self._course: Course | None = None

    @property
    def class_names(self) -> tuple[str, ...]:
        """Every value that ``Request.cls`` can take."""
        return self.original.class_names

    @property
    def expected_requests(self) -> int | None:
        """About how many requests are timed, for a progress bar; None where nobody knows yet."""
        return self._requests

    @property
    def passing(self) -> Passing:
        """What passes and what is timed, found once. Raises InputError where nothing is left to be timed."""
        if self._passing is None:
            self._passing = self._find()
        return self._passing

    def replay(self, watcher: Watcher | None = None) -> None:
        """Start over and let the beginning pass, for ``watcher`` to see; :meth:`arrivals` goes on from there."""
        passing = self.passing
        assumed = iter(passing.service_s)
        course = self._course = Course(self.original, lambda request: next(assumed))
        left = passing.requests
        while left or course.next_s < passing.until_s:
            _, request, arrives = course.step()
            left -= arrives
            if watcher is not None:
                self._show(watcher, request, arrives)
        self._due = self._hand_over(course, watcher)

    def arrivals(self) -> Iterator[Request]:
        """Yield the timed requests that follow no timed answer; without :meth:`replay` before it starts over."""
        if self._course is None:
            self.replay()
        course, self._course = self._course, None
        assert course is not None
        timed = self.passing.timed
        for request in merge(self._due, self._open(course), key=lambda request: request.arrival_s):
            if timed is None or request.id in timed:
                yield request

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return the timed requests that follow ``request``."""
        until_s, timed = self.passing.until_s, self.passing.timed
        followers = self.original.after(request, ended_s + until_s, finished)
        for follower in followers:
            follower.arrival_s = max(ended_s, follower.arrival_s - until_s)
        return tuple(follower for follower in followers if timed is None or follower.id in timed)

    def session_over(self, request: Request) -> bool:
        """Return whether no request will name the content of ``request``'s session again."""
        return self.original.session_over(request)

    def content_name(self, stream: int, start: int) -> str:
        """Return what people call a shared stream."""
        return self.original.content_name(stream, start) if isinstance(self.original, Named) else ""

    # ---- handing over

    def _show(self, watcher: Watcher, request: Request, arrives: bool) -> None:
        if arrives:
            watcher.arrived(request)
        else:
            watcher.ended(request, request.session >= 0 and self.original.session_over(request))

    def _hand_over(self, course: Course, watcher: Watcher | None) -> list[Request]:
        """End what is under way and return what is due after it, in time of the run."""
        due = []
        for at_s, request, arrives in course.under_way():
            if arrives:
                request.arrival_s = max(0.0, at_s - self.passing.until_s)
                due.append(request)
            elif watcher is not None:
                self._show(watcher, request, False)
        return due

    def _open(self, course: Course) -> Iterator[Request]:
        for request in course.open():
            if request.arrival_s > self.passing.last_s:
                return
            request.arrival_s = max(0.0, request.arrival_s - self.passing.until_s)
            yield request

    # ---- how much passes

    def _find(self) -> Passing:
        amount, settled = self._amount, None
        half = self._count() // 2 if amount == "auto" and not self._endless else 0
        passed = Passed(self.original, self._service)
        if amount != "auto":
            if not passed.to_time(amount):
                what = f"more than {MOST_ASKED:,} requests would pass untimed"
                raise self._too_long(what, "shorten it, or write auto")
        elif self._endless:
            settled = passed.to_steady_state()
        else:
            passed.to_number(min(MOST_REQUESTS, half))
        requests, until_s = passed.requests, passed.next_arrival_s() if amount == "auto" else amount
        service_s, fresh_tokens, tokens = passed.service_s[:], passed.fresh_tokens[:], passed.tokens
        timed, last_s = self._timed(passed)
        return Passing(requests, until_s, settled, fresh_tokens, service_s, tokens, timed, last_s)

    def _too_long(self, what: str, mend: str) -> InputError:
        value = self._amount if isinstance(self._amount, str) else units.exact(self._amount, "time")
        return InputError(Problem(what, mend, file=self._file, path=PATH, value=f'"{value}"'))

    def _count(self) -> int:
        """Take the whole workload through, and return how many requests it has."""
        course, requests = Course(self.original, lambda request: self._service(request, request.prompt_tokens, 1)), 0
        while course.next_s < inf:
            requests += course.step()[2]
        return requests

    def _timed(self, passed: Passed) -> tuple[frozenset[int] | None, float]:
        """Return the ids of the timed requests and when the last of them arrives, as estimated."""
        if passed.next_arrival_s() == inf:
            what = f"the whole workload, {passed.requests:,} requests, passes untimed, and nothing is left to be timed"
            raise self._too_long(what, "shorten it, or lengthen the workload")
        if self._requests is None or self._requests >= UNBOUNDED:
            return None, inf
        last_s = 0.0
        ids: list[int] = []
        while len(ids) < self._requests and passed.course.next_s < inf:
            now, request, arrives = passed.step()
            if arrives:
                ids.append(request.id)
                last_s = now
        return frozenset(ids), last_s
