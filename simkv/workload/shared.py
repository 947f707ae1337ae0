"""Content that requests share: system prompts and documents, as ready-made spans."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, repeat

import numpy as np

from simkv.workload.draws import indices
from simkv.workload.lengths import lengths
from simkv.workload.request import Span
from simkv.workload.spec import Spec, bad, need, number, whole
from simkv.workload.streams import Streams


class SystemPrompts:
    """System prompts in ``variants``; each request or session gets one of them, all equally often.

    ``spans[v]`` is the span of variant v, as a tuple of no or one span; the streams are
    ``0 .. variants-1``.
    """

    def __init__(self, spec: Spec | None, streams: Streams, where: str) -> None:
        self.spans: list[tuple[Span, ...]] = [()]
        self.count = 0
        if spec is not None and need(spec, "tokens", where) != 0:
            self.count = whole(spec.get("variants") or 1, f"{where}.variants", 1)
            sizes = lengths(spec["tokens"], streams("system_prompt_tokens"), f"{where}.tokens")
            self.spans = [((v, 0, next(sizes)),) for v in range(self.count)]
        self._streams = streams

    @property
    def longest_tokens(self) -> int:
        """Tokens of the longest variant."""
        return max(spans[0][2] if spans else 0 for spans in self.spans)

    def draws(self) -> Iterator[tuple[Span, ...]]:
        """Yield the spans of a drawn variant, without end."""
        if len(self.spans) == 1:
            return repeat(self.spans[0])
        return map(self.spans.__getitem__, indices([1.0] * self.count, self._streams("system_prompts")))


class Documents:
    """``count`` documents of drawn lengths, popular by Zipf's law (exponent 0 or ``uniform``: all equally).

    Document d is the whole of stream ``first_stream + d``. ``questions``: how many each has; None: any number.
    """

    def __init__(self, spec: Spec, first_stream: int, streams: Streams, where: str) -> None:
        count = whole(need(spec, "count", where), f"{where}.count", 1)
        if count > 10_000_000:
            raise bad(f"{where}.count", count, "is more than 10,000,000 documents", "take fewer")
        popularity = spec.get("popularity") or 0.0
        exponent = 0.0 if popularity == "uniform" else number(popularity, f"{where}.popularity", 0)
        asked = spec.get("questions")
        self.count = count
        self.questions = None if asked is None else whole(asked, f"{where}.questions", 1)
        if self.questions is not None and count * self.questions > 1_000_000:
            raise bad(f"{where}.questions", asked, "is more than 1,000,000 questions in all", "take fewer")
        self._weights = np.arange(1, count + 1, dtype=float) ** -exponent
        sizes = lengths(need(spec, "tokens", where), streams("document_tokens"), f"{where}.tokens")
        self._tokens = np.fromiter(islice(sizes, count), dtype=np.int32, count=count)
        self._first_stream = first_stream
        self._streams = streams

    def draws(self) -> Iterator[tuple[int, Span]]:
        """Yield a drawn document's number and span, without end."""
        for d in indices(self._weights, self._streams("documents")):
            yield d, self.span(d)

    def order(self) -> list[int]:
        """Return every question's number once, shuffled; ``questions`` in a row are about one document."""
        return self._streams("question_order").permutation(self.count * (self.questions or 1)).tolist()  # type: ignore[no-any-return]

    def span(self, d: int) -> Span:
        """Return document ``d``."""
        return self._first_stream + d, 0, int(self._tokens[d])
