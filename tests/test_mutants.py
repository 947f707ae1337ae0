"""Mutants of the simulator: each is wrong in one place, and an ordinary audited run of a scenario must say where.

Each names the law of INVARIANTS.md that it breaks, and of what; the column *Mutant* there tells of it. Those of active
offload are in ``test_active_mutants.py``, those of records and of blocks beside what they are about.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from simkv.errors import LawError
from simkv.jobs.workers import Workers
from simkv.kvcache.index import PrefixIndex
from simkv.kvcache.node import Node
from simkv.kvcache.pool import KVPool
from simkv.kvcache.residency import ResidentSet
from simkv.results.check import LAWS
from simkv.results.write import summary_text
from simkv.scenario.resolve import resolve_text
from simkv.sim import fabric
from simkv.sim.active.computation import Undisturbed
from simkv.sim.active.engine import ActiveEngine
from simkv.sim.active.pipeline import LayerPipeline
from simkv.sim.active.traffic import Traffic
from simkv.sim.batch import DecodeBatch
from simkv.sim.batchmode.runner import BlockRunner
from simkv.sim.clock import Clock
from simkv.sim.engine import Engine
from simkv.sim.fabric import Lane
from simkv.sim.gauge import Gauge
from simkv.sim.holdings import Holdings
from simkv.sim.mover import Mover
from simkv.sim.recorder import Columns, Recorder
from simkv.sim.rundata import REQUEST_COLUMNS
from simkv.sim.scheduler import Scheduler
from simkv.sim.series import Series
from simkv.sim.swap import Swapper
from simkv.sim.system import System
from simkv.simulation import run_scenario
from simkv.sweeps.simulate import Case, Written, simulate
from tests import test_active_mutants

ROOT = Path(__file__).parents[1]
PLAIN = """
name: mutants
model: llama-3.1-8b
hardware: a100-sxm4-80gb
engine: {preset: vllm, max_num_seqs: 16, max_num_batched_tokens: 2048, num_gpu_blocks: 900}
workload:
  kind: sessions
  requests: 120
  arrival: {process: poisson, rate: 1 req/s}
  turns: {dist: geometric, mean: 4, max: 10}
  think_time: {dist: exponential, mean: 5s}
  system_prompt: {tokens: 300, variants: 2}
  prompt_tokens: {dist: lognormal, median: 400, sigma: 0.8, max: 1500}
  output_tokens: {dist: uniform, low: 5, high: 60}
  max_context: 6000
tiers:
  dram: {capacity: 3GiB, bandwidth: 20 GB/s}
  ssd: {capacity: 20GiB}
offload: {write: write_through}
run: {warm_up: 0s, baselines: []}
"""
ACTIVE = """
name: active-mutants
model: llama-3.1-8b
hardware: h100-sxm5-80gb
engine: {max_num_seqs: 8, prefix_caching: false, max_model_len: 8Ki}
workload: {kind: batch, size: 6, prompt_tokens: {dist: uniform, low: 1000, high: 4000}, output_tokens: 20}
tiers:
  dram: {capacity: 16GiB}
offload: {residency: 0.3, write: write_through}
run: {warm_up: 0s, baselines: []}
"""
BATCHES = """
name: batch-mutants
model: opt-30b
hardware: t4
engine:
  preset: flexgen
  placement: {weights: [20, 80], kv: [0, 100], activations: [0, 100]}
  gpu_batch_size: 4
  num_gpu_batches: 2
  cpu_attention: true
  constants: flexgen-t4
workload: {kind: batch, size: 8, prompt_tokens: 64, output_tokens: 4}
tiers:
  dram: {capacity: 208GB, bandwidth: 100 GB/s}
run: {warm_up: 0s, baselines: []}
"""
SPARSE = (
    "offload.access={pattern: topk, budget: 512, recent: 64, sinks: 16, skew: 1.0, stickiness: 0.5}",
    "offload.residency=0.1",
)
MOSTLY_HERE = (SPARSE[0], "offload.residency=0.9")
NARROW = ("tiers.dram.capacity=1GiB", "tiers.dram.bandwidth=4 GB/s")
OVERLAP = ("engine.load=overlap",)
SWAPPING = ("engine.preemption=swap", "engine.num_gpu_blocks=300", "workload.max_context=3000")
Wrong = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes of what is right what is put in its place."""


@dataclass(frozen=True)
class Mutant:
    """What is put in place of ``where.name``, the law that this breaks, and of what that is found."""

    law: str
    thing: str
    where: Any
    name: str
    wrong: Wrong
    text: str = PLAIN
    sets: tuple[str, ...] = ()


def run(text: str, sets: tuple[str, ...] = (), audit: bool = True) -> str:
    """Run a scenario as anybody does; return its summary."""
    return summary_text(run_scenario(resolve_text(text, assignments=sets), audit=audit).summary)


# ---- what is wrong


def free_copy(right: Callable[..., Any]) -> Callable[..., Any]:
    """The CPU's copies take no time."""
    return lambda self, nbytes, descriptors: 0.0


def unlimited_dram(right: Callable[..., Any]) -> Callable[..., Any]:
    """Copies that go on at once each have all of DRAM's bandwidth."""
    return lambda wanted, cap: wanted


def lost_request(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, live: None if live.request.id == 7 else right(self, live)


def lost_first_request(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, live: None if live.request.id == 0 else right(self, live)


def request_served_twice(right: Callable[..., Any]) -> Callable[..., Any]:
    def finished(self: System, live: Any, replica: int) -> None:
        right(self, live, replica)
        if live.request.id == 7:
            self._record(live, replica, rejected=False)

    return finished


def load_carried_twice(right: Callable[..., Any]) -> Callable[..., Any]:
    def load(self: Mover, *args: Any, **kwargs: Any) -> tuple[int, int]:
        nbytes, descriptors = right(self, *args, **kwargs)
        self.tiers.h2d.submit(nbytes, descriptors, 0, lambda: None)
        return nbytes, descriptors

    return load


def bytes_delivered_twice(right: Callable[..., Any]) -> Callable[..., Any]:
    def fire(self: Lane, timer: Any) -> None:
        active = self.active
        right(self, timer)
        if active is not None and active is not self.active and active.stop == 0.0:
            self.delivered_bytes += active.bytes

    return fire


def hit_counted_twice(right: Callable[..., Any]) -> Callable[..., Any]:
    def note(self: Scheduler, live: Any, vram_end: int, hit_end: int) -> None:
        right(self, live, vram_end, hit_end)
        live.hit_dram *= 2

    return note


def pinned_block_evicted(right: Callable[..., Any]) -> Callable[..., Any]:
    """Where little is free, room is made with what the first of the running requests uses."""

    def take(self: Engine, need: int) -> None:
        index, node = self.pool.index, next((live.handle for live in self.running), None)
        if self.pool.free_blocks < 100 and node and node.resident and not (node.children or node.pending):
            node.resident = False
            index.resident_blocks -= node.blocks
        right(self, need)

    return take


def pin_forgotten(right: Callable[..., Any]) -> Callable[..., Any]:
    """Nobody holds what a request uses."""

    def pin(self: PrefixIndex, node: Node, use: bool, priority: int | None) -> None:
        right(self, node, use, priority)
        if use and node.parent is not None and node.refs == 1:
            self.unpin(node)

    return pin


def pin_kept(right: Callable[..., Any]) -> Callable[..., Any]:
    def finish(self: Engine, live: Any, now: float) -> None:
        self.pool.index._pin_path(live.handle, False, None)
        right(self, live, now)

    return finish


def arrival_forgotten(right: Callable[..., Any]) -> Callable[..., Any]:
    """What came stays marked as on its way."""
    return lambda self, node, spans, transfer: None


def more_stored_than_fits(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, blocks, taken=None: None


def blocks_never_given_back(right: Callable[..., Any]) -> Callable[..., Any]:
    def release(self: Holdings, live: Any, tokens: int, keep_outputs: bool) -> None:
        right(self, live, tokens, keep_outputs)
        self.pool.private_blocks += live.request.id == 7

    return release


def tiers_swapped_in_the_books(right: Callable[..., Any]) -> Callable[..., Any]:
    """What was hit in DRAM is booked as hit on SSD, and the other way round."""

    def note(self: Scheduler, live: Any, vram_end: int, hit_end: int) -> None:
        if live.hit_vram < 0:
            right(self, live, vram_end, hit_end)
            live.hit_dram, live.hit_ssd = live.hit_ssd, live.hit_dram

    return note


def tiers_swapped_on_the_way(right: Callable[..., Any]) -> Callable[..., Any]:
    """What goes down to SSD goes over the lane to DRAM."""

    def cascade(self: Mover, extent: Any, owner: Any) -> None:
        host, ssd_write = self.tiers.host, self.tiers.host.ssd_write
        host.ssd_write = self.tiers.d2h
        try:
            right(self, extent, owner)
        finally:
            host.ssd_write = ssd_write

    return cascade


def hit_that_saves_nothing(right: Callable[..., Any]) -> Callable[..., Any]:
    """A step takes as long as if it computed what was hit, too."""

    def mixed(self: Engine) -> float:
        work = [(chunk.tokens + chunk.live.tokens, 0) for chunk in self.chunks]
        context = self.batch.context_tokens(self.step) if self.batch.size else 0
        return self.cost.mixed(self.batch.size, context, work, self.batch.size + len(work))

    return mixed


def load_that_nobody_waits_for(right: Callable[..., Any]) -> Callable[..., Any]:
    """A hit in DRAM is as quick as one in VRAM: its bytes come later."""

    def submit(self: Lane, nbytes: int, descriptors: int, priority: int, done: Any, *more: Any, **named: Any) -> Any:
        if self.name != "h2d":
            return right(self, nbytes, descriptors, priority, done, *more, **named)
        carried = right(self, nbytes, descriptors, priority, lambda: None, *more, **named)
        self.fabric.clock.at(self.fabric.clock.now, fabric.TRANSFER_RANK, lambda _: done())
        return carried

    return submit


def miss_that_costs_nothing(right: Callable[..., Any]) -> Callable[..., Any]:
    """All that a cache of any size would have is told as hit."""

    def note(self: Scheduler, live: Any, vram_end: int, hit_end: int) -> None:
        right(self, live, vram_end, max(hit_end, self.config.most_hit_blocks(live.target)))

    return note


def step_that_waits_for_nothing(right: Callable[..., Any]) -> Callable[..., Any]:
    """A step with loads under it ends when they are there, whatever it has to compute."""

    def ends(self: Engine, begun_s: float, end_s: float) -> None:
        right(self, begun_s, begun_s + (end_s - begun_s) * 0.2)

    return ends


def step_that_waits_too_long(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, begun_s, end_s: right(self, begun_s, begun_s + 3 * (end_s - begun_s))


def decode_that_is_too_quick(right: Callable[..., Any]) -> Callable[..., Any]:
    """Steps don't grow with the context that they read."""
    return lambda self, now, step, first_s, growth_s, valid: right(self, now, step, first_s, 0.0, valid)


def clock_that_goes_back(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, time_s, rank, call, payload=None: right(self, time_s - 0.01, rank, call, payload)


def sojourn_too_short(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, row, sojourn_s: right(self, row, 0.99 * sojourn_s)


def write_that_nobody_carries(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, units, errand, through, priority, rank: through()


def swapped_out_blocks_kept(right: Callable[..., Any]) -> Callable[..., Any]:
    def let_go(self: Swapper, live: Any) -> None:
        live.owner.dram.index._pin_path(live.swapped, False, None)
        right(self, live)

    return let_go


def row_with(**changed: Callable[[dict[str, Any]], Any]) -> Wrong:
    """Return a recorder that writes something else into one request's row."""

    def wrong(right: Callable[..., Any]) -> Callable[..., Any]:
        def request(self: Recorder, row: tuple[Any, ...], sojourn_s: float) -> None:
            named = dict(zip(REQUEST_COLUMNS, row, strict=True))
            if named["id"] == 7:
                named |= {name: change(named) for name, change in changed.items()}
            right(self, tuple(named.values()), sojourn_s)

        return request

    return wrong


def column_cut_short(right: Callable[..., Any]) -> Callable[..., Any]:
    def finish(self: Columns) -> Any:
        columns = right(self)
        if "hit_dram_tokens" in columns:
            columns["hit_dram_tokens"] = columns["hit_dram_tokens"][:-1]
        return columns

    return finish


def record_too_late(right: Callable[..., Any]) -> Callable[..., Any]:
    """The books of ends are kept in another order than things ended in."""

    def finish(self: Columns) -> Any:
        columns = right(self)
        if "finish_s" in columns:
            columns = {name: values[::-1].copy() for name, values in columns.items()}
        return columns

    return finish


def interval_lost(right: Callable[..., Any]) -> Callable[..., Any]:
    def pop(self: DecodeBatch, step: int) -> Any:
        ended = right(self, step)
        for live in ended:
            live.request = live.request._replace(output_tokens=live.request.output_tokens + 1)
        return ended

    return pop


def gpu_busier_than_time(right: Callable[..., Any]) -> Callable[..., Any]:
    def update(self: Gauge, now: float) -> None:
        passed_s = max(0.0, now - self.since_s)
        right(self, now)
        self.running_time_s += 100 * passed_s * (self.running > 0)

    return update


def lane_busier_than_time(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, now: 1.5 * right(self, now) + now


def batch_mode_load_not_asked_for(right: Callable[..., Any]) -> Callable[..., Any]:
    """Weights are copied up twice: once as a block of work says, once as nobody said."""

    def send(self: BlockRunner, leg: Any, done: Any) -> None:
        right(self, leg, done)
        if leg.lane == "h2d":
            self.lanes["h2d"].submit(int(leg.amount), 1, 0, lambda: None)

    return send


def active_load_carried_twice(right: Callable[..., Any]) -> Callable[..., Any]:
    def up(self: Traffic, *args: Any, **named: Any) -> Any:
        self.tiers.h2d.submit(self.piece_bytes, 1, 0, lambda: None)
        return right(self, *args, **named)

    return up


def read_block_evicted(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, ids, step, protect: right(self, ids, step, protect[:0])


def layers_that_end_too_soon(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, seconds, call: right(self, seconds / 2, call)


def reads_that_hit_twice(right: Callable[..., Any]) -> Callable[..., Any]:
    """What is read from below is told as read from VRAM: a miss that costs nothing."""

    def count(self: LayerPipeline, layer: int) -> None:
        right(self, layer)
        right(self, layer)

    return count


# ---- what each must be told


MUTANTS: dict[str, Mutant] = {
    "a free CPU copy": Mutant("L20", r"(replica|host) 0 (h2d|d2h|ssd_read|ssd_write)", Lane, "service_s", free_copy),
    "a free CPU copy within DRAM": Mutant(
        "L22", r"host 0, .*ssd_read, ssd_write.*", fabric, "max_min", unlimited_dram, sets=NARROW
    ),
    "a lost request": Mutant("L1", "requests", Engine, "enqueue", lost_request),
    "a request served twice": Mutant("L10", "Little", System, "_finished", request_served_twice),
    "a load counted twice": Mutant("L21", "h2d", Mover, "load", load_carried_twice),
    "bytes delivered twice": Mutant("L6", r"(replica|host) 0 \w+", Lane, "_fire", bytes_delivered_twice),
    "a hit counted twice": Mutant("L49", r"replica 0, request \d+", Scheduler, "_note_hits", hit_counted_twice),
    "an evicted pinned block": Mutant("L5", r"replica 0, request \d+", Engine, "allocate_step", pinned_block_evicted),
    "a forgotten pin": Mutant("L4", r"(replica|host) 0 \w+", PrefixIndex, "_pin_path", pin_forgotten),
    "a pin kept for ever": Mutant("L4", "(replica 0|VRAM)", Engine, "_finish", pin_kept),
    "an arrival forgotten": Mutant("L5", r"(replica|host) 0 \w+", PrefixIndex, "arrived", arrival_forgotten),
    "more than fits": Mutant("L3", r"(replica|host) 0 \w+", KVPool, "make_room", more_stored_than_fits),
    "blocks never given back": Mutant("L3", "replica 0 VRAM", Holdings, "release", blocks_never_given_back),
    "tiers swapped in the books": Mutant("L21", "ssd_read", Scheduler, "_note_hits", tiers_swapped_in_the_books),
    "tiers swapped on the way": Mutant("L21", "(DRAM|SSD)", Mover, "cascade", tiers_swapped_on_the_way),
    "a hit that saves nothing": Mutant("L50", r"replica 0, step \d+", Engine, "_mixed_s", hit_that_saves_nothing),
    "a load that nobody waits for": Mutant(
        "L51", r"(replica 0|host 0 h2d), request \d+", Lane, "submit", load_that_nobody_waits_for
    ),
    "a load that a step doesn't wait for": Mutant(
        "L50", r"replica 0, step \d+", Lane, "submit", load_that_nobody_waits_for, sets=OVERLAP
    ),
    "a miss told as a hit": Mutant("L49", r"replica 0, request \d+", Scheduler, "_note_hits", miss_that_costs_nothing),
    "a step shorter than its computing": Mutant(
        "L50", r"replica 0, step \d+", Engine, "step_ends", step_that_waits_for_nothing, sets=OVERLAP
    ),
    "a step longer than its waits": Mutant(
        "L50", r"replica 0, step \d+", Engine, "step_ends", step_that_waits_too_long, sets=OVERLAP
    ),
    "steps that don't grow": Mutant("L50", r"replica 0, step \d+", Series, "anchor", decode_that_is_too_quick),
    "a clock that goes back": Mutant("L8", "clock", Clock, "at", clock_that_goes_back),
    "a sojourn too short": Mutant("L10", "Little", Recorder, "request", sojourn_too_short),
    "a write-down that nobody carries": Mutant("L21", "DRAM", Mover, "_down", write_that_nobody_carries),
    "swapped-out blocks kept": Mutant("L4", "DRAM", Swapper, "_let_go", swapped_out_blocks_kept, sets=SWAPPING),
    "a recorded request renamed": Mutant(
        "requests_conserved", "request 6", Recorder, "request", row_with(id=lambda row: 6)
    ),
    "a column cut short": Mutant("columns", "columns", Columns, "finish", column_cut_short),
    "a first token before its step": Mutant(
        "cause_before_effect", "request 7", Recorder, "request",
        row_with(first_token_s=lambda row: row["scheduled_s"] - 0.5),
    ),
    "records out of order": Mutant("clock_monotone", "records", Columns, "finish", record_too_late),
    "time lost": Mutant(
        "time_parts_sum", "request 7", Recorder, "request",
        row_with(decode_time_s=lambda row: 0.5 * row["decode_time_s"]),
    ),
    "more hits than prompt": Mutant(
        "hits_sum_to_one", "request 7", Recorder, "request", row_with(hit_vram_tokens=lambda row: 10**6)
    ),
    "a preemption forgotten": Mutant(
        "counters_agree", "preemptions", Recorder, "request", row_with(preemptions=lambda row: row["preemptions"] + 1)
    ),
    "an output token lost": Mutant(
        "intervals_conserved", "inter-token intervals", Recorder, "request",
        row_with(output_tokens=lambda row: row["output_tokens"] - 1),
    ),
    "a lane busier than time": Mutant("busy_within_time", "h2d", Lane, "busy_until", lane_busier_than_time),
    "requests that run longer than they are there": Mutant(
        "littles_identity", "number in the system", Gauge, "update", gpu_busier_than_time
    ),
    "batch mode: a load counted twice": Mutant(
        "L21", "h2d", BlockRunner, "_send", batch_mode_load_not_asked_for, BATCHES
    ),
    "batch mode: a free CPU copy": Mutant("L20", r"replica 0 (h2d|d2h)", Lane, "service_s", free_copy, BATCHES),
    "active offload: a free CPU copy": Mutant("L20", r"replica 0 (h2d|d2h)", Lane, "service_s", free_copy, ACTIVE),
    "active offload: a lost request": Mutant("L1", "requests", ActiveEngine, "enqueue", lost_first_request, ACTIVE),
    "active offload: a block evicted while it is read": Mutant(
        "L36", "replica 0", ResidentSet, "admit", read_block_evicted, ACTIVE, SPARSE
    ),
    "active offload: a step shorter than its computing": Mutant(
        "L33", "replica 0", Undisturbed, "run", layers_that_end_too_soon, ACTIVE
    ),
    "active offload: hits counted twice": Mutant(
        "L34", "replica 0", LayerPipeline, "_count_hits", reads_that_hit_twice, ACTIVE, MOSTLY_HERE
    ),
    "active offload: a load counted twice": Mutant("L21", "h2d", Traffic, "up", active_load_carried_twice, ACTIVE),
}  # fmt: skip
ASKED_FOR = {
    "a free CPU copy", "a lost request", "a load counted twice", "an evicted pinned block",
    "tiers swapped in the books", "a hit that saves nothing", "a load that nobody waits for",
}  # fmt: skip


@contextmanager
def changed(mutant: Mutant, wrong: Wrong) -> Iterator[None]:
    """Have ``wrong`` in the place of what is right."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mutant.where, mutant.name, wrong(getattr(mutant.where, mutant.name)))
        yield


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_seen_by_an_audited_run(name: str) -> None:
    mutant = MUTANTS[name]
    with changed(mutant, mutant.wrong), pytest.raises(LawError) as told:
        run(mutant.text, mutant.sets)
    first = re.search(r"law (\w+) broken at [-\d.e+]+ s, ([^:]+): .", str(told.value))
    assert first is not None, str(told.value)
    assert first[1] == mutant.law and re.fullmatch(mutant.thing, first[2]), str(told.value)


@pytest.mark.parametrize(
    ("text", "sets"), sorted({(mutant.text, mutant.sets) for mutant in MUTANTS.values()}), ids=lambda value: ""
)
def test_sound_run_passes_and_goes_where_the_mutants_are(text: str, sets: tuple[str, ...]) -> None:
    calls: dict[str, int] = {}

    def counted(name: str) -> Wrong:
        def wrong(right: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **named: Any) -> Any:
                calls[name] = calls.get(name, 0) + 1
                return right(*args, **named)

            return call

        return wrong

    here = {name: mutant for name, mutant in MUTANTS.items() if (mutant.text, mutant.sets) == (text, sets)}
    with pytest.MonkeyPatch.context() as patch:
        for name, mutant in here.items():
            patch.setattr(mutant.where, mutant.name, counted(name)(getattr(mutant.where, mutant.name)))
        told = run(text, sets)
    assert calls.keys() == here.keys()
    assert told == run(text, sets, audit=False)


@pytest.mark.parametrize("name", sorted(ASKED_FOR))
def test_mutant_changes_what_is_told_and_without_audit_no_law_is_named(name: str) -> None:
    mutant = MUTANTS[name]
    sound = run(mutant.text, mutant.sets, audit=False)
    with changed(mutant, mutant.wrong):
        try:
            told = run(mutant.text, mutant.sets, audit=False)
        except LawError:
            raise
        except Exception as error:
            told = repr(error)
    assert told != sound


# ---- where an audit is asked for


LOSES_ONE = """
import sys
from simkv.cli import main
from simkv.sim.engine import Engine
right = Engine.enqueue
Engine.enqueue = lambda self, live: None if live.request.id == 7 else right(self, live)
sys.argv = ["simkv", "run", "lossy.yaml", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("variable", "words", "audited"), [("1", (), True), ("0", (), False), ("0", ("--audit",), True)]
)
def test_command_is_audited_by_option_or_environment(
    tmp_path: Path, variable: str, words: tuple[str, ...], audited: bool
) -> None:
    (tmp_path / "lossy.yaml").write_text(PLAIN, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", LOSES_ONE, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SIMKV_AUDIT": variable},
    )  # fmt: skip
    assert (done.returncode != 0) == audited, done.stderr
    assert bool(re.search(r"law L1 broken at [\d.e+]+ s, requests: ", done.stderr)) == audited


def lossy_point(text: str) -> dict[str, Any]:
    """Simulate as a point of a sweep does, with a lost request, in whatever process this is."""
    with changed(MUTANTS["a lost request"], lost_request):
        return simulate(Case(Written(text, "lossy.yaml")), 0)


def test_workers_of_sweeps_inherit_the_audit() -> None:
    with Workers(1) as workers:
        error = workers.place.submit(lossy_point, PLAIN).exception(120)
    assert isinstance(error, LawError) and "law L1 broken at" in str(error)


# ---- the table


def rows() -> dict[str, list[str]]:
    """Return the cells of INVARIANTS.md by law: what it says, where it is audited, mutants, tests."""
    cells = [line.split("|") for line in (ROOT / "INVARIANTS.md").read_text("utf-8").splitlines()]
    return {
        row[1].strip(): [cell.strip() for cell in row[2:-1]]
        for row in cells
        if len(row) > 5 and re.fullmatch(r" L\d+ ", row[1])
    }


def audited() -> set[str]:
    """Return the ids and names of laws that an audit can name."""
    files = [*(ROOT / "simkv" / "sim").glob("audit*.py"), ROOT / "simkv/kvcache/integrity.py"]
    files += [ROOT / "simkv/kvcache/pool.py", ROOT / "simkv/sim/active/laws.py"]
    return {law for file in files for law in re.findall(r'"(L\d+)"', file.read_text("utf-8"))} | LAWS.keys()


def test_invariants_name_what_the_audit_checks_and_nothing_else() -> None:
    told = {name for cells in rows().values() for name in re.findall(r"\bL\d+\b|`[a-z_]+`", cells[1])}
    assert {name.strip("`") for name in told} == audited()


def test_invariants_name_tests_that_exist() -> None:
    found = {name for cells in rows().values() for cell in cells for name in re.findall(r"tests/\w+\.py::\w+", cell)}
    texts = {file: (ROOT / file).read_text("utf-8") for file in {name.split("::")[0] for name in found}}
    assert [name for name in sorted(found) if f"def {name.split('::')[1]}(" not in texts[name.split("::")[0]]] == []
    assert len(found) > 100


def test_every_law_of_the_audit_has_a_mutant() -> None:
    active = {law for _, law, _ in test_active_mutants.MUTANTS}
    assert audited() - {mutant.law for mutant in MUTANTS.values()} - active == set()


def test_invariants_tell_each_laws_mutants_or_why_there_are_none() -> None:
    table = rows()
    for law, cells in table.items():
        told = set(cells[2].split("; "))
        names = {name.strip("`") for name in re.findall(r"\bL\d+\b|`[a-z_]+`", cells[1])} & {law, *LAWS}
        ours = {name for name, mutant in MUTANTS.items() if mutant.law in names}
        active = {
            mutant.__name__.replace("_", " ") for mutant, broken, _ in test_active_mutants.MUTANTS if broken in names
        }
        assert ours | active <= told, law
        assert "tests/test_mutants.py::test_mutant_is_seen_by_an_audited_run" in cells[3] or not ours, law
        assert cells[2], law
