"""The engine's rules on cases small enough to work out by hand, and its laws on random ones."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import LawError
from simkv.results.check import check_run, violations
from simkv.sim.config import ClassConfig, SystemConfig
from simkv.sim.engine import Engine
from simkv.sim.holdings import Holdings
from simkv.sim.rundata import RunData
from simkv.sim.scheduler import Scheduler
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from simkv.workload.request import Request
from tests.sim_factory import (
    BLOCK,
    BLOCK_BYTES,
    ComputeStep,
    SpiedStep,
    column,
    request,
    run,
    run_system,
    same,
    system_config,
)

PARTS = ("queue", "load_dram", "load_ssd", "prefill", "decode", "recompute", "preempted")


def parts(data: RunData, number: int) -> dict[str, float]:
    """Return where the time of one request went, without what is zero."""
    times = {part: column(data, f"{part}_time_s", [number])[0] for part in PARTS}
    return {part: time for part, time in times.items() if time}


# ---- steps and chunks


def test_one_request_takes_a_prefill_step_and_a_step_a_further_token() -> None:
    data = run(system_config(ComputeStep(base_s=1.0, token_s=0.5)), [request(0, 2.0, 6, 4)])
    assert column(data, "scheduled_s") == [2.0]
    assert column(data, "first_token_s") == [2.0 + 1.0 + 3.0]
    assert column(data, "finish_s") == [6.0 + 3 * 1.0]
    assert parts(data, 0) == {"prefill": 4.0, "decode": 3.0}
    assert data.steps_total == 4 and data.busy_s["gpu"] == 7.0


def test_one_output_token_ends_with_the_prefill() -> None:
    data = run(system_config(), [request(0, 0.0, 6, 1)])
    assert column(data, "finish_s") == column(data, "first_token_s") == [1.0]
    assert parts(data, 0) == {"prefill": 1.0}


def test_long_prompt_is_computed_in_chunks_of_the_budget() -> None:
    cost = SpiedStep()
    data = run(system_config(cost, max_num_batched_tokens=8), [request(0, 0.0, 20, 2)])
    assert cost.steps == [(0, 0, [(8, 0)], 0), (0, 0, [(8, 8)], 0), (0, 0, [(4, 16)], 1), (1, 21, [], 1)]
    assert column(data, "first_token_s") == [9.0 + 9.0 + 5.0]
    assert column(data, "finish_s") == [24.0]


def test_chunk_shares_the_budget_with_decodes_and_with_the_next_prompt() -> None:
    cost = SpiedStep()
    requests = [request(0, 0.0, 4, 9), request(1, 0.5, 10, 2), request(2, 0.5, 5, 1)]
    run(system_config(cost, max_num_batched_tokens=8), requests)
    assert cost.steps[:4] == [
        (0, 0, [(4, 0)], 1),
        (1, 5, [(7, 0)], 1),  # one token of the budget is the decode's
        (1, 6, [(3, 7), (4, 0)], 2),  # request 1's rest, then what is left goes to request 2
        (2, 7 + 11, [(1, 4)], 3),
    ]


def test_prefill_and_decodes_share_a_step_and_its_time() -> None:
    data = run(system_config(ComputeStep(1.0, 1.0)), [request(0, 0.0, 4, 5), request(1, 5.5, 10, 1)])
    # request 0: prefill to 5, decode to 6; then 10 prompt tokens in the same step: to 17; then two more
    assert column(data, "first_token_s") == [5.0, 17.0]
    assert column(data, "finish_s") == [19.0, 17.0]
    assert parts(data, 1) == {"queue": 0.5, "prefill": 11.0}


def test_arrival_waits_for_the_step_in_progress() -> None:
    data = run(system_config(), [request(0, 0.0, 4, 100), request(1, 7.25, 4, 1), request(2, 9.0, 4, 1)])
    assert column(data, "scheduled_s") == [0.0, 8.0, 9.0]
    assert column(data, "queue_time_s") == [0.0, 0.75, 0.0]


@pytest.mark.parametrize("budget", [8, 9, 16, 64])
@pytest.mark.parametrize("seqs", [1, 3, 8])
def test_every_step_keeps_budget_and_sequences(budget: int, seqs: int) -> None:
    rng = Random(budget * seqs)
    requests = [request(i, rng.random() * 150, rng.randint(1, 40), rng.randint(1, 12)) for i in range(60)]
    cost = SpiedStep(token_s=0.01)
    config = system_config(cost, max_num_batched_tokens=budget, max_num_seqs=seqs, num_gpu_blocks=40)
    data = run(config, requests)
    assert data.finished == 60
    for sequences, context, chunks, sampled in cost.steps:
        assert sequences + sum(new for new, _ in chunks) <= budget
        assert sequences + len(chunks) <= seqs
        assert sequences <= sampled <= sequences + len(chunks)
        assert sampled >= sequences + len(chunks) - 1  # at most one prompt is left unfinished
        assert context >= 2 * sequences
        assert all(new > 0 for new, _ in chunks)
    computed = sum(new for step in cost.steps for new, _ in step[2])
    hits = sum(column(data, "hit_vram_tokens"))
    assert data.preemptions or computed == sum(r.prompt_tokens for r in requests) - hits
    assert data.running_max <= seqs


def test_prompts_are_computed_once_and_every_output_token_is_sampled_once() -> None:
    rng = Random(5)
    requests = [request(i, rng.random() * 50, rng.randint(1, 30), rng.randint(1, 9)) for i in range(50)]
    cost = SpiedStep()
    run(system_config(cost, max_num_batched_tokens=16), requests)
    assert sum(new for step in cost.steps for new, _ in step[2]) == sum(r.prompt_tokens for r in requests)
    assert sum(step[3] for step in cost.steps) == sum(r.output_tokens for r in requests)


# ---- prefix hits


def test_full_hit_still_computes_the_last_block() -> None:
    """A prompt of whole blocks that is all there: at least one token is computed, so one block is."""
    cost = SpiedStep()
    data = run(system_config(cost), [same(0, 0.0, 3 * BLOCK, 1), same(1, 100.0, 3 * BLOCK, 1)])
    assert column(data, "hit_vram_tokens") == [0, 2 * BLOCK]
    assert cost.steps[-1] == (0, 0, [(BLOCK, 2 * BLOCK)], 1)


def test_full_hit_of_blocks_and_one_token_computes_that_token() -> None:
    cost = SpiedStep()
    data = run(system_config(cost), [same(0, 0.0, 3 * BLOCK + 1), same(1, 100.0, 3 * BLOCK + 1)])
    assert column(data, "hit_vram_tokens") == [0, 3 * BLOCK]
    assert cost.steps[-1] == (0, 0, [(1, 3 * BLOCK)], 1)


def test_prompt_hits_what_the_one_before_it_generated() -> None:
    first = same(0, 0.0, BLOCK, 2 * BLOCK + 1)
    data = run(system_config(), [first, same(1, 100.0, 4 * BLOCK, 1)])
    assert column(data, "hit_vram_tokens") == [0, 3 * BLOCK]


def test_last_output_token_has_no_kv_to_hit() -> None:
    """The KV of a token is computed in the step after it was sampled: the last one's never is."""
    data = run(system_config(), [same(0, 0.0, BLOCK, BLOCK), same(1, 100.0, 4 * BLOCK, 1)])
    assert column(data, "hit_vram_tokens") == [0, BLOCK]


def test_equal_prompts_in_one_step_do_not_hit_each_other() -> None:
    data = run(system_config(), [same(0, 0.0, 20), same(1, 0.0, 20), same(2, 0.5, 20)])
    assert column(data, "scheduled_s") == [0.0, 0.0, 1.0]
    assert column(data, "hit_vram_tokens") == [0, 0, 16]


def test_prompt_in_chunks_is_hit_as_far_as_it_is_computed() -> None:
    config = system_config(max_num_batched_tokens=10, max_num_seqs=4)
    data = run(config, [same(0, 0.0, 24), same(1, 1.5, 24)])
    # request 0: 10, 10, 4 tokens; at 2.0 its 20 tokens are 5 blocks; the step from 2.0 has room for request 1
    assert column(data, "scheduled_s") == [0.0, 2.0]
    assert column(data, "hit_vram_tokens") == [0, 20]


def test_prefix_caching_off_never_hits() -> None:
    data = run(system_config(prefix_caching=False), [same(i, 50.0 * i, 20, 3) for i in range(3)])
    assert column(data, "hit_vram_tokens") == [0, 0, 0]


def test_first_different_token_ends_the_hit() -> None:
    a = Request(0, 0.0, 20, 1, ((1, 0, 9), (2, 0, 12)))
    b = Request(1, 50.0, 20, 1, ((1, 0, 9), (3, 0, 12)))
    assert column(run(system_config(), [a, b]), "hit_vram_tokens") == [0, 8]


def test_cached_blocks_go_least_recent_and_tails_first() -> None:
    config = system_config(num_gpu_blocks=10)
    requests = [
        same(0, 0.0, 16, 1, stream=1),  # 4 blocks
        same(1, 10.0, 16, 1, stream=2),  # 4 blocks, 2 free
        request(2, 20.0, 16, 1),  # 4 blocks: the last two of stream 1 go
        same(3, 30.0, 16, 1, stream=1),  # hits the first two, and needs two more
    ]
    assert column(run(config, requests), "hit_vram_tokens") == [0, 0, 0, 8]


# ---- memory and preemption


def test_blocks_short_the_last_admitted_is_preempted_and_goes_to_the_front() -> None:
    """Two sequences of 2 blocks in a pool of 5: at 8 tokens both need a third, and the younger gives way."""
    config = system_config(num_gpu_blocks=5, prefix_caching=False, reserve_full_prompt=False)
    requests = [request(0, 0.0, 7, 8), request(1, 0.0, 7, 8), request(2, 1.5, 4, 1)]
    data = run(config, requests)
    assert column(data, "preemptions") == [0, 1, 0]
    assert data.preemptions == 1
    # steps end at 1, 2, ...; before step 2 (8 tokens each) both need a third block, and there is one
    assert column(data, "first_token_s") == [1.0, 1.0, 9.0]
    assert column(data, "finish_s")[0] == 8.0
    assert column(data, "scheduled_s")[2] >= 8.0  # it doesn't pass the preempted one
    assert column(data, "recomputed_tokens") == [0, 8, 0]
    assert parts(data, 1)["preempted"] == pytest.approx(6.0)


def test_preempted_request_hits_its_own_blocks_when_they_are_still_there() -> None:
    config = system_config(num_gpu_blocks=5, reserve_full_prompt=False)
    data = run(config, [request(0, 0.0, 7, 8), request(1, 0.0, 7, 8)])
    assert column(data, "preemptions") == [0, 1]
    assert 0 < column(data, "recomputed_tokens")[1] <= 8
    assert column(data, "hit_vram_tokens") == [0, 0]  # hits count at the first admission only


def test_priority_the_least_urgent_is_preempted() -> None:
    classes = (ClassConfig("now", 0), ClassConfig("later", 1))
    config = system_config(
        num_gpu_blocks=5, prefix_caching=False, reserve_full_prompt=False, scheduling="priority", classes=classes
    )
    requests = [request(0, 0.0, 7, 8, cls="later"), request(1, 0.0, 7, 8, cls="now")]
    data = run(config, requests)
    assert column(data, "preemptions") == [1, 0]
    fcfs = run(replace(config, engine=replace(config.engine, scheduling="fcfs")), requests)
    assert column(fcfs, "preemptions") == [0, 1]


def test_priority_of_equals_the_last_to_arrive_is_preempted() -> None:
    config = system_config(
        num_gpu_blocks=8, prefix_caching=False, reserve_full_prompt=False, scheduling="priority", max_num_seqs=3
    )
    data = run(config, [request(0, 0.0, 7, 8), request(1, 0.0, 7, 8), request(2, 0.0, 7, 8)])
    assert column(data, "preemptions")[0] == 0
    assert column(data, "preemptions")[2] >= 1


def test_urgent_class_overtakes_in_the_queue() -> None:
    classes = (ClassConfig("now", 0), ClassConfig("later", 5))
    requests = [request(0, 0.0, 4, 10, cls="later")]
    requests += [request(i, 1.0 + i / 10, 4, 3, cls="later") for i in range(1, 5)] + [request(9, 2.0, 4, 3, cls="now")]
    config = system_config(max_num_seqs=1, scheduling="priority", classes=classes)
    data = run(config, requests)
    assert column(data, "scheduled_s", [0, 9, 1, 2, 3, 4]) == [0.0, 10.0, 13.0, 16.0, 19.0, 22.0]
    assert column(run(replace(config, engine=replace(config.engine, scheduling="fcfs")), requests), "scheduled_s",
                  [9]) == [22.0]  # fmt: skip


def test_request_that_can_never_fit_is_rejected_and_the_rest_goes_on() -> None:
    config = system_config(num_gpu_blocks=4, max_model_len=20)
    requests = [
        request(0, 0.0, 4, 13),  # 17 tokens, 16 of them with KV: fits exactly
        request(1, 1.0, 4, 14),  # one block too many
        request(2, 2.0, 17, 1),  # 17 prompt tokens need 5 blocks
        request(3, 3.0, 20, 1),  # longer than the model takes
        request(4, 4.0, 4, 1),
    ]
    data = run(config, requests)
    assert column(data, "rejected") == [False, True, True, True, False]
    assert (data.arrived, data.finished, data.rejected, data.live) == (5, 2, 3, 0)
    assert column(data, "replica") == [0, -1, -1, -1, 0]


def test_longer_than_the_model_takes_is_rejected() -> None:
    data = run(system_config(max_model_len=20), [request(0, 0.0, 19, 1), request(1, 1.0, 20, 1)])
    assert column(data, "rejected") == [False, True]


def test_what_was_rejected_is_no_part_of_the_ceiling() -> None:
    data = run(system_config(num_gpu_blocks=4), [same(0, 0.0, 40), same(1, 1.0, 12), same(2, 2.0, 12)])
    assert column(data, "rejected") == [True, False, False]
    assert column(data, "ceiling_tokens") == [0, 0, 8]


def test_duration_is_the_first_time_at_which_nothing_arrives() -> None:
    data = run(system_config(duration_s=2.0), [request(0, 0.0, 4), request(1, 1.5, 4), request(2, 2.0, 4)])
    assert column(data, "id") == [0, 1]


def test_idle_time_before_the_first_arrival_is_no_part_of_mean_usage() -> None:
    early, late = (
        run(system_config(num_gpu_blocks=8), [same(i, at + i, 8, 8, stream=i) for i in range(6)])
        for at in (0.0, 4096.0)
    )
    assert early.tier_mean_used["vram"] > 0.4
    assert late.tier_mean_used == pytest.approx(early.tier_mean_used)
    assert (late.timeseries["t_s"] - 4096.0).tolist() == pytest.approx(early.timeseries["t_s"].tolist())


def test_classes_are_those_configured_and_used() -> None:
    classes = (ClassConfig("chat"), ClassConfig("bulk", 1))
    data = run(system_config(classes=classes), [request(0, 0.0, 4, cls="bulk"), request(1, 1.0, 4, cls="other")])
    assert data.class_names == ("chat", "bulk", "other")
    assert column(data, "cls") == [1, 2]


@pytest.mark.parametrize("reserve", [True, False])
@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize("budget", [8, 1000])
def test_lone_request_in_a_pool_of_just_its_size_ends(reserve: bool, caching: bool, budget: int) -> None:
    config = system_config(
        num_gpu_blocks=6, reserve_full_prompt=reserve, prefix_caching=caching, max_num_batched_tokens=budget
    )
    data = run(config, [request(i, 0.0, 10, 15) for i in range(4)])
    assert data.finished == 4
    assert sum(column(data, "output_tokens")) == 60


@pytest.mark.parametrize(("reserve", "scheduled_s"), [(True, 5.0), (False, 1.0)])
def test_request_waits_for_room_for_its_whole_prompt_only_where_asked(reserve: bool, scheduled_s: float) -> None:
    """At 1.0 request 0 takes its third block of eight and 4 tokens of the budget are left: a block, not six."""
    config = system_config(
        num_gpu_blocks=8, max_num_batched_tokens=8, reserve_full_prompt=reserve, prefix_caching=False
    )
    data = run(config, [request(0, 0.0, 12, 4), request(1, 0.5, 24, 1)])
    assert column(data, "finish_s")[0] == 5.0
    assert column(data, "scheduled_s") == [0.0, scheduled_s]


@pytest.mark.parametrize("reserve", [True, False])
def test_loaded_requests_that_hold_all_memory_make_way(reserve: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two loads of five blocks hold a pool of eleven; neither request can have the six it needs to start."""
    gave_way = []
    original = Scheduler._give_way

    def spied(self: Scheduler, but=None) -> bool:
        gave_way.append(original(self, but))
        return gave_way[-1]

    monkeypatch.setattr(Scheduler, "_give_way", spied)
    config = system_config(num_gpu_blocks=11, dram_blocks=100, max_num_batched_tokens=8, reserve_full_prompt=reserve)
    warm = [same(i, 40.0 * i, 20, 1, stream=i + 1) for i in range(4)]
    again = [Request(10 + i, 500.0, 24, 4, ((i + 1, 0, 20), (50 + i, 0, 8))) for i in range(4)]
    data = run(config, warm + again)
    assert any(gave_way)
    assert data.finished == 8
    assert sum(column(data, "load_dram_time_s")) > 0


# ---- laws


def random_case(rng: Random) -> tuple[SystemConfig, list[Request]]:
    """Draw a crowded system with every tier."""
    requests: list[Request] = []
    now = 0.0
    for number in range(rng.randint(1, 25)):
        now += rng.choice((0.0, rng.random() * 4))
        prompt, output = rng.randint(1, 40), rng.randint(1, 20)
        shared = rng.choice((0, prompt, rng.randint(0, prompt)))
        requests.append(request(number, now, prompt, output, shared, rng.randint(1, 3), rng.choice(("a", "b"))))
    config = system_config(
        ComputeStep(rng.choice((1.0, 0.3)), rng.choice((0.0, 0.1)), 0.01),
        num_gpu_blocks=rng.choice((16, 24, 60)),
        max_num_seqs=rng.choice((1, 3, 8)),
        max_num_batched_tokens=rng.choice((8, 17, 64)),
        scheduling=rng.choice(("fcfs", "priority")),
        classes=(ClassConfig("a", 0), ClassConfig("b", 1)),
        dram_blocks=rng.choice((0, 5, 30, 1000)),
        ssd_blocks=rng.choice((0, 20, 1000)),
        load=rng.choice(("hold", "overlap")),
        write=rng.choice(("write_through", "write_through_selective", "write_back", "never")),
        relation=rng.choice(("copy", "exclusive")),
        prefetch=rng.choice(("none", "queue")),
        store_outputs=rng.random() < 0.5,
        eviction=rng.choice(("lru", "lfu", "fifo")),
        reserve_full_prompt=rng.random() < 0.5,
        h2d=rng.choice((2000.0, 10_000.0, 1e9)),
    )
    return config, requests


@settings(max_examples=150)
@given(st.randoms(use_true_random=False))
def test_any_run_conserves_requests_tokens_and_time(rng: Random) -> None:
    config, requests = random_case(rng)
    system, data = run_system(config, requests)
    assert data.arrived == len(requests) == data.finished + data.rejected
    assert sorted(data.requests["id"].tolist()) == [r.id for r in requests]
    done = ~data.requests["rejected"]
    sums = sum(data.requests[f"{part}_time_s"] for part in PARTS)
    np.testing.assert_allclose(sums[done], (data.requests["finish_s"] - data.requests["arrival_s"])[done], atol=1e-9)
    hits = sum(data.requests[f"hit_{tier}_tokens"] for tier in ("vram", "dram", "ssd"))
    assert (hits < data.requests["prompt_tokens"]).all()
    assert (hits[done] % BLOCK == 0).all()
    for engine in system.engines:  # nothing is held when nobody is there
        assert engine.pool.private_blocks == 0
        for pool in (engine.pool, engine.tiers.dram, engine.tiers.ssd):
            assert pool is None or pool.index.evictable_blocks == pool.index.resident_blocks == pool.used_blocks
            assert pool is None or pool.used_blocks <= pool.capacity_blocks


def test_littles_law_holds_with_the_number_counted_apart() -> None:
    rng = Random(3)
    requests = [request(i, rng.random() * 300, rng.randint(1, 40), rng.randint(1, 20)) for i in range(120)]
    config = system_config(num_gpu_blocks=30, max_num_seqs=4, dram_blocks=100)
    system = System(config, FixedSource(requests))
    integral = last_s = 0.0
    more = True
    system.clock.process(system._arrivals())
    while more:
        present = system.arrived - system.finished - system.rejected
        more = system.clock.drain(1)
        integral += present * (system.clock.now - last_s)
        last_s = system.clock.now
    data = system._collect(False, 0.0)
    assert integral == pytest.approx(float((data.requests["finish_s"] - data.requests["arrival_s"]).sum()), rel=1e-9)
    assert data.finished == 120


def test_running_time_is_the_integral_of_running_requests() -> None:
    data = run(system_config(), [request(0, 0.0, 4, 10), request(1, 2.0, 4, 3)])
    assert data.running_time_s == 10.0 + 3.0
    assert data.running_max == 2


def test_most_running_is_of_all_replicas_at_once() -> None:
    data = run(system_config(replicas=2), [request(k, 0.0, 4, 10) for k in range(3)])
    assert data.running_max == 3 >= data.running_time_s / data.end_s


# ---- wrong engines must be seen


def busy_case() -> tuple[SystemConfig, list[Request]]:
    requests = [same(i, 5.0 * (i // 2), 20, 4, stream=i % 5 + 1) for i in range(20)]
    return system_config(num_gpu_blocks=14, dram_blocks=40), requests


def killed(config: SystemConfig, requests: list[Request]) -> bool:
    """Say whether the audit, a law of the records or an assertion stops the run."""
    try:
        check_run(System(replace(config, audit=True), FixedSource(requests)).run())
    except (LawError, AssertionError):
        return True
    return False


def test_mutants_need_a_case_that_passes_unchanged() -> None:
    assert not killed(*busy_case())


def test_mutant_lost_request_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Engine.enqueue
    monkeypatch.setattr(Engine, "enqueue", lambda self, live: None if live.request.id == 7 else original(self, live))
    assert killed(*busy_case())


def test_mutant_request_recorded_twice_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = System._finished

    def twice(self: System, live, replica: int) -> None:
        original(self, live, replica)
        if live.request.id == 7:
            self._record(live, replica, rejected=False)

    monkeypatch.setattr(System, "_finished", twice)
    assert killed(*busy_case())


def test_mutant_forgotten_blocks_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Holdings.release

    def leak(self: Holdings, live, tokens: int, keep_outputs: bool) -> None:
        original(self, live, tokens, keep_outputs)
        self.pool.private_blocks += live.request.id == 7

    monkeypatch.setattr(Holdings, "release", leak)
    assert killed(*busy_case())


def test_mutant_first_token_before_its_step_is_seen() -> None:
    config, requests = busy_case()
    data = run(config, requests)
    data.requests["first_token_s"] = data.requests["scheduled_s"] - 0.5
    assert violations(data)


def test_mutant_wrong_number_of_intervals_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Engine._first_output

    def short(self: Engine, live, now: float) -> None:
        if live.request.id == 7:
            live.generated += 1  # skips an output token
        original(self, live, now)

    monkeypatch.setattr(Engine, "_first_output", short)
    assert killed(*busy_case())


def test_block_bytes_are_what_the_factory_says() -> None:
    assert system_config(dram_blocks=3).dram.capacity_bytes == 3 * BLOCK_BYTES
