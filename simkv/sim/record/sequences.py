"""Where the blocks of running sequences are under active offload, told as what changed since the last look.

Under sparse access blocks enter VRAM as steps read them, and what a step reads of what is there is used. Under dense
access the resident share is there and the rest in its home: what streams through in a step is a transfer, no block
that comes, and all are used in every step, which no row tells. Blocks are those of one request, who alone has them:
requests that begin alike have copies of their own in VRAM.

Thousands of blocks that a step reads here and there make thousands of rows: sequences are followed in the order that
they come in, as long as they have ``MOST_BLOCKS`` blocks together (one always is). What others hold is private.
"""

from __future__ import annotations

from functools import partial
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simkv.sim.active.earned import EarnedShare
from simkv.sim.active.in_turn import InTurnShare
from simkv.sim.record.held import AWAY, COMES, IS_HERE, Held, states, used_before
from simkv.sim.record.log import COMING, GONE, HERE, USED
from simkv.sim.record.runs import runs
from simkv.sim.record.turns import Turns

if TYPE_CHECKING:
    from simkv.sim.active.pipeline import StepRunner
    from simkv.sim.active.sequence import Sequence
    from simkv.sim.active.store import ActiveStore
    from simkv.sim.active.watch import Move, Watch
    from simkv.sim.active.work import Flight, Work
    from simkv.sim.ledger import Done
    from simkv.sim.record.labels import Labels
    from simkv.sim.record.log import Log
    from simkv.sim.record.names import Names
    from simkv.sim.record.pools import PoolLog

Row = tuple[int, int, int, int, int, int]
"""``(tier, what, label, first, end, transfer)``."""
MOST_BLOCKS = 8192
"""Of all sequences of a replica that are followed, each at its longest."""
_AS = {AWAY: GONE, COMES: COMING, IS_HERE: HERE}


class SequenceLog:
    """The sequences of one replica."""

    def __init__(
        self, store: ActiveStore, runner: StepRunner, tiers: list[PoolLog | None], labels: Labels, names: Names
    ) -> None:
        """``tiers``: the pools that it uses, VRAM first; None: it has none there."""
        self.store = store
        self.runner = runner
        self.names = names
        self._tiers = tiers
        self._labels = labels
        self._held: dict[Sequence, Held] = {}
        self._flights: dict[Flight, int] = {}
        self._turns = Turns(self)
        self._unread: list[tuple[Sequence, NDArray[Any]]] = []
        """Blocks that the step under way reads when they are here."""

    def tell(self, on: bool) -> None:
        """Look from now on, or no more; pools begin without names where nobody looked before."""
        if on and self.store.watch is None:
            self._forget()
            self.look(tell=False)
        watch: Watch | None = self if on else None
        self.store.watch = self.runner.watch = watch
        if isinstance(self.store.residency, EarnedShare):
            self.store.residency.watch = watch
        if not on:
            self._forget()

    def _forget(self) -> None:
        self._held, self._flights, self._unread = {}, {}, []
        self._turns.clear()
        self._wait(False)

    @property
    def behind(self) -> bool:
        """Whether rows are still to come of what the resident set has decided already."""
        return self._turns.busy

    # ---- what the engine tells (see sim.active.watch)

    def look(self, tell: bool = True) -> None:
        """Tell what has changed since the last look; ``tell`` False: only know it."""
        if self._turns.busy:
            return
        rows: list[Row] = []
        sequences = self.store.sequences
        for seq in [seq for seq in self._held if sequences.get(seq.live) is not seq]:
            over = self._held.pop(seq)
            self._change(over, [np.zeros_like(one) for one in over.tiers], rows)
        for seq in sequences.values():
            held = self._of(seq)
            if held is not None:
                self._change(held, states(seq, self.store.residency, held.writing), rows)
        if tell:
            self._write(rows)

    def begins(self, work: Work) -> None:
        """Tell what the step lets in, evicts and reads."""
        for flight in work.flights:
            self._take_off(flight)
        self.look()
        share = self.store.residency
        if not isinstance(share, EarnedShare):
            return
        self._unread = []
        for seq, ids in share.by_owner(share.reading):
            blocks = np.unique((ids - seq.base) // share.groups)
            held = self._of(seq)
            if held is not None:
                here = held.tiers[0][blocks] == IS_HERE
                self._write([(0, USED, held.label, *run, 0) for run in runs(blocks[here])])
                self._unread.append((seq, blocks[~here]))

    def settled(self) -> None:
        """Tell what has come in for the step that is over, and that it was used."""
        self.look()
        unread, self._unread = self._unread, []
        for seq, blocks in unread:
            held = self._held.get(seq)
            if held is not None:
                here = blocks[held.tiers[0][blocks] == IS_HERE]
                self._write([(0, USED, held.label, *run, 0) for run in runs(here)])

    def _take_off(self, flight: Flight) -> None:
        share = self.store.residency
        assert isinstance(share, EarnedShare)
        number = self._flights[flight] = self.names.expect()
        for seq, ids in share.by_owner(flight.ids):
            held = self._of(seq)
            if held is not None:
                groups = np.bincount((ids - seq.base) // share.groups, minlength=len(seq.homes.at))
                held.brought[0][groups == share.groups] = number

    def landed(self, flight: Flight) -> None:
        """Tell what has been fetched ahead."""
        number = self._flights.pop(flight, 0)
        if number:
            self.names.came(number)
        self.look()

    def writing(self, seq: Sequence, blocks: NDArray[Any]) -> Done:
        """Take blocks for being on their way down until that is called which is returned."""
        held = None if isinstance(self.store.residency, InTurnShare) else self._of(seq)
        if held is None:
            return lambda: None
        held.writing[blocks] += 1
        number = self.names.expect()
        for tier in (1, 2):
            held.brought[tier][blocks] = number
        return partial(self._written, seq, held, blocks, number)

    def _written(self, seq: Sequence, held: Held, blocks: NDArray[Any], number: int) -> None:
        held.writing[blocks] -= 1
        if self._held.get(seq) is held:
            self.names.came(number)
            self.look()

    def deciding(self) -> None:
        """Below VRAM pools change before it is told: what is private there is told again when all is."""
        self._wait(True)

    def in_turn(self, moves: list[Move]) -> None:
        """Tell of the reads load by load, as they go."""
        self._turns.begin(moves)
        self._wait(self._turns.busy)

    def loading(self) -> None:
        """The next of these loads begins, or the last is through."""
        self._turns.loading()
        self.look()
        self._wait(self._turns.busy)

    def _wait(self, waits: bool) -> None:
        for pool in self._tiers[1:]:
            if pool is not None and pool.waits != waits:
                pool.waits = waits
                pool.held()

    # ---- rows

    def put(self, seq: Sequence, block: int, tier: int, state: int, transfer: int = 0) -> None:
        """Tell that one block comes, is there or goes."""
        held = self._of(seq)
        if held is None or held.tiers[tier][block] == state:
            return
        self._count(tier, (state != AWAY) - int(held.tiers[tier][block] != AWAY))
        held.tiers[tier][block] = state
        self._write([(tier, _AS[state], held.label, block, block + 1, transfer)])

    def use(self, seq: Sequence, block: int) -> None:
        """Tell that one block is read."""
        held = self._of(seq)
        if held is not None:
            self._write([(0, USED, held.label, block, block + 1, 0)])

    def _of(self, seq: Sequence) -> Held | None:
        """Return what is known of ``seq``; None where it isn't followed."""
        held = self._held.get(seq)
        if held is None and (not self._held or self._followed() + len(seq.homes.at) <= MOST_BLOCKS):
            label = self._labels.of_request(seq.live.request, self.store.config.reuse)
            held = self._held[seq] = Held(label, len(seq.homes.at))
        return held

    def _followed(self) -> int:
        return sum(len(seq.homes.at) for seq in self._held)

    def _change(self, held: Held, now: list[NDArray[np.int8]], rows: list[Row]) -> None:
        """Take ``now`` for what is where, and add rows for what differs."""
        for tier, (old, new) in enumerate(zip(held.tiers, now, strict=True)):
            changed = np.flatnonzero(old != new)
            if not len(changed):
                continue
            brought = np.where((new != AWAY) & ((new == COMES) | (old == COMES)), held.brought[tier], 0)
            again = changed[(old[changed] == IS_HERE) & (new[changed] == COMES)]  # it went in between
            rows += [(tier, GONE, held.label, *run, 0) for run in runs(again)]
            for first, end in runs(changed, new, brought):
                rows.append((tier, _AS[int(new[first])], held.label, first, end, int(brought[first])))
            held.brought[tier][changed[new[changed] == AWAY]] = 0
            self._count(tier, int(np.count_nonzero(new)) - int(np.count_nonzero(old)))
        held.tiers = now

    def _count(self, tier: int, more: int) -> None:
        pool = self._tiers[tier]
        if pool is not None and more:
            pool.named += more
            pool.held()

    def _write(self, rows: list[Row]) -> None:
        """Write rows, what leaves before what comes: no tier is ever told to hold more than it has room for."""
        for row in sorted(rows, key=lambda row: row[1] != GONE):
            self._pool(row[0]).row(*row[1:])

    # ---- as a window begins

    def snapshot(self, log: Log, most: int, left_out: dict[PoolLog, int]) -> int:
        """Tell what is there, at most ``most`` runs; returns how many were told, and adds the other blocks by pool.

        What sequences that aren't followed have is private, and counted there.
        """
        told = 0
        for seq, held in self._held.items():
            uses = used_before(seq, self.store.residency)
            for tier, column in enumerate(held.tiers):
                for first, end in runs(np.flatnonzero(column), column, held.brought[tier]):
                    pool = self._pool(tier)
                    if told == most:
                        left_out[pool] = left_out.get(pool, 0) + end - first
                        continue
                    told += 1
                    number = int(held.brought[tier][first]) if column[first] == COMES else 0
                    often = int(uses[first:end].max()) if tier == 0 else 0
                    log.there(tier, pool.number, held.label, first, end, number, nan, often)
        return told

    def _pool(self, tier: int) -> PoolLog:
        pool = self._tiers[tier]
        assert pool is not None, "a block in a tier that isn't there"
        return pool
