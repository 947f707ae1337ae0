"""What a trace is like: lengths, arrivals, and how much of its prompts has been seen before.

The *infinite cache* never forgets: a prompt's hit is its leading run of content that earlier
requests of the file held, in file order, without rounding to blocks and without keeping a last
token back. In blocks, a block that is partly seen counts as seen, which is what counting block
ids of a trace gives.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkv.workload.burstiness import arrival_figures
from simkv.workload.ceiling import Ceiling
from simkv.workload.readers.report import Note, ReadReport
from simkv.workload.request import PRIVATE_STREAM_BASE, Request
from simkv.workload.tick import Tick, silent, ticked


class Inspection:
    """Collects the figures of a trace, request by request; :meth:`answer` gives what there is so far.

    Memory grows with the distinct content, with distinct lengths and with 8 bytes a request.
    """

    def __init__(self, report: ReadReport, closed_loop: bool = False) -> None:
        """``report`` is the one that the reader fills; in a closed loop times are only what was recorded."""
        self.interrupted = False
        self.requests = 0
        self.closed_loop = closed_loop
        self._newest_s = -inf
        self._report = report
        self.prompts = LengthCounts()
        self.outputs = LengthCounts()
        self._times_s = array("d")
        self._turns: dict[int, int] = defaultdict(int)
        self._ceiling = Ceiling(1)
        self._seen_tokens = self._shareable_tokens = self._reusers = 0
        self._references = self._block_hits = 0

    def add(self, request: Request) -> None:
        """Count ``request``."""
        self.requests += 1
        self.prompts.add(request.prompt_tokens)
        self.outputs.add(request.output_tokens)
        self._times_s.append(request.arrival_s)
        if request.arrival_s >= self._newest_s:
            self._newest_s = request.arrival_s
        elif not self.closed_loop:
            self._report.note("out_of_order", "arrives before a row above it", self._report.line)
        if request.session >= 0:
            self._turns[request.session] += 1
        self._add_content(request)

    def watch(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Yield ``requests`` as they are and count them on the way."""
        for request in requests:
            self.add(request)
            yield request

    def _add_content(self, request: Request) -> None:
        shareable = shareable_tokens(request)
        if not shareable:
            return
        seen = min(self._ceiling.add_uncapped(request), shareable)
        self._shareable_tokens += shareable
        self._seen_tokens += seen
        self._reusers += seen > 0
        if self._report.block_tokens:
            self._references += -(-shareable // self._report.block_tokens)
            self._block_hits += -(-seen // self._report.block_tokens)

    def answer(self) -> dict[str, Any]:
        """Return all figures as plain values; None where the trace doesn't tell."""
        times = np.frombuffer(self._times_s, dtype=np.float64)
        return {
            "format": self._report.format,
            "requests": self.requests,
            "dropped": {note.code: note.count for note in self._report.notes.values() if note.dropped},
            "span_s": float(times.max() - times.min()) if len(times) else 0.0,
            "prompt_tokens": self.prompts.figures(),
            "output_tokens": self.outputs.figures(),
            "closed_loop": self.closed_loop,
            "arrivals": None if self.closed_loop else arrival_figures(times),
            "reuse": self._reuse(),
            "infinite_cache": self._infinite_cache(),
            "irregularities": [_irregularity(note) for note in self._report.notes.values()],
            "interrupted": self.interrupted,
        }

    def _reuse(self) -> dict[str, Any]:
        turns = LengthCounts()
        for count in self._turns.values():
            turns.add(count)
        return {
            "requests": self._reusers if self._shareable_tokens else None,
            "share_of_requests": self._reusers / self.requests if self._shareable_tokens else None,
            "sessions": len(self._turns) or None,
            "turns": turns.figures() if self._turns else None,
        }

    def _infinite_cache(self) -> dict[str, Any]:
        known, blocks = bool(self._shareable_tokens), bool(self._references)
        return {
            "token_hit_rate": self._seen_tokens / self.prompts.total if known else None,
            "block_hit_rate": self._block_hits / self._references if blocks else None,
            "block_tokens": self._report.block_tokens if blocks else None,
            "seen_tokens": self._seen_tokens if known else None,
            "hashed_tokens": self._shareable_tokens if known else None,
            "block_references": self._references if blocks else None,
            "block_hits": self._block_hits if blocks else None,
            "unique_blocks": self._references - self._block_hits if blocks else None,
        }


def _irregularity(note: Note) -> dict[str, Any]:
    """Return ``note`` as plain values; ``first`` says where it came first, ``first_line`` too where that is a line."""
    return {
        "code": note.code,
        "what": note.what,
        "count": note.count,
        "dropped": note.dropped,
        "first": note.place,
        "first_line": note.first_line or None,
    }


class LengthCounts:
    """Counts of whole numbers, for exact figures in memory that grows with distinct values only."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = defaultdict(int)
        self.total = 0

    def add(self, value: int) -> None:
        """Count ``value``."""
        self._counts[value] += 1
        self.total += value

    def figures(self) -> dict[str, Any]:
        """Return total, mean, percentiles by nearest rank, and maximum; None where nothing was counted."""
        if not self._counts:
            return dict.fromkeys(("total", "mean", "p50", "p95", "p99", "max"))
        values = np.array(sorted(self._counts), dtype=np.int64)
        ranks = np.cumsum([self._counts[v] for v in values.tolist()])
        number = int(ranks[-1])
        found = {f"p{q}": int(values[np.searchsorted(ranks, -(-q * number // 100))]) for q in (50, 95, 99)}
        return {"total": self.total, "mean": self.total / number, **found, "max": int(values[-1])}

    def distance(self, other: LengthCounts) -> float:
        """Return the largest difference between the two cumulative distributions (Kolmogorov-Smirnov)."""
        values = np.array(sorted(self._counts.keys() | other._counts.keys()), dtype=np.int64)
        return float(np.abs(self._cumulative(values) - other._cumulative(values)).max())

    def _cumulative(self, values: NDArray[np.int64]) -> NDArray[np.float64]:
        ranks = np.cumsum([self._counts.get(v, 0) for v in values.tolist()])
        shares: NDArray[np.float64] = ranks / ranks[-1]
        return shares


def shareable_tokens(request: Request) -> int:
    """Return how many leading prompt tokens are of streams that other requests can name."""
    found = 0
    for stream, _, length in request.spans:
        if stream >= PRIVATE_STREAM_BASE:
            break
        found += length
    return min(found, request.prompt_tokens)


def inspect_requests(
    requests: Iterable[Request], report: ReadReport, tick: Tick = silent, *, closed_loop: bool = False
) -> Inspection:
    """Count all of ``requests``, which fill ``report`` as they are read; Ctrl-C ends it with what was read.

    ``closed_loop``: they wait for each other, and their times are only as recorded.
    """
    inspection = Inspection(report, closed_loop)
    try:
        for request in ticked(requests, tick):
            inspection.add(request)
    except KeyboardInterrupt:
        inspection.interrupted = True
    return inspection
