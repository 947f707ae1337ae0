"""Putting rows into order of arrival without holding the file.

Logs are written by several processes, or when a request ends, so times step back a little (the
Azure traces: by up to a minute). Such rows are moved to where they belong, in file order where
times are equal, as long as they step back no further than a window; beyond it the file is
refused, since it can only be sorted whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from math import inf
from pathlib import Path

from simkv.errors import InputError, Problem
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import Request

WINDOW_S = 120.0
WINDOW_ROWS = 65_536


def in_order(requests: Iterable[Request], path: Path, report: ReadReport) -> Iterator[Request]:
    """Yield ``requests`` sorted by arrival, stably, holding at most the window; notes each step back.

    Ids must rise in file order. Raises InputError for a row that comes later than the window allows.
    """
    held = _Held()
    newest_s = released_s = -inf
    for request in requests:
        if request.arrival_s >= newest_s:
            newest_s = request.arrival_s
            held.rising.append(request)
        elif request.arrival_s < released_s:
            raise _too_late(request, newest_s, path, report)
        else:
            report.note("out_of_order", "arrives before a row above it: moved to its place", report.line)
            heappush(held.late, (request.arrival_s, request.id, request))
        window_s = WINDOW_S if report.window_s is None else report.window_s
        while held.rising[0].arrival_s < newest_s - window_s or len(held) > WINDOW_ROWS:
            released = held.pop()
            released_s = released.arrival_s
            yield released
    while len(held):
        yield held.pop()


class _Held:
    """Rows that wait: those that came in order, and a heap of those that came late."""

    def __init__(self) -> None:
        self.rising: deque[Request] = deque()
        self.late: list[tuple[float, int, Request]] = []

    def __len__(self) -> int:
        return len(self.rising) + len(self.late)

    def pop(self) -> Request:
        """Take the earliest, of equals the first in the file."""
        if self.late and (not self.rising or self.late[0][:2] < (self.rising[0].arrival_s, self.rising[0].id)):
            return heappop(self.late)[2]
        return self.rising.popleft()


def _too_late(request: Request, newest_s: float, path: Path, report: ReadReport) -> InputError:
    what = f"steps back by {newest_s - request.arrival_s:g} s"
    window_s = WINDOW_S if report.window_s is None else report.window_s
    mend = f"sort the file by it: steps of over {window_s:g} s or {WINDOW_ROWS:,} rows are not mended while reading"
    value = f"{request.arrival_s:g} s" + (" from the first row" if report.clock else "")
    return InputError(Problem(what, mend, file=str(path), line=report.line, path=report.time_key, value=value))
