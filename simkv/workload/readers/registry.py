"""The formats that can be read, which one a file has, and opening it."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from simkv.errors import InputError, Problem
from simkv.workload.readers.agent_sessions import AgentSessionsReader
from simkv.workload.readers.aiperf import AiperfReader
from simkv.workload.readers.azure import AzureReader
from simkv.workload.readers.base import SessionReader, TraceReader
from simkv.workload.readers.burstgpt import BurstGptReader
from simkv.workload.readers.dynamo import DynamoReader
from simkv.workload.readers.files import MAX_LINE_BYTES, excerpt, head, parts, too_long
from simkv.workload.readers.foreign import looks_like
from simkv.workload.readers.lengths import LengthsReader
from simkv.workload.readers.log import LogReader
from simkv.workload.readers.mooncake import MooncakeReader
from simkv.workload.readers.own import OwnReader
from simkv.workload.readers.own_sessions import OwnSessionsReader
from simkv.workload.readers.qwen import QwenReader
from simkv.workload.readers.sessions_source import SessionsSource
from simkv.workload.readers.source import TraceSource
from simkv.workload.spec import choose, number, whole

if TYPE_CHECKING:
    from simkv.workload.starts import Times

SNIFFED_LINES = 16

_EVERY: tuple[TraceReader, ...] = (
    OwnReader(), OwnSessionsReader(), AgentSessionsReader(), QwenReader(), DynamoReader(), AiperfReader(),
    MooncakeReader(), AzureReader(), BurstGptReader(), LogReader(), LengthsReader(),
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
    block_tokens: int | None = None,
    starts: tuple[Times, Times | None] | None = None,
) -> TraceSource | SessionsSource:
    """Return the source that replays ``path``, a file or a folder; reads no more of it than first lines.

    ``format`` is a name of :data:`READERS`; None or ``auto`` looks at the file. ``time_scale``
    multiplies recorded times (2: half the load), ``limit`` takes the first rows (of formats of
    sessions: sessions) only, ``duration_s`` ends the replay before the first arrival (scaled) that
    is not below it. ``columns`` and ``arrival_unit`` are those of :class:`LogReader`, the format that
    they imply; ``block_tokens`` is for the formats that don't say it themselves; ``starts`` (of
    :func:`~simkv.workload.starts.session_starts`) say when sessions start. Raises InputError for
    what can't be read, for a format that isn't known and for what would do nothing.
    """
    path = Path(path)
    scale = number(time_scale, "workload.time_scale", 0, above=True)
    most = None if limit is None else whole(limit, "workload.limit", 1)
    until_s = inf if duration_s is None else number(duration_s, "run.duration", 0)
    name = None if format == "auto" else format
    reader = _told(name, columns, arrival_unit) if columns or arrival_unit else _known(name, path)
    if block_tokens is not None:
        reader = _with_blocks(reader, block_tokens)
    if isinstance(reader, SessionReader):
        return SessionsSource(path, reader, scale, most, until_s, *(starts or ()))
    head(path)
    if starts is not None:
        raise _idle("arrival", reader, "the trace's own times are replayed")
    return TraceSource(path, reader, scale, most, until_s)


def _known(format: str | None, path: Path) -> TraceReader:
    """Return the reader of ``format``, None: the one that fits; says what is wrong with a path that can't be read."""
    first = next(iter(parts(path)), path)
    start = head(first)
    reader = detect(first, start) if format is None else choose(READERS, format, "workload.format")
    if first != path and not isinstance(reader, AgentSessionsReader):
        head(path)
    return reader


def _with_blocks(reader: TraceReader, block_tokens: int) -> TraceReader:
    if not isinstance(reader, AiperfReader):
        raise _idle("block_tokens", reader, "the format says how large its blocks are, or has none")
    return AiperfReader(whole(block_tokens, "workload.block_tokens", 1))


def _idle(key: str, reader: TraceReader, because: str) -> InputError:
    what, mend = f"does nothing with format {reader.name}: {because}", "leave it out"
    return InputError(Problem(what, mend, path=f"workload.{key}"))


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
    if label:
        mend = f"formats that are read: {', '.join(READERS)}"
        raise InputError(Problem(f"looks like {label}, which is not read", mend, file=str(path)))
    for reader in READERS.values():
        if reader.sniff(lines):
            return reader
    if len(lines[0]) > MAX_LINE_BYTES:
        raise too_long(path, 1, lines[0])
    what = "is of no known format"
    is_json = lines[0].lstrip()[:1] in (b"{", b"[")
    begins = b" ".join(b" ".join(lines).split()) if is_json else lines[0]
    raise InputError(Problem(what, _readable("{" if is_json else "CSV"), file=str(path), line=1, path=excerpt(begins)))


def _readable(mark: str) -> str:
    """Return the formats whose summary has ``mark``, and what each looks like."""
    kind = "CSV" if mark == "CSV" else "JSON"
    named = "; ".join(
        f"{name}: {r.summary}" for name, r in READERS.items() if mark in r.summary or "JSONL" in r.summary
    )
    return f"formats that are read ({kind}): {named}"
