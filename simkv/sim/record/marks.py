"""When uses of a prefix index were: the index counts them and has no clock, so the count is noted now and then."""

from __future__ import annotations

from bisect import bisect_left
from math import nan


class Marks:
    """Counts of uses with the times at which they had been reached."""

    def __init__(self) -> None:
        self._counts: list[int] = []
        self._times_s: list[float] = []

    def note(self, now: float, count: int) -> None:
        """Note that by ``now`` there were ``count`` uses."""
        if not self._counts or count > self._counts[-1]:
            self._counts.append(count)
            self._times_s.append(now)

    def when_s(self, count: int) -> float:
        """Return when the use number ``count`` had been at the latest; nan where it was before the first note."""
        at = bisect_left(self._counts, count)
        return nan if at == 0 or at == len(self._counts) else self._times_s[at]
