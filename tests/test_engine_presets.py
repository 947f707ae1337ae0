"""What each preset claims of its engine, one fact a test (docs/engines.md).

A preset's policies run on a small system: a step takes 1 s unless said otherwise, a block crosses the link in
0.1 s and the SSD in 0.2 s. A block has the preset's own number of tokens.
"""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.errors import InputError
from simkv.kvcache.pool import KVPool
from simkv.scenario import presets
from simkv.scenario.build import system_config as built
from simkv.scenario.explain import explain, to_yaml
from simkv.scenario.resolve import Resolved, resolve_text
from simkv.sim.config import SystemConfig
from simkv.sim.rundata import RunData
from simkv.workload.request import Request
from tests.sim_factory import BLOCK_BYTES, ComputeStep, column, request, run, run_system, same, system_config, ttft

REUSE = ("vllm", "vllm-tiering", "lmcache", "sglang-hicache", "tensorrt-llm")
SCENARIO = """\
name: facts
model: {}
hardware: {}
workload: {{kind: plain, requests: 9, arrival: {{process: poisson, rate: 1 req/s}}, prompt_tokens: 9, output_tokens: 9}}
engine: {{preset: {}}}
"""


def preset(key: str, *sets: str, model: str = "llama-3.1-8b", hardware: str = "h100-sxm5-80gb") -> Resolved:
    """Return a scenario of an engine as it ships, with ``sets`` over it."""
    return resolve_text(SCENARIO.format(model, hardware, key), assignments=sets)


def small(key: str, *sets: str, **changes: Any) -> SystemConfig:
    """Return a small system under the policies of a preset; ``changes`` as in ``tests.sim_factory``."""
    real = built(preset(key, *sets))
    engine = real.engine
    config = system_config(changes.pop("cost", None), block_tokens=engine.block_tokens, **changes)
    ours = replace(config.engine, load=engine.load, store_outputs=engine.store_outputs)
    return replace(config, engine=ours, offload=real.offload, dram=replace(config.dram, shared=real.dram.shared))


def held_blocks(pool: KVPool | None) -> int:
    return 0 if pool is None else pool.used_blocks


def origin(resolved: Resolved, path: str) -> tuple[str, str]:
    return {row.path: (row.value, row.origin) for row in explain(resolved)}[path]


def bytes_at(data: RunData, name: str, time_s: float) -> float:
    """Return what a resource had carried at ``time_s``."""
    series = data.timeseries
    return float(series[f"{name}_bytes"][series["t_s"] <= time_s][-1])


# ---- all of them


@pytest.mark.parametrize("key", REUSE)
def test_preset_as_it_ships_is_realisable_in_its_engine(key: str) -> None:
    for version in presets.load(key).versions:
        resolved = preset(key, f'engine.version="{version}"', "tiers.dram.capacity=10GiB")
        assert "not_realisable" not in [code for code, _ in resolved.notes]
        again = resolve_text(to_yaml(resolved))
        assert again.scenario == resolved.scenario and again.notes == resolved.notes


@pytest.mark.parametrize("write", ["write_through", "write_through_selective", "write_back", "never"])
@pytest.mark.parametrize("key", REUSE)
def test_preset_written_out_runs_again_whatever_it_writes(key: str, write: str) -> None:
    sets = [f"offload.write={write}", "tiers.relation=copy", "offload.unit_tokens=32", "engine.block_tokens=32"]
    resolved = preset(key, *sets, "tiers.dram.ratio=0.3333333")
    again = resolve_text(to_yaml(resolved))
    assert again.scenario == resolved.scenario and again.scenario_hash == resolved.scenario_hash
    assert resolved.scenario.engine.store_outputs == (key == "sglang-hicache" and write.startswith("write_through"))


@pytest.mark.parametrize("sets", [("tiers.dram.capacity=0GiB",), ("tiers.dram.ratio=0",), ("tiers.dram.per_gpu=0GiB",)])
@pytest.mark.parametrize("key", REUSE)
def test_preset_told_to_have_no_dram_can_not_swap_to_it(key: str, sets: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"there is no DRAM to swap to; give tiers.dram.capacity"):
        preset(key, "engine.preemption=swap", *sets)


@pytest.mark.parametrize("when_full", ["retry", "part", "drop"])
def test_what_becomes_of_stores_is_refused_where_nothing_is_stored(when_full: str) -> None:
    with pytest.raises(InputError, match=r"does nothing with offload.write never; write another policy for offload.w"):
        preset("vllm", "offload.write=never", f"offload.when_full={when_full}")
    assert preset("lmcache", "offload.write=never").scenario.offload.when_full == "refuse"


@pytest.mark.parametrize(
    ("sets", "told"),
    [
        (
            ("offload.unit_tokens=24",),
            "offload.unit_tokens = 24: no multiple of engine.block_tokens, 16; write 16 or 3",
        ),
        (("offload.unit_tokens=33",), "no multiple of engine.block_tokens, 16; write 32 or 48"),
        (("offload.unit_tokens=15",), "no multiple of engine.block_tokens, 16; write 16, or leave it out"),
        (("offload.unit_tokens=32", "offload.write=write_back"), "more than a block, and blocks move down one by one"),
        (
            ("offload.unit_tokens=32", "offload.write=never", "tiers.relation=exclusive"),
            "more than a block, and blocks move down one by one",
        ),
        (
            ("offload.prefetch={policy: queue, stop: best_effort, timeout_most: 1s}",),
            "offload.prefetch.timeout_most = 1s: does nothing with policy queue and stop best_effort; write policy: "
            "queue or arrival with stop: timeout, or leave timeout_most out",
        ),
        (
            ("offload.prefetch={policy: queue, batch: 9}",),
            "offload.prefetch.batch = 9: does nothing with policy queue; write policy: arrival, or leave batch out",
        ),
        (
            ("offload.prefetch={policy: none, stop: timeout}",),
            "offload.prefetch.stop = timeout: does nothing with policy none and stop timeout; write policy: queue or "
            "arrival, or leave stop out",
        ),
    ],
)
def test_option_of_lower_tiers_that_does_not_fit_is_told_with_its_mend(sets: tuple[str, ...], told: str) -> None:
    with pytest.raises(InputError) as caught:
        preset("vllm", *sets)
    (problem,) = caught.value.problems
    assert told in str(problem).replace('"', "")


def test_timeouts_do_nothing_where_nothing_is_read_ahead_and_all_of_it_is_told() -> None:
    with pytest.raises(InputError) as caught:
        preset("vllm", "offload.prefetch={policy: none, stop: timeout, timeout_base: 1s, timeout_per_ki_token: 1s}")
    told = {problem.path.rpartition(".")[2] for problem in caught.value.problems}
    assert told == {"stop", "timeout_base", "timeout_per_ki_token"}


@pytest.mark.parametrize(
    ("key", "sets", "noted"),
    [
        ("vllm", ("offload.when_full=part",), True),
        ("vllm", ("offload.write=write_back",), False),  # retry and drop are of stores
        ("lmcache", ("offload.write=never",), False),
        ("lmcache", ("offload.write=write_back", "offload.unit_tokens=16", "offload.when_full=refuse"), True),
    ],
)
def test_when_full_is_not_realisable_only_where_it_means_something(
    key: str, sets: tuple[str, ...], noted: bool
) -> None:
    notes = [text for _, text in preset(key, *sets, "tiers.dram.capacity=9GiB").notes]
    assert any(text.startswith("offload.when_full") for text in notes) == noted


@pytest.mark.parametrize("key", REUSE)
def test_preset_without_partial_residency_says_so(key: str) -> None:
    assert presets.load(key).has["offload.residency"] == (1.0,)


@pytest.mark.parametrize(
    ("key", "set_to", "sentence"),
    [
        ("tensorrt-llm", "offload.residency=0.3", "offload.residency = 0.3: not realisable in TensorRT-LLM 1.3"),
        ("lmcache", "engine.preemption=swap", "engine.preemption = swap: not realisable in LMCache 0.5.6"),
        ("lmcache", "offload.when_full=refuse", "offload.when_full = refuse: not realisable in LMCache 0.5.6"),
        ("sglang-hicache", "engine.load=hold", "engine.load = hold: not realisable in SGLang HiCache 0.5.23"),
        ("sglang-hicache", "offload.unit_tokens=64", "offload.unit_tokens = 64: not realisable in SGLang HiCache"),
        ("tensorrt-llm", "engine.load=overlap", "engine.load = overlap: not realisable in TensorRT-LLM 1.3"),
        ("vllm", "tiers.ssd.capacity=1TB", "tiers.ssd.capacity = 1TB: not realisable in vLLM 0.33"),
    ],
)
def test_value_that_the_engine_can_not_be_told_runs_and_says_so(key: str, set_to: str, sentence: str) -> None:
    sized = [] if key in ("lmcache", "sglang-hicache") else ["tiers.dram.capacity=100GiB"]
    notes = [text for _, text in preset(key, set_to, *sized).notes]
    assert [text for text in notes if text.startswith(sentence)]


def test_every_file_is_a_preset_and_every_preset_can_be_named() -> None:
    assert set(REUSE) <= set(presets.NAMES)
    with pytest.raises(InputError, match=", ".join(presets.NAMES)):
        preset("sglang")


def test_catalog_engines_tells_what_each_does() -> None:
    rows = json.loads(CliRunner().invoke(app, ["catalog", "engines", "--json"]).stdout)
    newest = {row["name"]: row for row in reversed(rows)}
    assert set(newest) == set(presets.NAMES)
    keys = ("unit", "store", "load", "full_tier", "relation", "dram", "p_below_1")
    told = {name: [newest[name][key] for key in keys] for name in REUSE}
    assert told == {
        "vllm": ["16 tokens", "write_through", "hold", "retry", "copy", "none", False],
        "vllm-tiering": ["16 tokens", "write_through", "hold", "retry", "copy", "none", False],
        "lmcache": ["256 tokens", "write_through", "block", "part", "copy", "5.00 GiB a GPU", False],
        "sglang-hicache": ["1 token", "write_through", "overlap", "drop", "copy", "2 x VRAM pool", False],
        "tensorrt-llm": ["32 tokens", "write_back", "block", "part", "exclusive", "none", False],
    }
    assert all(newest[name]["source"] for name in REUSE)
    assert (
        "tiers.ssd.capacity" in newest["vllm"]["choices"]
        and "tiers.ssd.capacity" not in newest["vllm-tiering"]["choices"]
    )


def test_logged_pool_is_read_as_the_engine_prints_it() -> None:
    """Of a model with windows vLLM prints concurrency times the longest sequence since 0.21, a group's before."""
    sets = ("engine.kv_cache_tokens=100000", "engine.block_tokens=16", "engine.max_model_len=8192")

    def pages(key: str, *more: str) -> int | None:
        return preset(key, *sets, *more, model="gemma-3-12b").scenario.engine.num_gpu_blocks

    assert pages("lmcache") == pages("vllm") == pages("vllm-tiering") != pages("vllm", 'engine.version="0.19"')
    assert pages("tensorrt-llm") == pages("vllm", 'engine.version="0.19"')


# ---- vLLM


def test_vllm_stores_the_prompt_when_it_is_computed_and_not_what_decoding_fills() -> None:
    data = run(small("vllm", num_gpu_blocks=20, dram_blocks=50), [same(0, 0.0, 80, 60, 1)])
    assert data.bytes["d2h"] == 5 * BLOCK_BYTES
    assert bytes_at(data, "d2h", 2.0) == 5 * BLOCK_BYTES


def refused_while_writing(when_full: str) -> RunData:
    """Five blocks of DRAM's seven are on their way for 3 s when a second prompt is stored, which then decodes."""
    config = small("vllm", f"offload.when_full={when_full}", num_gpu_blocks=40, dram_blocks=7, d2h=1700.0)
    return run(config, [same(0, 0.0, 80, 1, 1), same(1, 0.0, 80, 60, 2)])


def test_vllm_refused_batch_is_offered_again_with_the_next_step() -> None:
    data = refused_while_writing("retry")
    assert data.refused_stores == 1
    assert data.bytes["d2h"] == 10 * BLOCK_BYTES
    # the first is down at 1 + 5/1.7 s; the boundary at 4 s offers the second, which takes as long
    assert bytes_at(data, "d2h", 6.5) == 5 * BLOCK_BYTES
    assert bytes_at(data, "d2h", 7.5) == 10 * BLOCK_BYTES


def test_refused_store_is_offered_at_the_end_at_last_unless_it_is_dropped() -> None:
    late, dropped = refused_while_writing("refuse"), refused_while_writing("drop")
    assert bytes_at(late, "d2h", 55.0) == 5 * BLOCK_BYTES < late.bytes["d2h"]
    assert dropped.bytes["d2h"] == 5 * BLOCK_BYTES
    assert late.refused_stores == dropped.refused_stores == 1


def again_after(filler: int, config: SystemConfig, prompt: int, at_s: float = 100.0) -> list[Request]:
    """A prompt, another that pushes it out of VRAM, and the first once more."""
    return [same(0, 0.0, prompt, 1, 1), request(1, at_s / 2, filler, 1), same(2, at_s, prompt, 1, 1)]


def test_vllm_load_holds_its_request_and_dram_keeps_its_copy() -> None:
    config = small("vllm", num_gpu_blocks=6, dram_blocks=50, h2d=1000.0)
    system, data = run_system(config, again_after(96, config, 80))
    assert column(data, "hit_dram_tokens") == [0, 0, 64]
    assert column(data, "load_dram_time_s")[2] == pytest.approx(4.0)
    assert held_blocks(system.engines[0].tiers.dram) == 11
    assert data.load_waits == 1


# ---- vLLM with a file-system tier


def test_vllm_tiering_every_completed_store_cascades_to_files() -> None:
    config = small("vllm-tiering", num_gpu_blocks=20, dram_blocks=50, ssd_blocks=inf)
    data = run(config, [same(0, 0.0, 80, 9, 1), request(1, 20.0, 96, 9)])
    assert data.bytes["ssd_write"] == data.bytes["d2h"] == 11 * BLOCK_BYTES


def test_vllm_tiering_files_are_not_bounded() -> None:
    assert built(preset("vllm-tiering", "tiers.dram.capacity=1GiB")).ssd.capacity_bytes == inf


def test_vllm_tiering_secondary_hit_takes_a_cpu_slot_and_is_a_miss_without() -> None:
    config = small("vllm-tiering", num_gpu_blocks=40, dram_blocks=6, ssd_blocks=inf, replicas=1)
    pushed_out = [same(0, 0.0, 80, 1, 1), *(request(1 + k, 20.0 * (k + 1), 96, 1) for k in range(7))]
    hit = run(config, [*pushed_out, same(9, 500.0, 80, 1, 1)])
    assert column(hit, "hit_ssd_tokens", [9]) == [64]
    # the CPU tier is full of what is on its way down for 60 s
    slow = replace(config, link=replace(config.link, d2h_bytes_per_s=100.0))
    busy = [same(0, 0.0, 80, 1, 1), *(request(1 + k, 100.0 * (k + 1), 96, 1) for k in range(7))]
    miss = run(slow, [*busy, request(8, 1000.0, 96, 1), same(9, 1002.0, 80, 1, 1)])
    assert column(miss, "hit_ssd_tokens", [9]) == [0]


# ---- LMCache


def lmcache(*sets: str, **changes: Any) -> SystemConfig:
    """Return LMCache on a VRAM of 40 blocks and a DRAM of eight chunks of 16 blocks."""
    return small("lmcache", *sets, **({"num_gpu_blocks": 40, "dram_blocks": 8 * 16} | changes))


def test_lmcache_prefix_of_300_tokens_is_stored_as_256() -> None:
    system, data = run_system(lmcache(), [same(0, 0.0, 300, 1, 1)])
    assert data.bytes["d2h"] == 16 * BLOCK_BYTES
    assert data.tier_written_blocks["dram"] == 16
    assert held_blocks(system.engines[0].tiers.dram) == 1  # chunk


def test_lmcache_prompt_below_a_chunk_is_not_stored() -> None:
    assert run(lmcache(), [same(0, 0.0, 255, 9, 1)]).bytes["d2h"] == 0


@pytest.mark.parametrize(("prompt", "hit"), [(300, 256), (511, 256), (512, 496), (513, 512)])
def test_lmcache_hit_is_of_whole_chunks_and_leaves_something_to_compute(prompt: int, hit: int) -> None:
    config = lmcache()
    data = run(config, again_after(640, config, prompt))
    assert column(data, "hit_dram_tokens") == [0, 0, hit]
    assert data.bytes["h2d"] == hit // 16 * BLOCK_BYTES


def test_lmcache_decode_is_not_saved_unless_told() -> None:
    assert run(lmcache(), [same(0, 0.0, 256, 300, 1)]).bytes["d2h"] == 16 * BLOCK_BYTES
    saved = run(lmcache("engine.store_outputs=true"), [same(0, 0.0, 256, 300, 1)])
    assert saved.bytes["d2h"] == 32 * BLOCK_BYTES


def loading_beside_a_decode(*sets: str, **changes: Any) -> tuple[RunData, RunData]:
    """Two prompts come back while a third request decodes: the run, and the same without the two."""
    config = lmcache(*sets, num_gpu_blocks=90, h2d=8000.0, replicas=2, **changes)
    config = replace(config, dram=replace(config.dram, shared=True))
    first = [same(0, 0.0, 300, 1, 1), request(1, 1.0, 16, 1), same(2, 20.0, 300, 1, 2), request(3, 21.0, 16, 150)]
    rest = [request(4, 99.5, 16, 1), same(5, 100.5, 300, 1, 1), request(6, 100.6, 16, 1), same(7, 100.7, 300, 1, 2)]
    return run(config, first + rest), run(config, first)


def test_lmcache_load_blocks_the_whole_batch_and_requests_load_in_series() -> None:
    data, without = loading_beside_a_decode()
    assert column(data, "replica", [3, 5, 7]) == [1, 1, 1]
    assert column(data, "hit_dram_tokens", [5, 7]) == [256, 256]
    assert data.load_waits == 0  # nobody is held
    # both take part in the step at 101 s: 16 blocks each at 8 a second, one after the other, before it computes
    assert column(data, "first_token_s", [5, 7]) == pytest.approx([106.0, 106.0])
    assert column(data, "load_dram_time_s", [5, 7]) == pytest.approx([4.0, 4.0])
    assert column(data, "finish_s", [3])[0] - column(without, "finish_s", [3])[0] == pytest.approx(4.0)


def test_lmcache_async_loading_holds_the_requests_and_nobody_else() -> None:
    data, without = loading_beside_a_decode("engine.load=hold")
    assert data.load_waits == 2
    assert column(data, "finish_s", [3]) == column(without, "finish_s", [3])


def test_lmcache_layerwise_overlaps_loading_and_computing() -> None:
    data, _ = loading_beside_a_decode("engine.load=overlap", cost=ComputeStep(1.0, 0.0, layers=4))
    assert column(data, "first_token_s", [5]) == pytest.approx([101.0 + 4.0 + 0.25])


def test_lmcache_full_cpu_stores_the_chunks_that_fit() -> None:
    config = lmcache(num_gpu_blocks=120, dram_blocks=3 * 16, d2h=400.0)
    # two chunks are on their way for 80 s; of the next prompt's three, one fits; of what follows nothing is offered
    data = run(config, [same(0, 0.0, 512, 1, 1), same(1, 5.0, 800, 9, 2)])
    assert data.bytes["d2h"] == 3 * 16 * BLOCK_BYTES
    assert data.refused_stores == 1


def test_lmcache_cpu_and_disk_both_get_what_is_stored_and_disk_hits_come_back_to_the_cpu() -> None:
    config = lmcache(dram_blocks=3 * 16, ssd_blocks=20 * 16)
    requests = [same(0, 0.0, 300, 1, 1), *(request(1 + k, 30.0 * (k + 1), 600, 1) for k in range(3))]
    system, data = run_system(config, [*requests, same(9, 500.0, 300, 1, 1)])
    assert data.bytes["ssd_write"] == data.bytes["d2h"]
    assert column(data, "hit_ssd_tokens", [9]) == [256]
    assert data.bytes["ssd_read"] == 16 * BLOCK_BYTES
    assert held_blocks(system.engines[0].tiers.dram) == 3


def test_lmcache_disk_hit_blocks_the_whole_batch_too() -> None:
    config = lmcache(dram_blocks=3 * 16, ssd_blocks=20 * 16, num_gpu_blocks=90, h2d=8000.0, ssd_read=4000.0)
    requests = [same(0, 0.0, 300, 1, 1), *(request(1 + k, 30.0 * (k + 1), 700, 1) for k in range(3))]
    requests.append(request(8, 200.0, 16, 100))
    data = run(config, [*requests, same(9, 250.5, 300, 1, 1)])
    assert column(data, "hit_ssd_tokens", [9]) == [256]
    # 16 blocks in 4 s from disk to the CPU, in 2 s from there to the GPU, and a step; nobody decodes meanwhile
    assert column(data, "first_token_s", [9]) == pytest.approx([251.0 + 4.0 + 2.0 + 1.0])
    assert column(data, "finish_s", [8]) == pytest.approx([200.0 + 100.0 + 6.0])
    assert data.load_waits == 0
    held = run(replace(config, engine=replace(config.engine, load="hold")), [*requests, same(9, 250.5, 300, 1, 1)])
    assert column(held, "finish_s", [8]) == [300.0] and held.load_waits > 0


def test_lmcache_evicts_suffixes_first() -> None:
    config = lmcache(dram_blocks=3 * 16)
    data = run(config, [same(0, 0.0, 520, 1, 1), request(1, 50.0, 520, 1), same(2, 100.0, 520, 1, 1)])
    # three chunks: the second prompt's two, and of the first prompt the first
    assert column(data, "hit_vram_tokens")[2] + column(data, "hit_dram_tokens")[2] == 256


def test_lmcache_cpu_is_5_gib_a_worker_and_disk_0() -> None:
    resolved = preset("lmcache", "replicas.tensor_parallel=2", "replicas.count=3")
    assert origin(resolved, "tiers.dram.capacity") == ("30GiB", "computed: 6 x 5.00 GiB (preset lmcache 0.5.6)")
    assert resolved.scenario.tiers.ssd.capacity == 0


# ---- SGLang with HiCache


def sglang(*sets: str, **changes: Any) -> SystemConfig:
    """Return HiCache with pages of a token, on a VRAM of 40 and a host pool of 400 tokens."""
    sizes = {"num_gpu_blocks": 40, "dram_blocks": 400, "h2d": 100_000.0, "d2h": 100_000.0}
    return small("sglang-hicache", *sets, **(sizes | changes))


@pytest.mark.parametrize(("rate", "load_s"), [(62_000.0, 0.5), (15_500.0, 2.0)])
def test_sglang_first_chunks_step_waits_layer_by_layer(rate: float, load_s: float) -> None:
    config = sglang(h2d=rate, cost=ComputeStep(1.0, 0.0, layers=4))
    data = run(config, again_after(40, config, 32))
    assert column(data, "hit_dram_tokens") == [0, 0, 31]
    assert ttft(data)[2] == pytest.approx(max(1.0, load_s) + min(1.0, load_s) / 4)


def test_sglang_load_begins_when_the_forward_pass_in_flight_is_over() -> None:
    config = sglang(num_gpu_blocks=80, replicas=1, h2d=15_500.0)
    requests = [same(0, 0.0, 32, 1, 1), request(1, 50.0, 79, 1), request(2, 99.5, 4, 9), same(3, 100.0, 32, 1, 1)]
    data = run(config, requests)
    assert column(data, "scheduled_s", [3]) == [100.5]
    assert column(data, "first_token_s", [3]) == pytest.approx([100.5 + 2.0 + 0.25])  # four layers


def test_sglang_evicts_whole_nodes_leaves_first() -> None:
    """One token short takes the whole leaf that was computed last, and no more."""
    requests = [
        same(0, 0.0, 16, 1, 1),
        Request(1, 10.0, 24, 1, ((1, 0, 16), (2, 0, 9))),
        request(2, 20.0, 17, 1),
        Request(3, 30.0, 24, 1, ((1, 0, 16), (2, 0, 9))),
    ]
    whole = run(sglang(dram_blocks=0), requests)
    by_block = run(sglang("offload.eviction.unit=block", dram_blocks=0), requests)
    assert column(by_block, "hit_vram_tokens")[3] == 23
    assert column(whole, "hit_vram_tokens")[3] == 16


def test_sglang_writes_what_it_generates_too() -> None:
    assert run(sglang(), [same(0, 0.0, 16, 9, 1)]).bytes["d2h"] == 24 * BLOCK_BYTES


def test_sglang_selective_writes_at_the_second_hit() -> None:
    config = sglang("offload.write=write_through_selective", "engine.store_outputs=false", num_gpu_blocks=100)
    assert run(config, [same(0, 0.0, 32, 1, 1)]).bytes["d2h"] == 0
    assert run(config, [same(0, 0.0, 32, 1, 1), same(1, 10.0, 32, 1, 1)]).bytes["d2h"] in (31_000, 32_000)


def test_sglang_write_back_blocks_the_step_that_evicts() -> None:
    slow = {"num_gpu_blocks": 40, "dram_blocks": 100, "d2h": 8000.0}
    requests = [same(0, 0.0, 32, 1, 1), request(1, 50.0, 36, 1)]
    data = run(sglang("offload.write=write_back", **slow), requests)
    # 32 tokens at 8 a second go down before the second prompt is computed
    assert column(data, "first_token_s", [1]) == pytest.approx([50.0 + 4.0 + 1.0])
    free = run(sglang("offload.write=write_back", "offload.write_back_blocks=false", **slow), requests)
    assert column(free, "first_token_s", [1]) == [51.0]
    assert free.bytes["d2h"] == data.bytes["d2h"] == 32 * BLOCK_BYTES


def test_write_back_blocks_a_decoding_step_too() -> None:
    config = sglang("offload.write=write_back", num_gpu_blocks=40, dram_blocks=100, d2h=8000.0)
    data = run(config, [same(0, 0.0, 32, 1, 1), request(1, 50.0, 4, 9)])
    # the fifth token generated has no room: the node of 32 tokens goes, in 4 s
    assert column(data, "finish_s", [1]) == pytest.approx([50.0 + 9.0 + 4.0])


def test_sglang_node_without_room_on_the_host_is_written_when_it_is_hit_again() -> None:
    config = sglang(num_gpu_blocks=200, dram_blocks=40, d2h=4000.0)
    once = [same(0, 0.0, 36, 1, 1), same(1, 2.0, 36, 20, 2)]  # the host is full of the first for 9 s
    dropped, again = run(config, once), run(config, [*once, same(2, 60.0, 36, 1, 2)])
    assert dropped.bytes["d2h"] == 36 * BLOCK_BYTES and dropped.refused_stores == 1
    assert again.bytes["d2h"] > dropped.bytes["d2h"]


def test_sglang_host_pool_is_twice_the_device_pool() -> None:
    resolved = preset("sglang-hicache", "replicas.count=2")
    engine = built(resolved).engine
    _, why = origin(resolved, "tiers.dram.capacity")
    assert resolved.scenario.tiers.dram.capacity == 2 * 2 * engine.num_gpu_blocks * engine.block_bytes
    assert why == "computed: 2 x the VRAM pool (preset sglang-hicache 0.5.23)"


def test_sglang_host_pool_given_outright_wins_over_the_ratio() -> None:
    assert origin(preset("sglang-hicache", "tiers.dram.capacity=7GiB"), "tiers.dram.capacity") == ("7GiB", "--set")
    half = preset("sglang-hicache", "tiers.dram.ratio=0.5").scenario.tiers.dram.capacity
    assert half == preset("sglang-hicache").scenario.tiers.dram.capacity / 4
    with pytest.raises(InputError, match=r"tiers\.dram\.capacity says how large it is"):
        preset("sglang-hicache", "tiers.dram.capacity=7GiB", "tiers.dram.ratio=1")


def test_sglang_host_pool_beyond_the_machine_is_refused() -> None:
    with pytest.raises(InputError, match=r"tiers.dram.ratio.*more than a host of"):
        preset("sglang-hicache", "tiers.dram.ratio=100", hardware="p5.48xlarge")


# ---- SGLang: reading ahead from storage


def from_storage(*sets: str, tokens: int = 1200, **changes: Any) -> RunData:
    """A prompt of which only storage has ``tokens`` comes back at 100 s to an idle engine; it reads 1000 a second."""
    return run(from_storage_config(*sets, **changes), [*before_it_comes_back(tokens), same(5, 100.0, tokens + 1, 1, 1)])


def from_storage_config(*sets: str, **changes: Any) -> SystemConfig:
    """Return two replicas with 3000 tokens of host memory each, over storage that reads 1000 tokens a second."""
    sizes = {"num_gpu_blocks": 5000, "dram_blocks": 6000, "ssd_blocks": 20_000, "replicas": 2}
    sizes |= {"max_num_batched_tokens": 5000}
    return sglang(*sets, **(sizes | {"ssd_read": 1e6, "ssd_write": 1e9, "h2d": inf, "d2h": 1e9} | changes))


def before_it_comes_back(tokens: int) -> list[Request]:
    """The first replica writes a prompt to storage; the next request is the second replica's."""
    return [same(0, 0.0, tokens + 1, 1, 1), request(1, 20.0, 4, 1), request(2, 40.0, 4, 1)]


def waits(data: RunData) -> tuple[int, float]:
    """Return the tokens that storage served of the last prompt, and what its first token waited beyond a step."""
    assert column(data, "replica", [0, 5]) == [0, 1]
    return column(data, "hit_ssd_tokens", [5])[0], ttft(data)[-1] - 1.0


def test_sglang_reads_from_storage_on_arrival_and_waits_for_a_second_and_more() -> None:
    """1200 tokens take 1.2 s; the timeout is 1 s and 0.25 s for every Ki token."""
    hit, waited_s = waits(from_storage())
    assert hit == 1200
    assert waited_s == pytest.approx(1.2)


def test_sglang_timeout_keeps_what_is_there_in_batches_of_128_pages() -> None:
    hit, waited_s = waits(
        from_storage("offload.prefetch.timeout_base=0.5s", "offload.prefetch.timeout_per_ki_token=0s")
    )
    assert waited_s == pytest.approx(0.5)
    assert hit == 3 * 128  # the fourth is on its way


def test_sglang_reads_nothing_more_while_too_much_is_on_its_way_and_again_when_it_is_here() -> None:
    config = from_storage_config("offload.prefetch.in_flight=0.1")  # 300 tokens
    written = [same(0, 0.0, 1201, 1, 1), same(2, 20.0, 1201, 1, 2), same(4, 40.0, 1201, 1, 3)]
    between = [request(1, 10.0, 4, 1), request(3, 30.0, 4, 1), request(6, 100.1, 4, 1), request(8, 150.0, 4, 1)]
    again = [same(5, 100.0, 1201, 1, 1), same(7, 100.5, 1201, 1, 2), same(9, 200.0, 1201, 1, 3)]
    data = run(config, sorted([*written, *between, *again], key=lambda one: one.arrival_s))
    assert column(data, "replica", [0, 2, 4, 5, 7, 9]) == [0, 0, 0, 1, 1, 1]
    assert column(data, "hit_ssd_tokens", [5, 7, 9]) == [1200, 0, 1200]


def test_sglang_best_effort_goes_on_at_the_first_look() -> None:
    hit, waited_s = waits(from_storage("offload.prefetch.stop=best_effort"))
    assert (hit, waited_s) == (0, 0.0)


def test_sglang_best_effort_keeps_what_came_while_the_request_queued() -> None:
    config = from_storage_config("offload.prefetch.stop=best_effort")
    busy = [*before_it_comes_back(1200), request(6, 99.5, 4, 1), request(7, 99.6, 4, 1), same(8, 99.8, 1201, 1, 1)]
    data = run(config, busy)  # its turn comes at 100.5 s, after 0.7 s: five batches of 0.128 s
    assert column(data, "replica", [0, 8]) == [0, 1]
    assert column(data, "hit_ssd_tokens", [8]) == [5 * 128]
    assert column(data, "scheduled_s", [8]) == [100.5]


def test_sglang_wait_complete_waits_to_the_end() -> None:
    hit, waited_s = waits(from_storage("offload.prefetch.stop=wait_complete", ssd_read=1e5))
    assert hit == 1200
    assert waited_s == pytest.approx(12.0)


def test_sglang_timeout_has_a_bound_in_0_5_12() -> None:
    data = from_storage('engine.version="0.5.12"', "offload.prefetch.timeout_most=1s", ssd_read=1e5)
    assert waits(data)[1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("version", "stop"), [("0.5.23", "timeout"), ("0.5.10", "best_effort"), ("0.5.4", "best_effort")]
)
def test_sglang_stop_policy_is_that_of_the_version(version: str, stop: str) -> None:
    assert preset("sglang-hicache", f'engine.version="{version}"').scenario.offload.prefetch.stop == stop


@pytest.mark.parametrize(("tokens", "read"), [(255, 0), (256, 256)])
def test_sglang_reads_nothing_for_fewer_than_256_tokens(tokens: int, read: int) -> None:
    data = from_storage(tokens=tokens)
    assert data.bytes["ssd_read"] == read * BLOCK_BYTES
    assert waits(data)[0] == read


def test_sglang_storage_is_never_read_on_demand() -> None:
    data = from_storage("offload.prefetch.min_tokens=5000")
    assert data.bytes["ssd_read"] == 0 and waits(data) == (0, 0.0)


def test_sglang_reads_nothing_while_half_the_host_pool_is_on_its_way() -> None:
    few = from_storage("offload.prefetch.in_flight=0")
    assert few.bytes["ssd_read"] == 0


# ---- TensorRT-LLM


def tensorrt(*sets: str, **changes: Any) -> SystemConfig:
    return small("tensorrt-llm", *sets, **({"num_gpu_blocks": 6, "dram_blocks": 50} | changes))


def test_tensorrt_llm_nothing_is_in_dram_before_an_eviction() -> None:
    system, data = run_system(tensorrt(num_gpu_blocks=20), [same(0, 0.0, 160, 40, 1)])
    assert data.bytes["d2h"] == 0 and held_blocks(system.engines[0].tiers.dram) == 0
    assert run(tensorrt(), again_after(192, tensorrt(), 160)[:2]).bytes["d2h"] == 5 * BLOCK_BYTES


def test_tensorrt_llm_block_moves_and_is_not_copied() -> None:
    system, data = run_system(tensorrt(), again_after(192, tensorrt(), 160))
    tiers = system.engines[0].tiers
    assert column(data, "hit_dram_tokens") == [0, 0, 4 * 32]
    hot = [same(0, 0.0, 160, 1, 1).spans]
    assert tiers.vram.index.match(hot[0], 5).end == 5
    assert tiers.dram is not None and tiers.dram.index.match(hot[0], 4).end == 0


def test_tensorrt_llm_step_waits_for_what_comes_in_and_what_goes_out() -> None:
    config = tensorrt(h2d=1000.0, d2h=500.0)
    data = run(config, again_after(192, config, 160))
    # the second pushes five blocks down, 10 s; the third brings four up in 4 s and pushes five down in 10 s
    assert column(data, "first_token_s", [1]) == pytest.approx([50.0 + 10.0 + 1.0])
    assert column(data, "first_token_s", [2])[0] >= 100.0 + 4.0 + 1.0
    assert column(data, "load_dram_time_s")[2] > 4.0
    assert data.load_waits == 0


def test_tensorrt_llm_evicts_leaves_by_priority_then_the_least_recent() -> None:
    config = tensorrt(dram_blocks=0)
    assert config.offload.eviction == "priority"
    requests = [same(0, 0.0, 64, 1, 1), same(1, 10.0, 64, 1, 2), request(2, 20.0, 96, 1), same(3, 30.0, 64, 1, 2)]
    assert column(run(config, requests), "hit_vram_tokens")[3] == 32


def test_tensorrt_llm_host_cache_is_0_unless_given() -> None:
    resolved = preset("tensorrt-llm")
    assert resolved.scenario.tiers.dram.capacity == 0
    assert resolved.scenario.engine.block_tokens == 32
