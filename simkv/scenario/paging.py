"""How the model's cache is cut into blocks in a scenario: which layers grow, what stands beside them, and
what memory is left for all of it.
"""

from __future__ import annotations

from simkv.formulas.kv_size import all_layers_bytes_per_token, kv_bytes_per_token
from simkv.formulas.memory import MemoryBudget, kv_budget
from simkv.formulas.pages import (
    NULL_PAGES,
    Convention,
    PageLayout,
    page_layout,
    pages_of_printed,
    state_pages,
)
from simkv.formulas.sglang import set_aside_bytes
from simkv.hardware import Gpu
from simkv.model import ModelShape
from simkv.scenario.schema import Engine, Scenario

_CONCURRENCY_SINCE = (0, 21)
"""vLLM version from which the printed pool is concurrency x longest sequence."""


def frees_windows(engine: Engine, model: ModelShape) -> bool:
    """Say whether what has left a window is freed; where no layer sees all tokens it isn't, here."""
    return engine.hybrid_kv_cache and bool(model.full_attention)


def layout_of(scenario: Scenario, model: ModelShape) -> PageLayout:
    """Return how the engine cuts one rank's pool."""
    engine, ranks = scenario.engine, scenario.replicas.tensor_parallel
    return page_layout(model, engine.kv_dtype, ranks, engine.block_tokens, frees_windows(engine, model))


def growth_bytes_of_token(scenario: Scenario, model: ModelShape) -> int:
    """Return the bytes by which a sequence's cache grows a token at long context, all ranks."""
    engine, ranks = scenario.engine, scenario.replicas.tensor_parallel
    grows = kv_bytes_per_token if frees_windows(engine, model) else all_layers_bytes_per_token
    return grows(model, engine.kv_dtype, ranks)


def pages_of_log(scenario: Scenario, layout: PageLayout, tokens: int, longest: int) -> int:
    """Return the pages of a pool that the engine logged as ``tokens``, by the convention of its version."""
    engine = scenario.engine
    if len(layout.groups) == 1:
        return tokens // layout.block_tokens
    states = state_pages(engine.prefix_caching)
    return pages_of_printed(layout, tokens, longest, engine.max_num_batched_tokens, states, _convention(engine))


def _convention(engine: Engine) -> Convention:
    """Return what the engine prints: LMCache runs under a vLLM of its time, others than vLLM count tokens."""
    version = tuple(int(part) for part in engine.version.split(".") if part.isdecimal())
    by_vllm = engine.preset.startswith("vllm") and version >= _CONCURRENCY_SINCE
    return "concurrency" if by_vllm or engine.preset == "lmcache" else "groups"


def longest_in(scenario: Scenario, layout: PageLayout, pages: int, most: int) -> int:
    """Return the longest sequence, at most ``most`` tokens, that the engine reckons a pool of ``pages`` to hold."""
    if len(layout.groups) == 1:
        return min(most, pages * layout.block_tokens)
    engine = scenario.engine
    return layout.longest(pages - NULL_PAGES, engine.max_num_batched_tokens, state_pages(engine.prefix_caching), most)


def paging_notes(scenario: Scenario, model: ModelShape) -> list[tuple[str, str]]:
    """Return what the user should know of how windows and states are simulated."""
    engine = scenario.engine
    notes = []
    if not model.full_attention:
        what = "no layer sees all tokens: what has left a window is not freed here, every layer's cache grows"
        notes.append(("windows_not_freed", f"In {model.name} {what}."))
    elif not engine.hybrid_kv_cache and not model.windowed_attention:
        notes.append(("hybrid_idle", f"engine.hybrid_kv_cache does nothing: {model.name} has no windows."))
    if layout_of(scenario, model).bounded and engine.prefix_caching:
        what = "the window and the state that it goes on from are there, and took no room meanwhile"
        notes.append(("hybrid_prefix", f"A prefix hit is taken to be whole: {what}."))
    return notes


def budget(scenario: Scenario, model: ModelShape, gpu: Gpu, longest: int | None) -> MemoryBudget:
    """Return the memory budget of one replica on ``gpu``; raises InfeasibleError where ``longest`` doesn't fit."""
    engine = scenario.engine
    return kv_budget(
        model, gpu, scenario.replicas.tensor_parallel, engine.gpu_memory_utilization,
        engine.weight_dtype, engine.kv_dtype, engine.block_tokens, engine.max_num_seqs,
        engine.max_num_batched_tokens, longest, frees_windows(engine, model),
        engine.prefix_caching, _set_aside_bytes(scenario, gpu),
    )  # fmt: skip


def _set_aside_bytes(scenario: Scenario, gpu: Gpu) -> int | None:
    """Return what SGLang keeps beside weights and pool: by its rule, or with a share of the memory given, the rest."""
    engine = scenario.engine
    if not engine.preset.startswith("sglang"):
        return None
    if engine.gpu_memory_utilization < 1:
        return 0
    return set_aside_bytes(gpu.vram_bytes, engine.max_num_batched_tokens, scenario.replicas.tensor_parallel)
