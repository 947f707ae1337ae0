"""Comparing token content that is described by spans, block by block and without expanding it."""

from __future__ import annotations

from simkv.workload.request import Spans

Key = tuple[object, ...]


def locate(spans: Spans, token: int) -> tuple[int, int]:
    """Return ``(index, offset)`` of position ``token`` in ``spans``; the end is ``(len(spans), 0)``."""
    for index, span in enumerate(spans):
        length = span[2]
        if token < length:
            return index, token
        token -= length
    return len(spans), 0


def block_key(spans: Spans, index: int, offset: int, block_tokens: int) -> Key | None:
    """Return what identifies the content of the block at ``(index, offset)``; None past the last full block."""
    if index >= len(spans):
        return None
    stream, start, length = spans[index]
    if length - offset >= block_tokens:
        return (stream, start + offset)
    parts = cut(spans, index, offset, block_tokens)
    return tuple(parts) if sum(part[2] for part in parts) == block_tokens else None


def common_tokens(a: Spans, ai: int, ao: int, b: Spans, bi: int, bo: int, most: int) -> int:
    """Return how many of the first ``most`` tokens agree, ``a`` read from ``(ai, ao)``, ``b`` from ``(bi, bo)``."""
    done = 0
    while done < most and ai < len(a) and bi < len(b):
        a_stream, a_start, a_length = a[ai]
        b_stream, b_start, b_length = b[bi]
        if a_stream != b_stream or a_start + ao != b_start + bo:
            return done
        run = min(a_length - ao, b_length - bo, most - done)
        done += run
        ao += run
        bo += run
        if ao == a_length:
            ai += 1
            ao = 0
        if bo == b_length:
            bi += 1
            bo = 0
    return done


def advance(spans: Spans, span: int, offset: int, tokens: int) -> tuple[int, int]:
    """Return the position ``tokens`` after ``(span, offset)``."""
    offset += tokens
    while span < len(spans) and offset >= spans[span][2]:
        offset -= spans[span][2]
        span += 1
    return span, offset


def cut(spans: Spans, span: int, offset: int, tokens: int) -> list[tuple[int, int, int]]:
    """Return the spans of the ``tokens`` tokens from ``(span, offset)`` on, of fewer where the content ends before."""
    parts = []
    while tokens and span < len(spans):
        stream, start, length = spans[span]
        take = min(length - offset, tokens)
        parts.append((stream, start + offset, take))
        tokens -= take
        span += 1
        offset = 0
    return parts


def merged(parts: list[tuple[int, int, int]]) -> Spans:
    """Return spans with adjacent runs of one stream joined."""
    out: list[tuple[int, int, int]] = []
    for stream, start, length in parts:
        if out and out[-1][0] == stream and out[-1][1] + out[-1][2] == start:
            out[-1] = (stream, out[-1][1], out[-1][2] + length)
        else:
            out.append((stream, start, length))
    return tuple(out)
