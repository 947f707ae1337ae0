"""A source of requests that are already there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from simkv.workload.request import Request


class FixedSource:
    """Replays a list of requests, in order of arrival (ties in the order given); nothing follows."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self._requests = sorted(requests, key=lambda r: r.arrival_s)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Every value that ``Request.cls`` can take, in order of first appearance."""
        return tuple(dict.fromkeys(r.cls for r in self._requests)) or ("",)

    def arrivals(self) -> Iterator[Request]:
        """Yield the requests; each call starts over."""
        return iter(self._requests)

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return (): nothing follows."""
        return ()

    def session_over(self, request: Request) -> bool:
        """Return False: any request of the list may name any content."""
        return False
