"""Sparse access: fetching what the next step will read, while this one computes.

What is predicted and not in VRAM gets room (never that of what this step reads) and comes in layer by layer, behind
demand traffic. At most ``lead`` such flights are under way: a link that can't keep up isn't asked for more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from simkv.kvcache.access import ReplayAccess
from simkv.kvcache.predict import Predictor, make_predictor, stated_accuracy
from simkv.rng import stream
from simkv.sim.active.config import ActiveConfig
from simkv.sim.active.earned import NOBODY, EarnedShare, Ids, Reads
from simkv.sim.active.homes import NOWHERE
from simkv.sim.active.measured import Measured
from simkv.sim.active.sequence import Sequence
from simkv.sim.active.traffic import Pieces, Traffic
from simkv.sim.active.work import Flight, Late, group_of
from simkv.sim.fabric import NEXT_STEP
from simkv.sim.record.errand import USEFUL, WASTED

Guess = Callable[[Sequence, int, Ids], Ids]
"""(sequence, its step, units that it reads in it) to the units that step + lead may read."""


class NextStep:
    """The prefetcher of one replica, and what became of what it fetched."""

    def __init__(self, config: ActiveConfig, share: EarnedShare, traffic: Traffic) -> None:
        self.config = config
        self.share = share
        self.traffic = traffic
        self.lead = config.prefetch.lead
        self.layers = config.layers
        self._flights: list[Flight] = []
        self._unread = np.zeros(0, np.bool_)
        """By arena id: was fetched, and nobody has read it since."""
        self._bringing = np.zeros(0, np.int64)
        """By arena id: the number of the flight that brought it last."""
        self._judged: dict[int, Flight] = {}
        """Recorded flights of which nobody knows yet what they were good for."""
        self._launched = 0
        self._predictor: Predictor | None = None
        self._guess = self._make_guess()
        self._rng = stream(config.seed, "prefetch.accuracy")

    @property
    def foreseen(self) -> Measured:
        """Return where prefetches are booked."""
        return self.traffic.foreseen

    # ---- guessing

    def _make_guess(self) -> Guess:
        prefetch = self.config.prefetch
        if prefetch.policy == "oracle":
            return self._known
        if prefetch.accuracy is not None:
            return self._stated
        if prefetch.predictor == "replay":
            return self._logged
        self._predictor = make_predictor(prefetch.predictor or "last_step", self.share.groups, self.lead)
        return self._predicted

    def _known(self, seq: Sequence, step: int, units: Ids) -> Ids:
        if seq.live.generated + self.lead >= seq.live.request.output_tokens:
            return NOBODY
        assert seq.access is not None
        return seq.access.reads(step + self.lead)

    def _stated(self, seq: Sequence, step: int, units: Ids) -> Ids:
        """Of what must be fetched for the step, so much is right; wrong is what could come and isn't read then."""
        true = self._known(seq, step, units)
        assert self.config.prefetch.accuracy is not None
        absent = self._absent(seq)
        missing = true[absent[true]]
        guess = stated_accuracy(
            missing, np.setdiff1d(absent.nonzero()[0], true), self.config.prefetch.accuracy, self._rng
        )
        return np.concatenate((true[~absent[true]], guess))

    def _logged(self, seq: Sequence, step: int, units: Ids) -> Ids:
        assert isinstance(seq.access, ReplayAccess)
        return seq.access.prefetches(step)

    def _predicted(self, seq: Sequence, step: int, units: Ids) -> Ids:
        assert self._predictor is not None
        key = seq.live.request.id
        self._predictor.seen(key, step, units)
        return self._predictor.predict(key, step, len(units))

    # ---- fetching

    def launch(self, reads: Reads, now: int) -> list[Flight]:
        """Begin to fetch for the step ``lead`` from now; returns the flight, if one began."""
        self.foreseen.guesses += 1
        wanted = [NOBODY]
        for seq, begin, end in reads.parts():
            units = reads.ids[begin:end] - seq.base
            guess = self._guess(seq, seq.step(self.share.computed_here), units).astype(np.int64)
            wanted.append(seq.base + self._can_come(seq, guess))
        if len(self._flights) >= self.lead:
            return []
        share = self.share
        ids = np.concatenate(wanted)
        admitted = share.set.admit(ids, now, np.concatenate([reads.ids, ids]))
        flights = [self._fly(admitted.entered)] if len(admitted.entered) else []
        share.went(admitted.evicted, admitted.evicted_dirty)
        share.blocks_managed += len(ids) + len(admitted.evicted)
        return flights

    def _absent(self, seq: Sequence) -> NDArray[np.bool_]:
        """Return by unit of ``seq``, those of a block to come included, whether it lies below VRAM alone."""
        units = np.arange(len(seq.homes.at) * self.share.groups)
        ids = seq.base + units
        absent: NDArray[np.bool_] = ~(self.share.set.resident(ids) | self.share.set.pending(ids))
        absent &= seq.homes.at[units // self.share.groups] != NOWHERE
        return absent

    def _can_come(self, seq: Sequence, units: Ids) -> Ids:
        """Return those of ``units`` that ``seq`` has below VRAM."""
        known = units[units < seq.blocks * self.share.groups]
        below: Ids = known[seq.homes.at[known // self.share.groups] != NOWHERE]
        return below

    def _fly(self, ids: Ids) -> Flight:
        share, foreseen = self.share, self.foreseen
        flight = Flight(ids, self.layers, self._landed)
        self._flights.append(flight)
        self._launched += 1
        self._mark(ids)
        if self.traffic.tiers.h2d.log is not None:
            self._judged[self._launched] = flight
        dram, ssd = np.zeros(share.groups, np.int64), np.zeros(share.groups, np.int64)
        for seq, own in share.by_owner(ids):
            share.count(seq, own, dram, ssd)
        share.moved_up(ids)
        began_s = foreseen.prefetch_s
        for layer in range(self.layers):
            group = group_of(layer, self.layers, share.groups)
            pieces = Pieces(int(dram[group]), int(ssd[group]))
            foreseen.prefetched += len(pieces)
            foreseen.prefetch_bytes += len(pieces) * self.traffic.piece_bytes
            if len(pieces):
                foreseen.prefetch_s += self.traffic.service_s(pieces)
                flight.loads[layer] = self.traffic.up(pieces, NEXT_STEP, partial(flight.layer_arrived, layer))
            else:
                flight.layer_arrived(layer)
        flight.service_s = (foreseen.prefetch_s - began_s) / self._pieces(ids)
        return flight

    def _landed(self, flight: Flight) -> None:
        self._flights.remove(flight)
        self.share.set.arrived(flight.ids)
        if self.share.watch is not None:
            self.share.watch.landed(flight)

    # ---- what became of it

    def late(self, reads: Reads, pending: Ids) -> list[Late]:
        """Return the flights that this step needs something of, and how much."""
        found = []
        for flight in self._flights:
            needed = pending & np.isin(reads.ids, flight.ids)
            if needed.any():
                first = needed & self._unread[np.minimum(reads.ids, len(self._unread) - 1)]
                found.append(Late(flight, self.share.by_group(reads, needed), self.share.by_group(reads, first)))
        return found

    def _mark(self, ids: Ids) -> None:
        if len(self._unread) <= ids.max():
            more = int(ids.max()) + 1
            self._unread = np.append(self._unread, np.zeros(more, np.bool_))
            self._bringing = np.append(self._bringing, np.zeros(more, np.int64))
        self._unread[ids] = True
        self._bringing[ids] = self._launched

    def read(self, ids: Ids) -> None:
        """Book those of ``ids``, read now and in VRAM or on their way, that were fetched for it."""
        ids = ids[ids < len(self._unread)]
        fetched = ids[self._unread[ids]]
        self._unread[fetched] = False
        self._judge(fetched, read=True)
        pieces = self._pieces(fetched)
        self.foreseen.used += pieces
        on_the_way = self._pieces(fetched[self.share.set.pending(fetched)])
        self.foreseen.timely += pieces - on_the_way
        self._carried(pieces - on_the_way)

    def went(self, ids: Ids) -> None:
        """Book those of ``ids``, evicted now, that were fetched in vain."""
        known = ids[ids < len(self._unread)]
        wasted = known[self._unread[known]]
        self._unread[wasted] = False
        self._waste(wasted)

    def end(self, seq: Sequence) -> None:
        """``seq`` is over: what is still on its way for it is nobody's, and what it hasn't read never will be."""
        first, last = seq.base, seq.base + len(seq.homes.at) * self.share.groups
        unread = np.flatnonzero(self._unread[first:last]) + first
        self._unread[first:last] = False
        self._waste(unread)
        for flight in self._flights:
            flight.ids = flight.ids[(flight.ids < first) | (flight.ids >= last)]
        if self._predictor is not None:
            self._predictor.forget(seq.live.request.id)

    def _judge(self, ids: Ids, read: bool) -> None:
        """Settle what recorded flights were good for: something of them is read, or nothing of them is left to be.

        Which layers of one that is still on its way come in time shows as the step reaches them.
        """
        if not self._judged:
            return
        for number, units in zip(*np.unique(self._bringing[ids], return_counts=True), strict=True):
            flight = self._judged.get(int(number))
            if flight is None:
                continue
            flight.unread -= int(units)
            if read or not flight.unread:
                del self._judged[int(number)]
                if flight not in self._flights:
                    flight.judge(USEFUL if read else WASTED)

    def _waste(self, ids: Ids) -> None:
        self._judge(ids, read=False)
        pieces = self._pieces(ids)
        if pieces:
            self.foreseen.wasted += pieces
            self.foreseen.wasted_bytes += pieces * self.traffic.piece_bytes
            self.foreseen.wasted_s += self._mean_s() * pieces

    def _carried(self, pieces: int) -> None:
        """Fetched pieces that were there in time: the link carried them, and all of that was hidden."""
        seconds = self._mean_s() * pieces
        self.traffic.measured.carried_s += seconds
        self.traffic.measured.needed_s += seconds

    def _mean_s(self) -> float:
        foreseen = self.foreseen
        return foreseen.prefetch_s / foreseen.prefetched if foreseen.prefetched else 0.0

    def _pieces(self, ids: Ids) -> int:
        """Return the (block, layer) pieces of units."""
        if not len(ids):
            return 0
        if self.share.groups == 1:
            return len(ids) * self.layers
        total = 0
        for seq, own in self.share.by_owner(ids):
            groups = (own - seq.base) % self.share.groups
            total += int(self.share.layers_of[groups].sum())
        return total
