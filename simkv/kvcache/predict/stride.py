"""Every unit moves on by the shift between the last two steps: moving windows, scans, walks.

The idea of stride prefetchers in processors (Chen and Baer, IEEE Transactions on Computers 44(5), 1995: an address,
its stride, and whether the stride held), applied to sets of units. The choice of the shift is ours:

1. Shifts that are considered: none, the one found before, and those (in whole blocks) that bring more than half of
   the last step's newcomers from units of the step before.
2. The one under which most of the last step's units come from the step before wins; ties go to the one that explains
   more newcomers, then to the one found before, then to the smallest, forward first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkv.kvcache.predict.base import NOTHING, AnyUnits, Units

_NEWCOMERS = 64
"""So many newcomers are asked where they came from."""
_SHIFTS = 8
"""So many of the shifts that most of them name are tried on all units."""


class _Course(NamedTuple):
    """The last step of a sequence, and how it came from the one before."""

    step: int
    units: Units
    shift: int
    gap_steps: int
    came: NDArray[np.bool_]
    """Which of ``units`` the shift brings from the step before."""
    stayed: NDArray[np.bool_]
    """Which were there in the step before."""


class Stride:
    """Moves what it saw last; what the shift doesn't explain but has stayed is taken to stay."""

    def __init__(self, groups: int, lead: int) -> None:
        self._groups = groups
        self._lead = lead
        self._courses: dict[int, _Course] = {}

    def seen(self, sequence: int, step: int, units: AnyUnits) -> None:
        """Find the shift that brought ``units``."""
        here = np.array(units, np.int32)
        before = self._courses.get(sequence)
        if before is None:
            nowhere = np.zeros(here.size, np.bool_)
            self._courses[sequence] = _Course(step, here, 0, 1, nowhere, ~nowhere)
            return
        members = _Members(before.units)
        stayed = members.have(here)
        shift = self._shift(here, stayed, before, members)
        came = members.have(here - shift)
        self._courses[sequence] = _Course(step, here, shift, step - before.step, came, stayed)

    def predict(self, sequence: int, step: int, most_units: int) -> Units:
        """Return the units that follow the shift, moved on; then those that stay; then the rest, moved on."""
        course = self._courses.get(sequence)
        if course is None:
            return NOTHING
        ahead = step + self._lead - course.step
        units, moved = course.units, course.units + course.shift * ahead // course.gap_steps
        stays = course.stayed & ~course.came
        guess = np.concatenate((moved[course.came], units[stays], moved[~course.came & ~stays]))
        guess = guess[guess >= 0]
        first = np.sort(np.unique(guess, return_index=True)[1])
        return guess[first[: max(0, most_units)]]

    def forget(self, sequence: int) -> None:
        """Drop the course."""
        self._courses.pop(sequence, None)

    def _shift(self, here: Units, stayed: NDArray[np.bool_], before: _Course, members: _Members) -> int:
        newcomers = here[~stayed]
        if not newcomers.size or not before.units.size:
            return 0
        best, best_rank = 0, (-1, -1, False, 0, False)
        for shift in self._considered(newcomers, before):
            came = members.have(here - shift)
            explained = int(np.count_nonzero(came & ~stayed))
            rank = (int(np.count_nonzero(came)), explained, shift == before.shift, -abs(shift), shift > 0)
            if rank > best_rank:
                best, best_rank = shift, rank
        return best

    def _considered(self, newcomers: Units, before: _Course) -> list[int]:
        every = -(-newcomers.size // _NEWCOMERS)
        asked = newcomers[::every]
        shifts = np.subtract.outer(asked, before.units).ravel()
        low = int(shifts.min())
        votes = np.bincount(shifts - low)
        offsets = np.flatnonzero(2 * votes > asked.size)
        found = offsets + low
        whole = found % self._groups == 0
        found, votes = found[whole], votes[offsets[whole]]
        order = np.lexsort((found < 0, np.abs(found), -votes))[:_SHIFTS]
        return list(dict.fromkeys([0, before.shift, *found[order].tolist()]))


class _Members:
    """A set of units as a table of flags over their range."""

    def __init__(self, units: Units) -> None:
        self._low = int(units.min()) if units.size else 0
        self._flags = np.zeros(int(units.max()) - self._low + 1 if units.size else 1, np.bool_)
        self._flags[units - self._low] = True

    def have(self, units: Units) -> NDArray[np.bool_]:
        """Return which of ``units`` are in the set."""
        at = units - self._low
        inside = (at >= 0) & (at < self._flags.size)
        found: NDArray[np.bool_] = self._flags[np.where(inside, at, 0)] & inside
        return found
