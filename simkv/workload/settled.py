"""When a workload has come into its steady state, told by the workload alone: how old what it reuses is."""

from __future__ import annotations

from simkv.workload.request import PRIVATE_STREAM_BASE, Request

AGE = 0.75
"""What comes back after more than this share of the time so far is told too late to be sure of."""
TOLERANCE = 0.02
"""Of the prompt tokens of a stretch: with no more unsettled, longer warming changes nothing relevant."""


class Settling:
    """Looks at requests in order of arrival, stretch by stretch.

    Unsettled are prompt tokens of content that was named last longer ago than three quarters of the time so far, of
    a document that is asked about for the first time, and of sessions that are older than that: until sessions have
    begun and ended for a while, there are fewer than there will be.
    """

    def __init__(self) -> None:
        self._named: dict[int, tuple[float, int]] = {}
        """By stream: when it was named last, and how much of it."""
        self._begun_s: dict[int, float] = {}
        self._first_s = 0.0
        self._tokens = self._unsettled = 0

    def add(self, request: Request) -> None:
        """Look at an arrival."""
        now = request.arrival_s
        if not self._tokens and not self._named:
            self._first_s = now
        since_s = now - AGE * (now - self._first_s)
        self._tokens += request.prompt_tokens
        old, at = 0, 0
        named = self._named
        for stream, start, length in request.spans:
            if stream >= PRIVATE_STREAM_BASE:
                break
            last_s, known = named.get(stream, (now, 0))
            tokens = min(length, request.prompt_tokens - at)
            if last_s < since_s:
                old += max(0, min(tokens, known - start))
            elif request.group >= 0 and not known:
                old += tokens
            named[stream] = now, max(known, start + length)
            at += length
        if request.session >= 0 and self._begun_s.setdefault(request.session, now) < since_s:
            old = request.prompt_tokens
        self._unsettled += min(old, request.prompt_tokens)

    def over(self, request: Request) -> None:
        """Forget a session that is over, and its content."""
        self._begun_s.pop(request.session, None)
        own = next((stream for stream, _, _ in reversed(request.spans) if stream < PRIVATE_STREAM_BASE), -1)
        self._named.pop(own, None)

    def stretch(self) -> bool:
        """End a stretch and begin the next; return whether the one that ends was settled."""
        settled = self._unsettled <= TOLERANCE * self._tokens
        self._tokens = self._unsettled = 0
        return settled
