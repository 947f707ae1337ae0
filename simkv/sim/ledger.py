"""Transfers that are under way on one host: who waits for them, what carries them, and what was refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simkv.sim.fabric import DEMAND, Lane, Transfer

Done = Callable[[], None]


@dataclass(slots=True)
class SwapCounts:
    """What preemption by swap moved."""

    requests: int = 0
    """Preemptions after which something was kept in DRAM."""
    refused: int = 0
    """Preemptions for which DRAM had no room: they computed again."""
    out_blocks: int = 0
    in_blocks: int = 0


class Ledger:
    """Transfers of one host by their ids; its replicas share it."""

    def __init__(self, number: int = 0, of: int = 1) -> None:
        """The ``number``-th ``of`` so many: a transfer has an id that none of another host has."""
        self._of = of
        self.last = number + 1 - of
        self.waiters: dict[int, list[Done]] = {}
        self.carriers: dict[int, tuple[Lane, Transfer]] = {}
        self.refused_stores = 0
        self.swaps = SwapCounts()
        self.room: list[Done] = []
        """Called when something was let go of, so that a store that was refused may fit."""

    def open(self) -> int:
        """Return a new transfer's id."""
        self.last += self._of
        self.waiters[self.last] = []
        return self.last

    def drop(self, transfer: int) -> None:
        """Forget a transfer that found no room and never began."""
        del self.waiters[transfer]

    def close(self, transfer: int) -> None:
        """Tell everybody who waits for ``transfer``."""
        self.carriers.pop(transfer, None)
        for call in self.waiters.pop(transfer):
            call()
        for call in self.room:
            call()

    def follow(self, transfer: int, call: Done) -> None:
        """Have ``call`` made when ``transfer`` is through, whenever that is."""
        self.waiters[transfer].append(call)

    def wait(self, transfer: int, call: Done, rank: int) -> None:
        """Have ``call`` made when ``transfer`` is through, which is as urgent as who waits from now on."""
        self.follow(transfer, call)
        if transfer in self.carriers:
            lane, carried = self.carriers[transfer]
            lane.urge(carried, DEMAND, rank)
