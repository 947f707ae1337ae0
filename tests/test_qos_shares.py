"""Classes' parts of VRAM and of DRAM, and that priorities reach every transfer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import InfeasibleError
from simkv.sim.config import ClassConfig, SideBlocks, SystemConfig
from simkv.sim.live import Live
from simkv.sim.shares import VramShares
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from tests.active_factory import active_config
from tests.sim_factory import column, request, run, run_system, same, system_config
from tests.test_oracle import Case, check_single_steps, draw_anything

CHAT, BULK = ClassConfig("chat", 0), ClassConfig("bulk", 1)


def classed(*classes: ClassConfig, **changes: object) -> SystemConfig:
    """Return a system that knows ``classes``."""
    return system_config(classes=classes, **changes)


# ---- parts of VRAM


def capped(share: float | None, **changes: object) -> SystemConfig:
    """Return a pool of ten blocks of which class bulk has at most ``share``."""
    return classed(CHAT, replace(BULK, vram_share=share), num_gpu_blocks=10, prefix_caching=False, **changes)


def test_capped_class_waits_while_another_passes() -> None:
    requests = [request(i, 0.0, 12, 5, cls="bulk") for i in range(3)] + [request(9, 0.0, 12, 5, cls="chat")]
    data = run(capped(0.5), requests)  # three blocks a prompt: one of bulk at a time
    assert column(data, "scheduled_s", [0, 1, 2, 9]) == [0.0, 5.0, 10.0, 0.0]
    free = run(capped(None), requests)
    assert column(free, "scheduled_s", [0, 1, 2, 9]) == [0.0, 0.0, 0.0, 5.0]


def test_capped_class_counts_what_decoding_has_taken() -> None:
    requests = [request(0, 0.0, 4, 20, cls="bulk"), request(1, 8.5, 8, 2, cls="bulk")]
    data = run(capped(0.5), requests)  # at 9.0 request 0 has 12 tokens in VRAM: three blocks, and two more are five
    assert column(data, "scheduled_s") == [0.0, 9.0]
    later = [requests[0], replace(requests[1], arrival_s=12.5)]
    assert column(run(capped(0.5), later), "scheduled_s") == [0.0, 20.0]


def test_request_above_its_cap_runs_alone_of_its_class() -> None:
    requests = [
        request(0, 0.0, 24, 3, cls="bulk"),
        request(1, 0.0, 4, 3, cls="bulk"),
        request(2, 0.0, 4, 3, cls="chat"),
    ]
    data = run(capped(0.3), requests)
    assert column(data, "scheduled_s") == [0.0, 3.0, 0.0]


def test_small_request_does_not_pass_a_large_one_of_its_class_that_stepped_aside() -> None:
    requests = [
        request(0, 0.0, 12, 9, cls="bulk"),
        request(1, 1.0, 12, 3, cls="bulk"),
        request(2, 2.0, 4, 3, cls="bulk"),
    ]
    data = run(capped(0.5), requests)
    assert column(data, "scheduled_s") == [0.0, 9.0, 9.0]


def test_capped_class_counts_windows_and_states_of_those_that_hold_and_of_the_newcomer() -> None:
    requests = [request(0, 0.0, 12, 4, cls="bulk"), request(1, 0.0, 4, 3, cls="bulk")]
    config = capped(0.5)  # three blocks and one are within five
    assert column(run(config, requests), "scheduled_s") == [0.0, 0.0]
    beside = replace(config, engine=replace(config.engine, side=SideBlocks((), state_pages=2)))
    assert column(run(beside, requests), "scheduled_s") == [0.0, 4.0]


def test_those_that_stepped_aside_are_counted_as_waiting() -> None:
    system, data = run_system(capped(0.5), [request(i, 0.0, 12, 20, cls="bulk") for i in range(4)])
    assert max(data.timeseries["waiting"]) == 3
    assert system.engines[0].scheduler.queued == 0


# ---- parts of DRAM


def test_class_looks_up_only_its_own_part_of_dram() -> None:
    classes = (CHAT, replace(BULK, dram_share=0.5))
    requests = [same(0, 0.0, 20, 1, 1, "chat"), request(1, 50.0, 24, 1, cls="chat"), same(2, 100.0, 20, 1, 1, "bulk")]
    requests += [request(3, 150.0, 24, 1, cls="chat"), same(4, 200.0, 20, 1, 1, "chat")]
    shared = run(classed(CHAT, BULK, num_gpu_blocks=6, dram_blocks=40), requests)
    assert column(shared, "hit_dram_tokens") == [0, 0, 16, 0, 16]
    parted = run(classed(*classes, num_gpu_blocks=6, dram_blocks=40), requests)
    assert column(parted, "hit_dram_tokens") == [0, 0, 0, 0, 16]


def test_flood_of_one_class_evicts_nothing_of_the_others_part() -> None:
    requests = [same(0, 0.0, 20, 1, 1, "chat")]
    requests += [request(i, 20.0 * i, 24, 1, cls="bulk") for i in range(1, 8)] + [same(9, 200.0, 20, 1, 1, "chat")]
    shared = run(classed(CHAT, BULK, num_gpu_blocks=6, dram_blocks=20), requests)
    assert column(shared, "hit_dram_tokens", [9]) == [0]
    parted = run(classed(replace(CHAT, dram_share=0.4), BULK, num_gpu_blocks=6, dram_blocks=20), requests)
    assert column(parted, "hit_dram_tokens", [9]) == [16]


def test_parts_of_dram_are_whole_blocks_and_sum_to_no_more_than_there_is() -> None:
    classes = (replace(CHAT, dram_share=0.3), replace(BULK, dram_share=0.25), ClassConfig("other"))
    system, _ = run_system(classed(*classes, dram_blocks=21, num_gpu_blocks=50), [request(0, 0.0, 8, 1, cls="other")])
    assert [pool.capacity_blocks for pool in system.hosts[0].dram] == [6, 5, 9]
    owners = system.engines[0].tiers.owners
    assert [system.hosts[0].dram.index(owner.dram) for owner in owners] == [0, 1, 2, 2]  # type: ignore[arg-type]


def test_part_of_dram_without_a_block_is_infeasible() -> None:
    config = classed(replace(CHAT, dram_share=0.01), dram_blocks=20)
    with pytest.raises(InfeasibleError, match=r"classes\.chat\.dram_share leaves the class no block"):
        System(config, FixedSource([request(0, 0.0, 4, 1, cls="chat")]))


# ---- ranks


def test_ranks_are_dense_and_first_come_first_served_knows_none() -> None:
    classes = (ClassConfig("a", 7), ClassConfig("b", 3), ClassConfig("c", 7))
    requests = [request(0, 0.0, 4, 1, cls="a")]
    ranked, _ = run_system(classed(*classes, scheduling="priority"), requests)
    assert [owner.rank for owner in ranked.engines[0].tiers.owners] == [1, 0, 1, 0]
    assert len(ranked.engines[0].tiers.h2d.queues) == 8
    plain, _ = run_system(classed(*classes), requests)
    assert [owner.rank for owner in plain.engines[0].tiers.owners] == [0, 0, 0, 0]
    assert len(plain.engines[0].tiers.h2d.queues) == 4


@pytest.mark.parametrize(("scheduling", "loaded_s"), [("priority", 0.45), ("fcfs", 4.25)])
def test_load_of_the_urgent_class_passes_that_of_a_patient_one(scheduling: str, loaded_s: float) -> None:
    """A load of 40 blocks takes 4 s and gives way every block; one of 4 blocks is sent half a block later."""
    config = classed(
        CHAT, BULK, scheduling=scheduling, num_gpu_blocks=60, dram_blocks=200, chunk_bytes=1000, max_num_seqs=4,
        max_num_batched_tokens=10**4,
    )  # fmt: skip
    requests = [same(0, 0.0, 164, 1, 1, "bulk"), same(1, 50.0, 20, 1, 2, "chat"), request(2, 100.0, 236, 1, cls="bulk")]
    requests += [same(3, 200.0, 164, 1, 1, "bulk"), same(4, 200.15, 20, 1, 2, "chat")]
    data = run(config, requests)
    assert column(data, "hit_dram_tokens", [3, 4]) == [160, 16]
    assert column(data, "load_dram_time_s", [4]) == pytest.approx([loaded_s])


@pytest.mark.parametrize("make", [system_config, active_config])
def test_router_does_not_count_what_an_urgent_newcomer_passes(make: Callable[..., SystemConfig]) -> None:
    """Replica 0 runs a long answer and queues patient prompts; replica 1 computes a prompt that is nearly done."""
    requests = [request(0, 0.0, 8, 200, cls="bulk"), request(1, 0.0, 8, 200, cls="chat")]
    requests += [request(2, 0.1, 400, 1, cls="bulk"), request(3, 0.2, 300, 1, cls="chat")]
    requests += [request(4, 0.3, 8, 1, cls="chat")]
    config = make(
        classes=(CHAT, BULK), replicas=2, router="prefix_aware", max_num_seqs=1, scheduling="priority",
        num_gpu_blocks=400,
    )  # fmt: skip
    data = run(config, requests)
    assert column(data, "replica") == [0, 1, 0, 1, 0]
    fcfs = replace(config, engine=replace(config.engine, scheduling="fcfs"))
    assert column(run(fcfs, requests), "replica") == [0, 1, 0, 1, 1]


# ---- any run


def draw_shares(rng: Random, most: int = 16) -> Case:
    """Every feature at once, with parts for classes."""
    case = draw_anything(rng, most)
    config = case.config
    for one in case.requests:
        one.cls = rng.choice("abc")
    classes = tuple(
        ClassConfig(name, rng.randint(0, 2), rng.choice((None, 0.2, 0.5, 0.9)), rng.choice((None, None, 0.4, 0.25)))
        for name in "abc"
    )
    if config.offload.write == "write_back" or config.dram.capacity_bytes < 8 * config.engine.block_bytes:
        classes = tuple(replace(one, dram_share=None) for one in classes)
    scheduling = rng.choice(("fcfs", "priority"))
    return Case(replace(config, engine=replace(config.engine, scheduling=scheduling), classes=classes), case.requests)


@settings(max_examples=80)
@given(st.randoms(use_true_random=False))
def test_single_steps_agree_on_shares(rng: Random) -> None:
    check_single_steps(draw_shares(rng))


@pytest.mark.parametrize("seed", range(40))
def test_admission_keeps_every_cap(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is let in above the cap of its class but one that is alone."""
    case = draw_shares(Random(seed), 24)
    original = VramShares.hold

    def watched(self: VramShares, live: Live) -> Live | None:
        following = original(self, live)
        if live.cls in self.caps:
            step = -1
            for engine in system.engines:
                step = engine.step if engine.scheduler.shares is self else step
            holders = self._holders[live.cls]
            assert len(holders) == 1 or sum(self._blocks(one, step) for one in holders) <= self.caps[live.cls]
        return following

    monkeypatch.setattr(VramShares, "hold", watched)
    system = System(replace(case.config, audit=True), FixedSource(case.requests))
    data = system.run()
    assert data.live == 0
    assert all(not engine.scheduler.queued for engine in system.engines)
