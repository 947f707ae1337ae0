"""Steps whose transfers are not told apart by layer: what-ifs and the article's program."""

from __future__ import annotations

from functools import partial

from simkv.sim.active.pipeline import StepRunner
from simkv.sim.active.traffic import Pieces
from simkv.sim.active.work import Whole
from simkv.sim.ledger import Done


class WholeStep(StepRunner):
    """What its kinds share: the whole step's pieces, and what runs at once."""

    _rest = 0

    def _pieces(self) -> Pieces:
        work = self.work
        whole = Pieces()
        for group, pieces in enumerate(work.demand):
            whole += pieces.times(work.layers_of(group))
        return whole

    def _count(self, timely: int = 0) -> None:
        """Count the reads that are resident, and ``timely`` pieces beside them."""
        work = self.work
        resident = sum(units * work.layers_of(group) for group, units in enumerate(work.resident))
        self.measured.resident += resident
        self.measured.hits += resident + timely

    def _part(self) -> None:
        self._rest -= 1
        if not self._rest:
            self.finish()

    def _computed(self) -> None:
        self.busy(False)
        if self._rest > 1:
            self.traffic.wait(True)
        self._part()

    def finish(self) -> None:
        """The step is over."""
        self.traffic.wait(False)
        super().finish()


class FixedOverlap(WholeStep):
    """The GPU waits for the first 1 - β of the transfer and computes beside the rest (the article's what-if).

    β is cut to min(1, T_c / T_t): more can't be hidden behind a step's own compute.
    """

    def launch(self) -> None:
        """Wait, then compute."""
        whole = self._pieces()
        transfer_s = self.traffic.service_s(whole)
        beta = self.config.prefetch.beta
        feasible = min(1.0, self.work.compute_s / transfer_s) if transfer_s > 0.0 else 1.0
        if beta > feasible:
            self.measured.clamped += 1
            beta = feasible
        first, second = whole.divided(1.0 - beta)
        self._count(timely=len(second))
        self._rest = 1 + (len(second) > 0)
        if not len(first):
            self._compute(second)
            return
        self.busy(False)
        self.traffic.wait(True)
        self.bring(first, partial(self._compute, second))

    def _compute(self, second: Pieces) -> None:
        waited = self.traffic.waiting
        self.traffic.wait(False)
        self.busy(True)
        if len(second):
            self.bring(second, self._part)
        self.compute(self.work.compute_s, self._computed, waited)


class Beside(WholeStep):
    """Demand loads and prefetches all run beside the compute; the step lasts until everything is over."""

    def launch(self) -> None:
        """Begin everything."""
        work = self.work
        whole = self._pieces()
        self._count()
        self._rest = 1 + (len(whole) > 0) + sum(len(flight.missing) for flight in work.flights)
        self.busy(True)
        if len(whole):
            self.bring(whole, self._part)
        for flight in work.flights:
            self.traffic.need(len(flight.missing))
            flight.wait_for_all(self._flown)
        self.compute(work.compute_s, self._computed, waited=False)

    def _flown(self) -> None:
        self.traffic.need(-1)
        self._part()


class BlockByBlock(WholeStep):
    """Blocks come in whole and one at a time, each through all of its hops before the next (the article's program)."""

    def launch(self) -> None:
        """Load and then compute, or both at once."""
        self._count()
        chain = list(self.work.one_by_one or ())
        beside = self.config.prefetch.overlaps_demand
        if not chain:
            self._rest = 1
            self._compute()
        elif beside:
            self._rest = 2
            self._load(chain, 0, self._part)
            self._compute()
        else:
            self._rest = 1
            self.traffic.wait(True)
            self._load(chain, 0, self._compute)

    def _load(self, chain: list[Whole], at: int, over: Done) -> None:
        if self.watch is not None:
            self.watch.loading()
        if at == len(chain):
            over()
            return
        block = chain[at]
        pieces = Pieces(0, self.layers) if block.from_ssd else Pieces(self.layers)
        block.load = self.bring(pieces, partial(self._load, chain, at + 1, over), block.errand)

    def _compute(self) -> None:
        waited = self.traffic.waiting
        self.traffic.wait(False)
        self.busy(True)
        self.compute(self.work.compute_s, self._computed, waited)
