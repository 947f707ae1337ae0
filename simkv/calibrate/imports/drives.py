"""From what fio measured to the figures of a drive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from simkv.calibrate.imports.curve import REQUESTS, link_of
from simkv.calibrate.imports.imported import Requests
from simkv.profile.schema import LinkFit, Sample
from simkv.units import short

SMALL_BLOCK = 128 << 10
"""Requests below this are limited by their number, not by bytes."""
_DIRECT = {True: 0, None: 1, False: 2}
_HOW = {True: "O_DIRECT", None: "whether past the page cache isn't told", False: "through the page cache"}


def drive_figures(requests: Sequence[Requests]) -> dict[str, Any]:
    """Return ``ssd_read`` and ``ssd_write`` of a :class:`~simkv.profile.schema.Fit`, as far as they were measured."""
    found = {kind: best([r for r in requests if r.kind == kind]) for kind in ("ssd_read", "ssd_write")}
    return {kind: _link(chosen) for kind, chosen in found.items() if chosen}


def best(requests: Sequence[Requests]) -> list[Requests]:
    """Return those that tell most of one drive: past the page cache, and with nothing else going on.

    Of several drives the first of these counts; what doesn't tell its drive counts with it.
    """
    if not requests:
        return []
    rank = min((_DIRECT[r.direct], r.beside) for r in requests)
    most = [r for r in requests if (_DIRECT[r.direct], r.beside) == rank]
    drive = next((r.drive for r in most if r.drive), "")
    return [r for r in most if r.drive in ("", drive)]


def request_samples(requests: Sequence[Requests]) -> Iterator[Sample]:
    """Yield a sample of each: as many requests as were under way at once, in the mean time they take."""
    for r in requests:
        at: dict[str, float | int | str | bool] = {
            "bytes": r.block_bytes, "pieces": r.depth, "depth": r.depth, "direct": bool(r.direct), "tool": "fio",
            "pattern": r.pattern, "ioengine": r.ioengine, "beside": r.beside,
        }  # fmt: skip
        yield Sample(kind=r.kind, at=at, seconds=(r.depth * r.block_bytes / r.bytes_per_s,))


def request_remarks(requests: Sequence[Requests]) -> Iterator[str]:
    """Yield the reasons why a figure may not be the drive's."""
    for r in requests:
        if r.ioengine == "libaio" and r.direct is False:
            yield f"{r.name}: libaio without O_DIRECT runs one request after another, whatever iodepth says"
        if r.direct is False:
            yield f"{r.name}: went through the page cache (direct=0): it may be DRAM that was measured"
        if r.beside:
            yield f"{r.name}: {r.kind} ran beside other requests: alone it may be faster"


def named_rates(requests: Sequence[Requests]) -> dict[str, float]:
    """Return every bandwidth (B/s) by what it is of."""
    return {
        f"{r.kind} {r.pattern}, {short(r.block_bytes, 'size')}, depth {r.depth} ({r.name})": r.bytes_per_s
        for r in requests
    }


def _link(requests: Sequence[Requests]) -> LinkFit:
    fastest: dict[int, Requests] = {}
    for r in requests:
        if r.block_bytes not in fastest or r.bytes_per_s > fastest[r.block_bytes].bytes_per_s:
            fastest[r.block_bytes] = r
    points = [(float(size), fastest[size].bytes_per_s) for size in sorted(fastest)]
    plain = link_of(points, REQUESTS, "")
    first_s = _first_s(requests, plain) if max(r.depth for r in fastest.values()) > 1 else None
    return link_of(points, REQUESTS, _note([fastest[size] for size in sorted(fastest)], first_s), first_s or 0.0)


def _first_s(requests: Sequence[Requests], link: LinkFit) -> float | None:
    """Return what a lone request takes beyond its share of a full queue; None where none was measured alone."""
    alone = [r for r in requests if r.depth == 1 and r.latency_s is not None]
    beyond = [(r.latency_s or 0.0) - link.latency_s - r.block_bytes / link.bytes_per_s for r in alone]
    return max(0.0, median(beyond)) if beyond else None


def _note(requests: Sequence[Requests], first_s: float | None) -> str:
    shown = requests[-1]
    sizes = ", ".join(short(r.block_bytes, "size") for r in requests[:8])
    parts = [f"fio, {shown.pattern} of {sizes}, {shown.depth} at a time, {shown.ioengine or 'engine not told'}"]
    parts.append(_HOW[shown.direct])
    if shown.beside:
        parts.append("while something else went on: alone it may be faster")
    if shown.block_bytes < SMALL_BLOCK:
        parts.append(f"blocks of {short(shown.block_bytes, 'size')} don't tell what pages of MiB reach")
    if first_s is not None:
        parts.append(f"setup {short(first_s, 'time')} from requests one at a time")
    elif shown.depth > 1:
        parts.append("time of a lone request (depth 1) isn't measured")
    else:
        parts.append("one at a time: the bandwidth holds each request's latency")
    return "; ".join(parts)
