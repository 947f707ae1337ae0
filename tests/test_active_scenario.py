"""Active offload in a scenario: what is refused, and with which words; what runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.errors import InputError
from simkv.scenario.active import active_notes
from simkv.scenario.build import system_config, workload_source
from simkv.scenario.explain import to_yaml
from simkv.scenario.resolve import resolve_text
from simkv.sim.system import System
from tests import faults

BASE = """\
name: active
model: llama-3.1-8b
hardware: a100-sxm4-80gb
engine: {prefix_caching: false, prefill: dram, max_model_len: 8192}
workload: {kind: batch, size: 2, prompt_tokens: 2048, output_tokens: 8}
tiers: {dram: {capacity: 64GiB}}
offload:
  residency: 0.3
  access: {pattern: topk, budget: 512, recent: 64}
  eviction: {policy: lru}
  write: write_through
  prefetch: {policy: next_step}
run: {baselines: []}
"""
DENSE = BASE.replace("{pattern: topk, budget: 512, recent: 64}", "{pattern: dense}")
RESIDENT = """\
name: resident
model: llama-3.1-8b
hardware: a100-sxm4-80gb
workload: {kind: batch, size: 2, prompt_tokens: 2048, output_tokens: 8}
tiers: {dram: {capacity: 64GiB}}
"""


def complaints(content: str, *assignments: str) -> list[str]:
    return faults.complaints(content, *assignments, use=system_config)


def _run(content: str, *assignments: str) -> Any:
    resolved = resolve_text(content, "s.yaml", assignments)
    return System(system_config(resolved), workload_source(resolved, 0)).run()


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("offload.residency=-1", ("offload.residency = -1", "negative")),
        ("offload.residency=nan", ("offload.residency", "not a number")),
        ("offload.residency=1e308", ("offload.residency", "the most that makes sense here is 1")),
        ("offload.vram_budget=0.4", ("offload.vram_budget", "give one of the two")),
        ("offload.staging_layers=0", ("offload.staging_layers = 0", "the least is 1")),
        ("offload.access.budget=0", ("offload.access.budget = 0", "the least is 1")),
        ("offload.access.recent=0", ("offload.access.recent = 0", "the least is 1")),
        ("offload.access.skew=1e308", ("offload.access.skew", "too large")),
        ("offload.access.skew=11", ("offload.access.skew = 11", "the most is 10")),
        ("offload.access.stickiness=inf", ("offload.access.stickiness", "infinite")),
        ("offload.access.layer_groups=33", ("offload.access.layer_groups = 33", "32 layers", "write 32 or less")),
        ("offload.access.pattern=nope", ("offload.access.pattern", "dense, window, topk, recall, replay")),
        ("offload.access={pattern: window, window: 0}", ("offload.access.window = 0", "the least is 1")),
        ("offload.access={pattern: recall, every: 0}", ("offload.access.every = 0", "the least is 1")),
        ("offload.prefetch.accuracy=1.5", ("offload.prefetch.accuracy", "the most that makes sense here is 1")),
        ("offload.prefetch.lead=0", ("offload.prefetch.lead = 0", "the least is 1")),
        ("offload.prefetch.beta=0.5", ("offload.prefetch.beta", "policy: fixed_overlap")),
        ("offload.prefetch.predictor=replay", ("offload.prefetch.predictor", "no log")),
        ("offload.prefetch.policy=queue", ("offload.prefetch.policy", "waiting requests")),
        ("offload.prefetch.policy=fixed_overlap", ("offload.prefetch.beta", "is missing")),
        ("offload.host_cost_per_block=nan", ("offload.host_cost_per_block", "not a number")),
        ("offload.write=never", ("offload.write", "leaves KV nowhere")),
        ("offload.write=rewrite", ("offload.write", "dense access")),
        ("offload.eviction={policy: score, lambda: 2}", ("offload.eviction.lambda = 2", "1")),
        ("engine.prefill=nowhere", ("engine.prefill", "here, vram, dram, ssd")),
        ("engine.prefill=ssd", ("engine.prefill", "no SSD", "tiers.ssd.capacity", "or write dram")),
        ("engine.preemption=banana", ("engine.preemption", "recompute, swap")),
        ("tiers.dram.capacity=0GiB", ("tiers.dram.capacity", "nothing below VRAM")),
        ("engine.load=overlap", ("engine.load", "does nothing under active offload")),
        ("engine.reserve_full_prompt=false", ("engine.reserve_full_prompt", "does nothing under active offload")),
        ("offload.when_full=retry", ("offload.when_full", "does nothing under active offload")),
        ("link.descriptors_per_block=64", ("link.descriptors_per_block", "does nothing under active offload")),
    ],
)
def test_a_hostile_value_is_refused_with_place_and_mend(assignment: str, words: tuple[str, ...]) -> None:
    found = complaints(BASE, assignment)
    assert any(all(word in line for word in words) for line in found), found
    assert all(line.startswith(("--set: ", "s.yaml")) for line in found)


@pytest.mark.parametrize("key", ["predictor: last_step", "accuracy: 0.5", "lead: 2", "beta: 0.5", "demand: overlaps"])
def test_a_prefetch_key_of_running_sequences_without_active_offload_is_refused(key: str) -> None:
    [found] = complaints(RESIDENT, f"offload.prefetch={{{key}}}")
    assert f"offload.prefetch.{key.split(':')[0]} = " in found
    assert "does nothing where running sequences keep all of their KV in VRAM; write a residency below 1" in found


def test_a_budget_beyond_what_weights_leave_is_refused_with_the_most() -> None:
    [found] = complaints(BASE.replace("residency: 0.3", "vram_budget: 0.9"))
    assert "offload.vram_budget = 0.9" in found and "or less" in found
    data = _run(BASE.replace("residency: 0.3", f"vram_budget: {found.split('write ')[1].split()[0]}"))
    assert (data.finished, data.rejected) == (2, 0)


def test_a_budget_written_out_whole_loads_again() -> None:
    resolved = resolve_text(BASE.replace("residency: 0.3", "vram_budget: 0.1"))
    assert resolve_text(to_yaml(resolved)).scenario == resolved.scenario


@pytest.mark.parametrize("policy", ["layer", "next_step", "oracle"])
def test_one_buffer_leaves_nothing_to_bring_ahead(policy: str) -> None:
    [found] = complaints(DENSE, f"offload.prefetch.policy={policy}", "offload.staging_layers=1")
    assert "offload.staging_layers" in found and "2 or more" in found


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("gemma-3-12b", "gqa+sliding"),
        ("mistral-7b-v0.1", "gqa+sliding"),
        ("gpt-oss-20b", "gqa+sliding"),
        ("llama-4-scout-17b-16e", "gqa+chunked"),
        ("qwen3.5-35b-a3b", "gqa+linear"),
        ("nemotron-h-56b", "gqa+mamba"),
    ],
)
def test_models_whose_cache_stops_growing_are_refused_by_name(model: str, kind: str) -> None:
    found = complaints(BASE, f"model={model}")
    assert any(f"{model} ({kind})" in line or kind in line for line in found), found
    assert any("every layer sees all tokens" in line for line in found)


def test_latent_attention_moves_its_latents() -> None:
    """DeepSeek-V2-Lite: 27 layers of 512 + 64 numbers of 16 bits a token."""
    resolved = resolve_text(DENSE, "s.yaml", ["model=deepseek-v2-lite", "offload.prefetch.policy=layer"])
    config = system_config(resolved)
    assert config.engine.block_bytes == 16 * 27 * 576 * 2
    data = System(config, workload_source(resolved, 0)).run()
    found = data.active
    assert found is not None and found.steps
    assert found.reads == 2 * 27 * (128 + 7 * 129)  # the first step's context is 2,048 tokens
    kept = 39  # 0.3 of either, rounded up: came up first, once
    streamed = 2 * (kept + (128 - kept) + 7 * (129 - kept))
    assert found.loaded_bytes == streamed * config.engine.block_bytes


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist"),
        ("", "is empty"),
        ("garbage\n", "is not JSON"),
        ('{"step": 0, "sequence": 0, "blocks": [0, 99999]}\n', "is past the 128 blocks"),
        ('{"step": -1, "sequence": 0, "blocks": [0]}\n', "step"),
        ('{"step": 0, "sequence": 1, "blocks": [0]}\n', "no request of that number"),
    ],
)
def test_a_log_that_does_not_fit_is_refused_by_line(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "reads.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError) as caught:
        _run(BASE, f"offload.access={{pattern: replay, path: {path}}}")
    assert words in str(caught.value)
    assert "reads.jsonl" in str(caught.value)


def test_bad_input_ends_with_two(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(BASE)
    asked = ["run", str(tmp_path / "s.yaml"), "--set", "offload.access.layer_groups=33", "--out", str(tmp_path / "o")]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 2
    assert "offload.access.layer_groups" in result.stderr
    assert not (tmp_path / "o").exists()


def test_hash_seed_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(BASE)
    runs = []
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "simkv", "run", "s.yaml", "--json", "--out", seed]
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent.parent)}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=True)
        runs.append(json.loads(done.stdout))
    assert runs[0] == runs[1]
    assert runs[0]["p_hit"] > 0


def test_dense_access_says_that_eviction_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(DENSE)
    for policy in ("lru", "{policy: score, lambda: 0.2}"):
        asked = f"offload.eviction={policy}" if "{" in policy else f"offload.eviction.policy={policy}"
        out = ["--set", asked, "--set", "offload.prefetch.policy=layer", "--out", str(tmp_path / "o")]
        result = CliRunner().invoke(app, ["run", str(tmp_path / "s.yaml"), *out])
        assert result.exit_code == 0, result.stderr
        assert "eviction" in " ".join(result.stdout.split()), result.stdout


def test_prefetch_of_layers_that_pick_apart_says_that_it_knows_their_picks() -> None:
    groups = "offload.access={pattern: topk, layer_groups: 4}"
    for assignments, said in (
        (("offload.prefetch.policy=layer", groups), True),
        (("offload.prefetch.policy=layer",), False),
        (("offload.prefetch.policy=next_step", groups), False),
    ):
        notes = active_notes(resolve_text(BASE, "s.yaml", assignments).scenario)
        assert any("Prefetch layer knows" in note for note in notes) is said
