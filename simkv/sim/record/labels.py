"""What blocks are called, for people: by whose content they hold, the same in every tier.

The content of a prefix is a chain of runs of streams: a shared prompt, then a session. A run is what it is by all that
comes before it, and where; so a document behind another system prompt is another content. A block belongs to the run
that its last token is of: where one ends and the next begins within a block, to the latter. Blocks count from the
beginning of the sequence, so those of a session behind a shared prefix don't begin at 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simkv.workload.request import OLD_STREAM, PRIVATE_STREAM_BASE, Named, Request, Source, Spans

if TYPE_CHECKING:
    from simkv.sim.record.names import Names

Stretch = tuple[int, int, int]
"""``(label, first, end)``."""


class Labels:
    """The labels of one run."""

    def __init__(self, source: Source, names: Names) -> None:
        self._source = source
        self._names = names
        self._runs: dict[tuple[int, int, int, int], int] = {}
        """Label by (label of what comes before, -1: nothing; first token; stream; where in the stream it begins)."""
        self._requests: dict[int, int] = {}
        self._taken: dict[str, int] = {}
        self._spans: Spans = ()
        self._chain: list[tuple[int, int]] = []
        """Of ``_spans``: (label, end in tokens) by run."""

    def stretches(self, spans: Spans, start: int, end: int, block_tokens: int) -> list[Stretch]:
        """Return blocks ``start .. end-1`` of ``spans`` by label, in order."""
        if spans is not self._spans:
            self._spans, self._chain = spans, []
        last = end * block_tokens
        if not self._chain or self._chain[-1][1] < last:
            self._chain = self._walk(spans, last)
        found: list[Stretch] = []
        first = 0
        for label, until in self._chain:
            behind = min(until // block_tokens, end)
            if behind > max(first, start):
                found.append((label, max(first, start), behind))
            if behind >= end:
                break
            first = max(first, behind)
        return found

    def _walk(self, spans: Spans, last: int) -> list[tuple[int, int]]:
        chain: list[tuple[int, int]] = []
        at, label, goes_on = 0, -1, (-1, -1)
        for stream, start, length in spans:
            if (stream, start) == goes_on:
                chain.pop()
            else:
                label = self._run(label, at, stream, start)
            at += length
            goes_on = stream, start + length
            chain.append((label, at))
            if at >= last:
                break
        return chain

    def _run(self, before: int, at: int, stream: int, start: int) -> int:
        key = before, at, stream, start
        label = self._runs.get(key)
        if label is None:
            text = content_name(self._source, stream, start)
            if text in self._taken and before >= 0:
                text = f"{text} after {self._names.texts[before]}"
            label = self._runs[key] = self._new(key, text)
        return label

    def of_request(self, request: Request, shared: bool) -> int:
        """Return the label of what ``request`` alone has of its content while it runs.

        ``shared``: others find what it leaves, which is called as its content is.
        """
        if not shared and len(request.spans) == 1 and request.spans[0][:2] >= (PRIVATE_STREAM_BASE, 0):
            return self._run(-1, 0, *request.spans[0][:2])
        label = self._requests.get(request.id)
        if label is None:
            label = self._requests[request.id] = self._new(("request", request.id), f"request {request.id}")
        return label

    def _new(self, key: tuple[object, ...], text: str) -> int:
        number = self._taken[text] = self._taken.get(text, 0) + 1
        return self._names.label(key, text if number == 1 else f"{text} ({number})")


def content_name(source: Source, stream: int, start: int) -> str:
    """Return what the content of ``stream`` from token ``start`` on is called, by the source where that knows."""
    if stream >= OLD_STREAM:
        return f"earlier content {stream - OLD_STREAM}"
    if stream >= PRIVATE_STREAM_BASE:
        return f"request {stream - PRIVATE_STREAM_BASE}"
    known = source.content_name(stream, start) if isinstance(source, Named) else ""
    return known or (f"stream {stream} from token {start}" if start else f"stream {stream}")
