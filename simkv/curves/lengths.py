"""How long a workload's requests are on average, from the workload alone: nothing is simulated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from simkv.errors import InfeasibleError
from simkv.workload.request import Request, Source

MOST = 2000
"""Requests that are looked at."""


class Lengths(NamedTuple):
    """Mean tokens of a request, rounded."""

    prompt_tokens: int
    output_tokens: int
    requests: int
    """How many were looked at."""


def mean_lengths(source: Source, most: int = MOST) -> Lengths:
    """Return the mean lengths of the first ``most`` requests, what follows each directly after it.

    Raises InfeasibleError where there is none.
    """
    prompts = outputs = count = 0
    for request in _in_turn(source):
        prompts, outputs, count = prompts + request.prompt_tokens, outputs + request.output_tokens, count + 1
        if count == most:
            break
    if not count:
        raise InfeasibleError("the workload has no request: there is nothing to draw curves of")
    return Lengths(max(1, round(prompts / count)), max(1, round(outputs / count)), count)


def _in_turn(source: Source) -> Iterator[Request]:
    """Yield requests as if each ended at its arrival, sessions one after the other."""
    for first in source.arrivals():
        waiting = [first]
        while waiting:
            request = waiting.pop(0)
            yield request
            waiting[:0] = source.after(request, request.arrival_s, True)
