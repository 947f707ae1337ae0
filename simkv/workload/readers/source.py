"""A trace file as a source of requests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from simkv.errors import InputError, Problem
from simkv.workload.readers.base import ClassReader, TraceReader
from simkv.workload.readers.extent import expected_lines
from simkv.workload.readers.faults import CHECK_TIMES, LATEST_S
from simkv.workload.readers.order import in_order
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import Request

WALL_CLOCK_S = 86_400.0


class TraceSource:
    """Replays ``path``, read anew at each ``arrivals()``; nothing follows a request.

    Times count from the start of the trace as the file has it, except where the first arrival is
    over a day: that is a clock's time, and is counted from the first arrival. ``report`` is about
    the latest reading, and complete once it has come to its end.
    """

    def __init__(self, path: Path, reader: TraceReader, time_scale: float, limit: int | None, until_s: float) -> None:
        """``time_scale`` multiplies times, ``limit`` takes the first rows, arrivals stay below ``until_s``."""
        self.path = path
        self.reader = reader
        self.report = ReadReport(reader.name)
        self._time_scale = time_scale
        self._limit = limit
        self._until_s = until_s
        self._class_names: tuple[str, ...] | None = None

    @property
    def class_names(self) -> tuple[str, ...]:
        """Every value that ``Request.cls`` can take; where rows name it the file is read for that, once."""
        if self._class_names is None:
            classed = isinstance(self.reader, ClassReader) and self.reader.has_classes(self.path)
            rows = self._rows(ReadReport(self.reader.name)) if classed else ()
            self._class_names = tuple(dict.fromkeys(request.cls for request in rows)) or ("",)
        return self._class_names

    def expected_requests(self) -> int:
        """Return about how many requests there are, for a progress bar."""
        lines = expected_lines(self.path)
        return lines if self._limit is None else min(lines, self._limit)

    def arrivals(self) -> Iterator[Request]:
        """Yield the requests in order of arrival, in file order where times are equal."""
        self.report = report = ReadReport(self.reader.name)
        scale = self._time_scale
        origin_s: float | None = None
        for request in in_order(self._rows(report), self.path, report):
            if origin_s is None:
                origin_s = origin(request.arrival_s, report)
            request.arrival_s = (request.arrival_s - origin_s) * scale
            if request.arrival_s >= self._until_s:
                return
            if request.arrival_s > LATEST_S:
                raise too_late(self.path, f"request {request.id + 1:,}", request.arrival_s)
            yield request
        if origin_s is None:
            raise nothing_served(self.path, report)

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return (): the arrivals of a trace are fixed."""
        return ()

    def content_name(self, stream: int, start: int) -> str:
        """Return what people call a shared stream from token ``start`` on."""
        return self.report.content_name(stream, start)

    def session_over(self, request: Request) -> bool:
        """Return False: any later row may name any content."""
        return False

    def _rows(self, report: ReadReport) -> Iterator[Request]:
        return islice(self.reader.read(self.path, report), self._limit)


def nothing_served(path: Path, report: ReadReport) -> InputError:
    """Return the error that a trace came to its end without a request."""
    left_out = [str(note) for note in report.notes.values() if note.dropped]
    mend = "; ".join(left_out) or "give a trace with at least one row"
    return InputError(Problem("has no request that can be served", mend, file=str(path)))


def too_late(path: Path, what: str, time_s: float) -> InputError:
    """Return the error that ``what`` in a trace comes ``time_s`` after the start of the run."""
    return InputError(Problem(f"{what} would arrive after {time_s:g} s", CHECK_TIMES, file=str(path)))


def origin(first_s: float, report: ReadReport) -> float:
    """Return what times count from where the earliest is ``first_s``; notes where that is a clock's time."""
    if report.clock:
        return first_s
    if first_s <= WALL_CLOCK_S:
        return 0.0
    what = "times are those of a clock: counted from the first arrival"  # rows after it have been read by now
    report.note("wall_clock", what, report.line, place=f"at {first_s:.0f} s")
    return first_s
