"""Writing traces in simkv's own format, which ``readers/own.py`` describes and reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from simkv.errors import InputError, Problem
from simkv.workload.readers.base import ClassReader
from simkv.workload.readers.own import MARK, PRIVATE, VERSION
from simkv.workload.readers.report import ReadReport
from simkv.workload.readers.sessions_source import SessionsSource
from simkv.workload.readers.source import WALL_CLOCK_S, TraceSource
from simkv.workload.request import PRIVATE_STREAM_BASE, Request
from simkv.workload.spec import number

Tick = Callable[[int], None]
"""Told now and then how many requests were written."""

_TICK_EVERY = 512


def header(report: ReadReport, classes: bool = False) -> dict[str, Any]:
    """Return the first line of a trace that was read with ``report``; ``classes``: its rows name theirs."""
    line: dict[str, Any] = {MARK: VERSION, "source_format": report.format}
    if report.block_tokens is not None:
        line["block_tokens"] = report.block_tokens
    if report.clock:
        line["clock"] = True
    if classes:
        line["classes"] = True
    return line


def row(request: Request) -> dict[str, Any]:
    """Return the line of ``request``: what is private at its end is left out, as is what it doesn't have."""
    line: dict[str, Any] = {
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
    tick: Tick = lambda _: None,
) -> int:
    """Write the first ``limit`` requests of ``source``, in file order, to ``out``; return how many there were.

    ``report`` is filled as the source is read; ``time_scale`` multiplies times. Raises InputError
    where the source doesn't read well or has no requests, or ``out`` is there (without ``force``).
    """
    scale = number(time_scale, "--time-scale", 0, above=True)
    classes = isinstance(source.reader, ClassReader) and source.reader.has_classes(source.path)
    with new_file(out, force=force) as file:
        requests = islice(source.reader.read(source.path, report), limit)
        count = write_requests(file, requests, lambda: header(report, classes), scale, tick)
        if not count:
            raise InputError(Problem("has no request that can be served", file=str(source.path)))
    return count


def write_requests(
    file: BinaryIO,
    requests: Iterable[Request],
    first_line: Callable[[], dict[str, Any]],
    time_scale: float = 1.0,
    tick: Tick = lambda _: None,
) -> int:
    """Write ``requests`` to ``file`` and return how many there were.

    ``first_line`` is asked once the first request was read, when the reader knows its file.
    ``time_scale`` multiplies times; those of a wall clock are counted from the first request then.
    """
    count, origin_s = 0, 0.0
    for request in requests:
        if count == 0:
            file.write(orjson.dumps(first_line(), option=orjson.OPT_APPEND_NEWLINE))
            origin_s = request.arrival_s if time_scale != 1 and request.arrival_s > WALL_CLOCK_S else 0.0
        line = row(request)
        if time_scale != 1:
            line["arrival_s"] = (request.arrival_s - origin_s) * time_scale
        file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        count += 1
        if count % _TICK_EVERY == 0:
            tick(count)
    return count


@contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Open a file that takes the name ``path`` once it is whole; an error or Ctrl-C leaves nothing behind.

    Raises InputError where ``path`` is there already (unless ``force``) or can't be written.
    """
    check_new(path, force=force)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        raise InputError(Problem(f"can't be written: {error.strerror or error}", file=str(path))) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


def check_new(path: Path, *, force: bool = False) -> None:
    """Raise InputError where ``path`` can't become a new file."""
    if path.is_dir():
        raise InputError(Problem("is a folder", "name a file in it", file=str(path)))
    if path.exists() and not force:
        raise InputError(Problem("is there already", "give another name, or --force to replace it", file=str(path)))
    if not path.parent.is_dir():
        raise InputError(Problem("can't be written: its folder doesn't exist", "make it first", file=str(path)))
