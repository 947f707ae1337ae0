"""The bytes of a real run: what the simulator's classes ask to be moved, handed to the lanes."""

from __future__ import annotations

from typing import Any, NamedTuple

from simkv.calibrate.copies import Ticket
from simkv.calibrate.verify.rig import Rig
from simkv.sim.active.traffic import Pieces, Traffic
from simkv.sim.ledger import Done
from simkv.sim.record.errand import STORE, Errand


def all_of(number: int, call: Done | None) -> Done | None:
    """Return what is to be called ``number`` times, and makes ``call`` the last time."""
    if call is None or number == 1:
        return call
    left = number

    def one() -> None:
        nonlocal left
        left -= 1
        if not left:
            call()

    return one


class Route(NamedTuple):
    """Where units come from, and where they go: of their pieces in the first layer, places of a tier and rows."""

    tier: str
    places: list[int]
    rows: list[int]


class RealTraffic(Traffic):
    """Bytes that really move. Prefetches are begun by the runner, which knows the slots."""

    rig: Rig

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.asked: list[Done] = []
        """Calls to make as the layers of the flight that is being begun arrive."""
        self.writing: list[Route] = []
        """What the next ``down`` writes, all layers of it."""
        self.written: list[tuple[Ticket, frozenset[int]]] = []
        """Writes under way, and the slots of the pool that they are taken from."""

    def up(self, pieces: Pieces, priority: int, done: Done, errand: Errand | None = None) -> Any:
        """Keep what to call when this layer of a prefetch is here."""
        self.asked.append(done)
        return pieces

    def down(
        self, pieces: Pieces, done: Done | None = None, purpose: int = STORE, request: int = -1, number: int = 0
    ) -> None:
        """Write what :attr:`writing` names down in the background."""
        if not len(pieces):
            return
        self.begun_writes += 1
        writing, self.writing = self.writing, []

        def written() -> None:
            if done is not None:
                done()
            self._written()

        through = all_of(len(writing), written)
        for route in writing:
            slots = frozenset(row % self.rig.hot.slots for row in route.rows)
            self.written.append((self.rig.copies.store(*route, done=through), slots))

    def let_go(self, slots: set[int]) -> None:
        """Wait for what is still being written from ``slots``, which others are about to fill."""
        for ticket, taken_from in self.written:
            if slots & taken_from:
                ticket.wait()

    def when_written(self, writes: int, call: Done) -> None:
        """Wait until ``writes`` write-backs are through, then make ``call``."""
        while self.ended_writes < writes:
            self.written.pop(0)[0].wait()
            self.rig.copies.poll()
        call()
