"""fio's normal output. Of version 3, ``BW=6137MiB/s (6435MB/s)``, KiB is 1024 and kB 1000; of version 2, KB is 1024."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

from simkv.calibrate.imports.fio import DEFAULT_BLOCK_BYTES, MOST, Job, Way, together
from simkv.calibrate.imports.imported import Parsed
from simkv.calibrate.imports.text import Text

UNITS: dict[str, float] = {
    "B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12,
    "KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30, "TiB/s": 2.0**40,
    "Kibit/s": 2.0**10 / 8, "Mibit/s": 2.0**20 / 8, "Gibit/s": 2.0**30 / 8,
    "kbit/s": 1e3 / 8, "Mbit/s": 1e6 / 8, "Gbit/s": 1e9 / 8, "bit/s": 1 / 8,
}  # fmt: skip
OLD_UNITS: dict[str, float] = {"B/s": 1.0, "KB/s": 2.0**10, "MB/s": 2.0**20, "GB/s": 2.0**30}
"""Of version 2, which counts by 1024 whatever it writes."""
_TEXT = re.compile(r"\(groupid=[0-9]+, jobs=[0-9]+\): err=|^fio-[0-9]\.|\(g=[0-9]+\): rw=", re.MULTILINE)
_TERSE = re.compile(r"^[0-9];fio-[0-9]", re.MULTILINE)
_SETTINGS = re.compile(
    r"(.{1,200}?): \(g=[0-9]+\): rw=(\w+), .{0,80}?bs=(.{1,160}?), ioengine=([\w:./-]+), iodepth=([0-9]{1,7}).*"
)
_ENTRY = re.compile(r"(.{1,200}?): \(groupid=([0-9]{1,6}), jobs=([0-9]{1,7})\): err=\s*([0-9]+).*")
_NEW = re.compile(r"\s*(read|write|mixed)\s*: IOPS=([0-9.]+[kKMG]?), BW=([0-9.]+)\s*([A-Za-z]+(?:/s)?).*")
_OLD = re.compile(r"\s*(read|write|mixed)\s*: io=.*?bw=\s*([0-9.]+)\s*([KMG]?B/s), iops=\s*([0-9.]+[kKMG]?).*")
_LATENCY = re.compile(r"\s+(lat|clat) \((nsec|usec|msec)\)\s*: min=.*?avg=\s*([0-9.]+).*")
_DEPTHS = re.compile(r"\s*IO depths\s*: (.*)")
_DIRECT = re.compile(r"(?:^|\s)-{0,2}direct=([01])\b", re.MULTILINE)
_DRIVE = re.compile(r"(?:^|\s)-{0,2}(?:filename|directory)=(\S{1,200})", re.MULTILINE)
_BLOCKS = re.compile(r"(?:\([RWT]\) )?([0-9.]+)([kKMG]?i?B?)-([0-9.]+)([kKMG]?i?B?)(?![0-9A-Za-z.])")
_SIZES = {"": 1, "B": 1, **{f"{p}{b}": 1024**e for e, p in enumerate("KMG", 1) for b in ("", "iB")}} | {
    "kB": 1000, "MB": 1000**2, "GB": 1000**3, "k": 1024,
}  # fmt: skip
"""Of the line before the run; version 2 writes ``4K``, ``kb_base=1000`` writes ``65.5kB``."""
_PER = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3}
_COUNTS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the line before the run says of a job."""

    pattern: str
    blocks: str
    ioengine: str
    iodepth: int


def is_fio_text(text: Text) -> bool:
    """Say whether this is fio's normal or terse output."""
    return _TEXT.search(text.whole) is not None or _TERSE.search(text.whole) is not None


def read_fio_text(text: Text, buffer_bytes: int | None = None) -> Parsed:
    """Return the jobs of fio's normal output; refuses its terse one."""
    if buffer_bytes is not None:
        text.refuse("tells the size of each request", "leave out the buffer's size")
    if (terse := _TERSE.search(text.whole)) is not None:
        line = text.whole.count("\n", 0, terse.start()) + 1
        text.refuse("is fio's terse output, which leaves out settings", "run fio --output-format=json", line)
    settings = {m.group(1).strip(): _settings(text, m) for m in map(_SETTINGS.fullmatch, text.lines) if m}
    notes: list[str] = []
    jobs = list(_jobs(text, settings, notes))
    version = re.search(r"^fio-(\S{1,40})", text.whole, re.MULTILINE)
    return Parsed("fio", version.group(0) if version else "", requests=tuple(together(text, jobs)), notes=tuple(notes))


def _settings(text: Text, m: re.Match[str]) -> Settings:
    return Settings(m.group(2), m.group(3), m.group(4), min(MOST, max(1, int(m.group(5)))))


def _jobs(text: Text, settings: dict[str, Settings], notes: list[str]) -> Iterator[Job]:
    """Yield a job for every direction of every entry."""
    for at, entry, end in text.parts(range(len(text.lines)), _ENTRY):
        name = entry.group(1).strip()
        if entry.group(4).strip("0"):
            notes.append(f"{name[:80]} ended with error {entry.group(4)[:10]} and is left out")
        elif name != "All clients":
            yield from _of_entry(text, settings.get(name), entry, range(at + 1, end), notes)


def _of_entry(
    text: Text, settings: Settings | None, entry: re.Match[str], lines: range, notes: list[str]
) -> Iterator[Job]:
    name = entry.group(1).strip()[:80]
    for at, found, end in text.parts(lines, _NEW, _OLD):
        if found.group(1) == "mixed":
            notes.append(f"{name} reports reads and writes as one (unified_rw_reporting) and is left out")
            continue
        way: Way = "read" if found.group(1) == "read" else "write"
        rate, per_s = _rate(text, found, at + 1, name)
        known = settings or Settings(way, "", "", _depth(text, lines))
        direct, drive = _DIRECT.search(text.whole), _DRIVE.search(text.whole)
        yield Job(
            name=name,
            group=int(entry.group(2)),
            way=way,
            bytes_per_s=rate,
            block_bytes=_block_bytes(text, known.blocks, way, rate / per_s if per_s else 0.0, at + 1),
            iodepth=known.iodepth,
            numjobs=min(MOST, max(1, int(entry.group(3)))),
            pattern=known.pattern,
            latency_s=_latency_s(text, range(at + 1, end)),
            direct=None if direct is None else direct.group(1) == "1",
            ioengine=known.ioengine,
            drive="" if drive is None else drive.group(1),
        )


def _rate(text: Text, found: re.Match[str], line: int, name: str) -> tuple[float, float]:
    """Return B/s and requests a second."""
    old = found.re is _OLD
    rate, unit, count = found.group(2, 3, 4) if old else (found.group(3), found.group(4), found.group(2))
    if unit in ("Ki", "Mi", "Gi"):
        unit += "B/s"
    units = OLD_UNITS if old else UNITS
    if unit not in units:
        text.refuse("is in a unit that fio doesn't print", f"known are {', '.join(units)}", line, name, unit)
    per_s = text.number(count.rstrip("kKMG"), line, name) * _COUNTS[count[len(count.rstrip("kKMG")) :]]
    return text.rate(rate, units[unit], line, name), per_s


def _block_bytes(text: Text, blocks: str, way: Way, mean: float, line: int) -> int:
    """Return bytes of a request from ``(R) 4096B-4096B, ...`` or ``4K-4K/4K-4K``; of a range, or untold, the mean."""
    listed = _BLOCKS.findall(blocks)
    if listed:
        low, low_unit, high, high_unit = listed[min(("read", "write").index(way), len(listed) - 1)]
        if (low, low_unit) == (high, high_unit):
            return text.size(_power(text.number(low, line) * _SIZES.get(low_unit, 1024)), line)
    return text.size(_power(mean) if mean else DEFAULT_BLOCK_BYTES, line)


def _power(size: float) -> float:
    """Return the power of two that ``size`` is but for rounding, else ``size``."""
    near = 2.0 ** round(log2(max(1.0, size)))
    return near if abs(size / near - 1) < 0.03 else size


def _latency_s(text: Text, lines: range) -> float | None:
    """Return the mean of a whole request; where that isn't printed, from the drive's side."""
    found = {m.group(1): m for n in lines if (m := _LATENCY.fullmatch(text.lines[n])) is not None}
    m = found.get("lat", found.get("clat"))
    return None if m is None else text.number(m.group(3), None) * _PER[m.group(2)] or None


def _depth(text: Text, lines: range) -> int:
    """Return requests under way from the distribution that ends an entry; 1 where there is none."""
    for n in lines:
        if (m := _DEPTHS.fullmatch(text.lines[n])) is not None:
            shares = [
                (float(share), int(depth))
                for depth, share in re.findall(r"([0-9]{1,3})=([0-9]{1,3}\.[0-9])%", m.group(1))
            ]
            return max(shares, default=(0.0, 1))[1] or 1
    return 1
