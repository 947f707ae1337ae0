"""Keys that do something where they may be given, and are refused where they would do nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from simkv.errors import InputError
from simkv.scenario.explain import to_yaml
from simkv.scenario.resolve import resolve_text
from simkv.simulation import run_scenario

PLAIN = (
    "{kind: plain, arrival: {process: poisson, rate: 4 req/s}, prompt_tokens: 500, output_tokens: 20, requests: 30, "
    "stored: 0.5}"
)
SESSIONS = (
    "{kind: sessions, turns: 4, prompt_tokens: 500, output_tokens: 20, "
    "arrival: {process: ready_queue, users: 8, max_parallel: 2}}"
)
DOCUMENTS = (
    "{kind: documents, arrival: {process: poisson, rate: 4 req/s}, documents: {count: 5, tokens: 1000}, "
    "prompt_tokens: 50, output_tokens: 20, requests: 30}"
)
STAGES = (
    "{kind: plain, arrival: {process: stages, stages: [{rate: 4 req/s, duration: 5s}, {rate: 8 req/s, duration: 5s}]}, "
    "prompt_tokens: 500, output_tokens: 20}"
)
REAL = "hardware: a100-sxm4-80gb\nengine: {preset: vllm, num_gpu_blocks: 2000, max_model_len: 4096}"
OVERLAP = "hardware: a100-sxm4-80gb\nengine: {preset: sglang-hicache, kv_cache_tokens: 32000, max_model_len: 4096}"
INLINE = "hardware: {step_time: 20ms, kv_tokens: 32000}\nengine: {preset: vllm, max_model_len: 4096}"
BATCH = "hardware: t4-16gb\nengine: {preset: flexgen}"


def scenario(machine: str, workload: str, tiers: str = "{dram: {capacity: 50GiB}}") -> str:
    return f"""
name: x
model: llama-3.1-8b
{machine}
workload: {workload}
tiers: {tiers}
run: {{warm_up: 0s, baselines: []}}
"""


def times(text: str, sets: Sequence[str]) -> list[list[Any]]:
    rows = run_scenario(resolve_text(text, "x.yaml", list(sets)), audit=True).data.requests
    return [rows[name].tolist() for name in ("arrival_s", "first_token_s", "finish_s", "replica")]


TWO = ("replicas.count=2", "replicas.router=scored")


@pytest.mark.parametrize(
    ("workload", "before", "change"),
    [
        (PLAIN, (), "engine.async_scheduling=false"),
        (PLAIN, (), "engine.attention_backend=triton"),
        (PLAIN, (), "engine.host_cost_per_block=1ms"),
        (PLAIN, ("engine.prefix_caching=false",), "engine.host_cost_per_load=50ms"),
        (PLAIN, (), "workload.stored=0.1"),
        (DOCUMENTS, (), "workload.documents.questions=2"),
        (DOCUMENTS, TWO, "replicas.scorers={queue: 0, kv_usage: 0, prefix: {weight: 0}, in_flight: 1}"),
        (DOCUMENTS, TWO, "replicas.scorers={prefix: {capacity: 512}}"),
        (DOCUMENTS, TWO, "replicas.scorers={cold: 5}"),
        (STAGES, (), "workload.arrival.pause=10s"),
        (SESSIONS, (), "workload.arrival.order=fifo"),
        (SESSIONS, (), "workload.arrival.round_barrier=true"),
        (SESSIONS, (), "workload.arrival.max_parallel=4"),
        (SESSIONS, (), "workload.arrival.rate=2 req/s"),
    ],
)
def test_key_where_it_matters_changes_the_run(workload: str, before: Sequence[str], change: str) -> None:
    text = scenario(REAL, workload)
    assert times(text, before) != times(text, (*before, change))


@pytest.mark.parametrize(
    ("machine", "workload", "change", "what"),
    [
        (OVERLAP, PLAIN, "engine.host_cost_per_load=50ms", "does nothing with load: overlap"),
        (INLINE, PLAIN, "engine.attention_backend=triton", "does nothing on inline hardware"),
        (REAL, SESSIONS, "workload.think_time=30s", "does nothing with arrival.process ready_queue"),
        (BATCH, "{kind: batch, size: 8, prompt_tokens: 50, output_tokens: 5}", "engine.host_cost_per_block=1ms", ""),
        (BATCH, "{kind: batch, size: 8, prompt_tokens: 50, output_tokens: 5}", "engine.host_cost_per_load=1ms", ""),
        (BATCH, "{kind: batch, size: 8, prompt_tokens: 50, output_tokens: 5}", "engine.attention_backend=triton", ""),
    ],
)
def test_key_where_it_does_nothing_is_refused(machine: str, workload: str, change: str, what: str) -> None:
    with pytest.raises(InputError, match=what or "does nothing with preset flexgen"):
        resolve_text(scenario(machine, workload), "x.yaml", [change])


def test_preset_that_says_more_than_its_load_needs_resolves_to_what_loads_again() -> None:
    resolved = resolve_text(scenario(REAL, PLAIN), "x.yaml", ["engine.load=overlap"])
    assert resolved.scenario.engine.host_cost_per_load is None
    assert resolve_text(to_yaml(resolved), "x.yaml").scenario == resolved.scenario
