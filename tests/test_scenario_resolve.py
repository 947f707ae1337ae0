"""A scenario with every value filled in: what from where, what it builds, and what its hash depends on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from simkv.scenario.build import engine_config, system_config, workload_source
from simkv.scenario.explain import budget_rows, explain, to_yaml
from simkv.scenario.resolve import Resolved, resolve, resolve_text
from simkv.sim.config import LinkConfig

BASE = """\
name: small
question: "Does it load: yes?"
model: Llama-3.1-8B
hardware: h100-sxm5-80gb
workload:
  kind: sessions
  requests: 20
  arrival: {process: poisson, rate: 2 req/s}
  turns: 3
  think_time: {dist: exponential, mean: 10s}
  prompt_tokens: {dist: lognormal, median: 1Ki, sigma: 0.5, max: 4000}
  output_tokens: 50
tiers:
  dram: {capacity: 20GiB, bandwidth: inf GB/s}
slo: {ttft_p95: 2s}
"""
ABSTRACT = """\
name: queue
model: {kv_bytes_per_token: 128KiB}
hardware: {step_time: 20ms, kv_tokens: 100000}
workload: {kind: plain, requests: 5, arrival: {process: poisson, rate: 1 req/s}, prompt_tokens: 1, output_tokens: 9}
"""


def origins(resolved: Resolved) -> dict[str, tuple[str, str]]:
    return {row.path: (row.value, row.origin) for row in explain(resolved)}


def test_explain_names_where_each_value_came_from() -> None:
    rows = origins(resolve_text(BASE, assignments=["tiers.dram.capacity=400GiB", "run.seed=7"]))
    assert rows["tiers.dram.capacity"] == ("400GiB", "--set")
    assert rows["run.seed"] == ("7", "--set")
    assert rows["tiers.dram.bandwidth"] == ("inf GB/s", "scenario")
    assert rows["workload.prompt_tokens.median"] == ("1024", "scenario")
    assert rows["engine.block_tokens"] == ("16", "preset vllm 0.33")
    assert rows["offload.eviction.policy"] == ("lru", "preset vllm 0.33")
    assert rows["link.h2d"] == ("55.6 GB/s", "catalogue, measured")
    assert rows["engine.max_model_len"] == ("131072", "catalogue")
    assert rows["link.latency"] == ("3.5us", "default")
    assert rows["engine.num_gpu_blocks"][1] == "computed from the memory budget"
    assert rows["replicas.count"] == ("1", "default")


def test_explain_names_the_config_json_where_the_model_is_one(tmp_path: Path) -> None:
    sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4}
    more = {"model_type": "llama", "vocab_size": 99, "intermediate_size": 128, "max_position_embeddings": 8192}
    (tmp_path / "llama-3.1-8b.json").write_text(json.dumps(sizes | more))
    rows = origins(resolve_text(BASE, assignments=[f"model={tmp_path / 'llama-3.1-8b.json'}"]))
    assert rows["engine.max_model_len"] == ("8192", "model's config.json")


def test_set_over_a_section_is_the_origin_of_all_in_it() -> None:
    rows = origins(resolve_text(BASE, assignments=["workload.output_tokens={dist: constant, value: 9}"]))
    assert rows["workload.output_tokens.value"] == ("9", "--set")
    assert rows["workload.turns"] == ("3", "scenario")


def test_set_later_assignment_wins_and_null_takes_out() -> None:
    resolved = resolve_text(BASE, assignments=["run.seed=1", "run.seed=2", "slo.ttft_p95=null", "engine.load=null"])
    assert resolved.scenario.run.seed == 2
    assert resolved.scenario.slo == {}
    assert resolved.scenario.engine.load == "hold"


def test_null_in_the_file_is_as_good_as_absent() -> None:
    extra = "engine: {num_gpu_blocks: null, max_num_seqs: null}\nrun: {duration: null}\ncost: null\n"
    assert resolve_text(BASE + extra).scenario_hash == resolve_text(BASE).scenario_hash


def test_parameters_of_policies_are_filled_in_only_where_they_matter() -> None:
    assert "offload.eviction.lambda" not in origins(resolve_text(BASE))
    sets = ["offload.eviction.policy=score", "offload.prefetch.policy=queue"]
    rows = origins(resolve_text(BASE, assignments=sets))
    assert rows["offload.eviction.lambda"] == ("0.7", "default")
    assert rows["offload.prefetch.window"] == ("8", "default")


def test_beyond_the_preset_is_noted_for_each_knob() -> None:
    sets = ["offload.eviction={policy: score, lambda: 0.5}", "engine.load=overlap", "tiers.ssd.capacity=1TB"]
    notes = resolve_text(BASE, assignments=sets).notes
    assert [code for code, _ in notes] == ["not_realisable"] * 3
    assert notes[0][1] == "engine.load = overlap: not realisable in vLLM 0.33 (it can be hold)"
    no_ssd = "tiers.ssd.capacity = 1TB: not realisable in vLLM 0.33 (it has no such tier)"
    assert no_ssd in {sentence for _, sentence in notes}
    assert resolve_text(BASE).notes == ()


def test_logged_line_gives_the_blocks() -> None:
    line = "GPU KV cache size: 41,408 tokens"
    resolved = resolve_text(BASE, assignments=[f"engine.kv_cache_tokens={line}", "engine.max_model_len=32768"])
    assert resolved.scenario.engine.num_gpu_blocks == 2588
    assert engine_config(resolved).num_gpu_blocks == 2587  # one is vLLM's null block
    assert origins(resolved)["engine.num_gpu_blocks"] == ("2588", "computed from kv_cache_tokens")
    assert resolve_text(BASE, assignments=["engine.kv_cache_tokens=41408"]).scenario.engine.max_model_len == 41408


def test_logged_pool_is_believed_over_the_estimate() -> None:
    sets = ["hardware=rtx-4090", "engine.num_gpu_blocks=2588", "engine.max_num_batched_tokens=256Ki"]
    resolved = resolve_text(BASE, assignments=sets)
    assert resolved.scenario.engine.num_gpu_blocks == 2588


def test_budget_rows_end_in_the_pool() -> None:
    rows = budget_rows(resolve_text(BASE))
    assert rows[0].path == "vram"
    assert rows[-1].path == "kv_cache"
    assert budget_rows(resolve_text(ABSTRACT)) == []


def test_resolved_file_runs_again_with_the_same_hash(tmp_path: Path) -> None:
    for content in (BASE, ABSTRACT, BASE + "classes: {a: {priority: 0}}\n"):
        if "classes" in content:
            content = (
                content.replace("  turns: 3\n", "  turns: 3\n  mix: {a: 1}\n") + "engine: {scheduling: priority}\n"
            )
        resolved = resolve_text(content)
        again = resolve_text(to_yaml(resolved))
        assert again.scenario == resolved.scenario
        assert again.scenario_hash == resolved.scenario_hash
        assert system_config(again).engine == system_config(resolved).engine


def test_hash_ignores_names_and_seed_and_sees_everything_else() -> None:
    first = resolve_text(BASE).scenario_hash
    same = ["name=other", "question=why", "run.seed=3"]
    assert resolve_text(BASE, assignments=same).scenario_hash == first
    for change in ("tiers.dram.capacity=21GiB", "run.warm_up=0s", "model=qwen3-8b", "slo.ttft_p95=1s"):
        assert resolve_text(BASE, assignments=[change]).scenario_hash != first


def test_hash_of_a_trace_is_of_its_content_wherever_it_is(tmp_path: Path) -> None:
    content = "name: t\nmodel: llama-3.1-8b\nhardware: h100-sxm5-80gb\nworkload: {kind: trace, path: a.jsonl}\n"
    hashes = []
    for folder, line in (("one", "1\n"), ("two", "1\n"), ("three", "2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.jsonl").write_text(line)
        (tmp_path / folder / "s.yaml").write_text(content)
        hashes.append(resolve(str(tmp_path / folder / "s.yaml")).scenario_hash)
    assert hashes[0] == hashes[1] != hashes[2]


def test_paths_in_a_file_start_at_its_folder_then_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = "name: t\nmodel: llama-3.1-8b\nhardware: h100-sxm5-80gb\nworkload: {kind: trace, path: a.jsonl}\n"
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "s.yaml").write_text(content)
    (tmp_path / "a.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)

    def where(*sets: str) -> str:
        return resolve("deep/s.yaml", sets).scenario.workload.path.path  # type: ignore[union-attr]

    assert where() == "a.jsonl"
    (tmp_path / "deep" / "a.jsonl").write_text("")
    assert where() == "deep/a.jsonl"
    assert where("workload.path=a.jsonl") == "a.jsonl"
    assert "path: a.jsonl " in to_yaml(resolve("deep/s.yaml"))


def test_system_is_the_scenario_in_si() -> None:
    sets = ["replicas.tensor_parallel=2", "replicas.count=3", "link.h2d=25 GB/s", "tiers.ssd.capacity=2TB"]
    system = system_config(resolve_text(BASE, assignments=sets))
    assert system.replicas == 3
    assert system.link == LinkConfig(50e9, 2 * 52.8e9, 2 * 83.4e9, 3.5e-6, 1, 2 << 20)
    assert system.dram.capacity_bytes == 20 * 2**30
    assert math.isinf(system.dram.bandwidth_bytes_per_s)
    assert system.dram.shared is False
    assert system.ssd.capacity_bytes == 2e12
    assert system.engine.block_bytes == 16 * 131072
    assert system.offload.eviction == "lru"


def test_abstract_system_has_a_constant_step_and_a_free_link() -> None:
    system = system_config(resolve_text(ABSTRACT))
    assert system.cost.decode(5, 10**6)[:2] == (0.02, 0.0)
    assert system.cost.mixed(3, 100, [(50, 0)], 4) == 0.02
    assert system.engine.num_gpu_blocks == 100000 // 16
    assert system.engine.max_model_len == 100000
    assert system.engine.block_bytes == 16 * 131072
    assert math.isinf(system.link.h2d_bytes_per_s)


def test_latent_cache_moves_a_piece_a_layer() -> None:
    resolved = resolve_text(BASE, assignments=["model=deepseek-v3", "hardware=h200-sxm5-141gb",
                                               "replicas.tensor_parallel=8", "engine.max_model_len=8192"])  # fmt: skip
    assert resolved.scenario.link.descriptors_per_block == 61


def test_workload_source_yields_the_requests() -> None:
    resolved = resolve_text(ABSTRACT)
    requests = list(workload_source(resolved, 0).arrivals())
    assert [r.output_tokens for r in requests] == [9] * 5
    assert [r.arrival_s for r in requests] != [r.arrival_s for r in workload_source(resolved, 1).arrivals()]


@pytest.mark.parametrize(
    "workload",
    [
        "{kind: plain, requests: 9, arrival: {process: gamma, rate: 3 req/s, cv: 2}, prompt_tokens: {dist: uniform, "
        "low: 1, high: 9}, output_tokens: {dist: geometric, mean: 4}}",
        "{kind: plain, requests: 9, arrival: {process: closed_loop, users: 3, think_time: 1s}, prompt_tokens: 4, "
        "output_tokens: 5, mix: {a: 0.5, b: 0.5}}",
        "{kind: plain, requests: 9, arrival: {process: all_at_once}, prompt_tokens: {dist: empirical, values: [1, 2], "
        "weights: [1, 3]}, output_tokens: {dist: constant, value: 3}}",
        "{kind: documents, requests: 9, arrival: {process: constant, rate: 60 req/min}, documents: {count: 3, "
        "tokens: 90, popularity: 1.1}, prompt_tokens: 4, output_tokens: 5}",
        "{kind: documents, requests: 9, arrival: {process: poisson, rate: 1 req/s}, documents: {count: 3, tokens: 90}, "
        "prompt_tokens: 4, output_tokens: 5, system_prompt: {tokens: 30}}",
        "{kind: sessions, requests: 9, arrival: {process: closed_loop, users: 3}, turns: {dist: uniform, low: 1, "
        "high: 3}, think_time: {dist: uniform, low: 1s, high: 2s}, prompt_tokens: 4, first_prompt_tokens: 40, "
        "output_tokens: 5, max_context: 200}",
        "{kind: sessions, requests: 9, arrival: {process: poisson, rate: 1 req/s}, turns: 2, prompt_tokens: 4, "
        "think_time: {dist: lognormal, mean: 9s, cv: 1, max: 1h}, output_tokens: 5, "
        "system_prompt: {tokens: 30, variants: 2}}",
        "{kind: batch, size: 4, interval: 10s, requests: 9, prompt_tokens: 4, output_tokens: 5}",
        "{kind: batch, size: 9, prompt_tokens: 4, output_tokens: 5}",
    ],
)  # fmt: skip
def test_every_kind_of_workload_builds_and_is_described(workload: str) -> None:
    content = f"name: w\nmodel: llama-3.1-8b\nhardware: h100-sxm5-80gb\nworkload: {workload}\n"
    if "mix" in workload:
        content += "classes: {a: {}, b: {slo: {ttft: 1s, tpot: 50ms}}}\n"
    resolved = resolve_text(content)
    assert next(workload_source(resolved, 3).arrivals()).prompt_tokens > 0
    assert resolve_text(to_yaml(resolved)).scenario == resolved.scenario


def test_lengths_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "lengths.txt").write_text("7\n7\n")
    content = (
        "name: w\nmodel: llama-3.1-8b\nhardware: h100-sxm5-80gb\nworkload: {kind: batch, size: 2, "
        "prompt_tokens: {dist: empirical, path: lengths.txt}, output_tokens: 1}\n"
    )
    (tmp_path / "s.yaml").write_text(content)
    source = workload_source(resolve(str(tmp_path / "s.yaml")), 0)
    assert [r.prompt_tokens for r in source.arrivals()] == [7, 7]


def test_set_section_does_not_give_keys_that_it_lacks() -> None:
    content = "name: w\nmodel: llama-3.1-8b\nhardware: h100-sxm5-80gb\nworkload: {kind: batch, size: 2, " \
        "prompt_tokens: 4, output_tokens: 5}\ntiers: {dram: {capacity: 9GiB}}\n"  # fmt: skip
    resolved = resolve_text(content, assignments=["offload.prefetch={policy: none}"])
    assert resolved.origin(("offload", "prefetch", "policy")) == "--set"
    assert resolved.origin(("offload", "prefetch", "stop")) == "default"
