"""A workload whose beginning passes untimed, and that goes on from there in a run's own time.

How much passes is told by the workload alone, never by what it is served on: runs that are compared time the same
requests, whatever their tiers hold. The workload is taken through twice: once to find how much passes, and which
requests are timed after that; once for whoever watches the beginning, up to the point of handing over.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import merge
from math import inf
from typing import Literal, Protocol

from simkv import units
from simkv.errors import InputError, Problem
from simkv.workload.ceiling import Ceiling
from simkv.workload.course import Course
from simkv.workload.request import Request, Source
from simkv.workload.settled import Settling

FIRST_LOOK = 512
MOST_REQUESTS = 65_536
"""``auto`` lets no more pass: half as many again from look to look, until what came in between is settled."""
UNBOUNDED = 1_000_000_000
"""Timed requests from which on all that come are."""
MOST_ASKED = 2_000_000
"""Of a given time."""
PATH = "run.warm_tiers"


Service = Callable[[Request, int, int], float]
"""Estimates the seconds from a request's arrival to its end, of how many tokens of its prompt are computed, and how
many requests are under way, itself among them."""


class Watcher(Protocol):
    """Who sees what passes."""

    def arrived(self, request: Request) -> None:
        """``request`` arrives."""

    def ended(self, request: Request, over: bool) -> None:
        """A request that arrived ends; ``over``: no request will name its session's content again."""


@dataclass(frozen=True, slots=True)
class Passing:
    """What passes before the timed run, and what is timed."""

    requests: int
    until_s: float
    """In the workload's own time: where the timed run begins."""
    settled: bool | None
    """Whether longer would change nothing relevant; None for a recording, and where a time was asked for."""
    fresh_tokens: array[float]
    """Tokens that nothing before named, summed up over the requests that pass."""
    service_s: array[float]
    """How long each of them is assumed to be served."""
    tokens: int
    """Prompt and output tokens of all that pass."""
    timed: frozenset[int] | None
    """Ids of the timed requests; None: all that come."""
    last_s: float
    """When the last of them arrives as estimated; infinite where all that come are timed."""

    def first_for(self, tokens: float) -> int:
        """Return from which request on at least ``tokens`` tokens that nothing before named pass; 0 for too few."""
        if not self.requests:
            return 0
        return bisect_left(self.fresh_tokens, self.fresh_tokens[-1] - tokens) if tokens < self.fresh_tokens[-1] else 0

    @property
    def fresh_share(self) -> float:
        """Share of the tokens of the second half of what passes that nothing before named."""
        passed = self.fresh_tokens
        return 2 * (passed[-1] - passed[len(passed) // 2]) / self.tokens if self.tokens else 0.0

    @property
    def mean_tokens(self) -> float:
        """Mean length of what passes."""
        return self.tokens / max(1, self.requests)


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
        passed = _Passed(self.original, self._service)
        if amount != "auto":
            if not passed.to_time(amount):
                raise self._too_long(
                    f"more than {MOST_ASKED:,} requests would pass untimed", "shorten it, or write auto"
                )
        elif self._endless:
            settled = passed.to_steady_state()
        else:
            passed.to_number(min(MOST_REQUESTS, self._count() // 2))
        requests, until_s = passed.requests, passed.next_arrival_s() if amount == "auto" else amount
        service_s, fresh_tokens, tokens = passed.service_s[:], passed.fresh_tokens[:], passed.tokens
        timed, last_s = self._timed(passed)
        return Passing(requests, until_s, settled, fresh_tokens, service_s, tokens, timed, last_s)

    def _too_long(self, what: str, mend: str) -> InputError:
        value = self._amount if isinstance(self._amount, str) else units.exact(self._amount, "time")
        return InputError(Problem(what, mend, file=self._file, path=PATH, value=f'"{value}"'))

    def _count(self) -> int:
        course, requests = Course(self.original, lambda request: self._service(request, request.prompt_tokens, 1)), 0
        while course.next_s < inf:
            requests += course.step()[2]
        return requests

    def _timed(self, passed: _Passed) -> tuple[frozenset[int] | None, float]:
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


class _Passed:
    """What has passed of a source so far, and what was new in it."""

    def __init__(self, source: Source, service: Service) -> None:
        self.course = Course(source, self._lasts)
        self.requests = self.tokens = 0
        self.fresh_tokens: array[float] = array("d")
        self.service_s: array[float] = array("d")
        self._service = service
        self._under_way = 0
        self._fresh_tokens = 0.0
        self._ceiling = Ceiling(1)
        self._settling = Settling()

    def to_time(self, until_s: float) -> bool:
        """Let everything before ``until_s`` pass; return False where that is more than anybody waits for."""
        while self.course.next_s < until_s and self.requests <= MOST_ASKED:
            self.step()
        return self.requests <= MOST_ASKED

    def to_number(self, requests: int) -> None:
        """Let so many requests pass, or all where there are fewer."""
        while self.requests < requests and self.course.next_s < inf:
            self.step()

    def to_steady_state(self) -> bool:
        """Let pass what it takes; return False where that was more than is let pass."""
        self.to_number(FIRST_LOOK)
        self._settling.stretch()
        while self.requests < MOST_REQUESTS and self.course.next_s < inf:
            self.to_number(min(MOST_REQUESTS, self.requests + self.requests // 2))
            if self._settling.stretch():
                return True
        return False

    def next_arrival_s(self) -> float:
        """Let pass what ends before the next arrival, and return when that is."""
        course = self.course
        while course.next_s < inf and not course.arrives:
            self.step()
        return course.next_s

    def step(self) -> tuple[float, Request, bool]:
        """Let the next event happen and return it."""
        now, request, arrives = self.course.step()
        self._under_way -= not arrives
        if not arrives and request.session >= 0 and self.course.source.session_over(request):
            self._ceiling.forget(request)
            self._settling.over(request)
        return now, request, arrives

    def _lasts(self, request: Request) -> float:
        """Look at what arrives, and return how long it is assumed to be served."""
        self.requests += 1
        self._settling.add(request)
        seen = self._ceiling.add_uncapped(request)
        tokens = request.prompt_tokens + request.output_tokens
        self.tokens += tokens
        self._fresh_tokens += tokens - seen
        self.fresh_tokens.append(self._fresh_tokens)
        self._under_way += 1
        service_s = self._service(request, max(1, request.prompt_tokens - seen), self._under_way)
        self.service_s.append(service_s)
        return service_s
