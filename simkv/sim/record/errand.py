"""What a transfer is for, and what became of it where it was a prefetch: told by whoever submits it."""

from __future__ import annotations

from simkv.sim.record.recording import FATES, PURPOSES

OTHER, LOAD, PROMOTE, PREFETCH, STORE, SPILL, CASCADE, SWAP_OUT, SWAP_IN, STREAM = range(len(PURPOSES))
NO_FATE, USEFUL, LATE, WASTED, OPEN = range(len(FATES))


class Errand:
    """Goes along with a transfer; nothing of the run depends on it."""

    __slots__ = ("fate", "number", "purpose", "request")

    def __init__(self, purpose: int = OTHER, request: int = -1, number: int = 0, fate: int = NO_FATE) -> None:
        self.purpose = purpose
        self.request = request
        """For whom, -1: for nobody in particular."""
        self.number = number
        """Of the transfer in the ledger; 0: it has none there."""
        self.fate = fate

    def judge(self, fate: int) -> None:
        """Settle what became of a prefetch; what was settled before stays."""
        if self.fate == OPEN:
            self.fate = fate
