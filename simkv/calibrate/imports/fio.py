"""What fio measured of a drive: jobs of its JSON, and how jobs at the same time go together.

``bw_bytes`` is B/s; ``bw`` of versions without it is KiB/s. Requests under way are iodepth times the jobs; engines that
wait for each request have one a job. Source: fio's HOWTO, its stat.c.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from simkv.calibrate.imports.imported import Parsed, Requests
from simkv.calibrate.imports.text import Text, read_json

Way = Literal["read", "write"]
WAYS: tuple[Way, ...] = ("read", "write")
SYNCHRONOUS = ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice")
DEFAULT_BLOCK_BYTES = 4096
MOST = 1 << 20
"""Jobs or requests at once; more is a broken file."""
_TRUE = ("1", "", "true", "yes")
_KIND: dict[Way, Literal["ssd_read", "ssd_write"]] = {"read": "ssd_read", "write": "ssd_write"}


@dataclass(frozen=True, slots=True)
class Job:
    """One direction of one entry of fio's report."""

    name: str
    group: int
    way: Way
    bytes_per_s: float
    block_bytes: int
    iodepth: int
    numjobs: int
    pattern: str
    latency_s: float | None
    direct: bool | None
    ioengine: str
    drive: str


def together(text: Text, jobs: Sequence[Job]) -> Iterator[Requests]:
    """Yield what jobs of one group do at the same time, added up where direction, block and settings are the same.

    A report by group has one entry for all its jobs; otherwise each job has its own.
    """
    groups: dict[tuple[Any, ...], list[Job]] = {}
    for job in jobs:
        key = (job.group, job.way, job.block_bytes, job.pattern, job.ioengine, job.direct, job.drive)
        groups.setdefault(key, []).append(job)
    kinds = Counter(key[0] for key in groups)
    for mine in groups.values():
        first = mine[0]
        waits = first.ioengine in SYNCHRONOUS
        count = first.numjobs if len(mine) == 1 else len(mine)
        depth = count if waits else sum(j.iodepth for j in mine) * (first.numjobs if len(mine) == 1 else 1)
        if depth > MOST:
            text.refuse("is too many requests at once", "check iodepth and numjobs", path=first.name, value=str(depth))
        latencies = [j.latency_s for j in mine if j.latency_s is not None]
        yield Requests(
            kind=_KIND[first.way],
            bytes_per_s=sum(j.bytes_per_s for j in mine),
            block_bytes=first.block_bytes,
            depth=depth,
            pattern=first.pattern,
            name=first.name,
            latency_s=fmean(latencies) if latencies else None,
            direct=first.direct,
            ioengine=first.ioengine,
            drive=first.drive,
            beside=kinds[first.group] > 1,
        )


def is_fio_json(text: Text) -> bool:
    """Say whether fio wrote this as JSON, other output around it or not."""
    return re.search(r'"fio version"\s*:', text.whole) is not None


def read_fio_json(text: Text, buffer_bytes: int | None = None) -> Parsed:
    """Return the jobs of ``fio --output-format=json`` or ``json+``; raises InputError where one isn't whole."""
    if buffer_bytes is not None:
        text.refuse("tells the size of each request", "leave out the buffer's size")
    root = read_json(text)
    entries = None if root is None else root.get("jobs", root.get("client_stats"))
    if root is None or not isinstance(entries, list):
        text.refuse("there is no list of jobs", "give the whole of fio --output-format=json", path="jobs")
    jobs: list[Job] = []
    notes: list[str] = []
    lines = [n for n, line in enumerate(text.lines, 1) if line.lstrip().startswith('"jobname"')]
    for number, entry in enumerate(entries):
        at = _Entry(text, root, entry, number, lines[number] if len(lines) == len(entries) else None)
        if at.failed:
            notes.append(f"{at.name} ended with error {at.failed} and is left out")
        elif "mixed" in at.values:
            notes.append(f"{at.name} reports reads and writes as one (unified_rw_reporting) and is left out")
        elif at.name != "All clients":
            jobs += at.jobs()
    version = str(root.get("fio version", ""))[:40]
    return Parsed("fio", version, requests=tuple(together(text, jobs)), notes=tuple(notes))


class _Entry:
    """One entry of ``jobs``, with its place for errors."""

    def __init__(self, text: Text, root: dict[str, Any], entry: Any, number: int, line: int | None) -> None:
        self._text, self._line, self._path = text, line, f"jobs[{number}]"
        if not isinstance(entry, dict):
            text.refuse("is no job", "get a whole copy of the file", line, self._path)
        self.values = entry
        self._options = {**self._mapping(root, "global options"), **self._mapping(entry, "job options")}
        self.name = str(entry.get("jobname", self._options.get("name", "job")))[:80]
        self.failed = entry.get("error", 0)

    def jobs(self) -> Iterator[Job]:
        """Yield the directions in which something was carried."""
        for way in WAYS:
            side = self._mapping(self.values, way)
            if side and self._number(side, way, "io_bytes") > 0:
                yield self._job(way, side)

    def _job(self, way: Way, side: dict[str, Any]) -> Job:
        field, unit = ("bw_bytes", 1.0) if "bw_bytes" in side else ("bw", 1024.0)
        rate = self._text.rate(repr(self._number(side, way, field)), unit, self._line, f"{self._path}.{way}.{field}")
        where = self._options.get("filename", self._options.get("directory", ""))
        return Job(
            name=self.name,
            group=int(self._number(self.values, "", "groupid", 0.0)),
            way=way,
            bytes_per_s=rate,
            block_bytes=self._block_bytes(way, side),
            iodepth=self._count("iodepth"),
            numjobs=self._count("numjobs"),
            pattern=str(self._options.get("rw", self._options.get("readwrite", way)))[:40],
            latency_s=self._latency_s(way, side),
            direct=self._direct(),
            ioengine=str(self._options.get("ioengine", "psync"))[:40],
            drive=str(where)[:200],
        )

    def _direct(self) -> bool | None:
        """Return whether requests went past the page cache, which by default they don't; None where nothing is told."""
        if "direct" in self._options:
            return str(self._options["direct"]) in _TRUE
        if "buffered" in self._options:
            return str(self._options["buffered"]) not in _TRUE
        return False if self._options else None

    def _latency_s(self, way: Way, side: dict[str, Any]) -> float | None:
        for name, unit in (("lat_ns", 1e-9), ("lat", 1e-6), ("clat_ns", 1e-9), ("clat", 1e-6)):
            if name in side:
                mean = self._number(self._mapping(side, name), f"{way}.{name}", "mean", 0.0) * unit
                return mean or None
        return None

    def _block_bytes(self, way: Way, side: dict[str, Any]) -> int:
        """Return bytes of a request: as set, or where that isn't what was carried, the mean of what was."""
        listed = str(self._options.get("bs", self._options.get("blocksize", ""))).split(",")
        told = _kib(listed[min(WAYS.index(way), len(listed) - 1)])
        carried = self._number(side, way, "io_bytes") * (1 if "io_kbytes" in side or "bw_bytes" in side else 1024)
        total = self._number(side, way, "total_ios", 0.0)
        mean = carried / total if total else told or DEFAULT_BLOCK_BYTES
        given = told or DEFAULT_BLOCK_BYTES
        size = given if abs(mean / given - 1) < 0.05 else mean
        return self._text.size(size, self._line, f"{self._path}.{way}")

    def _count(self, name: str) -> int:
        value = str(self._options.get(name, 1))
        if not re.fullmatch(r"[0-9]{1,7}", value) or not 1 <= int(value) <= MOST:
            self._text.refuse(
                "isn't a count", "get a whole copy of the file", self._line, f"{self._path}.{name}", value
            )
        return int(value)

    def _mapping(self, holder: dict[str, Any], name: str) -> dict[str, Any]:
        value = holder.get(name, {})
        if not isinstance(value, dict):
            self._text.refuse("is no object", "get a whole copy of the file", self._line, f"{self._path}.{name}")
        return value

    def _number(self, holder: dict[str, Any], where: str, name: str, absent: float | None = None) -> float:
        value = holder.get(name, absent)
        path = ".".join(part for part in (self._path, where, name) if part)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e18:
            shown = "" if value is None else str(value)[:40] if not isinstance(value, int) else "a large number"
            self._text.refuse("a number was expected", "get a whole copy of the file", self._line, path, shown)
        return float(value)


def _kib(told: str) -> int | None:
    """Return a size as fio reads it by default, k being 1024; None where it is a range, absent or nothing known."""
    match = re.fullmatch(r"\s*([0-9]{1,15})\s*([kKmMgG]?)(?:i?[bB])?\s*", told)
    if match is None:
        return None
    return int(match.group(1)) << {"": 0, "k": 10, "m": 20, "g": 30}[match.group(2).lower()] or None
