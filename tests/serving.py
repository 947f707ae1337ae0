"""A source served without a server: each request takes its time, all of them at once."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from simkv.workload.request import Request, Source


@dataclass
class Served:
    """What became of the requests of a run without a server: each takes its time, all at once."""

    requests: list[Request] = field(default_factory=list)
    ends_s: dict[int, float] = field(default_factory=dict)
    over: list[int] = field(default_factory=list)
    """Sessions in the order in which the source said that they were over."""

    def starts(self) -> list[tuple[int, float]]:
        return sorted((r.id, round(r.arrival_s, 6)) for r in self.requests)


def serve(
    source: Source, service_s: Callable[[Request], float], rejects: Callable[[Request], bool] | None = None
) -> Served:
    served = Served()
    ends: list[tuple[float, int, Request]] = []
    open_arrivals = source.arrivals()
    coming = next(open_arrivals, None)
    clock_s = 0.0
    while coming is not None or ends:
        if coming is not None and (not ends or coming.arrival_s <= ends[0][0]):
            assert coming.arrival_s >= clock_s
            clock_s = coming.arrival_s
            arrived, coming = (coming,), next(open_arrivals, None)
        else:
            clock_s, _, done = heapq.heappop(ends)
            served.ends_s[done.id] = clock_s
            arrived = source.after(done, clock_s, not (rejects and rejects(done)))
            if source.session_over(done):
                served.over.append(done.session)
            assert all(request.arrival_s >= clock_s for request in arrived)
        for request in arrived:
            served.requests.append(request)
            takes_s = 0.0 if rejects and rejects(request) else service_s(request)
            heapq.heappush(ends, (request.arrival_s + takes_s, request.id, request))
    return served


def tens(request: Request) -> float:
    return 10.0
