"""Load in stages, as load generators apply it: each begins when the one before it has been served to the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, count, islice

import numpy as np

from simkv.workload.bodies import Body, PlainBodies
from simkv.workload.request import Request
from simkv.workload.single import Limits
from simkv.workload.spec import Spec, bad, need, number
from simkv.workload.streams import Streams

MOST_REQUESTS = 1_000_000
"""Of one stage, whose arrivals are drawn together."""
_ROUNDING = 1e-9
"""Keeps 0.29 req/s for 100 s from being 28 requests."""


class StagedSource:
    """Poisson arrivals at one rate after the other; a pause goes from the last end of a stage to the next one's start.

    A stage is ``rate * duration`` requests, whatever time they take, and a class of requests by itself. A workload
    whose prompts have an order (documents with ``questions``) begins it anew in each stage.
    """

    def __init__(self, content: PlainBodies, arrival: Spec, streams: Streams, limits: Limits, where: str) -> None:
        self._content = content
        self._stages = [_stage(one, f"{where}.stages.{i}") for i, one in enumerate(need(arrival, "stages", where))]
        self._pause_s = number(arrival.get("pause") or 0.0, f"{where}.pause", 0)
        self._streams = streams
        self._limits = limits
        self.class_names = tuple(f"stage-{i}" for i in range(1, len(self._stages) + 1))
        """Every value that ``Request.cls`` can take."""
        self._restart()

    def arrivals(self) -> Iterator[Request]:
        """Yield the first stage's requests; each call starts the workload over."""
        self._restart()
        yield from self._next_stage(0.0)

    def after(self, request: Request, ended_s: float, finished: bool) -> tuple[Request, ...]:
        """Return the next stage's requests once the last of this one has ended; () before that."""
        self._open -= 1
        if self._open or self._stage == len(self._stages):
            return ()
        return self._next_stage(ended_s + self._pause_s)

    def content_name(self, stream: int, start: int) -> str:
        """Return what people call a shared stream."""
        return self._content.content_name(stream, start)

    def session_over(self, request: Request) -> bool:
        """Return False: there are no sessions."""
        return False

    def expected_requests(self) -> int:
        """Return how many requests it makes where nothing cuts it short."""
        whole = sum(requests for _, requests in self._stages)
        return whole if self._limits.requests is None else min(whole, self._limits.requests)

    def _restart(self) -> None:
        self._stage = self._sent = self._open = 0
        self._rng = self._streams("arrivals")
        self._bodies = self._content.bodies()

    def _next_stage(self, start_s: float) -> tuple[Request, ...]:
        rate, requests = self._stages[self._stage]
        cls = self.class_names[self._stage]
        self._stage += 1
        most = self._limits.requests
        requests = requests if most is None else min(requests, most - self._sent)
        times = _times(start_s, rate, requests, self._rng)
        made = tuple(
            _request(i, at_s, body, cls)
            for i, at_s, body in zip(count(self._sent), times, self._bodies_of_stage(), strict=False)
            if self._limits.open(at_s)
        )
        self._sent += requests
        self._open = len(made)
        return made

    def _bodies_of_stage(self) -> Iterator[Body]:
        return self._content.bodies(self._sent) if self._content.ordered else self._bodies


def _stage(spec: Spec, where: str) -> tuple[float, int]:
    """Return a stage's rate and number of requests."""
    rate = number(need(spec, "rate", where), f"{where}.rate", 0, above=True)
    requests = rate * number(need(spec, "duration", where), f"{where}.duration", 0, above=True) + _ROUNDING
    if not 1 <= requests < MOST_REQUESTS + 1:
        mend = f"rate times duration must be 1 to {MOST_REQUESTS:,}"
        raise bad(where, None, f"is {requests:,.0f} requests" if requests >= 1 else "is less than one request", mend)
    return rate, int(requests)


def _times(start_s: float, rate: float, requests: int, rng: np.random.Generator) -> Iterator[float]:
    gaps: Sequence[float] = rng.exponential(1 / rate, requests).tolist()
    return islice(accumulate(gaps, initial=start_s), 1, None)


def _request(i: int, arrival_s: float, body: Body, cls: str) -> Request:
    prompt, output, spans, _, group = body
    return Request(i, arrival_s, prompt, output, spans, -1, 0, cls, group)
