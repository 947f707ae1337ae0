"""Telling now and then how many requests have passed: for a progress bar, and as a moment for Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Tick = Callable[[int], None]
"""Told now and then how many requests have passed."""

_EVERY = 512


def silent(_: int) -> None:
    """Do nothing."""


def ticked(items: Iterable[T], tick: Tick) -> Iterator[T]:
    """Yield ``items`` and call ``tick`` after every 512 of them; what it raises ends the iteration."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _EVERY == 0:
            tick(number)
