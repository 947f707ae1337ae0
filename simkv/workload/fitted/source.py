"""Requests drawn from a fit.

Each request is a row of the fit. Where the row shares tokens, they are the head of an earlier
request's content: of the one as many requests ago as the row says, or of the nearest to it that
is long enough and was the last to use that head. What follows is new. So a request's hit in a
cache that never forgets is what its row says, and that head was last used about as long ago.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, islice, repeat, takewhile
from math import inf
from pathlib import Path

import numpy as np

from simkv.errors import InputError, Problem
from simkv.workload.draws import ints, picker
from simkv.workload.fitted.model import SLOWEST_PER_S, FittedArrivals, FittedModel, load
from simkv.workload.fitted.reuse import Passed
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Span, Spans
from simkv.workload.single import Limits
from simkv.workload.spec import Spec, need, number, whole
from simkv.workload.streams import Streams

WHERE = "workload"
REMEMBERED = 16_384
"""So many of the latest requests can be continued."""


def build_fitted(spec: Spec, seed: int, duration_s: float | None = None) -> FittedSource:
    """Return the source of the fit in ``spec["path"]``; equal arguments give equal requests.

    ``rate_scale`` multiplies the rates; ``requests`` or ``duration_s`` must bound it. Raises
    InputError where neither does, or the file doesn't read well.
    """
    requests = spec.get("requests")
    if requests is None and duration_s is None:
        mend = "give workload.requests or run.duration"
        raise InputError(Problem("nothing bounds the workload", mend, path=f"{WHERE}.requests"))
    most = None if requests is None else whole(requests, f"{WHERE}.requests", 1)
    scale = number(spec.get("rate_scale", 1.0), f"{WHERE}.rate_scale", 0, above=True)
    model = load(Path(need(spec, "path", WHERE)))
    if model.arrivals.mean_per_s * scale < SLOWEST_PER_S:
        what = f"leaves {model.arrivals.mean_per_s * scale:g} requests a second, below {SLOWEST_PER_S:g}"
        raise InputError(Problem(what, "raise it", path=f"{WHERE}.rate_scale", value=f"{scale:g}"))
    return FittedSource(model, Limits(most, duration_s), scale, Streams(seed))


class FittedSource:
    """Open arrivals like those of a trace; nothing follows a request."""

    def __init__(self, model: FittedModel, limits: Limits, rate_scale: float, streams: Streams) -> None:
        """``rate_scale`` multiplies the rates."""
        self._model = model
        self._limits = limits
        self._rate_scale = rate_scale
        self._streams = streams

    @property
    def class_names(self) -> tuple[str, ...]:
        """Every value that ``Request.cls`` can take."""
        return ("",)

    def expected_requests(self) -> int:
        """Return about how many requests there are, for a progress bar."""
        duration_s = self._limits.duration_s
        number = inf if duration_s is None else self._rate_scale * duration_s * self._model.arrivals.mean_per_s
        return max(1, round(min(number, inf if self._limits.requests is None else self._limits.requests)))

    def arrivals(self) -> Iterator[Request]:
        """Yield the requests in order of arrival; each call starts over."""
        every = arrival_times(self._model.arrivals, self._rate_scale, self._streams)
        times = takewhile(self._limits.open, every)
        bodies = zip(times, self._rows(), strict=False)
        past = _Past(0 if any(self._model.requests.shared_tokens) else PRIVATE_STREAM_BASE)
        for i, (arrival_s, k) in enumerate(islice(bodies, self._limits.requests)):
            yield Request(i, arrival_s, *self._body(i, k, past))

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return (): nothing follows."""
        return ()

    def content_name(self, stream: int, start: int) -> str:
        """Return what people call a shared stream: what is new in a request, which others may continue."""
        return f"request {stream}"

    def session_over(self, request: Request) -> bool:
        """Return False: there are no sessions."""
        return False

    def _rows(self) -> Iterator[int]:
        count, rng = len(self._model.requests.prompt_tokens), self._streams("fitted.rows")
        return ints(lambda n: rng.integers(0, count, n))

    def _body(self, i: int, k: int, past: _Past) -> tuple[int, int, Spans]:
        """Return prompt and output tokens and spans of request ``i``, which is row ``k`` of the fit."""
        rows = self._model.requests
        prompt, output = rows.prompt_tokens[k], rows.output_tokens[k]
        kept = past.add(i, prompt + output, rows.rank_distance[k], rows.shared_tokens[k])
        return prompt, output, kept.spans


class _Kept:
    """The content of a request: spans, and for the stream of each who went how far along it."""

    __slots__ = ("number", "passed", "spans", "tokens")

    def __init__(self, number: int, tokens: int, head: Spans, passed: list[Passed], stream: int) -> None:
        """``head`` is taken over, with ``passed``; what follows it is ``stream``."""
        new = tokens - sum(length for _, _, length in head)
        self.number = number
        self.tokens = tokens
        self.spans: Spans = (*head, (stream, 0, new))
        self.passed = [*passed, Passed()]
        for (_, _, length), along in zip(self.spans, self.passed, strict=True):
            along.go(length, number)

    def was_last(self, tokens: int) -> bool:
        """Return whether it is so long, and nobody used the first ``tokens`` tokens since."""
        if self.tokens < tokens:
            return False
        for (_, _, length), along in zip(self.spans, self.passed, strict=True):
            if tokens <= length:
                return along.last(tokens) == self.number
            tokens -= length
        return False


class _Past:
    """The latest requests, for new ones to continue."""

    def __init__(self, first_stream: int) -> None:
        """What is new in request i is stream ``first_stream + i``."""
        self._first_stream = first_stream
        self._latest: deque[_Kept] = deque(maxlen=REMEMBERED)

    def add(self, number: int, tokens: int, distance: int, shared: int) -> _Kept:
        """Return request ``number`` of ``tokens`` tokens, of which it shares the first with one about ``distance`` ago.

        The oldest request is forgotten once there are too many.
        """
        head: Spans = ()
        passed: list[Passed] = []
        if shared and self._latest:
            other = self._to_continue(distance, shared)
            head = cut(other.spans, shared)
            passed = other.passed[: len(head)]
        kept = _Kept(number, tokens, head, passed, self._first_stream + number)
        self._latest.appendleft(kept)
        return kept

    def _to_continue(self, distance: int, tokens: int) -> _Kept:
        """Return the request nearest to ``distance`` ago that was the last to use its first ``tokens`` tokens.

        Where there is none, the longest, which may be shorter.
        """
        latest = self._latest
        for k in _outward(min(distance, len(latest)) - 1, len(latest)):
            if latest[k].was_last(tokens):
                return latest[k]
        return max(latest, key=lambda kept: kept.tokens)


def _outward(start: int, end: int) -> Iterator[int]:
    """Yield ``start`` and then what lies 1, 2, ... away from it, within 0 .. end - 1."""
    yield start
    for away in range(1, end):
        if start + away < end:
            yield start + away
        if start >= away:
            yield start - away


def cut(spans: Spans, tokens: int) -> Spans:
    """Return the first ``tokens`` tokens of ``spans``, or all where they are fewer."""
    head: list[Span] = []
    for stream, start, length in spans:
        if tokens <= 0:
            break
        head.append((stream, start, min(length, tokens)))
        tokens -= length
    return tuple(head)


def arrival_times(arrivals: FittedArrivals, rate_scale: float, streams: Streams) -> Iterator[float]:
    """Yield arrival times without end, from 0: the gaps of batches run in the time in which their rate is 1."""
    sizes_of = picker(arrivals.batch_shares, streams("fitted.batches"))
    sizes = (size + 1 for size in ints(sizes_of)) if len(arrivals.batch_shares) > 1 else repeat(1)
    batches = _batch_times(arrivals, rate_scale / arrivals.mean_batch, streams("fitted.gaps"))
    return chain.from_iterable(repeat(time_s, size) for time_s, size in zip(batches, sizes, strict=False))


def _batch_times(arrivals: FittedArrivals, scale: float, rng: np.random.Generator) -> Iterator[float]:
    windows = list(zip(arrivals.rate_per_s, arrivals.gap_cv, strict=True))
    round_s = arrivals.window_s * len(windows)
    expected = sum(arrivals.rate_per_s) * arrivals.window_s * scale
    round_begins_s = gap = now_s = 0.0
    while True:
        idle_rounds, gap = divmod(gap, expected)
        round_begins_s += idle_rounds * round_s
        for k, (rate, cv) in enumerate(windows):
            begins_s = round_begins_s + k * arrivals.window_s
            whole = left = arrivals.window_s * rate * scale
            while gap <= left and whole > 0:
                left -= gap
                now_s = max(now_s, begins_s + arrivals.window_s * (1 - left / whole))
                yield now_s
                gap = _unit_gap(cv, rng)
            gap -= left
        round_begins_s += round_s


def _unit_gap(cv: float, rng: np.random.Generator) -> float:
    """Return a gamma distributed gap of mean 1."""
    squared = cv * cv
    return float(rng.standard_gamma(1 / squared)) * squared if squared > 1e-12 else 1.0
