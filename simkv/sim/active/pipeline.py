"""One step on the timeline: layers compute in order, each when what it reads is in VRAM.

Without prefetch a layer's missing pieces are asked for when attention reaches them, and the GPU waits. With it,
while layer l computes, those of layer l + lookahead come in (lookahead = staging buffers - 1), so an isolated step
takes ``max(T_c, T_t) + min(T_c, T_t) / L``. A stretch of layers with nothing to move is one event.
"""

from __future__ import annotations

from functools import partial

from simkv.sim.active.computation import later, make_computation
from simkv.sim.active.config import ActiveConfig
from simkv.sim.active.measured import Measured
from simkv.sim.active.traffic import Load, Pieces, Traffic
from simkv.sim.active.watch import Watch
from simkv.sim.active.work import Work
from simkv.sim.fabric import DEMAND, NEXT_STEP
from simkv.sim.gauge import Gauge
from simkv.sim.ledger import Done
from simkv.sim.record.errand import LATE, USEFUL, WASTED, Errand


class StepRunner:
    """Runs one step at a time and calls back when it is over."""

    def __init__(self, traffic: Traffic, config: ActiveConfig, gauge: Gauge) -> None:
        self.traffic = traffic
        self.clock = traffic.clock
        self.config = config
        self.layers = config.layers
        self.gauge = gauge
        self.computation = make_computation(traffic, config.contention)
        self._cooling = config.contention.after_wait - 1.0
        self.work = Work(1, [0], [Pieces()])
        self._over: Done = lambda: None
        self.watch: Watch | None = None
        """Who sees blocks that are loaded in turn; None: nobody."""

    @property
    def measured(self) -> Measured:
        """Return where this step is booked."""
        return self.traffic.measured

    def run(self, work: Work, over: Done) -> None:
        """Begin a step now; ``over`` is called at its end."""
        self.work = work
        self._over = over
        if work.host_s > 0.0:
            self.measured.host_s += work.host_s
            self.after(work.host_s, self.launch)
        else:
            self.launch()

    def launch(self) -> None:
        """Begin what the step computes and moves."""
        raise NotImplementedError

    def finish(self) -> None:
        """The step is over."""
        self.busy(False)
        self._over()

    def after(self, seconds: float, call: Done) -> None:
        """Make ``call`` in ``seconds``."""
        later(self.clock, seconds, call)

    def compute(self, seconds: float, call: Done, waited: bool) -> None:
        """Compute what takes ``seconds`` undisturbed, then make ``call``.

        ``waited``: the GPU has waited for pieces until now, so that the first layer takes longer.
        """
        if waited and self._cooling:
            more_s = self._cooling * self.work.compute_s / self.layers
            self.measured.contended_s += more_s
            seconds += more_s
        self.computation.run(seconds, call)

    def busy(self, busy: bool) -> None:
        """Say whether the GPU computes from now on."""
        if self.gauge.busy != busy:
            self.gauge.update(self.clock._now)
            self.gauge.busy = busy

    def bring(self, pieces: Pieces, call: Done, errand: Errand | None = None) -> Load:
        """Load what the step needs; ``call`` is made when it is here."""

        def here() -> None:
            self.traffic.need(-1)
            call()

        measured = self.traffic.measured
        self.traffic.need(1)
        measured.needed_s += self.traffic.service_s(pieces)
        return self.traffic.up(pieces, DEMAND, here, errand)


class Ahead:
    """What a step's last layers brought for one of the next one's first, under dense access."""

    def __init__(self, traffic: Traffic, work: Work) -> None:
        self.here = False
        self._traffic = traffic
        self._streamed = work.streamed
        self._service_s = traffic.service_s(work.demand[0])
        self._call: Done | None = None
        self._load = traffic.up(work.demand[0], NEXT_STEP, self._arrived)

    def claim(self, work: Work) -> Pieces:
        """Return what ``work`` reads of it: sequences may have left since, or have come."""
        brought, measured = Pieces(), self._traffic.measured
        for seq, (dram, ssd) in work.streamed.items():
            had_dram, had_ssd = self._streamed.get(seq, (0, 0))
            dram, ssd = min(dram, had_dram), min(ssd, had_ssd)
            brought += Pieces(dram, ssd, min(dram, 1), min(ssd, 1))
        used_s = self._service_s * len(brought) / self._load.pieces
        measured.needed_s += used_s
        self._traffic.foreseen.wasted_s += self._service_s - used_s
        self._traffic.foreseen.wasted_bytes += (self._load.pieces - len(brought)) * self._traffic.piece_bytes
        if self.here:
            measured.carried_s += used_s
        if self.here or not len(brought):
            self._load.judge(USEFUL if len(brought) else WASTED)
        return brought

    def wait(self, call: Done, needed: int) -> None:
        """Have ``call`` made when it, of which ``needed`` pieces are needed, is here; it is urgent from now on."""
        self._load.urge(needed)
        self._load.judge(LATE)
        self._traffic.need(1)
        self._call = call

    def _arrived(self) -> None:
        self.here = True
        if self._call is not None:
            self._traffic.need(-1)
            self._call()


class LayerPipeline(StepRunner):
    """Layer by layer, with or without looking ahead."""

    def __init__(self, traffic: Traffic, config: ActiveConfig, gauge: Gauge) -> None:
        super().__init__(traffic, config, gauge)
        policy = config.prefetch.policy
        ahead = min(config.staging_layers - 1, config.layers)
        self.lookahead = ahead if policy == "layer" or self._dense_next() else 0
        self._layer = self._issued = 0
        self._left: list[int] = []
        self._layer_s = 0.0
        self._ahead: dict[int, Ahead] = {}
        self._early: list[int] = []
        """By layer: pieces that the step before brought, and that are here."""

    def _dense_next(self) -> bool:
        """Whether the next step's reads are known because every block is read."""
        return self.config.prefetch.policy in ("next_step", "oracle") and not self.config.sparse

    def launch(self) -> None:
        """Begin with the first layer."""
        self._issued = 0
        self._left = [0] * self.layers
        self._early = [0] * self.layers
        self._layer_s = self.work.compute_s / self.layers
        self._reach(0)

    def _reach(self, layer: int) -> None:
        """The GPU has come to ``layer``."""
        self._layer = layer
        if layer == self.layers:
            self.finish()
            return
        self._issue(layer)
        self._count_hits(layer)
        if self._left[layer]:
            self.busy(False)
            self.traffic.wait(True)
        else:
            self._compute(layer)

    def _issue(self, layer: int) -> None:
        """Ask for everything that the layers up to ``layer`` miss."""
        while self._issued <= min(layer, self.layers - 1):
            self._ask(self._issued)
            self._issued += 1

    def _ask(self, layer: int) -> None:
        work = self.work
        group = work.group(layer)
        pieces = self._claim(layer, work.demand[group])
        if len(pieces):
            self._left[layer] += 1
            self.bring(pieces, partial(self._arrive, layer))
        for late in work.late:
            if not late.units[group]:
                continue
            late_s = late.flight.service_s * late.first[group]
            self.measured.needed_s += late_s
            late.flight.loads[layer].judge(USEFUL if late.flight.arrived[layer] else LATE)
            if late.flight.arrived[layer]:
                self.measured.carried_s += late_s
            else:
                self._left[layer] += 1
                self.traffic.need(1)
                late.flight.wait(layer, partial(self._late_arrive, layer), late.units[group])

    def _late_arrive(self, layer: int) -> None:
        self.traffic.need(-1)
        self._arrive(layer)

    def _arrive(self, layer: int) -> None:
        self._left[layer] -= 1
        if self.traffic.waiting and layer == self._layer and not self._left[layer]:
            self.traffic.wait(False)
            self._compute(layer, waited=True)

    def _compute(self, layer: int, waited: bool = False) -> None:
        """Compute ``layer``, and with it all that follow without anything to move."""
        self.busy(True)
        if self.lookahead:
            self._issue(layer + self.lookahead)
            self._fetch_next(layer + self.lookahead - self.layers)
        until = self._quiet_until(layer)
        seconds = self._layer_s * (until - layer) if layer or until < self.layers else self.work.compute_s
        self.compute(seconds, partial(self._computed, until), waited)

    def _quiet_until(self, layer: int) -> int:
        """Return the first layer after ``layer`` at which something has to be asked for or waited for."""
        if self.config.write == "rewrite":
            return layer + 1
        step = layer + 1
        while step < self.layers:
            ahead = step + self.lookahead
            if self._left[step] or (step >= self._issued and self.work.moves(step)):
                return step
            if self.lookahead and (
                self.work.moves(ahead) if ahead < self.layers else self._fetches(ahead - self.layers)
            ):
                return step
            self._count_hits(step)
            step += 1
        return step

    def _computed(self, layer: int) -> None:
        """The layers before ``layer`` are computed; with ``rewrite`` what the last one streamed goes back first."""
        pieces = self.work.demand[self.work.group(layer - 1)]
        if self.config.write != "rewrite" or not len(pieces):
            self._reach(layer)
            return
        self.busy(False)
        begun_s = self.clock._now

        def back() -> None:
            self.measured.write_wait_s += self.clock._now - begun_s
            self._reach(layer)

        self.traffic.down(pieces, back)

    # ---- what was resident when attention needed it

    def _count_hits(self, layer: int) -> None:
        work, measured = self.work, self.measured
        group = work.group(layer)
        measured.hits += work.resident[group]
        measured.resident += work.resident[group]
        measured.hits += self._early[layer] if self._left[layer] else len(work.demand[group])
        for late in work.late:
            if late.flight.arrived[layer]:
                measured.hits += late.units[group]
                self.traffic.foreseen.timely += late.first[group]

    # ---- the next step's first layers, under dense access

    def _fetches(self, layer: int) -> bool:
        """Whether this step's last layers are to bring ``layer`` of the next one."""
        work = self.work
        return layer >= 0 and work.streams and self._dense_next() and layer not in self._ahead and work.moves(layer)

    def _fetch_next(self, layer: int) -> None:
        if self._fetches(layer):
            self._ahead[layer] = Ahead(self.traffic, self.work)

    def _claim(self, layer: int, pieces: Pieces) -> Pieces:
        """Return what ``layer`` misses beyond what was brought for it in the step before, and wait for that."""
        ahead = self._ahead.pop(layer, None)
        if ahead is None:
            return pieces
        brought = ahead.claim(self.work)
        if len(brought) and not ahead.here:
            self._left[layer] += 1
            ahead.wait(partial(self._arrive, layer), len(brought))
        elif len(brought):
            self._early[layer] = len(brought)
        return pieces.without(brought)
