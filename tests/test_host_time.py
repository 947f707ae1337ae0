"""CPU time between steps, VRAM that keeps nothing, and scheduling ahead: one step at a time says the same."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from simkv.scenario.resolve import resolve_text
from simkv.simulation import run_scenario
from tests.test_oracle import EXACT_COLUMNS, KINDS, Case, run

WORKLOADS = {
    "stages": "{kind: documents, arrival: {process: stages, stages: [{rate: 4 req/s, duration: 5s}, {rate: 9 req/s, "
    "duration: 4s}], pause: 1s}, documents: {count: 6, tokens: 900, questions: 3}, prompt_tokens: 60, "
    "output_tokens: {dist: uniform, low: 1, high: 60}}",
    "ready_queue": "{kind: sessions, turns: 4, prompt_tokens: {dist: uniform, low: 50, high: 700}, output_tokens: 20, "
    "arrival: {process: ready_queue, users: 9, max_parallel: 4, rate: 5 req/s, round_barrier: true}}",
    "stored": "{kind: plain, arrival: {process: poisson, rate: 6 req/s}, stored: 0.5, requests: 50, "
    "prompt_tokens: {dist: uniform, low: 50, high: 900}, output_tokens: 30}",
}
REQUESTS = {"stages": 20 + 36, "ready_queue": 36, "stored": 50}


def slower(case: Case, rng: Random) -> Case:
    """The same system with a slow host, drawn at random."""
    changes = {
        "async_scheduling": rng.random() < 0.6,
        "host_block_s": rng.choice((0.0, 0.003, 0.02)),
        "host_load_s": rng.choice((0.0, 0.05)),
        "keeps_vram": rng.random() < 0.7,
    }
    config = replace(case.config, engine=replace(case.config.engine, **changes), audit=True)  # type: ignore[arg-type]
    return Case(config, case.requests)


@pytest.mark.parametrize("kind", ["dram", "anything"])
def test_steps_one_by_one_agree_where_the_host_takes_time(kind: str) -> None:
    for seed in range(40):
        case = slower(KINDS[kind][0](Random(seed), 10), Random(7 * seed + 1))
        whole, single = run(case).requests, run(case, step_exact=True).requests
        for name in EXACT_COLUMNS:
            assert np.array_equal(whole[name], single[name], equal_nan=whole[name].dtype.kind == "f"), (seed, name)


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("router", ["least_loaded", "scored"])
def test_new_loads_lose_nobody_and_repeat_themselves(workload: str, router: str) -> None:
    resolved = resolve_text(f"""
name: x
model: llama-3.1-8b
hardware: a100-sxm4-80gb
replicas: {{count: 2, router: {router}}}
engine: {{preset: vllm, num_gpu_blocks: 400, max_model_len: 4096}}
workload: {WORKLOADS[workload]}
tiers: {{dram: {{capacity: 1GiB}}}}
run: {{warm_up: 0s, baselines: []}}
""")
    first, second = (run_scenario(resolved, audit=True).data for _ in range(2))
    assert (first.arrived, first.finished, first.rejected) == (REQUESTS[workload], REQUESTS[workload], 0)
    assert sorted(first.requests["id"].tolist()) == list(range(first.arrived))
    for name, column in first.requests.items():
        assert np.array_equal(column, second.requests[name], equal_nan=column.dtype.kind == "f"), name
