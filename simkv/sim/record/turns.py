"""Reads that are taken one at a time, told as their transfers go.

The resident set decides all of a step's reads as the step begins; their loads follow one another. Here a block takes
its room, and who makes it goes, when its load begins, and it is there when that is through. A block that itself has
to go for its own load was there for the instant of its read: it comes, is used and goes as its load ends.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from simkv.sim.record.held import AWAY, COMES, IS_HERE

if TYPE_CHECKING:
    from simkv.sim.active.watch import Move
    from simkv.sim.record.sequences import SequenceLog


class Turns:
    """The reads of one step that are still to be told."""

    def __init__(self, log: SequenceLog) -> None:
        self._log = log
        self.clear()

    def clear(self) -> None:
        """Forget them."""
        self._moves: deque[Move] = deque()
        self._loaded: Move | None = None
        self._number = 0

    @property
    def busy(self) -> bool:
        """Whether something is still to be told."""
        return bool(self._moves) or self._loaded is not None

    def begin(self, moves: list[Move]) -> None:
        """A step begins."""
        self.clear()
        self._moves.extend(moves)
        self._found()

    def loading(self) -> None:
        """The next load begins, if there is one: that before is through."""
        self._through()
        self._found()
        if self._moves:
            self._load(self._moves.popleft())

    def _found(self) -> None:
        """Tell of reads that find what they read, up to the next load."""
        while self._moves and not self._moves[0].loaded:
            self._read(self._moves.popleft())

    def _read(self, move: Move) -> None:
        if move.read:
            self._log.use(move.sequence, move.block)

    def _load(self, move: Move) -> None:
        self._loaded, self._number = move, self._log.names.expect()
        itself = (move.sequence, move.block)
        for seq, block, before, _ in move.homes:
            if before:
                self._log.put(seq, block, before, AWAY)
        for seq, block in move.evicted:
            if (seq, block) != itself:
                self._log.put(seq, block, 0, AWAY)
        for seq, block, _, after in move.homes:
            if after and (seq, block) != itself:
                self._log.put(seq, block, after, IS_HERE)
        if itself not in move.evicted:
            self._log.put(*itself, 0, COMES, self._number)

    def _through(self) -> None:
        move, self._loaded = self._loaded, None
        if move is None:
            return
        itself = (move.sequence, move.block)
        self._log.names.came(self._number)
        self._log.put(*itself, 0, IS_HERE, self._number)
        self._read(move)
        if itself in move.evicted:
            self._log.put(*itself, 0, AWAY)
            for seq, block, _, after in move.homes:
                if after and (seq, block) == itself:
                    self._log.put(*itself, after, IS_HERE)
