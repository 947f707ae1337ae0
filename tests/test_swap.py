"""Preemption by swap: what it moves, what it spares, and that slower engines agree on it."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from simkv.baselines import without_offload
from simkv.errors import InputError
from simkv.kvcache.index import PrefixIndex
from simkv.scenario.resolve import resolve_text
from simkv.sim.config import SystemConfig
from simkv.sim.swap import Swapper
from tests.faults import SMALL, complaints
from tests.sim_factory import BLOCK_BYTES, column, request, run, run_system, system_config
from tests.test_oracle import Case, check_by_number, check_naive, check_single_steps, draw_anything, draw_dram, search
from tests.test_oracle_side import beside


def short(**changes: Any) -> SystemConfig:
    """Return a pool of five blocks with DRAM below it, in which of two growing sequences one has to go."""
    given = {"num_gpu_blocks": 5, "reserve_full_prompt": False, "dram_blocks": 100, "write": "never"} | changes
    return system_config(preemption="swap", **given)


TWO = [request(0, 0.0, 7, 8), request(1, 0.0, 7, 8)]
"""Both need a third block before the step at 2.0 s, with 8 tokens each: request 1 goes."""


def recomputing(config: SystemConfig) -> SystemConfig:
    return replace(config, engine=replace(config.engine, preemption="recompute"))


# ---- by hand


def test_swapped_request_loads_what_it_would_have_computed() -> None:
    data = run(short(), TWO)
    assert column(data, "preemptions") == [0, 1]
    assert data.swap == {"requests": 1, "refused": 0, "out_blocks": 2, "in_blocks": 1}
    assert data.bytes["d2h"] == 2 * BLOCK_BYTES and data.bytes["h2d"] == BLOCK_BYTES  # one is in VRAM still
    assert column(data, "recomputed_tokens") == [0, 0]
    again = run(recomputing(short()), TWO)
    assert column(again, "recomputed_tokens") == [0, 4]
    assert again.swap == {}


def test_step_that_takes_over_the_room_waits_for_the_copy() -> None:
    """Two blocks take 0.2 s: the step that begins at 2.0 s ends at 3.2 s, and all later ones are as late."""
    data, again = run(short(), TWO), run(recomputing(short()), TWO)
    assert column(again, "finish_s")[0] == 8.0
    assert column(data, "finish_s")[0] == pytest.approx(8.2)
    assert run(short(d2h=1e12), TWO).requests["finish_s"][0] == pytest.approx(8.0)
    assert column(run(short(d2h=500.0), TWO), "finish_s")[0] == pytest.approx(12.0)


def test_loading_back_takes_its_time_and_holds_its_request() -> None:
    fast, slow = run(short(), TWO), run(short(h2d=500.0), TWO)
    assert column(fast, "load_dram_time_s") == pytest.approx([0.0, 0.1])
    assert column(slow, "load_dram_time_s") == pytest.approx([0.0, 2.0])
    assert column(slow, "finish_s")[1] - column(fast, "finish_s")[1] == pytest.approx(1.9)


def test_blocks_that_dram_has_already_are_not_copied_again() -> None:
    """Write-through has put the prompt's first block down; the second is of the prompt and of what was generated."""
    data = run(short(write="write_through"), TWO)
    assert data.swap["out_blocks"] == 1
    stored = run(recomputing(short(write="write_through")), TWO)
    assert data.bytes["d2h"] == stored.bytes["d2h"] + BLOCK_BYTES


def test_dram_without_room_falls_back_to_computing_and_is_counted() -> None:
    data = run(short(dram_blocks=1), TWO)
    assert data.swap == {"requests": 0, "refused": 1, "out_blocks": 0, "in_blocks": 0}
    again = run(recomputing(short(dram_blocks=1)), TWO)
    for name in ("finish_s", "recomputed_tokens", "preemptions"):
        assert column(data, name) == column(again, name)


@pytest.mark.parametrize("dead", ["h2d", "d2h"])
def test_link_that_carries_nothing_falls_back_to_computing(dead: str) -> None:
    data = run(short(**{dead: 0.0}), TWO)
    assert data.swap["refused"] == 1 and data.bytes["d2h"] == 0


def test_blocks_kept_for_a_request_are_not_evicted_before_it_runs_again() -> None:
    """DRAM has room for two blocks and a store wants it: those of the request that was swapped out stay."""
    config = short(write="write_through", store_outputs=True, dram_blocks=4, num_gpu_blocks=6)
    requests = [request(0, 0.0, 7, 14), request(1, 0.0, 7, 8)]
    data = run(config, requests)
    assert data.swap["requests"] >= 1 and data.swap["in_blocks"] >= 1
    assert column(data, "recomputed_tokens") == [0, 0]


@pytest.mark.parametrize(
    ("write", "store_outputs", "left"),
    [("never", False, 0), ("write_through", False, 2), ("write_through", True, 6)],
)
def test_dram_keeps_no_more_than_the_write_policy_would_have(write: str, store_outputs: bool, left: int) -> None:
    system, data = run_system(short(write=write, store_outputs=store_outputs), TWO)
    assert data.swap["requests"] == 1
    assert system.hosts[0].dram[0].used_blocks == left


def test_partly_computed_prompt_is_swapped_as_far_as_it_is() -> None:
    """Request 1 computes a block a step until request 0, which decodes, has left it no more of eight."""
    config = short(num_gpu_blocks=8, max_num_batched_tokens=5)
    requests = [request(0, 0.0, 8, 22), request(1, 2.0, 24, 1)]
    data, plain = run(config, requests), run(recomputing(config), requests)
    assert column(data, "preemptions") == column(plain, "preemptions") == [0, 1]
    assert column(data, "first_token_s")[1] > 20.0  # nothing of its output was there when it went
    assert data.swap["out_blocks"] > 0
    assert data.recomputed_tokens == 0 < plain.recomputed_tokens


@pytest.mark.parametrize("load", ["hold", "overlap"])
@pytest.mark.parametrize("relation", ["copy", "exclusive"])
def test_any_way_of_loading_brings_it_back(load: str, relation: str) -> None:
    write = "never" if relation == "copy" else "write_back"
    config = short(load=load, relation=relation, write=write, num_gpu_blocks=12)
    requests = [request(i, 0.3 * i, 9, 20) for i in range(5)]
    system, data = run_system(config, requests)
    assert data.swap["requests"] > 0 and data.swap["in_blocks"] > 0
    if write == "never":
        assert data.recomputed_tokens < run(recomputing(config), requests).recomputed_tokens
        assert system.hosts[0].dram[0].used_blocks == 0


def test_units_of_a_lower_tier_are_swapped_whole() -> None:
    """Of three full blocks one unit of two goes; the third is computed again with the last."""
    config = short(unit_blocks=2, num_gpu_blocks=7)
    data = run(config, [request(0, 0.0, 11, 12), request(1, 0.0, 11, 12)])
    assert data.swap["requests"] == 1
    assert data.swap["out_blocks"] == 2 and data.bytes["d2h"] == 2 * BLOCK_BYTES


def test_baseline_without_offload_computes_again() -> None:
    data = run(without_offload(short()), TWO)
    assert data.swap == {} and column(data, "preemptions") == [0, 1]


# ---- a slow and a fast engine


def crowd(rng: Random, case: Case) -> Case:
    """Let the requests meet in a pool that is hardly larger than the largest of them."""
    engine = case.config.engine
    requests = [replace(one, arrival_s=one.arrival_s / 4) for one in case.requests]
    largest = max(engine.most_blocks(one.prompt_tokens + one.output_tokens - 1) for one in requests)
    blocks = min(engine.num_gpu_blocks, largest + rng.choice((0, 1, largest // 2, largest)))
    config = replace(
        case.config,
        engine=replace(
            engine, num_gpu_blocks=blocks, preemption="swap", prefix_caching=True, reserve_full_prompt=False
        ),
    )
    return Case(config, requests)


def draw_swapped(rng: Random, most: int) -> Case:
    return crowd(rng, draw_dram(rng, most))


def draw_swapped_anything(rng: Random, most: int) -> Case:
    return crowd(rng, draw_anything(rng, most))


@search(150)
def test_naive_engine_agrees_on_swaps(rng: Random) -> None:
    check_naive(draw_swapped(rng, 10))


@search(80)
def test_single_steps_agree_on_swaps(rng: Random) -> None:
    check_single_steps(draw_swapped_anything(rng, 12))


def test_naive_engine_agrees_on_swaps_by_number() -> None:
    check_by_number("swap", draw_swapped, check_naive, 150)


def test_naive_engine_agrees_on_swaps_beside_windows_by_number() -> None:
    check_by_number("swap beside windows", beside(draw_swapped), check_naive, 80)


def test_single_steps_agree_on_swaps_by_number() -> None:
    check_by_number("swap anything", draw_swapped_anything, check_single_steps, 60)


def test_drawn_cases_do_swap() -> None:
    swaps = [
        run(case.config, case.requests, audit=False).swap for case in (draw_swapped(Random(n), 20) for n in range(60))
    ]
    assert sum(swap["requests"] > 0 for swap in swaps) > 15
    assert sum(swap["in_blocks"] > 0 for swap in swaps) > 10
    assert sum(swap["refused"] > 0 for swap in swaps) > 5


# ---- what goes wrong is seen


def test_mutant_pin_that_is_never_let_go_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from simkv.errors import LawError

    monkeypatch.setattr(Swapper, "_let_go", lambda self, live: None)
    with pytest.raises(LawError, match="L4"):
        run(short(), TWO)


def test_swapped_run_leaves_no_pin_and_no_pending_block() -> None:
    requests = [request(i, 0.4 * i, 9, 30) for i in range(8)]
    system, _ = run_system(short(num_gpu_blocks=14), requests)
    index: PrefixIndex = system.hosts[0].dram[0].index
    assert index.resident_blocks == index.evictable_blocks
    assert system.engines[0].swapper is not None and system.engines[0].swapper.under_way == 0


# ---- in a scenario

BASE = SMALL.replace("tiers:", "engine: {preemption: swap}\ntiers:")


def test_swap_without_dram_is_refused_with_its_mend() -> None:
    assert complaints(BASE.replace("20GiB", "0GiB")) == [
        's.yaml:10: engine.preemption = "swap": there is no DRAM to swap to; give tiers.dram.capacity, or write '
        "recompute"
    ]


@pytest.mark.parametrize("key", ["link.h2d", "link.d2h", "link.duplex", "tiers.dram.bandwidth"])
def test_swap_over_what_does_not_move_is_refused_with_its_mend(key: str) -> None:
    with pytest.raises(
        InputError, match=rf"nothing gets to DRAM and back: {key} is 0; give it a rate, or write recomp"
    ):
        resolve_text(BASE, "s.yaml", [f"{key}=0 GB/s"])


def test_swap_without_prefix_caching_is_refused_with_its_mend() -> None:
    with pytest.raises(InputError) as caught:
        resolve_text(BASE, "s.yaml", ["engine.prefix_caching=false"])
    (told,) = (str(problem) for problem in caught.value.problems)
    assert told.startswith('s.yaml:10: engine.preemption = "swap": blocks are kept by what they hold, which')


@pytest.mark.parametrize("seed", [533, 1707])
def test_naive_engine_agrees_on_a_write_down_that_gives_way_to_a_swap(seed: int) -> None:
    check_naive(draw_swapped(Random(seed), 10))
