"""How much of a workload passes untimed, and what is timed after that: told by the workload alone."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

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


Service = Callable[[Request, int, int], float]
"""Estimates the seconds from a request's arrival to its end, of how many tokens of its prompt are computed, and how
many requests are under way, itself among them."""


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


class Passed:
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
