"""What is said, on stderr, of work that lasts long: before it starts, or when that shows."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simkv.estimate import Estimate
    from simkv.scenario.resolve import Resolved

_MOST_SHARE = 0.5


def announce(found: Estimate, resolved: Resolved, insist: bool) -> bool:
    """Say how long a run will take where that is long; return whether anything was said.

    Raises InputError for what would take days, or more memory than there is, unless somebody insists.
    """
    from simkv.estimate import check, told

    if not insist:
        check(resolved, found)
    if text := told(found):
        print(text, file=sys.stderr, flush=True)
    return bool(text)


class Lasting:
    """Called with the share that is done; says once how long the rest takes, where nobody had said so before."""

    def __init__(self, say: Callable[[str], None], said: bool, doing: str = "this run takes") -> None:
        self._say = say
        self._said = said
        self._doing = doing
        self._start_s = time.monotonic()

    def __call__(self, fraction: float) -> None:
        """Note that ``fraction`` (0 to 1) is done."""
        if self._said:
            return
        from simkv.estimate import TOLD_S, spoken

        elapsed_s = time.monotonic() - self._start_s
        if elapsed_s < TOLD_S / 2:
            return
        self._said = True
        if fraction <= 0:
            self._say(f"{self._doing} long: after {spoken(elapsed_s)} nothing is done yet; Ctrl-C ends it")
        elif fraction < _MOST_SHARE:
            more = spoken(elapsed_s * (1 - fraction) / fraction)
            self._say(f"{self._doing} about {more} more: {fraction:.0%} was done in {spoken(elapsed_s)}")
