"""Which places of a pool the repeats of a measurement use."""

from __future__ import annotations

from simkv.rng import stream


class Places:
    """Numbers below ``slots`` in a random order, the same each time that ``name`` is measured.

    None comes again before nearly all others have come: what was used last is out of the caches by then.
    """

    def __init__(self, slots: int, name: str) -> None:
        self._order: list[int] = stream(0, f"calibrate/{name}").permutation(slots).tolist()
        self._next = 0

    def take(self, number: int) -> list[int]:
        """Return the next ``number`` places, all different; mutates. ``number`` is at most ``slots``."""
        if self._next + number > len(self._order):
            self._next = 0
        begun, self._next = self._next, self._next + number
        return self._order[begun : self._next]
