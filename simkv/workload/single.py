"""Sources of single requests: open arrivals, and a closed loop of users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice, takewhile

from simkv.workload.bodies import Body, PlainBodies
from simkv.workload.request import Request


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a workload ends: after ``requests`` in all, and before ``duration_s``; None: no bound."""

    requests: int | None
    duration_s: float | None

    def open(self, arrival_s: float) -> bool:
        """Return whether a request may still arrive at ``arrival_s``."""
        return self.duration_s is None or arrival_s < self.duration_s


class OpenSource:
    """Single requests at times that don't depend on the run."""

    def __init__(self, content: PlainBodies, times: Callable[[], Iterator[float]], limits: Limits) -> None:
        self._content = content
        self._times = times
        self._limits = limits

    @property
    def class_names(self) -> tuple[str, ...]:
        """Every value that ``Request.cls`` can take."""
        return self._content.classes.names

    def arrivals(self) -> Iterator[Request]:
        """Yield the requests in order of arrival; each call starts over."""
        times = self._times()
        if self._limits.duration_s is not None:
            times = takewhile(self._limits.open, times)
        drawn = zip(count(), times, self._content.bodies(), strict=False)
        for i, arrival_s, (prompt, output, spans, cls, group) in islice(drawn, self._limits.requests):
            yield Request(i, arrival_s, prompt, output, spans, -1, 0, cls, group)

    def stored(self) -> Iterator[Request]:
        """Yield the requests whose prompts lower tiers hold when the run begins."""
        return _stored(self._content, self._limits)

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return (): nothing follows."""
        return ()

    def content_name(self, stream: int, start: int) -> str:
        """Return what people call a shared stream."""
        return self._content.content_name(stream, start)

    def session_over(self, request: Request) -> bool:
        """Return False: there are no sessions."""
        return False


class ClosedSource:
    """``users`` users who each send their next request a think time after the former ended.

    The i-th request sent has the i-th lengths, whoever sends it, so compared runs do the same work.
    """

    def __init__(self, content: PlainBodies, users: int, thinks: Callable[[], Iterator[float]], limits: Limits) -> None:
        self._content = content
        self._users = users
        self._make_thinks = thinks
        self._limits = limits
        self._restart()

    @property
    def class_names(self) -> tuple[str, ...]:
        """Every value that ``Request.cls`` can take."""
        return self._content.classes.names

    def arrivals(self) -> Iterator[Request]:
        """Yield each user's first request, all at 0; each call starts the workload over."""
        self._restart()
        if self._limits.open(0.0):
            for i, body in list(islice(self._bodies, self._users)):
                yield self._request(i, 0.0, body)

    def stored(self) -> Iterator[Request]:
        """Yield the requests whose prompts lower tiers hold when the run begins."""
        return _stored(self._content, self._limits)

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return the user's next request, also where the former was rejected; () past the limits."""
        arrival_s = ended_s + next(self._thinks)
        if not self._limits.open(arrival_s):
            return ()
        for i, body in self._bodies:
            return (self._request(i, arrival_s, body),)
        return ()

    def content_name(self, stream: int, start: int) -> str:
        """Return what people call a shared stream."""
        return self._content.content_name(stream, start)

    def session_over(self, request: Request) -> bool:
        """Return False: there are no sessions."""
        return False

    def _restart(self) -> None:
        self._thinks = self._make_thinks()
        self._bodies = islice(enumerate(self._content.bodies()), self._limits.requests)

    @staticmethod
    def _request(i: int, arrival_s: float, body: Body) -> Request:
        prompt, output, spans, cls, group = body
        return Request(i, arrival_s, prompt, output, spans, -1, 0, cls, group)


def _stored(content: PlainBodies, limits: Limits) -> Iterator[Request]:
    if not content.stored:
        return
    for i, (prompt, output, spans, cls, group) in enumerate(islice(content.bodies(), limits.requests)):
        if content.is_stored(i):
            yield Request(i, 0.0, prompt, output, spans, -1, 0, cls, group)
