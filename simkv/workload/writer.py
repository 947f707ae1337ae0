"""Writing traces in simkv's own format, which ``readers/own.py`` describes and reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from simkv import files
from simkv.errors import InputError, Problem
from simkv.workload.readers.base import ClassReader, SessionReader
from simkv.workload.readers.faults import LATEST_S, MAX_TIME
from simkv.workload.readers.order import WINDOW_S
from simkv.workload.readers.own import MARK, PRIVATE, VERSION
from simkv.workload.readers.plan import SessionPlan
from simkv.workload.readers.report import ReadReport
from simkv.workload.readers.sessions_source import SessionsSource
from simkv.workload.readers.source import WALL_CLOCK_S, TraceSource, nothing_served
from simkv.workload.request import PRIVATE_STREAM_BASE, Request
from simkv.workload.spec import number
from simkv.workload.tick import Tick, silent, ticked

Line = dict[str, Any]


def header(report: ReadReport, classes: bool = False, sessions: bool = False, time_scale: float = 1.0) -> Line:
    """Return the first line of a trace that was read with ``report``.

    ``classes``: its rows name theirs; ``sessions``: they are turns of sessions. Longer times
    (``time_scale`` above 1) step back further too.
    """
    window_s = report.window_s
    if time_scale > 1:
        window_s = min(MAX_TIME, (WINDOW_S if window_s is None else window_s) * time_scale)
    line: Line = {MARK: VERSION, "source_format": report.format}
    if report.block_tokens is not None:
        line["block_tokens"] = report.block_tokens
    if report.clock:
        line["clock"] = True
    if window_s is not None:
        line["window_s"] = window_s
    if classes:
        line["classes"] = True
    if sessions:
        line["sessions"] = True
    return line


def row(request: Request) -> Line:
    """Return the line of ``request``: what is private at its end is left out, as is what it doesn't have."""
    line: Line = {
        "arrival_s": request.arrival_s,
        "prompt_tokens": request.prompt_tokens,
        "output_tokens": request.output_tokens,
    }
    spans = [(s if s < PRIVATE_STREAM_BASE else PRIVATE, start, length) for s, start, length in request.spans]
    while spans and spans[-1][0] == PRIVATE:
        spans.pop()
    if spans:
        line["spans"] = spans
    if request.session >= 0:
        line["session"], line["turn"] = request.session, request.turn
    if request.cls:
        line["class"] = request.cls
    if request.group >= 0:
        line["group"] = request.group
    return line


def convert(
    source: TraceSource | SessionsSource,
    report: ReadReport,
    out: Path,
    *,
    limit: int | None = None,
    time_scale: float = 1.0,
    force: bool = False,
    tick: Tick = silent,
) -> int:
    """Write the first ``limit`` requests of ``source``, in file order, to ``out``; return how many there were.

    ``report`` is filled as the source is read; ``time_scale`` multiplies times. Raises InputError
    where the source doesn't read well or has no requests, or ``out`` is there (without ``force``).
    """
    scale = number(time_scale, "--time-scale", 0, above=True)
    reader, path = source.reader, source.path
    classes = isinstance(reader, ClassReader) and reader.has_classes(path)
    sessions = isinstance(reader, SessionReader)
    if isinstance(reader, SessionReader):
        lines = turns(reader.sessions(path, report))
    else:
        lines = plain(reader.read(path, report))
    with new_file(out, force=force) as file:
        count = write(file, islice(lines, limit), lambda: header(report, classes, sessions, scale), scale, tick)
        if not count:
            raise nothing_served(path, report)
    return count


def plain(requests: Iterable[Request]) -> Iterator[tuple[Request, Line]]:
    """Yield each request with nothing to add to its line."""
    return ((request, {}) for request in requests)


def turns(plans: Iterable[SessionPlan]) -> Iterator[tuple[Request, Line]]:
    """Yield the requests of ``plans`` in file order, each with what its line says of its turn.

    Sessions are taken one by one, and a turn waits for those that stand before it in the file.
    """
    waiting: list[tuple[int, SessionPlan, int]] = []
    following = 0
    for begun in plans:
        for k, turn in enumerate(begun.turns):
            heappush(waiting, (turn.request.id, begun, k))
        while waiting and waiting[0][0] == following:
            _, plan, k = heappop(waiting)
            following += 1
            yield plan.turns[k].request, turn_line(plan, k)


def turn_line(plan: SessionPlan, k: int) -> Line:
    """Return what the line of turn ``k`` says of it, and the first one of its session; zeros are left out."""
    turn = plan.turns[k]
    line: Line = {"session": plan.number, "turn": k}
    told = {"after": list(turn.after), "pause_s": turn.pause_s, "not_before_s": turn.not_before_s}
    if k == 0:
        told |= {"start_s": plan.start_s, "shares": plan.shares, "alone": plan.alone}
    return line | {key: value for key, value in told.items() if value}


_SCALED = ("pause_s", "not_before_s", "start_s")


def write(
    file: BinaryIO,
    lines: Iterable[tuple[Request, Line]],
    first_line: Callable[[], Line],
    time_scale: float = 1.0,
    tick: Tick = silent,
) -> int:
    """Write requests, with what is added to their lines, to ``file`` and return how many there were.

    ``first_line`` is asked once the first request was read, when the reader knows its file.
    ``time_scale`` multiplies times; those of a wall clock are counted from the first request then, which
    may not be the earliest.
    """
    count, origin_s = 0, 0.0
    for request, more in ticked(lines, tick):
        if count == 0:
            first = first_line()
            if time_scale != 1 and request.arrival_s > WALL_CLOCK_S:
                origin_s = request.arrival_s
                first["clock"] = True
            file.write(orjson.dumps(first, option=orjson.OPT_APPEND_NEWLINE))
        line = row(request) | more
        if time_scale != 1:
            line["arrival_s"] = (request.arrival_s - origin_s) * time_scale
            line |= {key: line[key] * time_scale for key in _SCALED if key in line}
            _check_times(line, time_scale)
        file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        count += 1
    return count


def _check_times(line: Line, time_scale: float) -> None:
    for key in ("arrival_s", *_SCALED):
        if abs(line.get(key, 0.0)) > LATEST_S:
            what = f"makes {key} = {line[key]:g}, beyond the {LATEST_S:g} s that a run can last"
            raise InputError(Problem(what, "give a smaller one", path="--time-scale", value=f"{time_scale:g}"))


@contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Open a file that takes the name ``path`` once it is whole; an error or Ctrl-C leaves nothing behind.

    Raises InputError where ``path`` is there already (unless ``force``) or can't be written.
    """
    check_new(path, force=force)
    try:
        with files.new_file(path) as draft, draft.open("wb") as file:
            yield file
    except OSError as error:
        what = f"can't be written: {files.reason(error)}"
        raise InputError(Problem(what, "name another file", file=str(path))) from error


def check_new(path: Path, *, force: bool = False) -> None:
    """Raise InputError where ``path`` can't become a new file."""
    if path.is_dir():
        raise InputError(Problem("is a folder", "name a file in it", file=str(path)))
    if path.exists() and not force:
        raise InputError(Problem("is there already", "give another name, or --force to replace it", file=str(path)))
    if not path.parent.is_dir():
        raise InputError(Problem("can't be written: its folder doesn't exist", "make it first", file=str(path)))
