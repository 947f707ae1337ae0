"""TensorRT-LLM: ``trtllm-serve`` and its extra LLM API options as YAML.

Read in the documents of 1.3.0rc27 (``llm-api/reference/KvCacheConfig``) and its ``commands/serve``: sizes are bytes of
each rank (pull request 16106 says so of the host tier, and that without a size one is made up), the share is of the
memory that weights and buffers leave. The disk tier is of its KV cache manager V2 alone (pull request 14845), which
``auto`` chooses for some models only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isinf

from simkv.planner.emit.beyond import beyond, preset_of
from simkv.planner.emit.hub import model_name
from simkv.planner.emit.lines import Entry, Flag, Launch, argv, number, rounded, script, yaml_text
from simkv.planner.emit.part import Part, endless
from simkv.planner.emit.title import title
from simkv.planner.emit.types import FOLDER, Emitted
from simkv.planner.emit.vllm import dtypes_missing

KV_DTYPES: Mapping[str, str] = {"bf16": "auto", "fp16": "auto", "fp8": "fp8"}
_KV = "kv_cache_config"


def emit_tensorrt_llm(part: Part) -> Emitted:
    """Return ``trtllm-serve`` for each engine of one host, and its YAML file."""
    flags = list(_flags(part))
    missing = beyond(part, preset_of(part, "tensorrt-llm")) + dtypes_missing(part, "TensorRT-LLM", KV_DTYPES, ())
    missing += list(_beside(part))
    names = [f"trtllm-{n}.yaml" if _apart(part) else "trtllm.yaml" for n in range(part.here)]
    files = {name: yaml_text(list(_entries(part, n))) for n, name in enumerate(names)}
    launches = [
        Launch(part.gpus(n), ("--config", name, "--port", str(8000 + n))) for n, name in enumerate(names)
    ]  # fmt: skip
    text = script(title(part, "TensorRT-LLM 1.3", missing), ("trtllm-serve",), flags, launches, files)
    return Emitted("tensorrt-llm", [*argv(flags), "--config", names[0]], text, files, missing)


def _apart(part: Part) -> bool:
    """Say whether each engine of a host needs a folder of its own."""
    return part.here > 1 and part.uses_ssd


def _flags(part: Part) -> Iterator[Flag]:
    engine, origin = part.resolved.scenario.engine, part.origin
    name, why = model_name(part.model)
    yield Flag("", name, why)
    yield Flag("--tp_size", str(part.ranks), f"GPUs of one engine ({origin('replicas.tensor_parallel')})")
    yield Flag("--max_batch_size", str(engine.max_num_seqs), f"requests at once ({origin('engine.max_num_seqs')})")
    why = f"tokens a step ({origin('engine.max_num_batched_tokens')})"
    yield Flag("--max_num_tokens", str(engine.max_num_batched_tokens), why)
    yield Flag("--max_seq_len", str(engine.max_model_len), f"tokens a request ({origin('engine.max_model_len')})")


def _entries(part: Part, replica: int) -> Iterator[Entry]:
    engine, origin = part.resolved.scenario.engine, part.origin
    why = f"reuse of prefixes ({origin('engine.prefix_caching')})"
    yield Entry((_KV, "enable_block_reuse"), engine.prefix_caching, why)
    yield Entry((_KV, "tokens_per_block"), engine.block_tokens, f"tokens ({origin('engine.block_tokens')})")
    dtype = KV_DTYPES.get(engine.kv_dtype, "auto")
    if dtype != "auto":
        yield Entry((_KV, "dtype"), dtype, f"{engine.kv_dtype} KV ({origin('engine.kv_dtype')})")
    yield from _pool(part)
    yield from _tiers(part, replica)
    why = "long prompts in pieces of max_num_tokens"
    yield Entry(("enable_chunked_prefill",), True, why)
    if engine.enforce_eager:
        yield Entry(("cuda_graph_config",), None, f"no captured graphs ({origin('engine.enforce_eager')})")
    if engine.async_scheduling is False:
        why = f"a step is decided when the one before it has ended ({origin('engine.async_scheduling')})"
        yield Entry(("disable_overlap_scheduler",), True, why)


def _pool(part: Part) -> Iterator[Entry]:
    """Yield what makes the pool as large as the scenario's: the share here is of what the weights leave."""
    budget = part.resolved.budget
    if budget is not None:
        taken = sum(part.line_bytes(name) for name in ("weights", "activations", "context"))
        share = min(0.99, budget.kv_bytes_per_rank / max(1, part.gpu.usable_bytes - taken))
        gb = rounded(budget.kv_bytes_per_rank / 1e9)
        why = f"share of what weights and buffers leave, so that the pool is the scenario's {gb} GB a GPU"
        yield Entry((_KV, "free_gpu_memory_fraction"), round(share, 4), why)
    if part.pool_given or budget is None:
        why = f"tokens of the pool in VRAM ({part.origin('engine.num_gpu_blocks')})"
        yield Entry((_KV, "max_tokens"), part.pool_tokens, why)


def _tiers(part: Part, replica: int) -> Iterator[Entry]:
    if not part.offloads or endless(part):
        why = "bytes: no host tier (absent, TensorRT-LLM may choose a size by itself)"
        yield Entry((_KV, "host_cache_size"), 0, why)
        return
    per = f" / ({part.here} engines x {part.ranks} ranks)" if part.here * part.ranks > 1 else ""
    why = f"bytes of DRAM for each rank: a host's {number(part.dram_bytes * part.here)}{per}"
    size = int(part.dram_bytes_per_rank)
    yield Entry((_KV, "host_cache_size"), size, f"{why} ({part.origin('tiers.dram.capacity')})")
    if part.uses_ssd and not isinf(part.ssd_bytes):
        why = f"bytes of SSD for each rank: a host's {number(part.ssd_bytes * part.here)}{per}"
        size = int(part.ssd_bytes_per_rank)
        yield Entry((_KV, "disk_cache_size"), size, f"{why} ({part.origin('tiers.ssd.capacity')})")
        own = f"{FOLDER}/{replica}" if part.here > 1 else FOLDER
        yield Entry((_KV, "disk_cache_path"), own, "the SSD's folder")
        yield Entry((_KV, "use_kv_cache_manager_v2"), True, "the manager that has a disk tier")


def _beside(part: Part) -> Iterator[str]:
    engine = part.resolved.scenario.engine
    if part.uses_ssd and isinf(part.ssd_bytes):
        yield "tiers.ssd.capacity = inf: TensorRT-LLM needs a size; give one"
    if not engine.hybrid_kv_cache and not part.model.uniform:
        yield "engine.hybrid_kv_cache = false: windows keep their own pools in TensorRT-LLM"
