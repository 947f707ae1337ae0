"""The formats that can be read, which one a file has, and opening it."""

from __future__ import annotations

from pathlib import Path

from simkv.errors import InputError, Problem
from simkv.workload.readers.base import TraceReader
from simkv.workload.readers.files import excerpt, head
from simkv.workload.readers.foreign import looks_like
from simkv.workload.readers.lengths import LengthsReader
from simkv.workload.readers.mooncake import MooncakeReader
from simkv.workload.readers.source import TraceSource
from simkv.workload.spec import choose, number, whole

SNIFFED_LINES = 16

READERS: dict[str, TraceReader] = {reader.name: reader for reader in (MooncakeReader(), LengthsReader())}


def open_trace(
    path: str | Path, format: str | None = None, time_scale: float = 1.0, limit: int | None = None
) -> TraceSource:
    """Return the source that replays ``path``; reads no more of it than its first lines.

    ``format`` is a name of :data:`READERS`; None or ``auto`` looks at the file. ``time_scale``
    multiplies the times between arrivals (2: half the load), ``limit`` takes the first rows only.
    Raises InputError for a file that can't be read or whose format isn't known.
    """
    path = Path(path)
    scale = number(time_scale, "workload.time_scale", 0, above=True)
    most = None if limit is None else whole(limit, "workload.limit", 1)
    start = head(path)
    if format in (None, "auto"):
        return TraceSource(path, detect(path, start), scale, most)
    return TraceSource(path, choose(READERS, format, "workload.format"), scale, most)


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
