"""The tiers below VRAM: what a hit costs, what goes where, and the traps that other simulators fell into.

Times by hand: a step takes 1 s, a block crosses the link in 0.1 s and the SSD in 0.2 s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.baselines import without_offload
from simkv.errors import LawError
from simkv.kvcache.index import PrefixIndex
from simkv.kvcache.pool import KVPool
from simkv.results.check import check_run
from simkv.results.summary import hit_rate
from simkv.sim.config import SystemConfig
from simkv.sim.fabric import Lane, Transfer
from simkv.sim.mover import Mover
from simkv.sim.record.errand import Errand
from simkv.sim.rundata import REQUEST_COLUMNS, RunData
from simkv.sim.scheduler import Scheduler
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from simkv.workload.request import Request
from tests.sim_factory import (
    BLOCK,
    BLOCK_BYTES,
    ComputeStep,
    column,
    request,
    run,
    run_system,
    same,
    system_config,
    ttft,
)

PROMPT = 5 * BLOCK
REUSED = 4
"""Blocks of the prompt that a second request may hit: its last token is always computed."""


def evicting(**changes: Any) -> SystemConfig:
    """Return a system with a VRAM of six blocks and a DRAM of a hundred."""
    return system_config(changes.pop("cost", None), **({"num_gpu_blocks": 6, "dram_blocks": 100} | changes))


def twice(other: int = 24, **second: Any) -> list[Request]:
    """A prompt of five blocks, one that pushes it out of VRAM, and the first prompt again at 100 s."""
    return [same(0, 0.0, PROMPT, 1, 1), request(1, 50.0, other, 1), same(2, 100.0, PROMPT, 1, 1)]


def resident(pool: KVPool | None) -> set[tuple[int, int]]:
    """Return ``(stream, block)`` of what a pool holds, for prompts of one stream each."""
    found: set[tuple[int, int]] = set()
    stack = list(pool.index.root.children.values()) if pool is not None else []
    while stack:
        node = stack.pop()
        stack += node.children.values()
        if node.resident:
            found |= {(node.spans[0][0], block) for block in range(node.end - node.blocks, node.end)}
    return found


def assert_same_requests(a: RunData, b: RunData) -> None:
    """Every column of every request equal to the last digit."""
    for name in REQUEST_COLUMNS:
        np.testing.assert_array_equal(a.requests[name], b.requests[name], name)


# ---- what a hit costs


def test_dram_hit_is_charged_to_its_request() -> None:
    data = run(evicting(), twice())
    assert column(data, "hit_dram_tokens") == [0, 0, REUSED * BLOCK]
    assert column(data, "load_dram_time_s") == pytest.approx([0.0, 0.0, 0.4])
    assert ttft(data) == pytest.approx([1.0, 1.0, 1.4])
    assert data.busy_s["h2d"] == pytest.approx(0.4)
    assert data.load_held_s == pytest.approx(0.4) and data.load_waits == 1


def test_dram_hit_on_a_slower_link_takes_longer() -> None:
    """The trap: a tier that changes the hit rate and not the latency."""
    times, rates = [], [500.0, 2000.0, 10_000.0, 1e6, inf]
    for rate in rates:
        data = run(evicting(h2d=rate), twice())
        assert column(data, "hit_dram_tokens") == [0, 0, REUSED * BLOCK]
        times.append(ttft(data)[2])
    assert times == pytest.approx([1 + REUSED * BLOCK_BYTES / rate for rate in rates])


def test_dram_hit_pays_a_latency_a_descriptor() -> None:
    data = run(evicting(latency_s=0.02, descriptors_per_block=3), twice())
    assert ttft(data)[2] == pytest.approx(1.0 + 0.4 + 3 * REUSED * 0.02)


def test_link_of_1_gb_is_never_better_than_one_of_25_alone() -> None:
    times = []
    for rate in (1e9, 25e9):
        config = evicting(block_bytes=2 << 20, h2d=rate, d2h=rate, duplex=2 * rate)
        config = replace(config, dram=replace(config.dram, capacity_bytes=100 * (2 << 20)))
        times.append(ttft(run(config, twice())))
    assert all(slow >= fast for slow, fast in zip(*times, strict=True))
    assert times[0][2] > times[1][2]


def test_free_link_equals_a_vram_hit() -> None:
    free = run(evicting(h2d=inf, d2h=inf), twice())
    large = run(evicting(num_gpu_blocks=100), twice())
    assert column(free, "hit_dram_tokens") == column(large, "hit_vram_tokens") == [0, 0, REUSED * BLOCK]
    for name in ("scheduled_s", "first_token_s", "finish_s"):
        assert column(free, name) == column(large, name)


def test_load_holds_its_request_while_others_run() -> None:
    slow = evicting(num_gpu_blocks=20, h2d=500.0)
    requests = [
        same(0, 0.0, PROMPT, 1, 1),
        request(1, 50.0, 80, 1),
        request(2, 99.5, 4, 30),
        same(3, 100.0, PROMPT, 1, 1),
    ]
    data = run(slow, requests)
    # loads from the step boundary at 100.5 for 8 s, then waits for the boundary at 109.5
    assert column(data, "load_dram_time_s")[3] == pytest.approx(8.0)
    assert column(data, "scheduled_s")[3] == pytest.approx(108.5)
    assert column(data, "first_token_s")[3] == pytest.approx(109.5)
    assert column(data, "finish_s")[2] == 99.5 + 30.0  # nobody else is slower for it
    assert data.load_hidden_s == pytest.approx(8.0)


@pytest.mark.parametrize(("rate", "load_s"), [(10_000.0, 0.4), (4000.0, 1.0), (1000.0, 4.0)])
def test_overlapped_load_takes_the_longer_and_a_layer_of_the_shorter(rate: float, load_s: float) -> None:
    data = run(evicting(load="overlap", h2d=rate), twice())  # four layers, a step of 1 s
    assert ttft(data)[2] == pytest.approx(max(1.0, load_s) + min(1.0, load_s) / 4)
    assert column(data, "load_dram_time_s")[2] == pytest.approx(ttft(data)[2] - 1.0)


def test_overlapped_load_of_nothing_costs_nothing() -> None:
    data = run(evicting(load="overlap", h2d=inf), twice())
    assert ttft(data) == [1.0, 1.0, 1.0]


def test_ssd_hit_goes_through_dram_and_pays_both_ways() -> None:
    config = evicting(dram_blocks=6, ssd_blocks=100, ssd_latency_s=0.05)
    system, data = run_system(config, twice())
    assert column(data, "hit_ssd_tokens") == [0, 0, REUSED * BLOCK]
    assert column(data, "hit_dram_tokens") == [0, 0, 0]
    assert parts(data, 2) == pytest.approx({"load_ssd": 0.05 + 0.8, "load_dram": 0.4, "prefill": 1.0})
    assert data.bytes["ssd_read"] == data.bytes["h2d"] == REUSED * BLOCK_BYTES
    assert {(1, 0), (1, 3)} <= resident(system.engines[0].tiers.dram)


def parts(data: RunData, number: int) -> dict[str, float]:
    names = ("queue", "load_dram", "load_ssd", "prefill", "decode", "recompute", "preempted")
    times = {name: column(data, f"{name}_time_s", [number])[0] for name in names}
    return {name: time for name, time in times.items() if time}


def test_ssd_without_queue_depth_is_bound_by_its_latency() -> None:
    """One block in flight at a time: at most a block a latency."""
    config = evicting(dram_blocks=6, ssd_blocks=100, ssd_latency_s=1.0, queue_depth=2)
    assert parts(run(config, twice()), 2)["load_ssd"] == pytest.approx(1.0 + REUSED / 2)


def test_part_in_vram_part_in_dram_is_hit_in_both() -> None:
    data = run(evicting(num_gpu_blocks=8), twice(other=24))  # eight blocks: three of the first prompt's stay
    assert column(data, "hit_vram_tokens")[2] + column(data, "hit_dram_tokens")[2] == REUSED * BLOCK
    assert column(data, "hit_vram_tokens")[2] == 2 * BLOCK
    assert data.bytes["h2d"] == 2 * BLOCK_BYTES
    assert ttft(data)[2] == pytest.approx(1.2)


# ---- bytes


def test_every_loaded_byte_is_on_the_link_and_in_dram_once() -> None:
    data = run(evicting(), twice())
    assert data.bytes == {"h2d": 4000, "d2h": 11_000, "dram": 15_000, "ssd_read": 0, "ssd_write": 0}


def test_cascade_writes_each_block_to_ssd_once() -> None:
    data = run(evicting(ssd_blocks=100), twice())
    assert data.bytes["ssd_write"] == data.bytes["d2h"] == 11_000
    assert data.bytes["dram"] == sum(data.bytes[name] for name in ("h2d", "d2h", "ssd_read", "ssd_write"))


def test_block_in_dram_already_is_not_written_again() -> None:
    data = run(evicting(), [*twice(), request(3, 150.0, 24, 1), same(4, 200.0, PROMPT, 1, 1)])
    assert data.bytes["d2h"] == (5 + 6 + 6) * BLOCK_BYTES


# ---- equal to no offload


def crowded(seed: int) -> list[Request]:
    """Return a few dozen requests that reuse prefixes under memory pressure."""
    rng = Random(seed)
    out: list[Request] = []
    now = 0.0
    for number in range(60):
        now += rng.random() * 6
        stream, prompt = rng.randint(1, 5), rng.randint(1, 10) * BLOCK + rng.randint(0, 3)
        shared = min(prompt, rng.choice((0, 8, 20, 40)))
        out.append(request(number, now, prompt, rng.randint(1, 20), shared, stream))
    return out


SMALL: dict[str, Any] = {"num_gpu_blocks": 24, "max_num_seqs": 4, "max_num_batched_tokens": 32, "dram_blocks": 200}
NOTHING_BELOW: dict[str, dict[str, Any]] = {
    "no DRAM": {"dram_blocks": 0},
    "less than a block of DRAM": {"dram_blocks": 0.99},
    "never written": {"write": "never"},
    "no bandwidth up": {"h2d": 0.0, "d2h": 0.0},
    "no duplex bandwidth": {"duplex": 0.0},
    "no DRAM bandwidth": {"dram_rate": 0.0},
    "an SSD without DRAM": {"dram_blocks": 0, "ssd_blocks": 100},
    "prefetch of nothing": {"dram_blocks": 0, "prefetch": "queue"},
    "exclusive with nothing": {"dram_blocks": 0, "relation": "exclusive", "write": "write_back"},
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("why", NOTHING_BELOW)
def test_nothing_below_vram_equals_no_offload_to_the_last_digit(why: str, seed: int) -> None:
    config = system_config(ComputeStep(1.0, 0.01), **(SMALL | NOTHING_BELOW[why]))
    data, without = run(config, crowded(seed)), run(without_offload(config), crowded(seed))
    assert_same_requests(data, without)
    assert data.end_s == without.end_s and data.bytes["h2d"] == 0
    assert data.preemptions > 0, "the case must be crowded to mean something"


def test_prefetch_changes_nothing_where_nobody_waits() -> None:
    config = evicting()
    plain, ahead = (
        run(config, twice()),
        run(replace(config, offload=replace(config.offload, prefetch="queue")), twice()),
    )
    assert_same_requests(plain, ahead)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_hit_rates_have_one_denominator_with_and_without_offload(seed: int) -> None:
    config = system_config(**SMALL)
    data, without = run(config, crowded(seed)), run(without_offload(config), crowded(seed))
    assert sum(column(data, "prompt_tokens")) == sum(column(without, "prompt_tokens"))
    assert column(data, "ceiling_tokens") == column(without, "ceiling_tokens")
    for one in (data, without):
        rates = hit_rate(one)
        assert rates["vram"] + rates["dram"] + rates["ssd"] + rates["miss"] == pytest.approx(1)
        assert rates["miss"] >= 1 - rates["ceiling"] - 1e-12
    assert hit_rate(without)["dram"] == 0 < hit_rate(data)["dram"]


# ---- write policies


def test_write_through_writes_when_a_prompt_is_computed() -> None:
    system, data = run_system(evicting(num_gpu_blocks=10), [same(0, 0.0, PROMPT, 9, 1)])
    assert data.bytes["d2h"] == 5 * BLOCK_BYTES  # the prompt; outputs stay in VRAM
    assert resident(system.engines[0].tiers.dram) == {(1, block) for block in range(5)}


def test_store_outputs_writes_them_too() -> None:
    system, data = run_system(evicting(num_gpu_blocks=10, store_outputs=True), [same(0, 0.0, PROMPT, 9, 1)])
    assert data.bytes["d2h"] == 7 * BLOCK_BYTES  # 28 tokens have KV
    assert resident(system.engines[0].tiers.dram) == {(1, block) for block in range(7)}


def test_write_back_writes_on_eviction_only() -> None:
    roomy = run(evicting(num_gpu_blocks=100, write="write_back"), twice())
    assert roomy.bytes["d2h"] == 0
    system, data = run_system(evicting(write="write_back"), twice()[:2])
    assert data.bytes["d2h"] == 5 * BLOCK_BYTES  # all five: the second prompt needs six of six
    assert resident(system.engines[0].tiers.dram) == {(1, block) for block in range(5)}
    assert column(run(evicting(write="write_back"), twice()), "hit_dram_tokens") == [0, 0, REUSED * BLOCK]


def test_write_back_does_not_write_what_dram_has() -> None:
    data = run(evicting(write="write_back"), [*twice(), request(3, 150.0, 24, 1), same(4, 200.0, PROMPT, 1, 1)])
    # five of the first prompt, five of the first filler; its last, and nothing for the prompt; five of the second
    assert data.bytes["d2h"] == (5 + 5 + 1 + 0 + 5) * BLOCK_BYTES


def test_write_back_pushes_dram_evictions_to_ssd() -> None:
    config = evicting(write="write_back", dram_blocks=6, ssd_blocks=100)
    data = run(config, [*twice()[:2], request(3, 80.0, 24, 1), same(2, 100.0, PROMPT, 1, 1)])
    assert data.bytes["ssd_write"] > 0
    assert column(data, "hit_ssd_tokens", [2]) == [REUSED * BLOCK]


def test_selective_writes_from_the_second_use_on() -> None:
    config = evicting(num_gpu_blocks=40, write="write_through_selective")
    once = run(config, twice()[:2])
    assert once.bytes["d2h"] == 0
    system, again = run_system(config, twice())
    assert again.bytes["d2h"] in (REUSED * BLOCK_BYTES, 5 * BLOCK_BYTES)
    assert {(1, block) for block in range(REUSED)} <= resident(system.engines[0].tiers.dram)


def test_never_writes_nothing() -> None:
    data = run(evicting(write="never", ssd_blocks=100), twice())
    assert set(data.bytes.values()) == {0}


def test_exclusive_moves_what_copy_copies() -> None:
    for relation, stays in (("copy", True), ("exclusive", False)):
        config = evicting(write="write_back", relation=relation, dram_blocks=100)
        system, data = run_system(config, twice())
        tiers = system.engines[0].tiers
        assert column(data, "hit_dram_tokens") == [0, 0, REUSED * BLOCK]
        reused = {(1, block) for block in range(REUSED)}
        assert reused <= resident(tiers.vram)
        assert (reused <= resident(tiers.dram)) == stays
        assert bool(reused & resident(tiers.dram)) == stays


def test_exclusive_promotion_moves_from_ssd() -> None:
    config = evicting(write="write_back", relation="exclusive", dram_blocks=6, ssd_blocks=100)
    requests = [*twice()[:2], request(3, 80.0, 24, 1), same(2, 100.0, PROMPT, 1, 1)]
    system, data = run_system(config, requests)
    assert column(data, "hit_ssd_tokens", [2]) == [REUSED * BLOCK]
    tiers = system.engines[0].tiers
    reused = {(1, block) for block in range(REUSED)}
    assert reused <= resident(tiers.vram)
    assert not reused & resident(tiers.dram) and not reused & resident(tiers.ssd)


# ---- capacity


def test_dram_full_of_what_is_on_its_way_refuses_and_counts() -> None:
    config = evicting(num_gpu_blocks=40, dram_blocks=7, d2h=100.0)
    data = run(config, [same(0, 0.0, PROMPT, 1, 1), same(1, 0.0, PROMPT, 1, 2)])
    assert data.refused_stores >= 1
    assert data.bytes["d2h"] == 5 * BLOCK_BYTES


def test_dram_smaller_than_a_prompt_refuses_it_whole() -> None:
    data = run(evicting(dram_blocks=4), twice())
    assert data.refused_stores >= 2
    assert data.bytes["d2h"] == 0 and column(data, "hit_dram_tokens") == [0, 0, 0]


def test_refused_store_is_offered_again() -> None:
    config = evicting(num_gpu_blocks=40, dram_blocks=7, d2h=5000.0)
    requests = [same(0, 0.0, PROMPT, 1, 1), same(1, 0.0, PROMPT, 30, 2)]
    system, data = run_system(config, requests)
    assert data.refused_stores >= 1  # while the first is under way; by the end of the second there is room
    assert {(2, block) for block in range(5)} <= resident(system.engines[0].tiers.dram)


def test_dram_without_room_for_a_promotion_still_serves_what_it_has() -> None:
    """The promotion is refused after it has cut the node in DRAM that the hit ends in."""

    def fork(number: int, at_s: float, own: int, stream: int) -> Request:
        return Request(number, at_s, 8 + own, 1, ((1, 0, 8), (stream, 0, own + 1)))

    config = system_config(num_gpu_blocks=12, replicas=2, dram_blocks=16, ssd_blocks=100, d2h=100.0)
    requests = [
        fork(0, 0.0, 20, 2),  # replica 0; by way of its DRAM to the SSD that both replicas use
        fork(1, 0.0, 12, 3),  # replica 1: two blocks in common, and three of its own
        request(2, 1000.0, 4, 1),
        request(3, 1000.0, 48, 1),  # pushes it out of replica 1's VRAM, and is more than its DRAM takes
        request(4, 2000.0, 4, 1),
        request(5, 2000.0, 12, 1),  # its three blocks are on their way to DRAM for 30 s
        request(6, 2002.0, 4, 1),
        fork(7, 2002.0, 20, 2),  # two blocks in DRAM; the next four are on SSD, and there is no room for them
    ]
    data = run(config, requests)
    assert column(data, "hit_dram_tokens", [7]) == [8]
    assert column(data, "hit_ssd_tokens", [7]) == [0]


def test_dram_hit_is_held_before_evictions_come_down() -> None:
    """Room in VRAM for a load is made by pushing blocks down to a full DRAM: never onto what is to be loaded."""
    for load in ("hold", "overlap"):
        config = system_config(num_gpu_blocks=10, dram_blocks=10, write="write_back", load=load)
        data = run(config, [same(i, 100.0 * i, 32, 1, stream=i % 2 + 1) for i in range(5)])
        assert sum(column(data, "hit_dram_tokens")) > 0


def test_dram_shared_by_replicas_serves_both_and_partitioned_does_not() -> None:
    requests = [same(0, 0.0, PROMPT, 1, 1), same(1, 100.0, PROMPT, 1, 1)]
    shared = run(evicting(replicas=2, shared=True), requests)
    assert column(shared, "replica") == [0, 1]
    assert column(shared, "hit_dram_tokens") == [0, REUSED * BLOCK]
    assert column(run(evicting(replicas=2, shared=False), requests), "hit_dram_tokens") == [0, 0]
    assert column(run(evicting(replicas=2, hosts=2, shared=True), requests), "hit_dram_tokens") == [0, 0]


def test_partitioned_dram_is_split_evenly() -> None:
    system, data = run_system(evicting(replicas=2, dram_blocks=9, shared=False), twice())
    assert [pool.capacity_blocks for pool in system.hosts[0].dram] == [4, 4]
    assert data.refused_stores >= 3 and data.bytes["d2h"] == 0
    system, data = run_system(evicting(replicas=2, dram_blocks=9, shared=True), twice())
    assert [pool.capacity_blocks for pool in system.hosts[0].dram] == [9]


@pytest.mark.parametrize(
    ("replicas", "hosts", "dealt"), [(4, 3, [2, 1, 1]), (5, 2, [3, 2]), (2, 2, [1, 1]), (3, 1, [3])]
)
def test_replicas_are_dealt_to_every_host(replicas: int, hosts: int, dealt: list[int]) -> None:
    system = System(evicting(replicas=replicas, hosts=hosts), FixedSource([]))
    per_host = [sum(engine.tiers.host is host for engine in system.engines) for host in system.hosts]
    assert per_host == dealt


def test_unlimited_tiers_keep_everything() -> None:
    config = system_config(**(SMALL | {"dram_blocks": inf, "ssd_blocks": inf}))
    data = run(config, crowded(1))
    assert data.finished == 60 and data.refused_stores == 0
    assert hit_rate(data)["miss"] < hit_rate(run(without_offload(config), crowded(1)))["miss"]


@pytest.mark.parametrize("rate", [1e-3, 1.0])
def test_tiny_bandwidth_ends(rate: float) -> None:
    data = run(evicting(h2d=rate, d2h=1e9), twice())
    assert ttft(data)[2] == pytest.approx(1.0 + REUSED * BLOCK_BYTES / rate)


# ---- prefetch


def test_two_requests_with_one_dram_hit_load_it_once() -> None:
    """The second waits for the load of the first and finds its blocks in VRAM."""
    config = evicting(num_gpu_blocks=20, h2d=1000.0)
    requests = [same(0, 0.0, PROMPT, 1, 1), request(1, 50.0, 80, 1), same(2, 100.0, PROMPT, 1, 1)]
    alone = run(config, requests)
    both = run(config, [*requests, same(3, 100.1, PROMPT, 1, 1)])
    assert both.bytes["h2d"] == alone.bytes["h2d"] == REUSED * BLOCK_BYTES
    assert column(both, "first_token_s", [2]) == column(alone, "first_token_s", [2])
    assert column(both, "hit_vram_tokens", [3]) == [REUSED * BLOCK]
    assert column(both, "load_dram_time_s", [3])[0] == pytest.approx(column(both, "load_dram_time_s", [2])[0] - 0.1)


def waiting_for_its_turn(**changes: Any) -> tuple[SystemConfig, list[Request]]:
    """A prompt computed by one replica comes again at the other, which has free VRAM and no seat until 120 s."""
    config = evicting(**({"num_gpu_blocks": 20, "max_num_seqs": 1, "replicas": 2, "shared": True} | changes))
    requests = [
        same(0, 0.0, PROMPT, 1, 1),
        request(1, 100.0, 4, 20),
        request(2, 100.5, 24, 1),
        same(3, 101.5, PROMPT, 1, 1),
    ]
    return config, requests


def with_prefetch(config: SystemConfig) -> SystemConfig:
    return replace(config, offload=replace(config.offload, prefetch="queue"))


def test_queue_prefetch_hides_the_load_behind_the_queue() -> None:
    config, requests = waiting_for_its_turn()
    plain, ahead = run(config, requests), run(with_prefetch(config), requests)
    assert column(plain, "replica") == [0, 1, 0, 1]
    assert column(plain, "first_token_s", [3]) == pytest.approx([120.0 + 0.4 + 1.0])
    assert column(ahead, "first_token_s", [3]) == [121.0]
    assert column(ahead, "load_dram_time_s", [3]) == [0.0]
    assert column(ahead, "hit_dram_tokens", [3]) == column(plain, "hit_dram_tokens", [3]) == [REUSED * BLOCK]
    assert ahead.bytes == plain.bytes
    assert ahead.prefetch == {"loaded_bytes": 4000, "used_bytes": 4000, "wasted_bytes": 0}
    assert plain.prefetch["loaded_bytes"] == 0


def test_queue_prefetch_brings_up_from_ssd_while_its_request_waits() -> None:
    config, requests = waiting_for_its_turn(num_gpu_blocks=30, dram_blocks=6, ssd_blocks=100)
    requests[2] = request(2, 50.0, 24, 1)  # pushes the prompt out of DRAM
    requests[1] = request(1, 40.0, 4, 80)  # has the other replica's seat until 120 s
    plain, ahead = run(config, requests), run(with_prefetch(config), requests)
    assert column(plain, "hit_ssd_tokens", [3]) == column(ahead, "hit_ssd_tokens", [3]) == [REUSED * BLOCK]
    assert column(plain, "first_token_s", [3]) == pytest.approx([120.0 + 0.8 + 0.4 + 1.0])
    assert column(ahead, "first_token_s", [3]) == [121.0]


@pytest.mark.parametrize(
    ("offload", "ssd_read", "first_token_s", "hit_blocks"),
    [
        ({}, 5000.0, 121.0, REUSED),
        ({"prefetch_stop": "best_effort"}, 5000.0, 121.0, REUSED),
        ({"prefetch_stop": "timeout", "timeout_base_s": 1000.0}, 5000.0, 121.0, REUSED),
        # the read takes 40 s from 101.5 on, and the turn comes at 120
        ({}, 100.0, 141.5 + 0.4 + 1.0, REUSED),
        ({"prefetch_stop": "best_effort"}, 100.0, 121.0, 0),
        ({"prefetch_stop": "timeout", "timeout_base_s": 25.0}, 100.0, 126.5 + 1.0, 0),
        ({"prefetch_stop": "timeout", "timeout_base_s": 25.0, "timeout_most_s": 10.0}, 100.0, 121.0, 0),
        # 1600 s for 1024 tokens are 25 s for 16
        ({"prefetch_stop": "timeout", "timeout_base_s": 0.0, "timeout_per_ki_token_s": 1600.0}, 100.0, 127.5, 0),
        ({"prefetch_stop": "timeout", "timeout_base_s": 1000.0}, 100.0, 141.5 + 0.4 + 1.0, REUSED),
    ],
)
def test_queue_prefetch_stops_as_told_and_waits_no_longer_than_its_read(
    offload: dict[str, Any], ssd_read: float, first_token_s: float, hit_blocks: int
) -> None:
    changes = {"num_gpu_blocks": 30, "dram_blocks": 6, "ssd_blocks": 100, "ssd_read": ssd_read}
    config, requests = waiting_for_its_turn(**changes, **({"timeout_per_ki_token_s": 0.0} | offload))
    requests[2] = request(2, 50.0, 24, 1)  # pushes the prompt out of DRAM
    requests[1] = request(1, 40.0, 4, 80)  # has the other replica's seat until 120 s
    data = run(with_prefetch(config), requests)
    assert column(data, "first_token_s", [3]) == pytest.approx([first_token_s])
    assert column(data, "hit_ssd_tokens", [3]) == [hit_blocks * BLOCK]


def test_queue_prefetch_under_way_is_waited_for_and_not_repeated() -> None:
    config, requests = waiting_for_its_turn(h2d=100.0)  # 40 s for the load, which begins at 101.5
    ahead = run(with_prefetch(config), requests)
    assert ahead.bytes["h2d"] == 4000
    assert column(ahead, "load_dram_time_s", [3]) == pytest.approx([141.5 - 120.0])
    assert column(ahead, "first_token_s", [3]) == pytest.approx([142.5])


def test_queue_prefetch_evicts_nobody() -> None:
    config, requests = waiting_for_its_turn(num_gpu_blocks=6)  # the one that runs needs all six in the end
    ahead = run(with_prefetch(config), requests)
    assert ahead.prefetch["loaded_bytes"] == 4000
    assert ahead.preemptions == 0
    full, requests = waiting_for_its_turn(num_gpu_blocks=6)
    requests[1] = request(1, 100.0, 12, 12)  # three blocks are free: fewer than the load
    assert run(with_prefetch(full), requests).prefetch["loaded_bytes"] == 0


def test_queue_prefetch_pushed_out_before_use_is_wasted() -> None:
    """What was fetched is in nobody's hands: the sequence that runs takes its room as it grows."""
    config, requests = waiting_for_its_turn(num_gpu_blocks=6)
    data = run(with_prefetch(config), requests)
    assert data.prefetch["loaded_bytes"] == 4000
    assert data.prefetch["wasted_bytes"] == 4000 - data.prefetch["used_bytes"] > 0
    assert data.bytes["h2d"] == 8000 - data.prefetch["used_bytes"]  # what was pushed out is loaded again


def test_promoted_twice_is_hit_once() -> None:
    """A look-ahead promotion finds no room in VRAM and is pushed out of DRAM; admission promotes again."""
    config, _ = waiting_for_its_turn(num_gpu_blocks=20, dram_blocks=6, ssd_blocks=100)
    requests = [
        same(0, 0.0, PROMPT, 1, 1),
        request(1, 40.0, 4, 1),
        request(2, 50.0, 24, 1),  # pushes the prompt out of DRAM
        request(3, 100.0, 60, 20),  # has the other replica's seat and VRAM until 120 s
        request(4, 105.0, 4, 1),
        same(5, 108.0, PROMPT, 1, 1),
        request(6, 110.0, 24, 1),  # pushes the prompt out of DRAM again
    ]
    data = run(with_prefetch(config), requests)
    assert data.bytes["ssd_read"] == 2 * REUSED * BLOCK_BYTES
    assert column(data, "hit_ssd_tokens", [5]) == [REUSED * BLOCK]
    assert column(data, "hit_dram_tokens", [5]) == [0]


# ---- laws


def random_case(rng: Random) -> tuple[SystemConfig, list[Request]]:
    """Draw a small system where every tier is short."""
    config = system_config(
        ComputeStep(1.0, 0.02),
        num_gpu_blocks=rng.choice((24, 30)),
        max_num_seqs=rng.choice((2, 4)),
        max_num_batched_tokens=32,
        dram_blocks=rng.choice((3, 12, 25, 60)),
        ssd_blocks=rng.choice((0, 10, 60)),
        replicas=rng.choice((1, 2, 4)),
        uplink_bytes_per_s=rng.choice((inf, inf, 3000.0)),
        uplink_replicas=rng.choice((1, 2)),
        shared=rng.random() < 0.5,
        duplex=rng.choice((inf, 12_000.0)),
        dram_rate=rng.choice((inf, 9000.0)),
        h2d=rng.choice((1000.0, 10_000.0, inf)),
        d2h=rng.choice((1000.0, 10_000.0)),
        write=rng.choice(("write_through", "write_through_selective", "write_back")),
        relation=rng.choice(("copy", "exclusive")),
        prefetch=rng.choice(("none", "queue")),
        load=rng.choice(("hold", "overlap")),
        eviction=rng.choice(("lru", "fifo")),
        store_outputs=rng.random() < 0.5,
    )
    return config, crowded(rng.randint(0, 10**6))[: rng.randint(5, 40)]


@settings(max_examples=80)
@given(st.randoms(use_true_random=False))
def test_any_run_keeps_the_laws_after_every_event(rng: Random) -> None:
    hold_laws(*random_case(rng))


def hold_laws(config: SystemConfig, requests: list[Request], loads_once: bool = False) -> None:
    """Run with every law checked after every event; ``loads_once``: nothing has to be loaded a second time."""
    system = System(replace(config, audit=True), FixedSource(requests))
    assert system.audit is not None
    system.audit.every = 1
    data = system.run()
    check_run(data)
    below = sum(column(data, "hit_dram_tokens")) + sum(column(data, "hit_ssd_tokens"))
    loaded = below // BLOCK * BLOCK_BYTES
    if loads_once:
        assert data.bytes["h2d"] == loaded, "loads that nobody hit"
    if config.engine.load == "hold" and data.bytes["h2d"] and config.link.h2d_bytes_per_s < inf:
        assert sum(column(data, "load_dram_time_s")) > 0 or config.offload.prefetch == "queue", "free hits"


# ---- wrong tiers must be seen


def free_copy(
    self: Lane, nbytes: int, descriptors: int, priority: int, done: Callable[[], None], rank: int, errand: Errand
) -> Transfer:
    """A transfer that arrives as soon as it is sent."""
    self.submitted_bytes += nbytes
    self.delivered_bytes += nbytes
    done()
    return Transfer(nbytes, inf, priority, done, 0.0, errand)


def uncharged_load(self: Mover, spans, start, end, source, target, transfer, done, priority, owner, errand):
    """A load that never touches a link."""
    owner.dram.index.unpin(source)
    self.tiers.vram.index.arrived(target, spans, transfer)
    done()
    self.ledger.close(transfer)
    return (end - start) * self.tiers.block_bytes, end - start


def double_load(self: Mover, *args: Any, **kwargs: Any):
    """A load whose bytes are carried twice."""
    nbytes, descriptors = original_load(self, *args, **kwargs)
    self.tiers.h2d.submit(nbytes, descriptors, 0, lambda: None)
    return nbytes, descriptors


def evict_pinned(self: PrefixIndex, blocks: int, taken=None) -> int:
    """Evict the first leaf there is, in use or not."""
    node = self.root
    while node.children:
        node = next(iter(node.children.values()))
    if node is self.root or node.refs == 0:
        return original_evict(self, blocks, taken)
    assert node.parent is not None
    del node.parent.children[node.key]
    self.resident_blocks -= node.blocks
    return original_evict(self, max(0, blocks - node.blocks), taken) + node.blocks


def unbooked_hit(self: Scheduler, live, vram_end: int, hit_end: int) -> None:
    """A hit in DRAM that is told as one in VRAM."""
    original_note(self, live, hit_end, hit_end)


def overfull_store(self: KVPool, spans, start, end, transfer, taken=None, known=None, part=False, priority=None):
    """A reservation that makes no room."""
    handle = self.index.pin(known or self.index.match(spans, end, start))
    if handle.end < start:
        handle, _ = self.index.extend(handle, spans, start, resident=False)
    handle, added = self.index.extend(handle, spans, end, pending=transfer)
    self.written_blocks += added
    return handle, added


def unwritten(self: Mover, blocks: int, errand: Errand, through: Callable[[], None], priority: int, rank: int) -> None:
    """A write-down that takes no link."""
    through()


original_load = Mover.load
original_evict = PrefixIndex.evict
original_note = Scheduler._note_hits

MUTANTS: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "free copy": (Lane, "submit", free_copy),
    "a load charged to nobody": (Mover, "load", uncharged_load),
    "a load counted twice": (Mover, "load", double_load),
    "a pinned block evicted": (PrefixIndex, "evict", evict_pinned),
    "a hit booked on the wrong tier": (Scheduler, "_note_hits", unbooked_hit),
    "more blocks than fit": (KVPool, "store", overfull_store),
    "a write that nobody carries": (Mover, "_down", unwritten),
}


def case_of_mutants() -> tuple[SystemConfig, list[Request]]:
    """A case where every mutant has something to spoil, without preemption."""
    config = system_config(num_gpu_blocks=16, max_num_seqs=2, dram_blocks=24, max_num_batched_tokens=64)
    rng = Random(4)
    return config, [same(i, 4.0 * i, PROMPT + 4 * rng.randint(0, 2), 6, stream=rng.randint(1, 6)) for i in range(40)]


def test_case_of_mutants_passes_unchanged_and_loads() -> None:
    config, requests = case_of_mutants()
    hold_laws(config, requests, loads_once=True)
    data = run(config, requests)
    assert sum(column(data, "hit_dram_tokens")) > 0 and data.preemptions == 0


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, method, wrong = MUTANTS[name]
    monkeypatch.setattr(where, method, wrong)
    with pytest.raises((LawError, AssertionError, KeyError)):
        hold_laws(*case_of_mutants(), loads_once=True)


@pytest.mark.parametrize("seed", [1451, 1728, 3618])
def test_blocks_that_dram_had_behind_one_from_ssd_are_no_hits_of_ssd(seed: int) -> None:
    """Their heads lie on SSD and their tails in DRAM: the audit holds hits of SSD against what was read from it."""
    config, requests = random_case(Random(seed))
    run(config, requests)
