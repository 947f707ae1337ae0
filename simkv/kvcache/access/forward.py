"""Reads that follow from one another: made in order of steps, kept for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simkv.kvcache.access.base import Units

KEPT = 32
"""Steps before the highest that was asked that can be asked again at no cost."""


class Forward:
    """Reads of one sequence, taken from an iterator over its steps.

    A step further back than ``KEPT`` starts the iterator anew: the same reads, at the cost of all
    steps before. Steps that are leapt over are made and forgotten.
    """

    def __init__(self, start: Callable[[], Iterator[Units]]) -> None:
        """``start`` returns the reads of steps 0, 1, ... without end, always the same ones."""
        self._start = start
        self._restart()

    def reads(self, step: int) -> Units:
        """Return what ``step`` (0 or more) reads."""
        if step < self._first:
            self._restart()
        while step >= self._first + len(self._made):
            self._made.append(next(self._steps))
            if len(self._made) > 2 * KEPT:
                del self._made[:KEPT]
                self._first += KEPT
        return self._made[step - self._first]

    def _restart(self) -> None:
        self._steps = self._start()
        self._made: list[Units] = []
        self._first = 0
