"""Who wants to see where the blocks of running sequences are; nothing of a run depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from numpy.typing import NDArray

if TYPE_CHECKING:
    from simkv.sim.active.sequence import Sequence
    from simkv.sim.active.work import Flight, Work
    from simkv.sim.ledger import Done


class Move(NamedTuple):
    """One read, or prefetch, of a block taken in turn, and what it moved."""

    sequence: Sequence
    block: int
    loaded: bool
    """It wasn't in VRAM."""
    read: bool
    evicted: list[tuple[Sequence, int]]
    """What left VRAM for it, the block itself perhaps."""
    homes: list[tuple[Sequence, int, int, int]]
    """Blocks that moved below VRAM: (sequence, block, where it was, where it is)."""


class Watch(Protocol):
    """Told by one replica's engine when something may have moved."""

    def look(self) -> None:
        """Sequences may have come, grown, moved or gone."""

    def begins(self, work: Work) -> None:
        """A step begins: what it reads is known, and what that lets in and evicts."""

    def settled(self) -> None:
        """A step is over: what it loaded is here."""

    def landed(self, flight: Flight) -> None:
        """What was fetched ahead is here."""

    def writing(self, seq: Sequence, blocks: NDArray[Any]) -> Done:
        """``blocks`` of ``seq`` are on their way down; what is returned is to be called when they are there."""

    def deciding(self) -> None:
        """A step begins whose reads are taken one at a time: all of them are decided now, and told as they go."""

    def in_turn(self, moves: list[Move]) -> None:
        """They are decided."""

    def loading(self) -> None:
        """The next of these loads begins, or the last is through."""
