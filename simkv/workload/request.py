"""What a workload hands to the simulator: requests, and the content of their tokens.

Token content is described by *spans*, never by tokens: a span ``(stream, start, length)``
says "tokens ``start .. start+length-1`` of stream ``stream``". Two positions hold the same
token exactly when stream and offset agree, so two prompts share a prefix exactly as far as
their spans agree. A chat session is one growing stream; a system prompt is a stream of its
own; a trace row with chained block hashes is a few runs of one stream; a prompt that shares
nothing is one private stream.

Stream numbers from :data:`PRIVATE_STREAM_BASE` up are *private*: they belong to one request and
no other request ever names them, so nobody needs to remember their content once the request has
ended. Numbers below it (system prompts, documents, sessions, trace blocks) may come again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

Span = tuple[int, int, int]
"""``(stream, start_token, length_tokens)``; ``length_tokens`` > 0."""

Spans = tuple[Span, ...]

PRIVATE_STREAM_BASE = 1 << 40
"""Streams at or above this number are never shared with another request."""

OLD_STREAM = PRIVATE_STREAM_BASE << 8
"""Streams from here on are content that was there before a run and that nobody asks for again."""


@dataclass(slots=True, eq=False)
class Request:
    """One request as it arrives; immutable by convention, never changed by the simulator.

    ``spans`` covers the prompt *and* the output, ``prompt_tokens + output_tokens`` tokens in
    all, adjacent contiguous spans of one stream merged.
    """

    id: int
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    spans: Spans
    session: int = -1
    turn: int = 0
    cls: str = ""
    group: int = -1
    """Number of the shared document that it asks about; -1: none."""


class Source(Protocol):
    """A workload: open arrivals in time order, and what follows when a request ends."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """Every value that ``Request.cls`` can take."""

    def arrivals(self) -> Iterator[Request]:
        """Yield requests whose time doesn't depend on the run, ``arrival_s`` never falling; lazily."""

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return the requests that follow ``request`` (next turn, next of a user); () where none does.

        Called once for each request, when it has finished (or was rejected: ``finished`` False)
        at ``ended_s``; each follower's ``arrival_s`` is at or after ``ended_s``.
        """

    def session_over(self, request: Request) -> bool:
        """Return whether no request will name the content of ``request``'s session again.

        Asked after :meth:`after`, of requests that belong to a session.
        """


@runtime_checkable
class Named(Protocol):
    """A source that can tell what the content of its streams is."""

    def content_name(self, stream: int, start: int) -> str:
        """Return what people call the content of a shared ``stream`` from token ``start`` on; empty: nothing."""


@runtime_checkable
class Storing(Protocol):
    """A source of which lower tiers may hold prompts when a run begins."""

    def stored(self) -> Iterator[Request]:
        """Yield the requests whose prompts they hold, in the order in which these came there."""


@runtime_checkable
class Countable(Protocol):
    """A source that can tell about how many requests it will make."""

    def expected_requests(self) -> int:
        """Return about how many, at least 1, for a progress bar."""
