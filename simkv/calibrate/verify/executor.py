"""A real executor in the place of the simulator's timeline: torch computes, threads move, the wall clock measures.

State and choice are the simulator's own objects: access pattern, resident set with its eviction policy, homes below,
prefetcher. Only time is real here. A step is asked for as in the simulator (``Work``); its reads are looked up in a
block table, what misses is loaded when its layer is reached, and what was prefetched is waited for where it is late.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from simkv.calibrate.backend import Tensor, load_torch
from simkv.calibrate.copies import Ticket
from simkv.calibrate.decode import decode_step
from simkv.calibrate.verify.pool import units_of
from simkv.calibrate.verify.rig import Observed, Rig
from simkv.calibrate.verify.traffic import RealTraffic, Route, all_of
from simkv.sim.active.assembly import Parts, assemble
from simkv.sim.active.config import ActiveConfig
from simkv.sim.active.earned import EarnedShare
from simkv.sim.active.engine import ActiveEngine
from simkv.sim.active.homes import DRAM
from simkv.sim.active.pipeline import StepRunner
from simkv.sim.active.sequence import Sequence
from simkv.sim.active.store import ActiveStore
from simkv.sim.active.traffic import Traffic
from simkv.sim.active.work import Flight, Work
from simkv.sim.fabric import DEMAND, NEXT_STEP
from simkv.sim.gauge import Gauge
from simkv.sim.ledger import Done
from simkv.sim.record.errand import STORE
from simkv.sim.replica import Surroundings


class RealRunner(StepRunner):
    """Runs a step on the device, and lets simulated time pass by as much as it took."""

    traffic: RealTraffic

    def __init__(self, traffic: Traffic, config: ActiveConfig, gauge: Gauge) -> None:
        super().__init__(traffic, config, gauge)
        self.rig: Rig
        self.engine: RealEngine
        self.observed = Observed()
        self.begun_s = 0.0
        self._torch = load_torch()
        self._flights: dict[int, Flight] = {}
        """By unit: the prefetch that brings it, or brought it and nobody has read it."""
        self._tickets: dict[Flight, list[list[Ticket]]] = {}
        """By prefetch and layer."""
        self._temporary: list[int] = []
        """Units that this step reads and that find no room to stay."""
        self._outputs: list[Tensor] = []
        self._tokens: Tensor | None = None

    def run(self, work: Work, over: Done) -> None:
        """Run the step whose reads were decided."""
        self.work, self._over = work, over
        seqs = self.engine.decoding
        found = self.engine.share.read(seqs)
        reads = [found.ids[begin:end] for _, begin, end in found.parts()]
        missing = self._place(seqs, reads)
        self._fly(work.flights)
        self._waited_s = 0.0
        fetched = {unit: self._flights[unit] for ids in reads for unit in units_of(ids) if unit in self._flights}
        fetched = {unit: flight for unit, flight in fetched.items() if flight not in work.flights}
        self._compute(seqs, reads, self._before(missing, fetched, sum(len(ids) for ids in reads)))
        for unit in fetched:
            del self._flights[unit]  # read: what is left of it counts as everything else does
        now = perf_counter()
        self.observed.steps_s.append(now - self.begun_s)
        self.observed.waited_s.append(self._waited_s)
        self.begun_s, passed = now, now - self.begun_s
        self.rig.hot.give(self._temporary)
        self._temporary = []
        self.after(passed, self.finish)

    # ---- the block table

    def prepare(self, seqs: list[Sequence]) -> None:
        """Put what is resident, and what lies in host memory, where a prefill would have left it; not timed."""
        hot, cold, units = self.rig.hot, self.rig.cold, self.engine.share.set
        cold.forget()
        for seq in seqs:
            ids = seq.base + np.arange(seq.blocks)
            for unit in units_of(ids[seq.homes.at[: seq.blocks] == DRAM]):
                cold.begin(unit)
            resident = units_of(ids[units.resident(ids)])
            hot.take(resident)
            for unit in resident:
                for layer in range(self.layers):
                    hot.memory[hot.row(unit, layer)].copy_(cold.content(unit, layer))
        self.rig.backend.synchronize()

    def _place(self, seqs: list[Sequence], reads: list[Any]) -> list[int]:
        """Bring the pool in line with the resident set; returns the units that this step must load."""
        hot, share = self.rig.hot, self.engine.share
        ids = np.concatenate([seq.base + np.arange(seq.blocks) for seq in seqs])
        held = set(units_of(ids[share.set.resident(ids) | share.set.pending(ids)]))
        gone = [unit for unit in hot.where if unit not in held]
        self.traffic.let_go({hot.where[unit] for unit in gone})
        hot.give(gone)
        for unit in gone:
            self._flights.pop(unit, None)
        entered = set(units_of(share.entered))  # some perhaps evicted and let in again at one boundary
        flying = {unit for flight in self.work.flights for unit in units_of(flight.ids)}
        begun = {unit for unit in held if unit not in hot.where} - flying - entered
        read = units_of(np.concatenate(reads))
        missing = [unit for unit in read if unit in entered or (unit not in hot.where and unit not in begun)]
        self._temporary = [unit for unit in missing if unit not in held]
        hot.take(unit for unit in [*sorted(held), *self._temporary] if unit not in hot.where)
        return missing

    def _fly(self, flights: list[Flight]) -> None:
        """Begin the prefetches of this step, layer by layer."""
        calls, self.traffic.asked = self.traffic.asked, []
        for flight in flights:
            units = units_of(flight.ids)
            self._flights.update(dict.fromkeys(units, flight))
            routes = self.routes(units)
            self._tickets[flight] = [self._load(routes, layer, NEXT_STEP, calls[layer]) for layer in range(self.layers)]

    def routes(self, units: list[int]) -> list[Route]:
        """Return by tier where ``units`` come from and go to, in their first layer."""
        hot, cold = self.rig.hot, self.rig.cold
        routes: dict[str, Route] = {}
        for unit in units:
            tier = self.engine.tier(unit)
            route = routes.setdefault(tier, Route(tier, [], []))
            route.places.append(cold.place(tier, unit, 0))
            route.rows.append(hot.row(unit, 0))
        return list(routes.values())

    def _load(self, routes: list[Route], layer: int, priority: int, done: Done | None = None) -> list[Ticket]:
        """Begin to bring one layer up; ``done`` is called when all of it, from either tier, is here."""
        through, below = all_of(len(routes), done), layer * self.rig.hot.slots
        return [
            self.rig.copies.load(
                route.tier, [place + layer for place in route.places], [row + below for row in route.rows], priority,
                through,
            )
            for route in routes
        ]  # fmt: skip

    # ---- the step

    def _before(self, missing: list[int], fetched: dict[int, Flight], reads: int) -> Callable[[int], None]:
        """Return what to do when the computation comes to a layer's attention."""
        copies, observed, backend = self.rig.copies, self.observed, self.rig.backend
        flights = list(dict.fromkeys(fetched.values()))
        routes = self.routes(missing)

        def before(layer: int) -> None:
            copies.poll()
            if missing or not all(flight.arrived[layer] for flight in flights):
                backend.wait_computed()
                copies.poll()  # attention comes to it now, and not when it was launched
            behind = [flight for flight in flights if not flight.arrived[layer]]
            hidden_s = sum(self._share_s(fetched[unit], layer) for unit in fetched if fetched[unit] not in behind)
            observed.transfer_s += hidden_s
            observed.hidden_s += hidden_s
            observed.reads += reads
            observed.hits += reads - len(missing) - sum(fetched[unit] in behind for unit in fetched)
            if not missing and not behind:
                return
            begun = perf_counter()
            tickets = self._load(routes, layer, DEMAND) if missing else []
            for flight in behind:
                for ticket in self._tickets[flight][layer]:
                    copies.urge(ticket)
                    tickets.append(ticket)
            for ticket in tickets:
                ticket.wait()
            copies.poll()
            self._waited_s += perf_counter() - begun
            observed.transfer_s += sum(max(0.0, one.ended_s - max(begun, one.submitted_s)) for one in tickets)

        return before

    def _share_s(self, flight: Flight, layer: int) -> float:
        """Return what one unit's piece of ``layer`` took of the lanes."""
        tickets = self._tickets[flight][layer]
        return sum(ticket.busy_s for ticket in tickets) / sum(ticket.pieces for ticket in tickets)

    def _compute(self, seqs: list[Sequence], reads: list[Any], before: Callable[[int], None]) -> None:
        torch, rig = self._torch, self.rig
        device = rig.backend.device
        lengths = {len(ids) for ids in reads}
        tokens = {seq.live.tokens for seq in seqs}
        assert len(lengths) == len(tokens) == 1, "sequences of a verification run are equally long"
        context, blocks = tokens.pop(), lengths.pop()
        slots = [[rig.hot.where[unit] for unit in units_of(np.sort(ids))] for ids in reads]
        table = torch.tensor(slots, device=device)
        first_rows = torch.arange(self.layers, device=device).view(-1, 1, 1) * rig.hot.slots
        length = (blocks - 1) * self.engine.config.block_tokens + context % self.engine.config.block_tokens + 1
        if self._tokens is None or len(self._tokens) != len(seqs):
            self._tokens = torch.arange(len(seqs), device=device) + 1
        positions = torch.full((len(seqs),), context, device=device)
        self._tokens = decode_step(
            rig.model, self._tokens, positions, rig.hot.pieces, table + first_rows, length, before,
            lambda layer, output: self._outputs.append(output.clone()),
        )  # fmt: skip
        rig.backend.wait_computed()

    def end(self) -> Observed:
        """Return what was seen, when everything that moves has arrived."""
        for flight in self._tickets.values():
            for layer in flight:
                for ticket in layer:
                    ticket.wait()
        for ticket, _ in self.traffic.written:
            ticket.wait()
        self.rig.copies.poll()
        whole = hashlib.sha256()
        for output in self._outputs:
            whole.update(output.cpu().contiguous().view(self._torch.uint8).numpy().tobytes())
        self.observed.digest = whole.hexdigest()
        return self.observed


class RealEngine(ActiveEngine):
    """The simulator's engine of active offload on a real device: it decides, the rig computes and moves."""

    def __init__(self, around: Surroundings, rig: Rig) -> None:
        self.rig = rig
        super().__init__(around)
        assert isinstance(self.parts.runner, RealRunner)
        self.runner = self.parts.runner
        self.runner.engine = self
        self.runner.rig = rig
        assert isinstance(self.store.traffic, RealTraffic)
        self.store.traffic.rig = rig

    def _assemble(self, around: Surroundings) -> Parts:
        parts = assemble(
            around.clock, around.config, around.tiers, self.gauge, around.mover.ledger, RealTraffic, RealRunner
        )
        _write_really(self, parts.store)
        return parts

    @property
    def share(self) -> EarnedShare:
        """Return the resident set's keeper."""
        assert isinstance(self.store.residency, EarnedShare), "a verification run reads some of the blocks"
        return self.store.residency

    @property
    def decoding(self) -> list[Sequence]:
        """Return the sequences of the step under way."""
        return self._decoding

    def tier(self, unit: int) -> str:
        """Return where ``unit`` lies below the pool."""
        for seq in self.store.sequences.values():
            if seq.base <= unit < seq.base + len(seq.homes.at):
                return "dram" if seq.homes.at[unit - seq.base] == DRAM else "ssd"
        raise AssertionError(f"unit {unit} is nobody's")

    def _begin(self, now: float) -> None:
        if not self.runner.begun_s:
            self.runner.prepare(self._decoding)
            self.runner.begun_s = perf_counter()
        self.rig.copies.poll()
        super()._begin(now)


def _write_really(engine: RealEngine, store: ActiveStore) -> None:
    """Let what ``store`` writes down be taken from the pool."""
    decided = store.write_down

    def write_down(seq: Sequence, blocks: Any, pieces: int, purpose: int = STORE) -> None:
        seq.homes.settle(blocks)
        assert isinstance(store.traffic, RealTraffic)
        layers, slots = range(engine.rig.hot.layers), engine.rig.hot.slots
        store.traffic.writing = [
            Route(
                tier,
                [place + layer for place in places for layer in layers],
                [row + layer * slots for row in rows for layer in layers],
            )
            for tier, places, rows in engine.runner.routes([int(seq.base + block) for block in blocks])
        ]
        decided(seq, blocks, pieces, purpose)

    store.write_down = write_down  # type: ignore[method-assign]
