"""Contiguous regions of one arena of unit ids: handed out, given back, used again."""

from __future__ import annotations

from bisect import bisect_left


class Regions:
    """First fit over the free stretches, which are merged as regions come back."""

    def __init__(self) -> None:
        self.end = 0
        """One past the highest id in use."""
        self._taken: dict[int, int] = {}
        self._free: list[tuple[int, int]] = []

    def take(self, units: int) -> int:
        """Return the first id of ``units`` free ids in a row; ``end`` grows where no stretch is long enough."""
        assert units > 0, "a region without units"
        base = self._from_free(units)
        if base is None:
            base, self.end = self.end, self.end + units
        self._taken[base] = units
        return base

    def units(self, base: int) -> int:
        """Return how many ids the region at ``base`` has; KeyError where none starts there."""
        return self._taken[base]

    def give(self, base: int) -> None:
        """Take the region at ``base`` back; KeyError where none starts there."""
        end = base + self._taken.pop(base)
        at = bisect_left(self._free, (base, 0))
        if at < len(self._free) and self._free[at][0] == end:
            end += self._free.pop(at)[1]
        if at and sum(self._free[at - 1]) == base:
            at -= 1
            base = self._free.pop(at)[0]
        if end == self.end:
            self.end = base
        else:
            self._free.insert(at, (base, end - base))

    def _from_free(self, units: int) -> int | None:
        for at, (base, free) in enumerate(self._free):
            if free == units:
                del self._free[at]
                return base
            if free > units:
                self._free[at] = (base + units, free - units)
                return base
        return None

    def open(self) -> list[tuple[int, int]]:
        """Return base and size of every region, ascending."""
        return sorted(self._taken.items())
