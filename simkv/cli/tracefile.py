"""Opening a trace as the options say, and showing how far reading it has come."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from simkv.errors import InputError, Problem

if TYPE_CHECKING:
    from simkv.workload.readers import ReadReport, SessionsSource, TraceSource

_ENDINGS = (".gz", ".jsonl", ".json", ".csv", ".simkv")
_AS_OPTIONS = (
    (r"workload\.columns\.(\w+): ", r"--columns \1="),
    (r"(with|or) workload\.columns\.(\w+)", r"\1 --columns \2=NAME"),
    (r"^workload\.columns\.", "--columns "),
    (r"^workload\.columns$", "--columns"),
    (r"^workload\.format$", "--format"),
    (r"^workload\.arrival_unit$", "--arrival-unit"),
    (r"write format: ", "write --format "),
)
"""What readers call by a scenario's key, and the option that says it here."""


def opened(
    file: Path, format_: str | None, columns: str | None, arrival_unit: str | None
) -> tuple[TraceSource | SessionsSource, ReadReport]:
    """Return the source of ``file`` and an empty report for reading it."""
    from simkv.workload.readers import ReadReport, open_trace

    named = None if columns is None else mapping(columns)
    with _by_options():
        source = open_trace(file, format_, columns=named, arrival_unit=arrival_unit)
    return source, ReadReport(source.reader.name)


@contextmanager
def _by_options() -> Iterator[None]:
    """Let errors name the options of the command line, where readers name the keys of a scenario."""
    try:
        yield
    except InputError as error:
        told = [replace(p, path=_as_option(p.path), mend=_as_option(p.mend)) for p in error.problems]
        raise InputError(told) from error


def _as_option(text: str) -> str:
    for key, option in _AS_OPTIONS:
        text = re.sub(key, option, text)
    return text


def mapping(text: str) -> dict[str, str]:
    """Return ``NAME=COLUMN,...`` as a mapping; raises InputError where it isn't that."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not (name and equals and column):
            mend = "write --columns arrival=ts,prompt_tokens=in,output_tokens=out"
            raise InputError(Problem("is not NAME=COLUMN", mend, path="--columns", value=part.strip() or text))
        if name in found:
            raise InputError(Problem(f"names {name} twice", "name it once", path="--columns", value=text))
        found[name] = column
    return found


def is_closed_loop(source: TraceSource | SessionsSource) -> bool:
    """Return whether requests of the trace wait for each other."""
    from simkv.workload.readers import SessionsSource

    return isinstance(source, SessionsSource)


def no_arrivals(file: Path) -> InputError:
    """Return the error that a trace of sessions can't be fitted."""
    what = "is a trace of sessions, whose requests wait for each other: it has no arrivals to fit"
    return InputError(Problem(what, "replay it (workload.kind: trace)", file=str(file)))


def stem(file: Path) -> str:
    """Return the name of ``file`` without the endings that traces have."""
    name = os.path.basename(os.path.realpath(file))
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name


@contextmanager
def told(source: TraceSource | SessionsSource, report: ReadReport) -> Iterator[Callable[[int], None]]:
    """Show how far reading has come, and let Ctrl-C wait for a moment when it does no harm."""
    from simkv.cli.interrupt import Interrupt
    from simkv.cli.progress import Progress

    expected = source.expected_requests()
    with _by_options(), Interrupt() as interrupt, Progress() as shown:

        def tick(_: int) -> None:
            interrupt.check()
            shown(report.line / expected)

        yield tick
