"""Scenarios in the words of engines: flags that their parsers take, units that come back as the scenario's."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from simkv.catalog import list_models
from simkv.errors import InputError
from simkv.planner.emit import ENGINES, Emitted, emit
from simkv.planner.emit.hub import HUB
from simkv.planner.emit.lines import Flag, Launch, script
from simkv.scenario.resolve import Resolved, resolve_text

SCENARIO = """
name: emitted
model: llama-3.1-8b
hardware: h100-sxm5-80gb
replicas: {count: 1, tensor_parallel: 1}
engine: {preset: vllm, max_num_seqs: 128, max_num_batched_tokens: 4096, max_model_len: 16Ki tokens}
workload: {kind: plain, requests: 5, arrival: {process: poisson, rate: 1 req/s}, prompt_tokens: 1, output_tokens: 9}
tiers: {dram: {capacity: 800GB}}
"""
PRESETS = {"vllm": "vllm", "sglang": "sglang-hicache", "lmcache": "lmcache", "tensorrt-llm": "tensorrt-llm"}
PROGRAMS = {"vllm": "vllm", "sglang": "python3", "lmcache": "vllm", "tensorrt-llm": "trtllm-serve"}
SPLITS = [(ranks, count) for ranks in (1, 2, 8) for count in (1, 2, 4)]
GIB = 1 << 30


def resolved(*assignments: str) -> Resolved:
    return resolve_text(SCENARIO, "emitted.yaml", assignments)


def of_engine(engine: str, *assignments: str) -> Emitted:
    return emit(engine, resolved(f"engine.preset={PRESETS[engine]}", *assignments))


def vllm_parser() -> argparse.ArgumentParser:
    """Options of ``vllm serve`` 0.33.0 as far as any is emitted, with its types and choices."""
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    parser.add_argument("model")
    for name in ("tensor-parallel-size", "max-model-len", "max-num-seqs", "max-num-batched-tokens", "block-size",
                 "num-gpu-blocks-override", "port"):  # fmt: skip
        parser.add_argument(f"--{name}", type=int)
    for name in ("gpu-memory-utilization", "kv-offloading-size"):
        parser.add_argument(f"--{name}", type=float)
    for name in ("enable-prefix-caching", "enforce-eager", "disable-hybrid-kv-cache-manager"):
        parser.add_argument(f"--{name}", action=argparse.BooleanOptionalAction)
    kv = ("auto", "float16", "bfloat16", "fp8", "int8_per_token_head", "int4_per_token_head")
    parser.add_argument("--kv-cache-dtype", choices=kv)
    parser.add_argument("--dtype", choices=("auto", "half", "float16", "bfloat16", "float", "float32"))
    parser.add_argument("--quantization")
    parser.add_argument("--scheduling-policy", choices=("fcfs", "priority"))
    parser.add_argument("--kv-transfer-config", type=json.loads)
    return parser


def sglang_parser() -> argparse.ArgumentParser:
    """Options of ``sglang.launch_server`` 0.5.23 as far as any is emitted."""
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    for name in ("tp-size", "context-length", "max-running-requests", "chunked-prefill-size", "max-total-tokens",
                 "page-size", "hicache-size", "port"):  # fmt: skip
        parser.add_argument(f"--{name}", type=int)
    for name in ("mem-fraction-static", "hicache-ratio"):
        parser.add_argument(f"--{name}", type=float)
    for name in ("enable-hierarchical-cache", "disable-radix-cache", "enable-priority-scheduling",
                 "schedule-low-priority-values-first", "disable-prefill-cuda-graph", "disable-decode-cuda-graph",
                 "disable-hybrid-swa-memory"):  # fmt: skip
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--model-path")
    parser.add_argument("--dtype")
    parser.add_argument("--quantization")
    parser.add_argument("--kv-cache-dtype", choices=("auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16"))
    parser.add_argument("--radix-eviction-policy", choices=("lru", "lfu", "slru", "priority", "tlru"))
    parser.add_argument("--schedule-policy", choices=("lpm", "random", "fcfs", "dfs-weight"))
    parser.add_argument("--hicache-write-policy", choices=("write_back", "write_through", "write_through_selective"))
    parser.add_argument("--hicache-storage-backend", choices=("file", "mooncake", "hf3fs", "nixl"))
    parser.add_argument("--hicache-storage-prefetch-policy", choices=("best_effort", "wait_complete", "timeout"))
    parser.add_argument("--hicache-storage-backend-extra-config", type=json.loads)
    return parser


def trtllm_parser() -> argparse.ArgumentParser:
    """Options of ``trtllm-serve`` 1.3 as far as any is emitted."""
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    parser.add_argument("model")
    parser.add_argument("--backend", choices=("pytorch", "tensorrt", "_autodeploy"))
    for name in ("tp_size", "max_batch_size", "max_num_tokens", "max_seq_len", "port"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--config")
    return parser


def assert_commented(text: str) -> None:
    """Every flag and every key of a file has its comment: beside it, or above it where it is long."""
    above = ""
    for line in text.splitlines():
        if line.startswith("  ") and not line.startswith("  #"):
            assert "  # " in line or above.startswith("  #"), line
        assert len(line) <= 120 or "'{" in line or "args[@]" in line, "nothing but JSON and starts is wider"
        above = line


PARSERS: dict[str, Callable[[], argparse.ArgumentParser]] = {
    "vllm": vllm_parser, "lmcache": vllm_parser, "sglang": sglang_parser, "tensorrt-llm": trtllm_parser,
}  # fmt: skip


def parsed(emitted: Emitted) -> argparse.Namespace:
    return PARSERS[emitted.engine]().parse_args(emitted.flags)


def started(emitted: Emitted, folder: Path) -> list[tuple[str, list[str]]]:
    """Run the text in bash with a program in the engine's place; return each start's GPUs and arguments, by port."""
    program = folder / "bin" / PROGRAMS[emitted.engine]
    program.parent.mkdir()
    program.write_text('#!/bin/bash\nprintf "%s\\n" "GPUS=$CUDA_VISIBLE_DEVICES" "$@" > "started-$$"\n')
    program.chmod(0o755)
    (folder / "emitted.sh").write_text(emitted.text)
    subprocess.run(["bash", "-n", "emitted.sh"], cwd=folder, check=True)
    path = f"{program.parent}:/usr/bin:/bin"
    subprocess.run(["bash", "emitted.sh"], cwd=folder, check=True, env={**os.environ, "PATH": path})
    runs = [file.read_text().splitlines() for file in folder.glob("started-*")]
    return sorted(((run[0].removeprefix("GPUS="), run[1:]) for run in runs), key=lambda run: run[1][-1])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "assignments",
    [
        (),
        ("tiers.dram.capacity=0GB",),
        ("tiers.ssd.capacity=4TB",),
        ("replicas.count=4", "replicas.tensor_parallel=2"),
        ("engine.kv_dtype=fp8", "engine.weight_dtype=fp8", "engine.enforce_eager=true"),
        ("engine.scheduling=priority", "engine.prefix_caching=false"),
        ("engine.num_gpu_blocks=2000", "model=gemma-3-12b", "engine.hybrid_kv_cache=false"),
        ("offload.residency=0.5",),
        ("offload.write=never", "tiers.dram.shared=true"),
        ("model=deepseek-v2-lite", "offload.write=write_back"),
    ],
)
def test_emitted_flags_are_taken_by_the_engines_parser(engine: str, assignments: tuple[str, ...]) -> None:
    emitted = emit(engine, resolved(*assignments))
    arguments = parsed(emitted)
    assert any(HUB.get(name) in vars(arguments).values() for name in HUB)
    for content in emitted.files.values():
        assert isinstance(yaml.safe_load(content), dict)
    assert_commented(emitted.text)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("ranks", "count"), [(1, 1), (2, 2), (1, 4)])
def test_emitted_text_run_in_bash_starts_each_engine_with_the_flags(
    engine: str, ranks: int, count: int, tmp_path: Path
) -> None:
    emitted = of_engine(
        engine, f"replicas.tensor_parallel={ranks}", f"replicas.count={count}", "tiers.ssd.capacity=4TB"
    )
    runs = started(emitted, tmp_path)
    assert len(runs) == count
    gpus = [gpu for held, _ in runs for gpu in held.split(",") if gpu]
    assert gpus == ([str(n) for n in range(ranks * count)] if count > 1 else [])
    ports = set()
    for n, (_, words) in enumerate(runs):
        words = words[2:] if words[:1] == ["-m"] else words
        words = words[1:] if words[:1] == ["serve"] else words
        ports.add(words[-1])
        own = [word.replace("trtllm-0", f"trtllm-{n}") for word in emitted.flags]
        assert words[:-2] == own
    assert len(ports) == count
    for name, content in emitted.files.items():
        assert yaml.safe_load((tmp_path / name).read_text()) == yaml.safe_load(content)


def test_emitted_text_read_by_shlex_gives_the_flags_back() -> None:
    emitted = of_engine("vllm", "tiers.ssd.capacity=4TB")
    inside = emitted.text.split("args=(\n")[1].split("\n)\n")[0]
    assert shlex.split(inside, comments=True) == emitted.flags


@pytest.mark.parametrize(("ranks", "count"), SPLITS)
def test_vllm_offloading_size_of_all_engines_is_the_hosts_dram(ranks: int, count: int) -> None:
    emitted = of_engine("vllm", f"replicas.tensor_parallel={ranks}", f"replicas.count={count}")
    assert parsed(emitted).kv_offloading_size * GIB * count == 800e9, "GiB of one engine, all its ranks"


@pytest.mark.parametrize(("ranks", "count"), SPLITS)
def test_sglang_hicache_size_of_all_ranks_is_the_hosts_dram(ranks: int, count: int) -> None:
    emitted = of_engine("sglang", f"replicas.tensor_parallel={ranks}", f"replicas.count={count}")
    assert parsed(emitted).hicache_size * 10**9 * ranks * count == 800e9, "GB of one rank"


@pytest.mark.parametrize(("ranks", "count"), SPLITS)
def test_lmcache_sizes_of_all_ranks_are_the_hosts_dram_and_ssd(ranks: int, count: int) -> None:
    split = (f"replicas.tensor_parallel={ranks}", f"replicas.count={count}", "tiers.ssd.capacity=4TB")
    emitted = of_engine("lmcache", *split)
    files = [yaml.safe_load(content) for content in emitted.files.values()]
    assert len(files) == count, "a folder for each"
    assert sum(file["max_local_cpu_size"] for file in files) * GIB * ranks == 800e9
    assert sum(file["max_local_disk_size"] for file in files) * GIB * ranks == 4e12
    assert len({file["local_disk"] for file in files}) == count
    assert "--kv-offloading-size" not in emitted.flags


@pytest.mark.parametrize(("ranks", "count"), SPLITS)
def test_tensorrt_llm_cache_sizes_of_all_ranks_are_the_hosts_dram_and_ssd(ranks: int, count: int) -> None:
    split = (f"replicas.tensor_parallel={ranks}", f"replicas.count={count}", "tiers.ssd.capacity=4TB")
    emitted = of_engine("tensorrt-llm", *split)
    files = [yaml.safe_load(content)["kv_cache_config"] for content in emitted.files.values()]
    assert sum(file["host_cache_size"] for file in files) * ranks == 800e9
    assert sum(file["disk_cache_size"] for file in files) * ranks == 4e12
    assert parsed(emitted).tp_size == ranks


def test_replicas_of_two_hosts_share_only_their_own_hosts_dram() -> None:
    emitted = of_engine("vllm", "replicas.count=4", "replicas.hosts=2")
    assert parsed(emitted).kv_offloading_size * GIB * 2 == 800e9
    assert "each of 2 hosts" in emitted.text
    assert emitted.text.count("vllm serve") == 2


def test_sglang_size_that_is_no_whole_gb_is_rounded_down_and_says_so() -> None:
    emitted = of_engine("sglang", "tiers.dram.capacity=100GiB", "replicas.tensor_parallel=8")
    assert parsed(emitted).hicache_size == 13
    assert "rounded down" in emitted.text


def test_sglang_dram_below_a_gb_a_rank_is_told_as_a_ratio_of_the_same_size() -> None:
    emitted = of_engine("sglang", "tiers.dram.capacity=500MB")
    arguments = parsed(emitted)
    assert arguments.hicache_size is None
    pool_bytes = resolved("engine.preset=sglang-hicache").budget.kv_bytes  # type: ignore[union-attr]
    assert arguments.hicache_ratio * pool_bytes == pytest.approx(500e6, rel=0.01)


def test_sglang_dram_given_as_a_ratio_is_told_as_that_ratio() -> None:
    scenario = SCENARIO.replace("tiers: {dram: {capacity: 800GB}}", "").replace(
        "preset: vllm", "preset: sglang-hicache"
    )
    assert parsed(emit("sglang", resolve_text(scenario))).hicache_ratio == 2.0
    assert parsed(emit("sglang", resolve_text(scenario, assignments=["tiers.dram.ratio=1.5"]))).hicache_ratio == 1.5


@pytest.mark.parametrize("engine", ENGINES)
def test_mla_model_is_told_the_same_dram_as_any_other(engine: str) -> None:
    split = ("replicas.tensor_parallel=2",)
    plain, mla = of_engine(engine, *split), of_engine(engine, "model=deepseek-v2-lite", *split)
    sizes = ("--kv-offloading-size", "--hicache-size")
    told = [[e.flags[e.flags.index(s) + 1] for s in sizes if s in e.flags] for e in (plain, mla)]
    assert told[0] == told[1]
    for key in ("max_local_cpu_size", "host_cache_size"):
        lines = [[line.split("#")[0] for line in e.text.splitlines() if key in line] for e in (plain, mla)]
        assert lines[0] == lines[1]
    if engine in ("vllm", "sglang"):
        assert "MLA" in mla.text and "MLA" not in plain.text


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("without", ["tiers.dram.capacity=0GB", "offload.write=never", "engine.prefix_caching=false"])
def test_scenario_that_keeps_nothing_in_dram_emits_no_offloading(engine: str, without: str) -> None:
    emitted = emit(engine, resolved(without))
    for flag in ("--kv-offloading-size", "--kv-transfer-config", "--enable-hierarchical-cache", "--hicache-size"):
        assert flag not in emitted.flags
    if engine == "tensorrt-llm":
        (content,) = emitted.files.values()
        assert yaml.safe_load(content)["kv_cache_config"]["host_cache_size"] == 0, "absent, it makes one up"
    else:
        assert not emitted.files
    left_out = any("tiers.dram.capacity" in sentence for sentence in emitted.missing)
    assert left_out == ("capacity" not in without)


def test_vllm_policies_are_told_beside_the_size() -> None:
    settings = ("offload.write=write_through_selective", "engine.store_outputs=true", "offload.unit_tokens=64")
    extra = parsed(of_engine("vllm", *settings)).kv_transfer_config["kv_connector_extra_config"]
    assert extra == {"store_threshold": 2, "offload_prompt_only": False, "blocks_per_chunk": 4}


def test_vllm_files_below_dram_are_told_and_their_bound_is_not() -> None:
    emitted = of_engine("vllm", "tiers.ssd.capacity=4TB", "offload.write=write_through_selective")
    extra = parsed(emitted).kv_transfer_config["kv_connector_extra_config"]
    assert extra["spec_name"] == "TieringOffloadingSpec"
    assert [tier["type"] for tier in extra["secondary_tiers"]] == ["fs"]
    assert "store_threshold" not in extra, "refused there"
    assert any("4 TB" in sentence for sentence in emitted.missing)
    assert any("offload.write = write_through_selective: not realisable" in s for s in emitted.missing)


def test_vllm_engines_that_share_a_folder_name_its_files_alike() -> None:
    """Without one PYTHONHASHSEED no engine finds another's files, nor its own after a restart."""
    text = of_engine("vllm", "tiers.ssd.capacity=4TB", "replicas.count=2").text
    assert text.count("PYTHONHASHSEED=0 vllm serve") == 2
    assert "PYTHONHASHSEED" not in of_engine("vllm").text


def test_lmcache_processes_of_an_engine_name_chunks_alike() -> None:
    text = of_engine("lmcache", "replicas.tensor_parallel=2", "replicas.count=2").text
    assert text.count("PYTHONHASHSEED=0 vllm serve") == 2
    assert 'pre_caching_hash_algorithm: "sha256_cbor"' in text
    assert "pre_caching_hash_algorithm" not in of_engine("lmcache").text
    assert "PYTHONHASHSEED" not in of_engine("lmcache", "tiers.dram.capacity=0GB").text


def test_sglang_folder_of_files_is_told_where_its_file_backend_reads_it() -> None:
    emitted = of_engine("sglang", "tiers.ssd.capacity=4TB", "replicas.count=2")
    assert emitted.text.count("SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR=/mnt/kv-cache python3") == 2
    assert parsed(emitted).hicache_storage_backend_extra_config["max_size"] == 2e12
    assert "STORAGE_DIR" not in of_engine("sglang").text


def test_sglang_files_of_an_mla_model_are_written_by_one_rank_that_gets_all_room() -> None:
    split = ("replicas.tensor_parallel=2", "replicas.count=2", "tiers.ssd.capacity=4TB")
    sizes = [
        parsed(of_engine("sglang", f"model={name}", *split)).hicache_storage_backend_extra_config["max_size"]
        for name in ("llama-3.1-8b", "deepseek-v2-lite")
    ]
    assert sizes == [1e12, 2e12]


def test_tensorrt_llm_disk_tier_brings_the_manager_that_has_one() -> None:
    (with_disk,) = of_engine("tensorrt-llm", "tiers.ssd.capacity=4TB").files.values()
    assert yaml.safe_load(with_disk)["kv_cache_config"]["use_kv_cache_manager_v2"] is True
    (without,) = of_engine("tensorrt-llm").files.values()
    assert "use_kv_cache_manager_v2" not in yaml.safe_load(without)["kv_cache_config"]


@pytest.mark.parametrize("engine", ENGINES)
def test_flags_that_only_repeat_the_engines_default_are_left_out(engine: str) -> None:
    text = of_engine(engine).text
    for word in ("fcfs", "lru", "LRU", "auto", "save_decode_cache", "--backend"):
        assert word not in text
    assert "priority" in of_engine(engine, "engine.scheduling=priority").text


def test_fifo_eviction_is_no_choice_of_sglang() -> None:
    emitted = of_engine("sglang", "offload.eviction.policy=fifo")
    assert parsed(emitted).radix_eviction_policy is None
    assert any("offload.eviction.policy = fifo: not realisable" in sentence for sentence in emitted.missing)
    assert parsed(of_engine("sglang", "offload.eviction.policy=slru")).radix_eviction_policy == "slru"


@pytest.mark.parametrize(("load", "key"), [("hold", "enable_async_loading"), ("overlap", "use_layerwise")])
def test_lmcache_ways_to_load_are_told(load: str, key: str) -> None:
    (content,) = of_engine("lmcache", f"engine.load={load}").files.values()
    assert yaml.safe_load(content)[key] is True
    (blocking,) = of_engine("lmcache").files.values()
    assert key not in yaml.safe_load(blocking)


def test_pool_in_vram_is_told_only_where_the_scenario_gives_it() -> None:
    assert parsed(of_engine("vllm")).num_gpu_blocks_override is None
    assert parsed(of_engine("vllm", "engine.num_gpu_blocks=2588")).num_gpu_blocks_override == 2588
    assert parsed(of_engine("vllm", "engine.kv_cache_tokens=41408")).num_gpu_blocks_override == 2588
    assert parsed(of_engine("sglang", "engine.kv_cache_tokens=41408")).max_total_tokens == pytest.approx(41408, abs=1)


def test_shares_of_memory_give_each_engine_the_pool_of_the_scenario() -> None:
    one = resolved()
    budget = one.budget
    assert budget is not None and one.gpu is not None
    lines = {name: abs(size) for name, size, _ in budget.lines}
    static = parsed(emit("sglang", one)).mem_fraction_static
    assert static * one.gpu.usable_bytes - lines["weights"] == pytest.approx(budget.kv_bytes_per_rank, rel=1e-3)
    (content,) = emit("tensorrt-llm", one).files.values()
    left = one.gpu.usable_bytes - lines["weights"] - lines["activations"] - lines["context"]
    share = yaml.safe_load(content)["kv_cache_config"]["free_gpu_memory_fraction"]
    assert share * left == pytest.approx(budget.kv_bytes_per_rank, rel=1e-3)


@pytest.mark.parametrize("engine", ENGINES)
def test_scenario_of_the_engines_own_preset_leaves_nothing_out(engine: str) -> None:
    assert of_engine(engine).missing == []


@pytest.mark.parametrize("engine", ["vllm", "lmcache"])
@pytest.mark.parametrize("preset", ["vllm", "lmcache", "sglang-hicache"])
def test_scenario_of_another_engine_without_dram_loses_nothing_below_vram(engine: str, preset: str) -> None:
    missing = emit(engine, resolved(f"engine.preset={preset}", "tiers.dram.capacity=0GB")).missing
    assert not [s for s in missing if s.startswith(("offload.w", "offload.prefetch", "engine.load", "tiers."))]


def test_scenario_of_another_engine_says_what_is_lost() -> None:
    missing = " ".join(emit("tensorrt-llm", resolved("offload.eviction.policy=score", "offload.residency=0.5")).missing)
    for path in ("offload.eviction.policy", "offload.residency", "tiers.relation", "engine.load"):
        assert path in missing


def test_classes_and_router_are_told_as_what_flags_do_not_say() -> None:
    split = ("replicas.count=2", "replicas.router=prefix_aware")
    classes = ("classes={chat: {priority: 1, dram_share: 0.5}}", "workload.mix={chat: 1}")
    emitted = of_engine("vllm", *split, "engine.scheduling=priority", *classes)
    missing = " ".join(emitted.missing)
    assert "replicas.router" in missing and "classes.chat.dram_share" in missing and "classes.chat.priority" in missing
    assert parsed(emitted).scheduling_policy == "priority"


def test_weights_that_no_flag_makes_are_told_as_another_checkpoint() -> None:
    assert parsed(of_engine("vllm", "engine.weight_dtype=fp8")).quantization == "fp8"
    assert any("int4" in sentence for sentence in of_engine("vllm", "engine.weight_dtype=int4").missing)
    assert any("fp8" in sentence for sentence in of_engine("tensorrt-llm", "engine.weight_dtype=fp8").missing)


def test_static_batches_are_told_as_what_no_server_does() -> None:
    text = Path("scenarios/flexgen-opt-30b-t4.yaml").read_text("utf-8")
    emitted = emit("vllm", resolve_text(text, "scenarios/flexgen-opt-30b-t4.yaml"))
    assert any("engine.placement" in sentence for sentence in emitted.missing)
    parsed(emitted)


def test_model_of_a_config_json_is_its_folder(tmp_path: Path) -> None:
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2,
              "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128,
              "vocab_size": 1000, "torch_dtype": "bfloat16", "max_position_embeddings": 32768}  # fmt: skip
    folder = tmp_path / "own model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    emitted = of_engine("vllm", f"model={folder / 'config.json'}")
    assert parsed(emitted).model == str(folder)
    assert shlex.quote(str(folder)) in emitted.text


def test_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"no such engine.*did you mean vllm.*sglang, lmcache, tensorrt-llm"):
        emit("vlm", resolved())


def test_abstract_machine_is_refused() -> None:
    machine = SCENARIO.replace("h100-sxm5-80gb", "{step_time: 10ms, kv_tokens: 100000}")
    machine = machine.replace("replicas: {count: 1, tensor_parallel: 1}\n", "")
    with pytest.raises(InputError, match="abstract hardware can't be put into vllm's words"):
        emit("vllm", resolve_text(machine))


def test_names_on_the_hub_are_of_models_of_the_catalogue() -> None:
    assert set(HUB) <= set(list_models())
    assert set(list_models()) - set(HUB) == {"opt-175b"}, "whose weights were never on the hub"


@pytest.mark.parametrize("engine", ENGINES)
def test_tiers_without_a_size_are_told_as_missing_one(engine: str) -> None:
    endless = emit(engine, resolved("tiers.dram.capacity=inf GB"))
    assert any("tiers.dram.capacity = inf" in sentence for sentence in endless.missing)
    assert not {"--kv-offloading-size", "--hicache-size", "--kv-transfer-config"} & set(endless.flags)
    files = of_engine(engine, "tiers.ssd.capacity=inf TB")
    parsed(files)
    assert any("tiers.ssd.capacity" in s for s in files.missing) == (engine in ("lmcache", "tensorrt-llm"))


def test_comments_hold_one_line_whatever_is_in_them() -> None:
    flag = Flag("--model", "a b'c", "two\nlines \x1b[31m and # a hash")
    text = script(["a\ntitle"], ("vllm",), [flag], [Launch({"GPUS": "0 1"})], {})
    assert text.count("\n") == len(text.splitlines()) == 5
    run = subprocess.run(["bash", "-c", text.replace("vllm", "printf '%s|'")], capture_output=True, check=True)
    assert run.stdout == b"--model|a b'c|"
