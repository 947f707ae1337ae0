"""SGLang: ``python -m sglang.launch_server`` with HiCache, and with its file backend below it.

Read in SGLang 0.5.23: ``srt/arg_groups/fields`` (names, types and choices), ``srt/mem_cache/pool_host/base``
(``hicache_size``: whole GB of 10^9 bytes, each rank allocates so much), ``srt/mem_cache/storage/file`` (``max_size``
of what one rank writes; of MLA one rank alone writes), ``srt/mem_cache/hicache_storage`` (the folder is read from the
environment), ``srt/mem_cache/hybrid_cache/hybrid_cache_controller`` (keys of the storage's extra config).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isinf
from typing import Any

from simkv.formulas.weights import native_weight_dtype
from simkv.planner.emit.beyond import beyond, preset_of
from simkv.planner.emit.hub import model_name
from simkv.planner.emit.lines import Flag, Launch, argv, compact, number, rounded, script
from simkv.planner.emit.part import Part, endless
from simkv.planner.emit.title import title
from simkv.planner.emit.types import FOLDER, Emitted
from simkv.planner.emit.vllm import WEIGHT_DTYPES, dtypes_missing
from simkv.scenario.build import kv_bytes_of_token

GB = 10**9
KV_DTYPES: Mapping[str, str] = {"bf16": "bf16", "fp16": "auto", "fp8": "fp8_e4m3"}
FOLDER_NAME = "SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR"
EVICTIONS = ("lru", "lfu", "slru", "priority")
"""``--radix-eviction-policy`` of 0.5.23, as far as they are simulated."""


def emit_sglang(part: Part) -> Emitted:
    """Return ``sglang.launch_server`` for each engine of one host."""
    flags = [*_server(part), *_hicache(part), *_storage(part)]
    missing = beyond(part, preset_of(part, "sglang-hicache")) + dtypes_missing(part, "SGLang", KV_DTYPES)
    missing += list(_beside(part))
    folder = {FOLDER_NAME: FOLDER} if part.uses_ssd and not endless(part) else {}
    launches = [Launch(part.gpus(n) | folder, ("--port", str(30000 + n))) for n in range(part.here)]
    program = ("python3", "-m", "sglang.launch_server")
    text = script(title(part, "SGLang 0.5.23", missing), program, flags, launches, {})
    return Emitted("sglang", argv(flags), text, {}, missing)


def _server(part: Part) -> Iterator[Flag]:
    engine, origin = part.resolved.scenario.engine, part.origin
    name, why = model_name(part.model)
    yield Flag("--model-path", name, why)
    yield Flag("--tp-size", str(part.ranks), f"GPUs of one engine ({origin('replicas.tensor_parallel')})")
    yield from _dtypes(part)
    yield Flag("--context-length", str(engine.max_model_len), f"tokens a request ({origin('engine.max_model_len')})")
    why = f"requests at once ({origin('engine.max_num_seqs')})"
    yield Flag("--max-running-requests", str(engine.max_num_seqs), why)
    why = f"prompt tokens a step ({origin('engine.max_num_batched_tokens')})"
    yield Flag("--chunked-prefill-size", str(engine.max_num_batched_tokens), why)
    yield from _pool(part)
    yield Flag("--page-size", str(engine.block_tokens), f"tokens a page ({origin('engine.block_tokens')})")
    yield from _policies(part)
    if engine.enforce_eager:
        for phase in ("prefill", "decode"):
            why = f"no captured graphs ({origin('engine.enforce_eager')})"
            yield Flag(f"--disable-{phase}-cuda-graph", None, why)
    if engine.async_scheduling is False:
        why = f"a step is decided when the one before it has ended ({origin('engine.async_scheduling')})"
        yield Flag("--disable-overlap-schedule", None, why)
    if not engine.hybrid_kv_cache and not part.model.uniform:
        why = f"layers with a window keep all tokens ({origin('engine.hybrid_kv_cache')})"
        yield Flag("--disable-hybrid-swa-memory", None, why)


def _dtypes(part: Part) -> Iterator[Flag]:
    engine = part.resolved.scenario.engine
    if engine.kv_dtype in KV_DTYPES:
        why = f"{engine.kv_dtype} KV ({part.origin('engine.kv_dtype')})"
        yield Flag("--kv-cache-dtype", KV_DTYPES[engine.kv_dtype], why)
    if engine.weight_dtype in WEIGHT_DTYPES and engine.weight_dtype != native_weight_dtype(part.model, "auto"):
        why = f"converted while the checkpoint is loaded ({part.origin('engine.weight_dtype')})"
        yield Flag(*WEIGHT_DTYPES[engine.weight_dtype], why)


def _pool(part: Part) -> Iterator[Flag]:
    """Yield what makes SGLang's pool as large as the scenario's: its share counts weights and pool alone."""
    if part.resolved.budget is not None:
        static = part.line_bytes("weights") + part.resolved.budget.kv_bytes_per_rank
        share = min(0.99, static / part.gpu.usable_bytes)
        why = (
            "share of each GPU's memory for weights and KV alone, so that the pool is the scenario's "
            f"{rounded(part.resolved.budget.kv_bytes_per_rank / GB)} GB a GPU"
        )
        yield Flag("--mem-fraction-static", f"{share:.4f}", why)
    if part.pool_given or part.resolved.budget is None:
        why = f"tokens of the pool in VRAM ({part.origin('engine.num_gpu_blocks')})"
        yield Flag("--max-total-tokens", str(part.pool_tokens), why)


def _policies(part: Part) -> Iterator[Flag]:
    scenario, origin = part.resolved.scenario, part.origin
    policy = scenario.offload.eviction.policy
    if policy in EVICTIONS and policy != "lru":
        why = f"who leaves VRAM and host first ({origin('offload.eviction.policy')})"
        yield Flag("--radix-eviction-policy", policy, why)
    if scenario.engine.scheduling == "priority":
        yield Flag("--enable-priority-scheduling", None, f"who goes first ({origin('engine.scheduling')})")
        yield Flag("--schedule-low-priority-values-first", None, "a lower number goes first, as in classes")
    if not scenario.engine.prefix_caching:
        yield Flag("--disable-radix-cache", None, f"no reuse of prefixes ({origin('engine.prefix_caching')})")


def _hicache(part: Part) -> Iterator[Flag]:
    """Yield the host pool; nothing where nothing is kept there."""
    if not part.offloads or endless(part):
        return
    write = part.resolved.scenario.offload.write
    yield Flag("--enable-hierarchical-cache", None, "HiCache: a pool in host memory below VRAM")
    yield _host_pool(part)
    if write != "write_through" or part.uses_ssd:
        yield Flag("--hicache-write-policy", write, f"what goes to the host when ({part.origin('offload.write')})")


def _host_pool(part: Part) -> Flag:
    each = part.dram_bytes_per_rank
    mla = "; MLA: every rank keeps the same, unless SGLang shares it" if part.one_copy else ""
    if part.dram_ratio is not None:
        why = f"times each rank's pool in VRAM ({part.origin('tiers.dram.capacity')}){mla}"
        return Flag("--hicache-ratio", number(part.dram_ratio), why)
    of = f"a host's {rounded(part.dram_bytes * part.here / GB)} GB"
    if part.here * part.ranks > 1:
        of += f" / ({part.here} engines x {part.ranks} ranks)"
    if each < GB:
        pool = part.pool_tokens * kv_bytes_of_token(part.resolved)
        why = f"times the pool in VRAM: {of} is less than the whole GB that --hicache-size takes{mla}"
        return Flag("--hicache-ratio", number(part.dram_bytes / pool), why)
    lost = "" if each % GB == 0 else ", rounded down to whole ones"
    why = f"GB (10^9 bytes) of DRAM for each rank: {of}{lost} ({part.origin('tiers.dram.capacity')}){mla}"
    return Flag("--hicache-size", str(int(each // GB)), why)


def _storage(part: Part) -> Iterator[Flag]:
    if not part.uses_ssd or endless(part):
        return
    ahead = part.resolved.scenario.offload.prefetch
    yield Flag("--hicache-storage-backend", "file", f"files below the host pool ({part.origin('tiers.ssd.capacity')})")
    if ahead.stop is not None:
        why = f"when a request no longer waits for its files ({part.origin('offload.prefetch.stop')})"
        yield Flag("--hicache-storage-prefetch-policy", ahead.stop, why)
    extra = _extra(part)
    if extra:
        size = "max_size: bytes of the files that one rank writes; " if "max_size" in extra else ""
        why = f"{size}the rest as in offload.prefetch; the folder is in {FOLDER_NAME}"
        yield Flag("--hicache-storage-backend-extra-config", compact(extra), why)


def _extra(part: Part) -> dict[str, Any]:
    ahead = part.resolved.scenario.offload.prefetch
    extra: dict[str, Any] = {}
    if not isinf(part.ssd_bytes):
        extra["max_size"] = int(part.ssd_bytes if part.one_copy else part.ssd_bytes_per_rank)
    told = {
        "prefetch_threshold": ahead.min_tokens,
        "prefetch_timeout_base": ahead.timeout_base,
        "prefetch_timeout_per_ki_token": ahead.timeout_per_ki_token,
    }
    return extra | {key: value for key, value in told.items() if value is not None}


def _beside(part: Part) -> Iterator[str]:
    scenario = part.resolved.scenario
    if not scenario.engine.store_outputs and part.offloads:
        yield "engine.store_outputs = false: SGLang writes generated tokens to the host too"
    if scenario.offload.prefetch.timeout_most not in (None, float("inf")):
        yield "offload.prefetch.timeout_most: no flag of SGLang 0.5.23 bounds the wait"
