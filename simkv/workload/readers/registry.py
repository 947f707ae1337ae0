"""The formats that can be read, which one a file has, and opening it."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from pathlib import Path

from simkv.errors import InputError, Problem
from simkv.workload.readers.azure import AzureReader
from simkv.workload.readers.base import TraceReader
from simkv.workload.readers.burstgpt import BurstGptReader
from simkv.workload.readers.dynamo import DynamoReader
from simkv.workload.readers.files import excerpt, head
from simkv.workload.readers.foreign import looks_like
from simkv.workload.readers.lengths import LengthsReader
from simkv.workload.readers.log import LogReader
from simkv.workload.readers.mooncake import MooncakeReader
from simkv.workload.readers.own import OwnReader
from simkv.workload.readers.qwen import QwenReader
from simkv.workload.readers.source import TraceSource
from simkv.workload.spec import choose, number, whole

SNIFFED_LINES = 16

_EVERY: tuple[TraceReader, ...] = (
    OwnReader(), QwenReader(), DynamoReader(), MooncakeReader(),
    AzureReader(), BurstGptReader(), LogReader(), LengthsReader(),
)  # fmt: skip
READERS = {reader.name: reader for reader in _EVERY}
"""By name, in the order in which they look at a file: ``lengths`` takes what has part of the columns of ``log``."""


def open_trace(
    path: str | Path,
    format: str | None = None,
    time_scale: float = 1.0,
    limit: int | None = None,
    duration_s: float | None = None,
    columns: Mapping[str, str] | None = None,
    arrival_unit: str | None = None,
) -> TraceSource:
    """Return the source that replays ``path``; reads no more of it than its first lines.

    ``format`` is a name of :data:`READERS`; None or ``auto`` looks at the file. ``time_scale``
    multiplies the times between arrivals (2: half the load), ``limit`` takes the first rows only,
    ``duration_s`` ends the replay before the first arrival (scaled) that is not below it.
    ``columns`` and ``arrival_unit`` are those of :class:`LogReader`, the format that they imply.
    Raises InputError for a file that can't be read or whose format isn't known.
    """
    path = Path(path)
    scale = number(time_scale, "workload.time_scale", 0, above=True)
    most = None if limit is None else whole(limit, "workload.limit", 1)
    until_s = inf if duration_s is None else number(duration_s, "run.duration", 0)
    start = head(path)
    name = None if format == "auto" else format
    reader = _told(name, columns, arrival_unit) if columns or arrival_unit else _known(name, path, start)
    return TraceSource(path, reader, scale, most, until_s)


def _known(format: str | None, path: Path, start: bytes) -> TraceReader:
    return detect(path, start) if format is None else choose(READERS, format, "workload.format")


def _told(format: str | None, columns: Mapping[str, str] | None, arrival_unit: str | None) -> TraceReader:
    """Return the reader of a log that is described; raises InputError where another format is asked for."""
    if format not in (None, LogReader.name):
        given = "columns" if columns else "arrival_unit"
        what, mend = f"does nothing with format {format}", f"write format: {LogReader.name}, or leave it out"
        raise InputError(Problem(what, mend, path=f"workload.{given}"))
    return LogReader(columns, arrival_unit)


def detect(path: Path, start: bytes) -> TraceReader:
    """Return the reader for a file that begins with ``start``; raises InputError where none fits."""
    lines = [line for line in start.split(b"\n", SNIFFED_LINES)[:SNIFFED_LINES] if line.strip()]
    label = looks_like(start)
    for reader in () if label else READERS.values():
        if reader.sniff(lines):
            return reader
    if label:
        raise InputError(Problem(f"looks like {label}, which is not read", _readable(), file=str(path)))
    what = "is of no known format"
    raise InputError(Problem(what, _readable(), file=str(path), line=1, path=excerpt(lines[0])))


def _readable() -> str:
    return "formats that are read: " + "; ".join(f"{name}: {r.summary}" for name, r in READERS.items())
