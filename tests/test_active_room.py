"""How many sequences run at once under active offload, and what happens where room lacks."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import pytest

from simkv.formulas.step import ConstantStep
from simkv.kvcache.access import TopK, Window
from simkv.sim.active.promises import Promises
from simkv.sim.active.share import ResidentShare, SharedBudget
from simkv.workload.request import Request
from tests import active_factory as make
from tests.sim_factory import BLOCK, BLOCK_BYTES, RATE, column

SEQUENCE = 20
"""Blocks of a sequence, which stays below a block's end to the last."""


def _long(count: int, output: int = 3) -> list[Request]:
    return [make.request(number, 0.0, SEQUENCE * BLOCK - output, output) for number in range(count)]


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("blocks", [20, 64, 100])
@pytest.mark.parametrize("staging", [1, 2, 4])
def test_as_many_run_as_shares_and_staging_fit(share: float, blocks: int, staging: int) -> None:
    config = make.active_config(
        residency=share, num_gpu_blocks=blocks, staging_layers=staging, max_num_seqs=100, dram_blocks=5_000,
        max_num_batched_tokens=100_000, write="write_back",
    )  # fmt: skip
    data = make.run(config, _long(40))
    resident = ceil(round(share * SEQUENCE, 9))
    taken = resident + ceil((SEQUENCE - resident) * staging / make.LAYERS)
    most = blocks // taken
    assert data.running_max == min(40, most)
    assert data.rejected == (40 if not most else 0)
    assert most <= floor(blocks / (share * SEQUENCE))  # the article's C_max, which has no buffers and no rounding


def test_article_concurrency_is_met_where_buffers_are_small() -> None:
    """40 GB free, 10 GB a sequence: 13 at p = 0.3. With 1,000 blocks a sequence and 500 layers, 12 after buffers."""
    share = ResidentShare(0.3, 16, 500, 2, lambda blocks: blocks)
    assert 4_000 // share.resident(1_000) == 13
    assert 4_000 // share.taken(1_000) == 13
    assert 4_000 // ResidentShare(0.3, 16, 32, 2, lambda blocks: blocks).taken(1_000) == 11


def test_sparse_access_needs_buffers_for_what_a_step_reads_alone() -> None:
    config = make.active_config(
        residency=0.1, num_gpu_blocks=40, max_num_seqs=100, dram_blocks=5_000, max_num_batched_tokens=100_000,
        access=Window(12, 4),
    )  # fmt: skip
    data = make.run(config, _long(40))
    read = 1 + 4  # sinks and the window, wherever it begins
    assert data.running_max == 40 // (2 + ceil((read - 2) / 2))


@pytest.mark.parametrize("access", [None, TopK(24, 8, 4, 1.0, 0.5)])
@pytest.mark.parametrize("budget", [3, 10, 30])
def test_a_budget_holds_whoever_runs(access: Any, budget: int) -> None:
    knobs = {"access": access} if access else {}
    config = make.active_config(
        budget_blocks=budget, num_gpu_blocks=100, max_num_seqs=100, dram_blocks=5_000, max_num_batched_tokens=60,
        **knobs,
    )  # fmt: skip
    data = make.run(config, _long(20, output=9))  # the audit holds resident blocks to the budget
    assert data.finished == 20
    assert data.running_max <= budget


def test_admission_waits_for_dram() -> None:
    config = make.active_config(residency=0.1, dram_blocks=50, max_num_seqs=100, max_num_batched_tokens=100_000)
    data = make.run(config, _long(6))
    assert data.running_max == 50 // SEQUENCE
    assert data.finished == 6


def test_ssd_takes_what_dram_has_no_room_for() -> None:
    config = make.active_config(
        residency=0.1, dram_blocks=50, ssd_blocks=60, max_num_seqs=100, max_num_batched_tokens=100_000
    )
    data = make.run(config, _long(6))
    assert data.running_max == 110 // SEQUENCE
    assert data.bytes["ssd_write"] > 0


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({"num_gpu_blocks": 15}, True),  # ten resident, and five of buffer for half of its layers
        ({"num_gpu_blocks": 14}, False),
        ({"dram_blocks": 20}, True),
        ({"dram_blocks": 19}, False),
        ({"dram_blocks": 19, "ssd_blocks": 1}, True),
        ({"dram_blocks": 10, "write": "write_back"}, True),
        ({"dram_blocks": 9, "write": "write_back"}, False),
        ({"max_model_len": SEQUENCE * BLOCK - 1 + 1}, True),
        ({"max_model_len": SEQUENCE * BLOCK - 2}, False),
    ],
)
def test_what_can_never_fit_is_rejected(changes: dict[str, Any], fits: bool) -> None:
    data = make.run(make.active_config(**changes), [make.request(0, 0.0, SEQUENCE * BLOCK - 4, 4)])
    assert (data.finished, data.rejected) == ((1, 0) if fits else (0, 1))


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("access", [None, Window(24, 4)])
def test_preempted_sequences_compute_again_or_come_back(swap: bool, access: Any) -> None:
    """Three grow from five blocks each to eleven where two have room."""
    knobs: dict[str, Any] = {"access": access} if access else {}
    config = make.active_config(
        residency=0.9, num_gpu_blocks=24, swap=swap, write="write_back", max_num_batched_tokens=200, **knobs
    )
    data = make.run(config, [make.request(number, 0.0, 20, 24) for number in range(3)])
    assert data.finished == 3
    assert data.preemptions > 0
    assert data.active is not None
    if swap:
        assert (data.recomputed_tokens, data.active.swapped > 0) == (0, True)
    else:
        assert data.recomputed_tokens >= 20 * data.preemptions
        assert data.active.swapped == 0


@pytest.mark.parametrize("prefill", ["vram", "dram", "ssd"])
def test_prompts_from_a_tier_are_hits_there_and_take_no_prefill(prefill: str) -> None:
    config = make.active_config(prefill=prefill, ssd_blocks=100, residency=0.5, cost=ConstantStep(1.0, 4))
    data = make.run(config, [make.request(0, 0.0, 41, 5)])
    assert column(data, f"hit_{prefill}_tokens") == [40]
    assert column(data, "prefill_time_s") == [0.0]
    assert data.active is not None and data.active.steps == 5
    up = {"vram": 0, "dram": 6, "ssd": 6}[prefill]  # blocks of its share that come up before it decodes: six of eleven
    assert data.load_waits == (up > 0)


def test_a_prompt_from_a_tier_that_ends_with_a_block_grows_before_its_first_step() -> None:
    """40 tokens are ten blocks; the first step writes into the eleventh, which lies nowhere below."""
    config = make.active_config(prefill="dram", access=Window(8, 0), residency=0.5, write="write_back")
    found = make.measured(config, [make.request(0, 0.0, 41, 2)])
    assert found.loads_ssd == 0
    assert found.loads_dram == 2 * make.LAYERS  # the window's two older blocks; its newest is computed here


def test_a_waiting_replica_hears_of_room_that_another_makes() -> None:
    """Two replicas share a DRAM for one sequence: the second waits until the first has finished, then runs."""
    config = make.active_config(residency=0.1, dram_blocks=SEQUENCE, shared=True, replicas=2)
    data = make.run(config, _long(2))
    assert data.finished == 2
    first, second = sorted(column(data, "finish_s"))
    assert second >= 2 * first * 0.99


def test_a_newcomer_of_rank_does_not_starve_who_waits_with_its_kv_below() -> None:
    """One class only, but by priority a preempted request keeps its place: the head may lack what others hold."""
    config = make.active_config(
        residency=0.9, num_gpu_blocks=24, swap=True, write="write_through", dram_blocks=24, scheduling="priority",
        max_num_batched_tokens=200,
    )  # fmt: skip
    data = make.run(config, [make.request(number, 0.1 * number, 20, 24) for number in range(4)])
    assert data.finished == 4


def test_chunks_that_end_beside_one_that_begins_lose_nobody() -> None:
    config = make.active_config(max_num_batched_tokens=30, residency=0.5)
    data = make.run(config, [make.request(0, 0.0, 25, 3), make.request(1, 0.0, 40, 3)])
    assert data.finished == 2


def test_promises_count_what_lies_on_ssd_already() -> None:
    class Pool:
        def __init__(self, blocks: int) -> None:
            self.capacity_blocks = blocks

    promises = Promises([Pool(10), Pool(10)], Pool(5))  # type: ignore[list-item, arg-type]
    assert promises.most(0) == 15
    assert promises.give(0, 15)
    promises.on_ssd[0] = 5
    promises.take_back(0, 10)  # of those in DRAM: the five that remain fill the SSD
    assert not promises.give(1, 11)
    assert promises.give(1, 10)
    assert promises.spare_ssd(1) == 0
    assert not promises.give(0, 11)
    assert promises.give(0, 10)


def test_a_block_that_left_vram_before_it_was_full_is_shared_once() -> None:
    """Two that begin alike under sparse access, with no room to keep a block until it is full."""
    config = make.active_config(
        access=TopK(24, 8, 4, 1.0, 0.5), residency=0.1, reuse=True, prefix_caching=True, write="write_through",
        num_gpu_blocks=40,
    )  # fmt: skip
    requests = [make.request(number, 3.0 * number, 61, 30, 50, 1) for number in range(3)]
    data = make.run(config, requests, every=1)
    assert column(data, "hit_dram_tokens")[1:] == [48, 48]


def test_what_is_still_being_written_stays_promised() -> None:
    """A slow way down: the first is over while its blocks are on their way, and the second needs all of DRAM."""
    config = make.active_config(
        residency=0.2, reuse=True, prefix_caching=True, write="write_through", d2h=500.0, dram_blocks=22,
        max_num_batched_tokens=200,
    )  # fmt: skip
    data = make.run(config, [make.request(number, 0.0, 79, 2) for number in range(3)], every=1)
    assert data.finished == 3
    first, second, _ = column(data, "scheduled_s")
    assert second - first >= 20 * BLOCK_BYTES / 500.0 - 2.0


def test_a_budget_is_divided_by_length_with_a_block_for_each() -> None:
    share = SharedBudget(10, 4, 4, 2, lambda blocks: blocks)
    assert share.parts([10]) == [10]
    assert share.parts([30]) == [10]
    assert share.parts([5, 5]) == [5, 5]
    assert share.parts([100, 1, 1]) == [7, 1, 1]
    for lengths in ([1] * 10, [7, 3, 90, 2], [40, 40, 40], [1, 1000]):
        parts = share.parts(lengths)
        assert sum(parts) <= 10 and min(parts) >= 1
        assert all(part <= length for part, length in zip(parts, lengths, strict=True))


def test_reads_of_everything_from_both_tiers_end_where_both_are_there() -> None:
    """Six blocks in DRAM, five on SSD of which the last stays: what DRAM has is up before the SSD has read."""
    config = make.active_config(prefill="dram", dram_blocks=6, ssd_blocks=50, residency=0.05, write="write_back")
    found = make.measured(config, [make.request(0, 0.0, 42, 3)])
    assert (found.loads_dram, found.loads_ssd) == (3 * 6 * make.LAYERS, (3 * 4 + 1) * make.LAYERS)
    assert make.step_s(found) == pytest.approx(1.0 + 4 * (BLOCK_BYTES / (RATE / 2) + BLOCK_BYTES / RATE))
