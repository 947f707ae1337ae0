"""The block references of a trace: which block of content each prompt touches, in order of arrival.

Blocks of formats that hash them are the trace's own, the partial last one of a prompt included.
Others are cut into blocks of a given size, full ones only, as engines keep them. What nobody else
can name (private streams) is no reference; neither are outputs, before a later prompt holds them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem
from simkv.kvcache.replay import Order
from simkv.workload.readers import ReadReport, SessionsSource, TraceSource
from simkv.workload.readers.order import in_order
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Spans
from simkv.workload.tick import Tick, silent, ticked

Ints = NDArray[np.int64]

DEFAULT_BLOCK_TOKENS = 16
"""Of formats without blocks: vLLM's block size."""
MOST_REFERENCES = 100_000_000
"""A replay holds all of them at once, in about 170 bytes each."""


@dataclass(frozen=True)
class References:
    """Blocks as numbers from 0 up, and how many tokens each reference stands for."""

    blocks: Ints
    tokens: Ints
    block_tokens: int
    order: Order
    requests: int
    prompt_tokens: int

    @property
    def distinct_blocks(self) -> int:
        """Return how many different blocks there are."""
        return int(self.blocks.max()) + 1 if self.blocks.size else 0


def load(
    source: TraceSource | SessionsSource,
    report: ReadReport,
    order: Order = "forward",
    block_tokens: int | None = None,
    limit: int | None = None,
    tick: Tick = silent,
) -> References:
    """Read the trace of ``source``, its first ``limit`` requests; fills ``report``.

    Sessions are taken at their recorded times. Raises InputError where the trace says nothing of
    content, and for a ``block_tokens`` where the trace has blocks of its own.
    """
    path = source.path
    requests: Iterable[Request] = ticked(islice(source.reader.read(path, report), limit), tick)
    if isinstance(source, SessionsSource):
        requests = sorted(requests, key=lambda request: request.arrival_s)
    else:
        requests = in_order(requests, path, report)
    return collect(requests, report, order, block_tokens, path)


def collect(
    requests: Iterable[Request],
    report: ReadReport,
    order: Order = "forward",
    block_tokens: int | None = None,
    path: Path | None = None,
) -> References:
    """Return the references of ``requests``; see :func:`load`."""
    runs = _Runs()
    cutter: _Cutter | None = None
    prompt_tokens = count = 0
    shares = False
    for request in requests:
        if cutter is None:
            cutter = _cutter(report, block_tokens, path)
        count += 1
        prompt_tokens += request.prompt_tokens
        shares = shares or request.spans[0][0] < PRIVATE_STREAM_BASE
        runs.add(cutter.runs(request.spans, request.prompt_tokens))
        if runs.total > MOST_REFERENCES:
            raise _too_many(report, path, count)
    if cutter is None or not runs.counts:
        raise _no_content(report, path, count, shares)
    blocks, tokens = runs.expanded(cutter.block_tokens, order)
    return References(blocks, tokens, cutter.block_tokens, order, count, prompt_tokens)


def _cutter(report: ReadReport, block_tokens: int | None, path: Path | None) -> _Cutter:
    own = report.block_tokens
    if own is None:
        return _Cutter(block_tokens or DEFAULT_BLOCK_TOKENS, partial=False)
    if block_tokens not in (None, own):
        what = f"the trace has blocks of {own} tokens"
        file = "" if path is None else str(path)
        raise InputError(Problem(what, "leave it out", file=file, path="--block-tokens", value=str(block_tokens)))
    return _Cutter(own, partial=True)


def _no_content(report: ReadReport, path: Path | None, requests: int, shares: bool) -> InputError:
    what = f"says nothing of content that prompts share (format {report.format}): no cache could hit"
    mend = "give a trace with block hashes, sessions or prefix hashes"
    if not requests:
        what = "has no request that can be served"
    elif shares:
        what, mend = "has no full block of content that prompts share", "give smaller blocks: --block-tokens"
    return InputError(Problem(what, mend, file="" if path is None else str(path)))


def _too_many(report: ReadReport, path: Path | None, requests: int) -> InputError:
    what = f"its first {requests:,} requests make more than {MOST_REFERENCES:,} block references"
    mend = "take fewer with --limit" + ("" if report.block_tokens else ", or larger blocks with --block-tokens")
    return InputError(Problem(what, mend, file="" if path is None else str(path)))


class _Run(NamedTuple):
    """``blocks`` consecutive blocks of a stream from token ``start`` on; the last has ``short`` tokens too few."""

    stream: int
    start: int
    blocks: int
    short: int = 0


class _Cutter:
    """Cuts prompts into blocks; a block over several runs of content gets a stream number of its own, below 0."""

    def __init__(self, block_tokens: int, partial: bool) -> None:
        self.block_tokens = block_tokens
        self._partial = partial
        self._mixed: dict[Spans, int] = {}

    def runs(self, spans: Spans, prompt_tokens: int) -> Iterator[_Run]:
        """Yield the blocks of a prompt's shareable leading content, run by run."""
        size = self.block_tokens
        left, parts, lacking = prompt_tokens, list[tuple[int, int, int]](), 0
        for stream, start, length in spans:
            if stream >= PRIVATE_STREAM_BASE or not left:
                break
            length = min(length, left)
            left -= length
            if lacking:
                take = min(lacking, length)
                parts.append((stream, start, take))
                lacking -= take
                if lacking:
                    continue
                yield self._mix(parts)
                start, length = start + take, length - take
            full, rest = divmod(length, size)
            if full:
                yield _Run(stream, start, full)
            parts, lacking = ([(stream, start + full * size, rest)], size - rest) if rest else ([], 0)
        if lacking and self._partial:
            mixed = self._mix(parts) if len(parts) > 1 else _Run(parts[0][0], parts[0][1], 1)
            yield mixed._replace(short=lacking)

    def _mix(self, parts: list[tuple[int, int, int]]) -> _Run:
        return _Run(-1 - self._mixed.setdefault(tuple(parts), len(self._mixed)), 0, 1)


class _Runs:
    """Runs of all prompts, column by column."""

    def __init__(self) -> None:
        self._streams, self._starts, self.counts, self._prompts = (array("q") for _ in range(4))
        self._shorts: list[tuple[int, int]] = []  # reference, tokens
        self.total = 0

    def add(self, runs: Iterable[_Run]) -> None:
        """Take the runs of one prompt."""
        first = self.total
        for stream, start, blocks, short in runs:
            self._streams.append(stream)
            self._starts.append(start)
            self.counts.append(blocks)
            self.total += blocks
            if short:
                self._shorts.append((self.total - 1, short))
        self._prompts.append(self.total - first)

    def expanded(self, block_tokens: int, order: Order) -> tuple[Ints, Ints]:
        """Return every reference's block number, and its tokens."""
        counts, streams, starts = (np.array(column, np.int64) for column in (self.counts, self._streams, self._starts))
        run = np.repeat(np.arange(counts.size), counts)
        place = np.arange(self.total) - np.repeat(np.cumsum(counts) - counts, counts)
        _, stream = np.unique(streams, return_inverse=True)
        distinct, token = np.unique(starts[run] + place * block_tokens, return_inverse=True)
        _, blocks = np.unique(stream[run] * distinct.size + token, return_inverse=True)
        tokens = np.full(self.total, block_tokens, np.int64)
        if self._shorts:
            short = np.array(self._shorts, np.int64)
            tokens[short[:, 0]] -= short[:, 1]
        if order == "reverse":
            prompts = np.array(self._prompts, np.int64)
            ends = np.cumsum(prompts)
            backwards = np.repeat(2 * ends - prompts - 1, prompts) - np.arange(self.total)
            blocks, tokens = blocks[backwards], tokens[backwards]
        return blocks.astype(np.int64, copy=False), tokens
