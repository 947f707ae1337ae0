"""Measuring what computes: which samples there are, what they read, and that lanes carry while it is computed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from simkv.calibrate.backend import FEWEST, WARM_UP, open_backend
from simkv.calibrate.measure import attention, carrier, contention, host, linear, step
from simkv.calibrate.measure.carrier import Carrier, piece_bytes_of
from simkv.calibrate.measure.kvpool import KvStrip, random_tables
from simkv.calibrate.measure.without_pause import without_pause
from simkv.calibrate.model import Decoder, decoder
from simkv.calibrate.task import Bench
from simkv.errors import InputError
from tests import shapes
from tests.torch_here import torch_or_skip

torch = torch_or_skip()
FILES = (linear, attention, step, contention, host)
SHAPE = shapes.uniform(3, kv_heads=2, head_dim=8, heads=4, hidden=24, intermediate=40, vocab=50)
KEYS = {
    "linear": {"tokens", "layers"},
    "head": {"tokens"},
    "decode_attention": {"batch", "context", "layers"},
    "paged_attention": {"batch", "context", "layers", "block_tokens"},
    "prefill_attention": {"tokens", "layers"},
    "step": {"batch", "context", "block_tokens"},
    "compute_alone": {"lane"},
    "compute_during": {"lane"},
    "copy_alone": {"lane"},
    "copy_during": {"lane"},
    "host_step": {"blocks"},
}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Return a quick bench of a tiny model that repeats as little as is allowed, over little memory."""
    monkeypatch.setattr(Bench, "budget_s", 0.0)
    for module in (attention, carrier):
        monkeypatch.setattr(module, "cold_bytes", lambda backend: 1 << 20)
    yield Bench(open_backend("cpu", threads=1), SHAPE, True, tmp_path)
    decoder.cache_clear()


def test_tasks_quick_yield_the_documented_kinds_once(bench: Bench) -> None:
    seen, keys = set(), []
    for module in FILES:
        for task in module.tasks(bench):
            keys.append(task.key)
            assert task.estimate_s > 0.0
            for sample in task.run():
                at = (sample.kind, *sorted(sample.at.items()))
                assert set(sample.at) == KEYS[sample.kind]
                assert at not in seen
                assert len(sample.seconds) >= FEWEST
                seen.add(at)
    assert len(keys) == len(set(keys))
    assert {kind for kind, *_ in seen} == set(KEYS)
    assert {dict(at)["lane"] for kind, *at in seen if kind == "copy_during"} == {"h2d", "d2h", "ssd_read", "ssd_write"}


@pytest.mark.parametrize("module", FILES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_tasks_full_hold_those_of_quick_in_time(bench: Bench, module: ModuleType) -> None:
    full = Bench(bench.backend, SHAPE, False, bench.ssd_path)
    names = [task.key for task in module.tasks(full)]
    assert names == [task.key for task in module.tasks(full)]
    assert len(names) >= len(list(module.tasks(bench)))


def test_tasks_without_a_drive_leave_its_lanes_out(bench: Bench) -> None:
    keys = [task.key for task in contention.tasks(Bench(bench.backend, SHAPE, True))]
    assert keys == ["contention/wait", "contention/h2d", "contention/d2h"]


def test_waits_are_left_out_of_what_computing_with_them_takes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    pause = time.sleep
    monkeypatch.setattr(contention, "sleep", lambda seconds: pauses.append(seconds) or pause(0.05))
    undriven = Bench(bench.backend, SHAPE, True)
    (task,) = (task for task in contention.tasks(undriven) if task.key == "contention/wait")
    alone, during = task.run()
    assert (alone.kind, during.kind) == ("compute_alone", "compute_during")
    assert alone.at == during.at == {"lane": "wait"}
    assert len(alone.seconds) == len(during.seconds) >= FEWEST
    assert len(pauses) == SHAPE.layers * (len(during.seconds) + WARM_UP)
    assert during.median_s < SHAPE.layers * 0.05


@pytest.mark.parametrize("module", FILES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_tasks_of_a_model_with_experts_are_refused(bench: Bench, module: ModuleType) -> None:
    with pytest.raises(InputError, match="experts"):
        list(module.tasks(Bench(bench.backend, shapes.gpt_oss(24, 32), True)))


def test_tasks_where_memory_is_small_leave_out_what_does_not_fit(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    few: dict[str, int] = {}
    for most in (1 << 30, 1 << 20):
        for module in (attention, step):
            monkeypatch.setattr(module, "most_kv_bytes", lambda backend, most=most: most)
            few[f"{module.__name__}/{most}"] = len(list(module.tasks(bench)))
    for module in (attention, step):
        assert 0 < few[f"{module.__name__}/{1 << 20}"] < few[f"{module.__name__}/{1 << 30}"]


def test_linear_call_after_call_takes_all_layers_in_turn(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    model, taken = Decoder(bench.backend, SHAPE, layers=5), []
    project = model.project
    monkeypatch.setattr(model, "project", lambda layer, *rest: taken.append(layer) or project(layer, *rest))
    call = linear.stretch(model, 2, 2)
    for _ in range(5):
        call()
    assert taken == [0, 1, 2, 3, 4] * 2


def test_random_tables_of_all_calls_name_every_place_at_most_once(bench: Bench) -> None:
    tables = random_tables(bench.backend, 50, 2, 3, 4)
    assert tables.shape == (2, 2, 3, 4)
    assert len(set(tables.flatten().tolist())) == 48
    assert tables.max() < 50


def test_strip_call_after_call_gives_other_memory(bench: Bench) -> None:
    model = Decoder(bench.backend, SHAPE)
    strip = KvStrip(model, 3 * 2 * 2 * 8 * 8 * 4)
    begun = [strip.next(1, 8)[0].data_ptr() for _ in range(4)]
    assert len(set(begun[:3])) == 3
    assert begun[3] == begun[0]


@pytest.mark.parametrize("lane", ["h2d", "d2h", "ssd_read", "ssd_write"])
def test_busy_lane_carries_until_the_block_ends_and_then_stands_still(
    bench: Bench, lane: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tickets = Decoder(bench.backend, SHAPE), []
    with Carrier(bench, model, lane) as lanes:
        begin: Callable[[], Any] = lanes._begin
        monkeypatch.setattr(lanes, "_begin", lambda: tickets.append(begin()) or tickets[-1])
        with lanes.busy():
            while len(tickets) < 6:
                time.sleep(1e-3)
        assert all(ticket.is_through and ticket.error is None for ticket in tickets)
        carried = len(tickets)
        lanes.transfer()
        assert len(tickets) == carried + 1
        assert tickets[-1].is_through


def test_piece_bytes_of_a_small_model_are_at_least_64_kib(bench: Bench) -> None:
    model = Decoder(bench.backend, SHAPE)
    assert 64 << 10 <= piece_bytes_of(model) < 128 << 10


def test_without_pause_what_fails_is_raised_where_it_is_waited_for() -> None:
    def fail() -> None:
        raise OSError("the drive is gone")

    with pytest.raises(OSError, match="the drive is gone"), without_pause(fail):
        pass


@pytest.mark.parametrize("blocks", [8, 32])
def test_host_step_reads_as_many_blocks_as_it_says_part_of_them_missing(blocks: int) -> None:
    system, watch = host.watched(blocks, 4)
    found = system.run().active
    assert found is not None
    assert found.reads == found.steps * blocks * 4
    assert 0.5 < found.resident / found.reads < 0.95
    assert len(watch.begun_s) == found.steps
    assert watch.begun_s == sorted(watch.begun_s)
    assert found.step_s < 1e-3
