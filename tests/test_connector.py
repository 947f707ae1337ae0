"""What a connector to lower tiers does and costs: stored prompts, VRAM that forgets, CPU time, reads that hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.catalog import load_hardware, load_model
from simkv.errors import InputError
from simkv.formulas.backends import TRITON_FLOPS_EFFICIENCY, with_backend
from simkv.formulas.sglang import MIB, set_aside_bytes
from simkv.formulas.step import step_cost
from simkv.results.result import RunResult
from simkv.scenario.resolve import resolve_text
from simkv.simulation import run_scenario
from simkv.validation.asks.found import NothingError
from simkv.validation.asks.metrics import metric_of
from tests.sim_factory import run, same, system_config

ABSTRACT = """
name: abstract
model: {kv_bytes_per_token: 1000B}
hardware: {step_time: 10ms, kv_tokens: 4000}
engine: {preset: vllm, max_num_seqs: 64, max_num_batched_tokens: 100000, block_tokens: 16, max_model_len: 4000}
workload: {kind: plain, arrival: {process: constant, rate: 1 req/s}, requests: 20, prompt_tokens: 160, output_tokens: 1}
tiers: {dram: {capacity: 1GB}}
link: {h2d: 10MB/s, d2h: 10MB/s, duplex: 20MB/s, latency: 0us}
run: {warm_up: 0s}
"""
CHATS = """
name: chats
model: {kv_bytes_per_token: 100B}
hardware: {step_time: 50ms, kv_tokens: 6400}
engine: {preset: sglang-hicache, block_tokens: 16, max_num_seqs: 64, max_num_batched_tokens: 512, max_model_len: 4096}
workload:
  kind: sessions
  turns: 6
  prompt_tokens: 512
  output_tokens: 1
  arrival: {process: ready_queue, users: 10, max_parallel: 4, round_barrier: true}
tiers: {dram: {ratio: 2}, ssd: {capacity: 1GB, read: 1GB/s, write: 1GB/s, latency: 0us}}
link: {h2d: 1GB/s, d2h: 1GB/s, duplex: 2GB/s}
offload: {prefetch: {stop: wait_complete}}
run: {warm_up: 0s, baselines: []}
"""


def result(text: str, *changes: str, seed: int = 0) -> RunResult:
    """Simulate under all laws."""
    return run_scenario(resolve_text(text, "s.yaml", changes), seed=seed, audit=True)


# ---- stored prompts, and VRAM that forgets


@given(share=st.sampled_from([0.05, 0.3, 0.5, 0.95, 1.0]))
@settings(max_examples=5)
def test_stored_share_of_prompts_is_hit_in_dram_and_nothing_else(share: float) -> None:
    found = result(ABSTRACT, f"workload.stored={share}", "engine.prefix_caching=false")
    hits = found.data.requests["hit_dram_tokens"]
    assert sorted(set(hits.tolist())) in ([0, 144], [144])  # a whole hit leaves the last block to compute
    assert (hits > 0).sum() == round(20 * share)
    assert found.summary["hit_rate"]["vram"] == 0.0
    assert found.summary["bytes"]["h2d"] == hits.sum() * 1000
    spread = [int(hits[:n].astype(bool).sum()) for n in range(1, 21)]
    assert all(abs(seen - n * share) <= 1 for n, seen in enumerate(spread, 1))


def test_stored_prompts_are_found_in_vram_where_vram_keeps_prefixes_and_has_room() -> None:
    found = result(ABSTRACT, "workload.stored=1", "workload.requests=10")
    assert found.summary["hit_rate"]["vram"] == pytest.approx(144 / 160)
    assert found.summary["bytes"]["h2d"] == 0


def test_stored_prompts_need_a_number_of_requests() -> None:
    with pytest.raises(InputError, match="of how many requests"):
        result(ABSTRACT, "workload.stored=0.5", "workload.requests=null", "run.duration=10s")
    with pytest.raises(InputError, match="stored says what tiers hold"):
        result(ABSTRACT, "workload.stored=0.5", "run.warm_tiers=1s")


def test_connector_without_prefix_caching_finds_in_dram_what_vram_forgets() -> None:
    text = ABSTRACT.replace("prompt_tokens: 160", "system_prompt: {tokens: 320}, prompt_tokens: 160")
    kept, forgot = (result(text, f"engine.prefix_caching={on}").summary for on in ("true", "false"))
    assert kept["hit_rate"]["vram"] == forgot["hit_rate"]["dram"] > 0.5
    assert kept["hit_rate"]["dram"] == forgot["hit_rate"]["vram"] == 0.0
    assert forgot["baselines"]["no_offload"]["hit_rate"]["vram"] == 0.0
    alone = result(text, "engine.prefix_caching=false", "tiers.dram.capacity=0GB").summary
    assert alone["hit_rate"]["miss"] == 1.0
    radix = result(text, "engine.prefix_caching=false", "engine.preset=sglang-hicache").summary
    assert radix["hit_rate"]["miss"] == 1.0, "without its radix tree SGLang has no HiCache either"


# ---- CPU time


def test_loaded_prompt_waits_for_the_cpu_time_of_its_blocks_and_of_its_load() -> None:
    changes = ("workload.stored=1", "engine.prefix_caching=false", "workload.requests=3")
    free = result(ABSTRACT, *changes)
    paid = result(ABSTRACT, *changes, "engine.host_cost_per_block=1ms", "engine.host_cost_per_load=7ms")
    assert free.resolved.count("host_cost") == 0, "none on abstract hardware unless given"
    late = paid.summary["ttft_s"]["mean"] - free.summary["ttft_s"]["mean"]
    assert late == pytest.approx(10 * 1e-3 + 7e-3)


def test_computed_prompt_waits_for_the_cpu_time_of_its_blocks_alone() -> None:
    free = result(ABSTRACT, "workload.requests=3")
    paid = result(ABSTRACT, "workload.requests=3", "engine.host_cost_per_block=1ms", "engine.host_cost_per_load=7ms")
    assert paid.summary["ttft_s"]["mean"] - free.summary["ttft_s"]["mean"] == pytest.approx(10 * 1e-3)
    baseline = paid.summary["baselines"]["no_offload"]
    assert baseline["ttft_s"]["mean"] == pytest.approx(free.summary["ttft_s"]["mean"]), "no tier, nothing to ask"


def test_loads_of_one_scheduling_start_one_after_the_other_and_nothing_runs_before_it_is_over() -> None:
    config = system_config(dram_blocks=100, host_load_s=0.5, keeps_vram=False, h2d=1e9, d2h=1e9)
    warm = [same(i, 0.0, 20, stream=i) for i in range(3)]
    again = [same(3 + i, 50.0, 20, stream=i) for i in range(3)]
    first = run(config, [*warm, *again]).requests
    begun = sorted(first["scheduled_s"][first["arrival_s"] == 50.0].tolist())
    assert begun[0] >= 50.0 + 3 * 0.5, "the scheduling that starts three loads takes three times as long"


def test_presets_of_vllm_have_cpu_time_on_real_machines_with_a_lower_tier() -> None:
    text = ABSTRACT.replace("{kv_bytes_per_token: 1000B}", "llama-3.1-8b").replace(
        "{step_time: 10ms, kv_tokens: 4000}", "h100-sxm5-80gb"
    )
    engine = resolve_text(text, "s.yaml").scenario.engine
    assert (engine.host_cost_per_block, engine.host_cost_per_load) == (pytest.approx(5.7e-6), pytest.approx(0.77e-3))
    none = resolve_text(text, "s.yaml", ["tiers.dram.capacity=0GB"]).scenario.engine
    assert none.host_cost_per_block is none.host_cost_per_load is None


# ---- reads of waiting requests hold what they build upon


@given(seed=st.integers(0, 50))
@settings(max_examples=6)
def test_chats_over_storage_without_end_hit_all_that_was_said_however_small_dram_is(seed: int) -> None:
    found = result(CHATS, "offload.prefetch.in_flight=1", "tiers.dram.ratio=3", seed=seed)
    assert found.summary["hit_rate"]["ssd"] > 0.1
    for turn in range(1, 6):
        said = turn * 513
        assert metric_of(found, f"turn.{turn}.hit_rate") == pytest.approx(said // 16 * 16 / (said + 512), abs=0.003)


def test_chats_lose_what_fits_nowhere() -> None:
    found = result(CHATS, "tiers.ssd.capacity=0GB")
    assert metric_of(found, "turn.5.hit_rate") < 0.6


# ---- SGLang's memory, Triton's attention


def test_sglang_sets_aside_what_its_rule_says() -> None:
    a100, h100 = (load_hardware(name).vram_bytes for name in ("a100-sxm4-40gb", "h100-sxm5-80gb"))
    assert set_aside_bytes(a100, 4096) == (512 + 2 * 32 + 128 + 6144) * MIB
    assert set_aside_bytes(h100, 8192) == (512 + 2 * 256 + 128 + 12288) * MIB
    assert set_aside_bytes(h100, 2048) == 10240 * MIB, "at least 10 GiB on large cards"
    text = CHATS.replace("{kv_bytes_per_token: 100B}", "qwen3-8b").replace(
        "{step_time: 50ms, kv_tokens: 6400}", "a100-sxm4-40gb"
    )
    budget = resolve_text(text, "s.yaml", ["engine.max_num_batched_tokens=4096"]).budget
    assert budget is not None and 124_000 < budget.kv_tokens < 128_000
    share = resolve_text(text, "s.yaml", ["engine.gpu_memory_utilization=0.8"]).budget
    assert share is not None and {name: size for name, size, _ in share.lines}["activations"] == 0


def test_triton_is_slower_where_attention_of_prompts_counts_and_nowhere_else() -> None:
    model, gpu = load_model("qwen3-8b"), load_hardware("a100-sxm4-40gb")
    flash, triton = (step_cost(model, with_backend(gpu, name)) for name in ("flash", "triton"))
    assert triton.mixed(0, 0, [(4096, 32768)], 1) > 1.5 * flash.mixed(0, 0, [(4096, 32768)], 1)
    assert triton.mixed(0, 0, [(64, 0)], 1) == pytest.approx(flash.mixed(0, 0, [(64, 0)], 1), rel=0.01)
    assert triton.decode(8, 8000) == flash.decode(8, 8000)
    assert with_backend(gpu, "triton").value("attention_flops_efficiency") == TRITON_FLOPS_EFFICIENCY
    with pytest.raises(InputError, match="flash, triton"):
        with_backend(gpu, "cuda")


# ---- figures of turns and of single requests


def test_metrics_of_turns_and_requests_are_of_their_rows() -> None:
    found = result(CHATS)
    rows = dict(found.data.requests.items())
    ttft = rows["first_token_s"] - rows["arrival_s"]
    assert metric_of(found, "turn.2.ttft_s") == pytest.approx(ttft[rows["turn"] == 2].mean())
    assert metric_of(found, "turns.1-2.ttft_s.max") == pytest.approx(
        ttft[(rows["turn"] > 0) & (rows["turn"] < 3)].max()
    )
    assert metric_of(found, "turn.0.ttft_s.p50") <= metric_of(found, "turn.0.ttft_s.p99")
    parts = sum(metric_of(found, f"turn.3.hit_rate_{tier}") for tier in ("vram", "dram", "ssd"))
    assert metric_of(found, "turn.3.hit_rate") == pytest.approx(parts)
    first = np.lexsort((rows["id"], rows["arrival_s"]))[0]
    assert metric_of(found, "request.0.e2e_s") == pytest.approx((rows["finish_s"] - rows["arrival_s"])[first])
    assert metric_of(found, "h2d.bytes_per_busy_s") == pytest.approx(1e9, rel=1e-6)


def test_mean_of_all_counts_refused_requests_with_nothing() -> None:
    found = result(CHATS, "engine.max_model_len=2560")
    assert (found.data.finished, found.data.rejected) == (40, 10)
    served = found.summary["ttft_s"]["mean"]
    assert metric_of(found, "ttft_s.mean_of_all") == pytest.approx(served * 40 / 50)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("turn.9.ttft_s", "is of turn 9"),
        ("request.999.ttft_s", "no request 999: 2 arrived"),
        ("ssd_write.bytes_per_busy_s", "nothing went over ssd_write"),
    ],
)
def test_metric_that_is_of_nothing_says_so(name: str, why: str) -> None:
    with pytest.raises(NothingError, match=why):
        metric_of(result(ABSTRACT, "workload.requests=2"), name)


@pytest.mark.parametrize("name", ["turn.0.speed", "turn.0.ttft_s.mode", "turn.x"])
def test_metric_that_is_none_is_refused_by_name(name: str) -> None:
    found = result(ABSTRACT, "workload.requests=2")
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        metric_of(found, name)


@given(seed=st.integers(0, 1000), block_ms=st.sampled_from([0.0, 0.1, 3.0]), load_ms=st.sampled_from([0.0, 2.0, 40.0]))
@settings(max_examples=12)
def test_cpu_time_is_the_same_whether_steps_are_walked_or_leapt_over(
    seed: int, block_ms: float, load_ms: float
) -> None:
    text = ABSTRACT.replace("constant, rate: 1 req/s", "poisson, rate: 8 req/s").replace(
        "output_tokens: 1", "output_tokens: 40"
    )
    changes = (
        "workload.stored=0.5", "engine.prefix_caching=false", "run.baselines=[]",
        f"engine.host_cost_per_block={block_ms}ms", f"engine.host_cost_per_load={load_ms}ms",
    )  # fmt: skip
    resolved = resolve_text(text, "s.yaml", changes)
    leapt, walked = (run_scenario(resolved, seed=seed, step_exact=exact, audit=True).data for exact in (False, True))
    for name in ("scheduled_s", "first_token_s", "finish_s", "hit_dram_tokens"):
        assert leapt.requests[name].tolist() == walked.requests[name].tolist()
