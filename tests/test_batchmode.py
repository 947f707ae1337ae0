"""The batch-mode engine: its event-driven schedule beside the closed forms, its requests, its memory, its laws."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import InfeasibleError, LawError
from simkv.formulas.placement import BatchPolicy, Job, Rates, Room, Share, blocks, schedule_s
from simkv.sim.batchmode.config import BatchConfig
from simkv.sim.config import SystemConfig
from simkv.sim.rundata import RunData
from simkv.sim.system import System
from simkv.workload.request import Request
from tests.sim_factory import column, request, run_system, system_config, ttft
from tests.test_placement import CPU, DISK, GPU, LAYER, RATES, jobs, policies, policy

ROOM = Room(1e9, 1e9, 1e9, 1.0)
THOUSAND = LAYER.kv_bytes * LAYER.layers
"""Blocks of the factory that hold a thousand of these, of one token each."""


def config(chosen: BatchPolicy, rates: Rates = RATES, room: Room = ROOM, **changes: object) -> SystemConfig:
    """Return a system in batch mode whose lanes have the rates of the closed form, and share nothing."""
    base = {
        "h2d": rates.h2d, "d2h": rates.d2h, "ssd_read": rates.ssd_read, "ssd_write": rates.ssd_write,
        "dram_blocks": THOUSAND, "ssd_blocks": THOUSAND, "shared": True, "queue_depth": 10**9, "block_tokens": 1,
        "block_bytes": LAYER.kv_bytes * LAYER.layers, "prefix_caching": False,
    }  # fmt: skip
    made = system_config(**{**base, **changes})
    return replace(made, batch=BatchConfig(LAYER, chosen, rates, room))


def run(chosen: BatchPolicy, requests: list[Request], **changes: object) -> tuple[System, RunData]:
    """Run under all laws."""
    return run_system(config(chosen, **changes), requests)  # type: ignore[arg-type]


def batch(job: Job) -> list[Request]:
    """Return a job's requests, all at once."""
    return [request(i, 0.0, job.prompt_tokens, job.output_tokens) for i in range(job.sequences)]


def apart(chosen: BatchPolicy, job: Job) -> bool:
    """Say whether no block reads and writes the disk at once: reads and writes share its time."""
    return not any((b.up or b.read) and (b.down or b.down_cache) for b in blocks(LAYER, chosen, RATES, job))


# ---- both ways


@given(policies, jobs)
@settings(max_examples=60)
def test_engine_alone_equals_the_closed_schedule(chosen: BatchPolicy, job: Job) -> None:
    job = replace(job, sequences=min(job.sequences, chosen.sequences))
    _, data = run(chosen, batch(job))
    first_s, total_s = schedule_s(LAYER, chosen, RATES, job)
    assert data.end_s >= total_s * (1 - 1e-9)
    if apart(chosen, job) or not chosen.overlap:
        assert data.end_s == pytest.approx(total_s)
        if job.output_tokens > 1:
            assert max(ttft(data)) == pytest.approx(first_s)


def test_engine_shared_links_take_longer_than_alone() -> None:
    job, chosen = Job(4, 10, 5), policy(loads_first=False)
    _, alone = run(chosen, batch(job))
    _, duplex = run(chosen, batch(job), duplex=110.0)
    _, dram = run(chosen, batch(job), dram_rate=90.0)
    assert alone.end_s == pytest.approx(schedule_s(LAYER, chosen, RATES, job)[1])
    assert duplex.end_s > alone.end_s * 1.02
    assert dram.end_s > duplex.end_s


def test_engine_cpu_attention_competes_with_the_link_for_dram() -> None:
    job, chosen = Job(4, 10, 5), policy(cpu_attention=True, loads_first=False)
    _, wide = run(chosen, batch(job), dram_rate=1000.0)
    _, narrow = run(chosen, batch(job), dram_rate=70.0)
    assert wide.end_s == pytest.approx(schedule_s(LAYER, chosen, RATES, job)[1])
    assert narrow.end_s > wide.end_s * 1.02


def test_engine_two_replicas_on_one_uplink_are_slower_than_one() -> None:
    job, chosen = Job(4, 10, 5), policy()
    one = run(chosen, batch(job), uplink_bytes_per_s=100.0)[1]
    two = run(chosen, [request(i, 0.0, 10, 5) for i in range(8)], uplink_bytes_per_s=100.0, uplink_replicas=2,
              replicas=2)[1]  # fmt: skip
    assert two.finished == 8
    assert two.end_s > 1.2 * one.end_s
    assert two.bytes["h2d"] == 2 * one.bytes["h2d"]


@pytest.mark.parametrize("name", ["h2d", "d2h", "ssd_read", "ssd_write"])
def test_engine_faster_link_is_never_slower(name: str) -> None:
    job, chosen = Job(4, 10, 4), policy(Share(0.2, 0.4), Share(0.3, 0.3), Share(0.0, 0.5))
    _, slow = run(chosen, batch(job))
    faster = replace(RATES, **{name: 3 * getattr(RATES, name)})
    _, fast = run(chosen, batch(job), rates=faster)
    assert fast.end_s <= slow.end_s * (1 + 1e-9)


def test_engine_cache_on_its_way_down_keeps_to_its_own_rate() -> None:
    job, slow = Job(4, 10, 3), replace(RATES, d2h_cache=8.0, ssd_write_prompt=5.0)
    for kv in (CPU, DISK):
        chosen = policy(GPU, kv, GPU, cpu_attention=True)
        assert apart(chosen, job) or kv is DISK
        _, data = run(chosen, batch(job), rates=slow)
        total_s = schedule_s(LAYER, chosen, slow, job)[1]
        assert total_s > 1.5 * schedule_s(LAYER, chosen, RATES, job)[1]
        assert data.end_s == pytest.approx(total_s) if kv is CPU else data.end_s >= total_s


# ---- bytes and busy time


@given(policies, jobs)
@settings(max_examples=30)
def test_engine_lanes_carry_the_bytes_of_the_blocks(chosen: BatchPolicy, job: Job) -> None:
    job = replace(job, sequences=min(job.sequences, chosen.sequences))
    _, data = run(chosen, batch(job))
    planned = list(blocks(LAYER, chosen, RATES, job))
    assert data.bytes["h2d"] == sum(b.h2d + b.up for b in planned)
    assert data.bytes["d2h"] == sum(b.d2h + b.d2h_cache + b.down + b.down_cache for b in planned)
    assert data.bytes["ssd_read"] == sum(b.up + b.read for b in planned)
    assert data.bytes["ssd_write"] == sum(b.down + b.down_cache for b in planned)
    moved = sum(data.bytes[name] for name in ("h2d", "d2h", "ssd_read", "ssd_write"))
    staged = sum(b.weights * chosen.stages_weights + b.cache * chosen.stages_kv for b in planned)
    assert data.bytes["dram"] == moved + staged + sum(b.cpu + b.copied for b in planned)
    assert data.busy_s["gpu"] == pytest.approx(sum(b.gpu_s for b in planned))


def test_engine_all_on_gpu_is_busy_all_the_time_and_moves_nothing() -> None:
    _, data = run(policy(GPU, GPU, GPU), batch(Job(4, 10, 5)))
    assert data.busy_s["gpu"] == pytest.approx(data.end_s)
    assert not any(data.bytes.values())


def test_mutant_bytes_outside_the_blocks_are_seen() -> None:
    system = System(replace(config(policy()), audit=True), _source(batch(Job(4, 10, 5))))
    system.engines[0].tiers.h2d.submit(7, 1, 0, lambda: None)
    with pytest.raises(LawError, match="L21"):
        system.run()


def _source(requests: list[Request]) -> object:
    from simkv.workload.replay import FixedSource

    return FixedSource(requests)


# ---- requests


def test_engine_takes_a_full_batch_then_the_next_when_it_has_ended() -> None:
    _, data = run(policy(), [request(i, 0.0, 10, 5) for i in range(9)])
    finish, begun = column(data, "finish_s"), column(data, "scheduled_s")
    assert finish[0] == finish[3] < finish[4] == finish[7] < finish[8]
    assert begun[:4] == [0.0] * 4 and begun[4:8] == [finish[0]] * 4 and begun[8] == finish[4]
    assert data.steps_total == 3 * 5
    assert data.running_max == 4


def test_engine_what_arrives_during_a_batch_waits_for_its_end() -> None:
    _, data = run(policy(), [request(0, 0.0, 10, 5), request(1, 0.5, 10, 5), request(2, 0.6, 10, 5)])
    finish = column(data, "finish_s")
    assert column(data, "scheduled_s") == [0.0, finish[0], finish[0]]
    assert column(data, "queue_time_s") == [0.0, finish[0] - 0.5, finish[0] - 0.6]


def test_engine_shorter_requests_are_padded_and_end_with_the_longest() -> None:
    _, mixed = run(policy(), [request(0, 0.0, 10, 5), request(1, 0.0, 4, 3), request(2, 0.0, 7, 1)])
    _, padded = run(policy(), batch(Job(3, 10, 5)))
    assert mixed.end_s == padded.end_s
    assert column(mixed, "finish_s") == [mixed.end_s] * 3
    first_s = column(padded, "first_token_s")[0]
    assert column(mixed, "first_token_s") == [first_s, first_s, mixed.end_s]  # a single token comes with the end


def test_engine_urgent_requests_are_in_the_first_batch() -> None:
    requests = [request(i, 0.0, 10, 2, cls="bulk" if i < 4 else "urgent") for i in range(6)]
    from simkv.sim.config import ClassConfig

    classes = (ClassConfig("urgent", 0), ClassConfig("bulk", 1))
    _, data = run(policy(), requests, classes=classes, scheduling="priority")
    begun = column(data, "scheduled_s")
    assert begun[4] == begun[5] == begun[0] == begun[1] == 0.0 < begun[2] == begun[3]


@given(st.lists(st.tuples(st.floats(0, 50), st.integers(1, 12), st.integers(1, 5)), min_size=1, max_size=14), policies)
@settings(max_examples=25)
def test_engine_any_workload_keeps_the_laws(rows: list[tuple[float, int, int]], chosen: BatchPolicy) -> None:
    requests = [request(i, at, prompt, out) for i, (at, prompt, out) in enumerate(sorted(rows))]
    system, data = run(chosen, requests)
    assert data.finished == len(rows)
    assert not any(pool.used_blocks for pools in system.pools().values() for pool in pools)


# ---- memory


def test_engine_holds_kv_by_its_shares_while_a_batch_runs() -> None:
    job = Job(4, 10, 5)
    system = System(config(policy(kv=Share(0.5, 0.3))), _source(batch(job)))  # type: ignore[arg-type]
    seen: list[tuple[int, ...]] = []
    take = system.engines[0].holdings.take  # type: ignore[attr-defined]

    def spied(*given: object) -> None:
        take(*given)
        seen.append(tuple(pool.private_blocks for pools in system.pools().values() for pool in pools))

    system.engines[0].holdings.take = spied  # type: ignore[attr-defined]
    data = system.run()
    assert seen == [(30, 18, 12)]  # 4 sequences of 15 tokens
    assert data.tier_mean_used["dram"] == pytest.approx(18 / 1000, rel=0.2)


def test_engine_batch_that_does_not_fit_tells_by_how_much() -> None:
    with pytest.raises(InfeasibleError, match=r"4 sequences of 10 \+ 5 tokens need .* of DRAM .* too much; raise"):
        run(policy(), batch(Job(4, 10, 5)), room=Room(1e9, 3000.0, 1e9, 1.0))
    with pytest.raises(InfeasibleError, match=r"60 KV blocks don't fit the 50 of DRAM: 10 too many"):
        run(policy(), batch(Job(4, 10, 5)), dram_blocks=THOUSAND / 20)


def test_engine_request_that_never_fits_alone_is_turned_away() -> None:
    room = Room(1e9, 5000.0, inf, 1.0)
    _, data = run(policy(), [request(0, 0.0, 10, 5), request(1, 0.0, 500, 5)], room=room)
    assert column(data, "rejected") == [False, True]
