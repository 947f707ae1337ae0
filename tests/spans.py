"""Spans of requests as they are to be: adjacent ones that go on are one."""

from __future__ import annotations

from collections.abc import Iterable

from simkv.workload.request import Span, Spans


def merged(spans: Iterable[Span]) -> Spans:
    """Return ``spans`` with adjacent contiguous ones of a stream as one, without empty ones."""
    found: list[Span] = []
    for stream, start, length in spans:
        if length and found and found[-1][0] == stream and sum(found[-1][1:]) == start:
            found[-1] = (stream, found[-1][1], found[-1][2] + length)
        elif length:
            found.append((stream, start, length))
    return tuple(found)
