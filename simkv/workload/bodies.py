"""What single requests consist of, when they arrive aside: lengths, spans, class and group."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import count, islice, repeat

from simkv.workload.draws import indices
from simkv.workload.lengths import lengths
from simkv.workload.request import PRIVATE_STREAM_BASE, Spans
from simkv.workload.shared import Documents, SystemPrompts
from simkv.workload.spec import Spec, bad, need, number
from simkv.workload.streams import Streams

_SAME = 1e-9
"""Shares sum up to what they say but for rounding."""
Body = tuple[int, int, Spans, str, int]
"""``(prompt_tokens, output_tokens, spans, cls, group)``."""


class Classes:
    """Classes of requests by share; without a mix all are of the class ``""``."""

    def __init__(self, mix: Spec | None, streams: Streams, where: str) -> None:
        self.names = tuple(mix) if mix else ("",)
        self._shares = [number(s, f"{where}.{name}", 0) for name, s in mix.items()] if mix else [1.0]
        if sum(self._shares) <= 0:
            raise bad(where, dict(mix or {}), "shares sum to zero", "give at least one class a share")
        self._streams = streams

    def draws(self) -> Iterator[str]:
        """Yield class names without end."""
        if len(self.names) == 1:
            return repeat(self.names[0])
        return map(self.names.__getitem__, indices(self._shares, self._streams("classes")))


class PlainBodies:
    """Private prompts, optionally behind a shared system prompt, whose tokens come on top."""

    def __init__(self, spec: Spec, streams: Streams, where: str) -> None:
        self.system = SystemPrompts(spec.get("system_prompt"), streams, f"{where}.system_prompt")
        self.classes = Classes(spec.get("mix"), streams, f"{where}.mix")
        self._spec, self._streams, self._where = spec, streams, where
        share = spec.get("stored")
        self.stored = 0.0 if share is None else number(share, f"{where}.stored", 0)
        """Share of the prompts, evenly spread, that lower tiers hold when a run begins."""
        for check in (self._prompts, self._outputs):
            check()

    def _prompts(self) -> Iterator[int]:
        where = f"{self._where}.prompt_tokens"
        return lengths(need(self._spec, "prompt_tokens", self._where), self._streams("prompt_tokens"), where)

    def _outputs(self) -> Iterator[int]:
        where = f"{self._where}.output_tokens"
        return lengths(need(self._spec, "output_tokens", self._where), self._streams("output_tokens"), where)

    def content_name(self, stream: int, start: int) -> str:
        """Return what people call a shared stream."""
        own = stream - self.system.count
        return f"prompt {own}" if self.stored and own >= 0 else f"shared prefix {stream}"

    def is_stored(self, request: int) -> bool:
        """Say whether lower tiers hold the prompt of so many-th request, counted from 0, when a run begins."""
        return self.stored > 0 and int((request + 1) * self.stored + _SAME) > int(request * self.stored + _SAME)

    ordered = False
    """Whether prompts come in an order of their own, which may begin anew."""

    def bodies(self, first: int = 0) -> Iterator[Body]:
        """Yield bodies without end, the same each time it is called; ``first`` were sent before it began anew."""
        drawn = zip(count(first), self._prompts(), self._outputs(), self.classes.draws(), self.system.draws(),
                    strict=False)  # fmt: skip
        for place, prompt, output, cls, system in drawn:
            base = self.system.count if self.is_stored(place) else PRIVATE_STREAM_BASE
            own = (base + place, 0, prompt + output)
            if system:
                yield prompt + system[0][2], output, (*system, own), cls, -1
            else:
                yield prompt, output, (own,), cls, -1


class DocumentBodies(PlainBodies):
    """A question (``prompt_tokens``) about a shared document, behind an optional system prompt.

    ``group`` is the document's number.
    """

    def __init__(self, spec: Spec, streams: Streams, where: str) -> None:
        super().__init__(spec, streams, where)
        documents = need(spec, "documents", where)
        self.documents = Documents(documents, self.system.count, streams, f"{where}.documents")
        self._round: _Round | None = None

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether each document has a number of questions, all asked in one shuffled order, again and again."""
        return self.documents.questions is not None

    def content_name(self, stream: int, start: int) -> str:
        """Return what people call a shared stream: a document, a question about one, or a system prompt."""
        document = stream - self.system.count
        if document >= self.documents.count:
            asked = divmod(document - self.documents.count, self.documents.questions or 1)
            return f"question {asked[1]} about document {asked[0]}"
        return f"document {document}" if document >= 0 else super().content_name(stream, start)

    def bodies(self, first: int = 0) -> Iterator[Body]:
        """Yield bodies without end, the same each time it is called; ``first`` were sent before it began anew."""
        if self.ordered:
            yield from self._asked_in_order(first)
            return
        drawn = zip(super().bodies(first), self.documents.draws(), strict=False)
        for (prompt, output, spans, cls, _), (d, document) in drawn:
            yield prompt + document[2], output, (*spans[:-1], document, spans[-1]), cls, d

    def _asked_in_order(self, first: int) -> Iterator[Body]:
        """Yield each document with each of its questions once, shuffled, and again in the same order, without end.

        An answer is new each time.
        """
        if self._round is None:
            self._round = _Round(super().bodies(), self.documents, self.system.count)
        asked = self._round
        for sent in count():
            yield asked.body(sent % len(asked), PRIVATE_STREAM_BASE + first + sent)


class _Round:
    """Every question about every document, in the order in which they are asked, compactly: there may be many."""

    def __init__(self, drawn: Iterator[Body], documents: Documents, first_stream: int) -> None:
        self._documents = documents
        self._first_stream = first_stream + documents.count
        self._numbers = array("q", documents.order())
        self._questions, self._outputs = array("q"), array("q")
        self._behind: list[tuple[Spans, str]] = []
        """What each is asked behind, and its class."""
        for _prompt, output, spans, cls, _group in islice(drawn, len(self._numbers)):
            self._questions.append(spans[-1][2] - output)
            self._outputs.append(output)
            self._behind.append((spans[:-1], cls))

    def __len__(self) -> int:
        return len(self._numbers)

    def body(self, place: int, answer: int) -> Body:
        """Return the question at ``place`` of the order, its answer on stream ``answer``."""
        number, tokens, output = self._numbers[place], self._questions[place], self._outputs[place]
        system, cls = self._behind[place]
        d = number // (self._documents.questions or 1)
        document = self._documents.span(d)
        spans = (*system, document, (self._first_stream + number, 0, tokens), (answer, 0, output))
        return sum(length for _, _, length in spans[:-1]), output, spans, cls, d
