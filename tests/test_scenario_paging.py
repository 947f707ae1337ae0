"""Scenarios of models with windows and states: pool, blocks beside a sequence's own, log lines, notes, whole runs."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from simkv import catalog
from simkv.errors import InfeasibleError, InputError
from simkv.firstorder import concurrency_formula
from simkv.formulas.kv_size import all_layers_bytes_per_token, kv_bytes_per_token
from simkv.formulas.pages import max_sequences, page_layout
from simkv.model import ModelShape, StateLayers
from simkv.results.write import summary_text
from simkv.scenario.build import engine_config, system_config, workload_source
from simkv.scenario.explain import budget_rows, to_yaml
from simkv.scenario.resolve import Resolved, resolve_text
from simkv.sim.system import System
from simkv.simulation import run_scenario
from tests import shapes

MODELS: dict[str, ModelShape] = {
    "oss": shapes.gpt_oss(24, 32),
    "gemma": shapes.gemma_4_26b(),
    "qwen": shapes.qwen_27b(),
    "mistral": shapes.mistral_7b_v01(),
    "plain": shapes.uniform(32),
    "mamba": ModelShape("mamba", 24, 768, (), 0, 50280, "bf16", 1 << 20,
                        state=(StateLayers("mamba", 24, 4608, 24576, 3_000_000),)),
}  # fmt: skip

SCENARIO = """\
name: windows
model: {model}
hardware: h100-sxm5-80gb
engine: {{max_model_len: 32768}}
workload:
  kind: sessions
  requests: 60
  arrival: {{process: poisson, rate: 8 req/s}}
  turns: {{dist: geometric, mean: 3, max: 6}}
  think_time: 2s
  first_prompt_tokens: {{dist: lognormal, median: 6000, sigma: 0.7, max: 20000}}
  prompt_tokens: 300
  output_tokens: {{dist: uniform, low: 1, high: 200}}
tiers: {{dram: {{capacity: 20GiB}}}}
"""


@pytest.fixture
def scenario(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Resolved]:
    """Return a function that resolves the scenario with one of the models above."""
    monkeypatch.setattr(catalog, "load_model", lambda name, at=None: MODELS[name])

    def resolved(model: str, *assignments: str) -> Resolved:
        return resolve_text(SCENARIO.format(model=model), assignments=assignments)

    return resolved


def notes(resolved: Resolved) -> list[str]:
    return [code for code, _ in resolved.notes]


def test_pool_counts_pages_and_shows_its_groups(scenario: Callable[..., Resolved]) -> None:
    resolved = scenario("oss")
    budget, engine = resolved.budget, engine_config(resolved)
    assert budget is not None
    layout = page_layout(MODELS["oss"])
    assert budget.num_gpu_blocks == layout.pages(budget.kv_bytes_per_rank) == engine.num_gpu_blocks + 1
    assert engine.block_bytes == 16 * kv_bytes_per_token(MODELS["oss"])
    line = budget_rows(resolved)[-1]
    assert line.path == "kv_pages"
    assert line.origin == "1 x 12 full (16 tokens a page), 1 x 12 sliding (window 128, 16 tokens a page)"


def test_sequence_holds_its_window_and_in_the_prefill_a_batch(scenario: Callable[..., Resolved]) -> None:
    side = engine_config(scenario("oss")).side
    assert side is not None
    assert side.decoding(20_000) == math.ceil(128 / 16) + 1
    assert side.admitted(20_000, 20_100) == math.ceil((127 + 8192) / 16) + 1
    assert side.admitted(40, 50) == side.decoding(50) == 4


def test_pages_of_two_shapes_make_blocks_of_the_larger(scenario: Callable[..., Resolved]) -> None:
    engine = engine_config(scenario("gemma"))
    assert engine.block_tokens == 32 and engine.side is not None
    assert engine.block_bytes == 32 * 20_480
    assert engine.side.decoding(20_000) == 5 * (1024 // 16 + 1)


def test_states_make_blocks_that_hold_one_and_take_two_pages(scenario: Callable[..., Resolved]) -> None:
    engine = engine_config(scenario("qwen"))
    assert engine.block_tokens == 784 and engine.side is not None
    assert engine.side.decoding(10) == engine.side.admitted(30_000, 30_000) == 3 * 2
    alone = engine_config(scenario("qwen", "engine.prefix_caching=false")).side
    assert alone is not None and alone.decoding(10) == 3


def test_manager_off_lets_every_layer_grow(scenario: Callable[..., Resolved]) -> None:
    on, off = engine_config(scenario("gemma")), engine_config(scenario("gemma", "engine.hybrid_kv_cache=false"))
    assert off.side is None
    assert off.block_bytes == off.block_tokens * all_layers_bytes_per_token(MODELS["gemma"])
    assert off.num_gpu_blocks * off.block_tokens < on.num_gpu_blocks * on.block_tokens / 5
    states = engine_config(scenario("qwen", "engine.hybrid_kv_cache=false"))
    assert states == engine_config(scenario("qwen"))


def test_uniform_model_has_nothing_beside(scenario: Callable[..., Resolved]) -> None:
    resolved = scenario("plain")
    assert engine_config(resolved).side is None and notes(resolved) == []
    assert engine_config(resolved).block_tokens == 16
    assert [row.path for row in budget_rows(resolved)][-1] == "kv_cache"


def test_notes_tell_what_is_not_modelled(scenario: Callable[..., Resolved]) -> None:
    assert notes(scenario("oss")) == notes(scenario("qwen")) == ["hybrid_prefix"]
    assert notes(scenario("oss", "engine.prefix_caching=false")) == []
    assert notes(scenario("oss", "engine.hybrid_kv_cache=false")) == []
    assert notes(scenario("mistral")) == ["windows_not_freed"]
    assert notes(scenario("plain", "engine.hybrid_kv_cache=false")) == ["hybrid_idle"]


def test_model_without_a_layer_that_sees_all_grows_everywhere(scenario: Callable[..., Resolved]) -> None:
    engine = engine_config(scenario("mistral"))
    assert engine.side is None and engine.block_bytes == 16 * 131_072


def test_model_of_states_only_is_refused(scenario: Callable[..., Resolved]) -> None:
    with pytest.raises(InputError, match=r"model.*keeps states only"):
        scenario("mamba")


@pytest.mark.parametrize(("version", "tokens"), [("0.33", 1_258_291), ("0.19", 640_000)])
def test_log_line_is_read_by_the_version_that_wrote_it(
    scenario: Callable[..., Resolved], version: str, tokens: int
) -> None:
    """Old versions divide the pages among the groups, newer ones print concurrency x longest sequence."""
    layout = page_layout(MODELS["oss"])
    pages = {"0.33": math.ceil(tokens * layout.asked_pages(32768, 8192) / 32768), "0.19": 80_000}[version]
    resolved = scenario("oss", f"engine.version='{version}'", f"engine.kv_cache_tokens={tokens}")
    assert resolved.scenario.engine.num_gpu_blocks == pages
    assert engine_config(resolved).num_gpu_blocks == pages - 1


def test_logged_pages_bound_the_longest_sequence(scenario: Callable[..., Resolved]) -> None:
    with pytest.raises(InfeasibleError, match=r"2000 pages.*fits with max_model_len (\d+)") as caught:
        scenario("oss", "engine.num_gpu_blocks=2000")
    longest = int(str(caught.value).rsplit(" ", 1)[1])
    resolved = scenario("oss", "engine.num_gpu_blocks=2000", "engine.max_model_len=null")
    assert resolved.scenario.engine.max_model_len == longest
    layout = page_layout(MODELS["oss"])
    assert layout.asked_pages(longest, 8192) <= 1999 < layout.asked_pages(longest + 1, 8192)


def test_model_that_does_not_fit_names_the_length_that_does(scenario: Callable[..., Resolved]) -> None:
    tight = "engine.gpu_memory_utilization=0.8"
    with pytest.raises(InfeasibleError, match=r"max_model_len (\d+)") as caught:
        scenario("qwen", tight, "engine.max_model_len=262144")
    length = int(str(caught.value).split("max_model_len ")[1].split(",")[0])
    scenario("qwen", tight, f"engine.max_model_len={length}")
    with pytest.raises(InfeasibleError):
        scenario("qwen", tight, f"engine.max_model_len={length + 784}")


def test_inline_hardware_counts_tokens(scenario: Callable[..., Resolved]) -> None:
    abstract = "hardware={step_time: 20ms, kv_tokens: 100000}"
    engine = engine_config(scenario("oss", abstract))
    assert engine.side is None and engine.num_gpu_blocks == 6250
    assert engine.block_bytes == 16 * kv_bytes_per_token(MODELS["oss"])
    with pytest.raises(InputError, match=r"hybrid_kv_cache.*does nothing on inline hardware"):
        scenario("oss", abstract, "engine.hybrid_kv_cache=false")


@pytest.mark.parametrize("model", ["oss", "gemma", "qwen", "mistral"])
def test_run_keeps_the_laws_and_runs_again_from_its_resolved_file(
    scenario: Callable[..., Resolved], model: str
) -> None:
    resolved = scenario(model, "engine.gpu_memory_utilization=0.85")
    result = run_scenario(resolved, audit=True)
    again = run_scenario(resolve_text(to_yaml(resolved)))
    assert result.summary["requests"]["finished"] == 60
    assert result.summary["hit_rate"]["vram"] > 0
    assert summary_text(again.summary) == summary_text(result.summary)


def test_closed_form_counts_windows_and_states(scenario: Callable[..., Resolved]) -> None:
    resolved = scenario("gemma", "engine.max_num_seqs=512")
    config = system_config(resolved)
    data = System(config, workload_source(resolved, 0)).run()
    mean = round(data.requests["prompt_tokens"].mean() + data.requests["output_tokens"].mean())
    layout, pages = page_layout(MODELS["gemma"]), resolved.scenario.engine.num_gpu_blocks
    assert pages is not None
    assert concurrency_formula(config, data) == pytest.approx(max_sequences(layout, pages, mean, 1), abs=1)


def test_windows_that_are_not_freed_let_fewer_run(scenario: Callable[..., Resolved]) -> None:
    freed, kept = (
        System(system_config(resolved), workload_source(resolved, 0)).run()
        for resolved in (scenario("gemma"), scenario("gemma", "engine.hybrid_kv_cache=false"))
    )
    assert kept.requests["queue_time_s"].sum() > freed.requests["queue_time_s"].sum()
    assert kept.bytes["d2h"] > freed.bytes["d2h"]


BOUNDED = [name for name in catalog.list_models() if not catalog.load_model(name).uniform]


@pytest.mark.parametrize("model", BOUNDED)
def test_every_catalogue_model_with_windows_or_states_runs(model: str) -> None:
    content = SCENARIO.format(model=model).replace("32768", "4096").replace("20000", "2000").replace("6000", "900")
    machine = ["hardware=h200-sxm5-141gb", "replicas.tensor_parallel=2", "workload.requests=12"]
    result = run_scenario(resolve_text(content, assignments=machine), audit=True)
    assert result.summary["requests"]["finished"] == 12
    assert {"hybrid_prefix", "windows_not_freed"} & {warning["code"] for warning in result.summary["warnings"]}
