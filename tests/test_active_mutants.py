"""Mutants of active offload: each breaks the program in one place, and the law that it breaks must say so."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from simkv.errors import LawError
from simkv.kvcache.access import TopK
from simkv.kvcache.residency import ResidentSet
from simkv.sim.active.ahead import NextStep
from simkv.sim.active.computation import Contended, Undisturbed
from simkv.sim.active.config import Contention, LaneFactors
from simkv.sim.active.earned import EarnedShare
from simkv.sim.active.engine import ActiveEngine
from simkv.sim.active.homes import Homes
from simkv.sim.active.pipeline import LayerPipeline, StepRunner
from simkv.sim.active.promises import Promises
from simkv.sim.active.store import ActiveStore
from simkv.sim.active.traffic import Load, Traffic
from tests import active_factory as make

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


def _run(**changes: Any) -> None:
    knobs: dict[str, Any] = {"residency": 0.3, "num_gpu_blocks": 60, "write": "write_back", "dram_blocks": 100}
    requests = [make.request(number, 1.0 * number, 60 + number, 20) for number in range(4)]
    make.run(make.active_config(**(knobs | changes)), requests, every=1)


SPARSE = TopK(24, 4, 4, 0.5, 0.3)
FORESEEN: dict[str, Any] = {"access": SPARSE, "residency": 0.6, "num_gpu_blocks": 100}


def _nothing(*args: object, **kwargs: object) -> None:
    return None


def load_is_not_charged(patch: Patch) -> None:
    original = Traffic.up

    def up(self: Traffic, pieces: Any, priority: int, done: Any, *told: Any) -> Any:
        self.measured.loaded_bytes += self.piece_bytes
        return original(self, pieces, priority, done)

    patch.setattr(Traffic, "up", up)


def write_is_not_carried(patch: Patch) -> None:
    original = Traffic.down

    def down(self: Traffic, pieces: Any, done: Any = None, *told: Any) -> None:
        self.measured.written_bytes += self.piece_bytes
        original(self, pieces, done)

    patch.setattr(Traffic, "down", down)


def what_is_read_may_be_evicted(patch: Patch) -> None:
    original = ResidentSet.admit
    patch.setattr(ResidentSet, "admit", lambda self, ids, step, protect: original(self, ids, step, protect[:0]))


def what_is_coming_counts_as_here(patch: Patch) -> None:
    original = EarnedShare.by_group

    def by_group(self: EarnedShare, reads: Any, mask: Any) -> Any:
        return original(self, reads, mask | self.set.pending(reads.ids))

    patch.setattr(EarnedShare, "by_group", by_group)


def evicted_is_not_written(patch: Patch) -> None:
    patch.setattr(EarnedShare, "went", _nothing)


def cold_is_not_written(patch: Patch) -> None:
    patch.setattr(ActiveStore, "write_new", _nothing)


def promise_is_kept_for_ever(patch: Patch) -> None:
    patch.setattr(Promises, "take_back", _nothing)


def promise_is_forgotten(patch: Patch) -> None:
    patch.setattr(Promises, "give", lambda self, pool, blocks: True)


def homes_are_kept(patch: Patch) -> None:
    patch.setattr(Homes, "release", lambda self, done: done())


def vram_is_kept(patch: Patch) -> None:
    original = ActiveStore.give_vram

    def give_vram(self: ActiveStore, seq: Any) -> None:
        self.pool.take(1)
        original(self, seq)

    patch.setattr(ActiveStore, "give_vram", give_vram)


def more_stays_than_its_share(patch: Patch) -> None:
    original = ActiveStore.keep
    patch.setattr(ActiveStore, "keep", lambda self, seq, resident: original(self, seq, resident + 1))


def share_is_never_cut(patch: Patch) -> None:
    def resize(self: EarnedShare) -> None:
        self.set.capacity_units = 10_000

    patch.setattr(EarnedShare, "resize", resize)


def budget_is_never_divided(patch: Patch) -> None:
    patch.setattr(EarnedShare, "divide", _nothing)


def step_ends_too_soon(patch: Patch) -> None:
    original = Undisturbed.run
    patch.setattr(Undisturbed, "run", lambda self, seconds, call: original(self, seconds / 2, call))


def slowing_is_not_booked(patch: Patch) -> None:
    patch.setattr(Contended, "_book", _nothing)


def cooling_is_not_booked(patch: Patch) -> None:
    def compute(self: StepRunner, seconds: float, call: Any, waited: bool) -> None:
        self.computation.run(2 * seconds if waited else seconds, call)

    patch.setattr(StepRunner, "compute", compute)


def wait_is_booked_for_no_step(patch: Patch) -> None:
    original = ActiveEngine._over

    def over(self: ActiveEngine) -> None:
        self.store.traffic.measured.write_wait_s += 1e-3
        original(self)

    patch.setattr(ActiveEngine, "_over", over)


def wait_is_counted_and_no_transfer(patch: Patch) -> None:
    original = ActiveEngine._book

    def book(self: ActiveEngine, now: float) -> None:
        self.store.traffic.measured.exposed_s += 1.0
        original(self, now)

    patch.setattr(ActiveEngine, "_book", book)


def reads_count_twice(patch: Patch) -> None:
    original = LayerPipeline._count_hits

    def count(self: LayerPipeline, layer: int) -> None:
        original(self, layer)
        original(self, layer)

    patch.setattr(LayerPipeline, "_count_hits", count)


def wasted_is_forgotten(patch: Patch) -> None:
    patch.setattr(NextStep, "_waste", _nothing)


def used_counts_twice(patch: Patch) -> None:
    original = NextStep.read

    def read(self: NextStep, ids: Any) -> None:
        self.foreseen.used += self.foreseen.used > 0
        original(self, ids)

    patch.setattr(NextStep, "read", read)


def what_arrived_is_taken_for_lost(patch: Patch) -> None:
    patch.setattr(Load, "_through", _nothing)


def prompt_is_forgotten(patch: Patch) -> None:
    original = ActiveEngine._end_prefill

    def end(self: ActiveEngine, seq: Any, now: float) -> None:
        original(self, seq, now)
        self.partial = None

    patch.setattr(ActiveEngine, "_end_prefill", end)


MUTANTS: list[tuple[Mutant, str, dict[str, Any]]] = [
    (load_is_not_charged, "L21", {}),
    (write_is_not_carried, "L21", {}),
    (what_is_read_may_be_evicted, "L36", {"access": SPARSE}),
    (what_is_coming_counts_as_here, "L34", FORESEEN | {"policy": "oracle", "h2d": 1500.0}),
    (evicted_is_not_written, "L31", {"access": SPARSE}),
    (cold_is_not_written, "L31", {}),
    (promise_is_kept_for_ever, "L32", {}),
    (promise_is_forgotten, "L32", {"dram_blocks": 40}),
    (homes_are_kept, "L4", {}),
    (vram_is_kept, "L3", {}),
    (more_stays_than_its_share, "L30", {}),
    (share_is_never_cut, "L30", {"access": SPARSE}),
    (budget_is_never_divided, "L30", {"access": SPARSE, "budget_blocks": 8, "max_num_batched_tokens": 20}),
    (step_ends_too_soon, "L33", {"policy": "layer"}),
    (wait_is_counted_and_no_transfer, "L33", {}),
    (wait_is_booked_for_no_step, "L38", {}),
    (slowing_is_not_booked, "L38", {"policy": "layer", "contention": Contention(LaneFactors(h2d=2.0))}),
    (cooling_is_not_booked, "L38", {"contention": Contention(after_wait=2.0)}),
    (reads_count_twice, "L34", {"access": SPARSE}),
    (wasted_is_forgotten, "L35", FORESEEN | {"policy": "next_step", "accuracy": 0.5}),
    (used_counts_twice, "L35", FORESEEN | {"policy": "oracle"}),
    (what_arrived_is_taken_for_lost, "L4", {}),
    (prompt_is_forgotten, "L4", {"max_num_batched_tokens": 40}),
]


@pytest.mark.parametrize(("mutant", "law", "knobs"), MUTANTS, ids=[mutant.__name__ for mutant, _, _ in MUTANTS])
def test_mutant_is_seen(mutant: Mutant, law: str, knobs: dict[str, Any]) -> None:
    _run(**knobs)
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        with pytest.raises((LawError, AssertionError), match=f"law {law} |law {law}:"):
            _run(**knobs)


def test_audit_looks_at_what_each_replica_and_host_has() -> None:
    """Sound runs of the mutants' systems pass, several replicas included; numbers of columns agree."""
    run = partial(_run, replicas=2, shared=True, ssd_blocks=20, dram_blocks=30)
    run(access=SPARSE)
    run()
    assert np.zeros(0).all()
