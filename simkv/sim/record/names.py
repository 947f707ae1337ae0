"""Numbers that all windows of a run have in common."""

from __future__ import annotations

from collections.abc import Hashable

from simkv.sim.record.errand import Errand

_EXPECTED = -(1 << 60)
"""Numbers of transfers below this stand for those that are known when they are through."""


class Names:
    """Numbers of labels, and of transfers that the ledger doesn't know."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._labels: dict[Hashable, int] = {}
        self._transfers = 0
        self._expected = _EXPECTED
        self._came: dict[int, int] = {}
        self.ended = 0
        """The transfer that ended last."""

    def label(self, key: Hashable, text: str) -> int:
        """Return the number of ``key``."""
        number = self._labels.get(key)
        if number is None:
            number = self._labels[key] = len(self.texts)
            self.texts.append(text)
        return number

    def number(self, errand: Errand) -> int:
        """Return the number of a transfer; below 0 where it has none in the ledger."""
        if not errand.number:
            self._transfers -= 1
            errand.number = self._transfers
        return errand.number

    # ---- transfers that are known when they are through

    def expect(self) -> int:
        """Return a number for the transfer that something will come with."""
        self._expected -= 1
        return self._expected

    def came(self, expected: int) -> None:
        """What was expected came with the transfer that ended last."""
        self._came[expected] = self.ended

    def carrier(self, transfer: int) -> int:
        """Return the number of the transfer that ``transfer`` stands for; 0: it isn't known."""
        return self._came.get(transfer, 0) if transfer <= _EXPECTED else transfer
