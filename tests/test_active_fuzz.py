"""Many small systems under active offload, every knob drawn at random, under all laws after every few events."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simkv.formulas.step import ConstantStep
from simkv.kvcache.access import Dense, Recall, Replay, TopK, Window
from simkv.sim.active.config import Contention, LaneFactors
from simkv.sim.active.measured import Measured
from simkv.sim.config import SystemConfig
from simkv.workload.request import Request
from tests import active_factory as make

RUNS = 240
PARTS = 8
SPARSE = ("window", "topk", "recall", "replay")


def _requests(rng: random.Random) -> list[Request]:
    now, found = 0.0, [make.request(0, 0.0, rng.randint(1, 70), rng.randint(2, 14))]
    for number in range(1, rng.randint(2, 9)):
        now += rng.choice((0.0, 0.0, 0.7, 3.0, 20.0))
        found.append(make.request(number, now, rng.randint(1, 70), rng.randint(1, 14)))
    return found


def _access(rng: random.Random, pattern: str, requests: list[Request], here: bool, folder: Path) -> Any:
    if pattern == "window":
        return Window(rng.randint(1, 24), rng.choice((0, 1, 4, 8)))
    if pattern == "topk":
        recent = rng.randint(1, 12)
        return TopK(rng.randint(1, 40), recent, rng.choice((0, 4)), rng.choice((0.0, 1.0, 3.0)), rng.random())
    if pattern == "recall":
        return Recall(rng.randint(1, 20), rng.randint(1, 4), rng.choice((0.0, 1.0)))
    if pattern == "dense":
        return Dense()
    less = int(not here)
    reads = {r.id: make.random_reads(rng, r.prompt_tokens - less, r.output_tokens - 1 + less) for r in requests}
    return Replay(make.write_log(folder / "reads.jsonl", reads))


def _prefetch(rng: random.Random, sparse: bool) -> dict[str, Any]:
    policy = rng.choice(("none", "layer", "next_step", "oracle", "fixed_overlap"))
    found: dict[str, Any] = {"policy": policy}
    if policy == "fixed_overlap":
        found["beta"] = rng.choice((0.0, 0.3, 0.5, 1.0))
    if sparse and policy in ("next_step", "oracle"):
        found |= {"lead": rng.randint(1, 3), "overlaps_demand": rng.random() < 0.25}
        if policy == "next_step":
            accuracy = rng.choice((None, 0.0, 0.5, 1.0))
            guess = rng.choice(("last_step", "stride", "heavy_hitters")) if accuracy is None else None
            found |= {"accuracy": accuracy, "predictor": guess}
    return found


def _eviction(rng: random.Random) -> dict[str, Any]:
    policy = rng.choice(("lru", "lfu", "fifo", "slru", "arc", "s3fifo", "priority", "score"))
    found: dict[str, Any] = {"eviction": policy}
    if policy == "score":
        found |= {
            "eviction_lambda": rng.choice((0.0, 0.3, 1.0)),
            "eviction_count": rng.choice(("in_cache", "lifetime")),
        }
    return found


def _tiers(rng: random.Random) -> dict[str, Any]:
    latency = rng.choice((0.0, 0.0, 0.003))
    return {
        "dram_blocks": rng.choice((12, 30, 60, 200)),
        "ssd_blocks": rng.choice((0, 0, 40, 200)),
        "shared": rng.random() < 0.5,
        "h2d": rng.choice((2_000.0, 10_000.0, 200_000.0)),
        "duplex": rng.choice((float("inf"), 12_000.0)),
        "latency_s": latency,
        "ssd_latency_s": latency,
        "chunk_bytes": rng.choice((50, 1000, 1 << 20)),
    }


def _with_costs(rng: random.Random, config: SystemConfig) -> SystemConfig:
    """Return ``config`` with what a real machine adds: setup, requests, contention, CPU time a step; some of it 0."""
    assert config.active is not None
    factors = [LaneFactors(*(rng.choice((1.0, 1.2, 4.0)) for _ in range(4))) for _ in range(2)]
    after_wait = rng.choice((1.0, 1.1, 3.0))
    contention = Contention(*factors, after_wait) if rng.random() < 0.7 else Contention()
    return replace(
        config,
        active=replace(config.active, host_s_per_step=rng.choice((0.0, 0.004)), contention=contention),
        link=replace(config.link, setup_s=rng.choice((0.0, 0.002))),
        ssd=replace(config.ssd, request_latency_s=rng.choice((0.0, 0.001))),
    )


def system(rng: random.Random, folder: Path) -> tuple[SystemConfig, list[Request]]:
    """Return a random system and its requests."""
    requests = _requests(rng)
    pattern = rng.choice(("dense", "dense", *SPARSE))
    sparse = pattern != "dense"
    groups = rng.choice((1, 1, 3, 4)) if sparse else 1
    prefill = rng.choice(("here", "here", "vram", "dram", "ssd"))
    exclusive = rng.random() < 0.3 and groups == 1
    writes = ["write_back"] if exclusive else ["write_back", "write_through"] + ["rewrite"] * (not sparse)
    knobs: dict[str, Any] = {
        "access": _access(rng, pattern, requests, prefill == "here", folder),
        "residency": rng.choice((0.0, 0.1, 0.3, 0.5, 0.7, 0.9)),
        "budget_blocks": rng.choice((None, None, None, 3, 8, 20)),
        "groups": groups,
        "exclusive": exclusive,
        "write": rng.choice(writes),
        "staging_layers": rng.randint(1, 4),
        "prefill": prefill,
        "swap": rng.random() < 0.5,
        "host_s_per_block": rng.choice((0.0, 0.0, 0.001)),
        "num_gpu_blocks": rng.choice((14, 20, 30, 60)),
        "max_num_seqs": rng.choice((1, 3, 8)),
        "max_num_batched_tokens": rng.choice((9, 30, 200)),
        "scheduling": rng.choice(("fcfs", "priority")),
        "replicas": rng.choice((1, 1, 2, 3)),
        "cost": ConstantStep(rng.choice((0.0, 0.1, 1.0)), make.LAYERS),
        "seed": rng.randint(0, 9),
    }
    if knobs["write"] == "write_through" and prefill == "here" and rng.random() < 0.5:
        knobs |= {"reuse": True, "prefix_caching": True}
        requests = [_alike(rng, one) for one in requests]
    policies = _prefetch(rng, sparse) | _eviction(rng)
    if pattern == "replay" and groups == 1 and rng.random() < 0.4:
        policies = {"policy": "none", "eviction": "lru", "incoming": "candidate"}
    config = make.active_config(**knobs, **policies, **_tiers(rng))
    return config, requests


def _alike(rng: random.Random, one: Request) -> Request:
    """Let ``one`` begin as others do."""
    shared = rng.randint(0, one.prompt_tokens)
    return make.request(one.id, one.arrival_s, one.prompt_tokens, one.output_tokens, shared, rng.randint(1, 3))


def _hold(found: Measured, config: SystemConfig) -> None:
    """What any run keeps."""
    assert found.compute_s <= found.step_s * (1 + 1e-9)
    assert 0 <= found.hits <= found.reads
    assert 0 <= found.resident <= found.hits
    assert 0 <= found.exposed_s <= found.carried_s * (1 + 1e-9)
    assert 0 <= found.timely <= found.used <= found.prefetched - found.wasted


@pytest.mark.parametrize("part", range(PARTS))
def test_any_system_finishes_under_all_laws(part: int, tmp_path: Path) -> None:
    for number in range(RUNS // PARTS):
        seed = part * RUNS + number
        rng = random.Random(seed)
        config, requests = system(rng, tmp_path)
        data = make.run(config, requests)
        assert (data.finished + data.rejected, data.live) == (len(requests), 0), seed
        assert data.active is not None
        _hold(data.active, config)


@pytest.mark.parametrize("part", range(PARTS))
def test_any_system_with_the_costs_of_a_machine_finishes_under_all_laws(part: int, tmp_path: Path) -> None:
    for number in range(RUNS // PARTS // 2):
        seed = part * RUNS + number + 100_000
        rng = random.Random(seed)
        config, requests = system(rng, tmp_path)
        config = _with_costs(rng, config)
        data = make.run(config, requests)
        assert (data.finished + data.rejected, data.live) == (len(requests), 0), seed
        assert data.active is not None
        _hold(data.active, config)
        assert data.active.contended_s >= 0.0 and data.active.hindered_s >= 0.0
