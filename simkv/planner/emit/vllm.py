"""vLLM: ``vllm serve`` with its OffloadingConnector, and with a file-system tier below it.

Read in vLLM 0.33.0: ``engine/arg_utils`` (names), ``config/cache`` (``kv_offloading_size``: GiB, summed over all
tensor-parallel ranks), ``config/vllm`` (``_post_init_kv_transfer_config`` adds the size to a given
``--kv-transfer-config``), ``v1/kv_offload/cpu/spec`` and ``tiering/spec`` (keys of its extra config),
``distributed/kv_transfer/kv_connector/v1/offloading/config`` (``blocks_per_chunk``), ``tiering/fs/manager`` (engines
find one another's files only with the same ``PYTHONHASHSEED``, and their own again after a restart).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from simkv.formulas.weights import native_weight_dtype
from simkv.planner.emit.beyond import beyond, preset_of
from simkv.planner.emit.hub import model_name
from simkv.planner.emit.lines import Flag, Launch, argv, compact, number, rounded, script
from simkv.planner.emit.part import Part, endless
from simkv.planner.emit.title import title
from simkv.planner.emit.types import FOLDER, Emitted
from simkv.scenario.build import unit_blocks

GIB = 1 << 30
KV_DTYPES: Mapping[str, str] = {
    "bf16": "auto", "fp16": "auto", "fp8": "fp8", "int8": "int8_per_token_head", "int4": "int4_per_token_head",
}  # fmt: skip
"""``auto``, the default, is the model's own 16 bits."""
WEIGHT_DTYPES: Mapping[str, tuple[str, str]] = {
    "bf16": ("--dtype", "bfloat16"), "fp16": ("--dtype", "float16"), "fp8": ("--quantization", "fp8"),
}  # fmt: skip
"""What makes of any checkpoint one of this format while it is loaded."""


def emit_vllm(part: Part) -> Emitted:
    """Return ``vllm serve`` for each engine of one host."""
    flags = [*server_flags(part), *offload_flags(part)]
    missing = beyond(part, preset_of(part, "vllm-tiering" if part.uses_ssd else "vllm")) + dtypes_missing(part, "vLLM")
    missing += _bounded(part)
    hashes = {"PYTHONHASHSEED": "0"} if part.uses_ssd and not endless(part) else {}
    launches = [Launch(part.gpus(n) | hashes, ("--port", str(8000 + n))) for n in range(part.here)]
    text = script(title(part, "vLLM 0.33.0", missing), ("vllm", "serve"), flags, launches, {})
    return Emitted("vllm", argv(flags), text, {}, missing)


def server_flags(part: Part) -> Iterator[Flag]:
    """Yield what isn't about the lower tiers."""
    engine, origin = part.resolved.scenario.engine, part.origin
    name, why = model_name(part.model)
    yield Flag("", name, why)
    yield Flag("--tensor-parallel-size", str(part.ranks), f"GPUs of one engine ({origin('replicas.tensor_parallel')})")
    yield from _dtypes(part)
    yield Flag("--max-model-len", str(engine.max_model_len), f"tokens a request ({origin('engine.max_model_len')})")
    yield Flag("--max-num-seqs", str(engine.max_num_seqs), f"requests at once ({origin('engine.max_num_seqs')})")
    why = f"tokens a step ({origin('engine.max_num_batched_tokens')})"
    yield Flag("--max-num-batched-tokens", str(engine.max_num_batched_tokens), why)
    why = f"share of each GPU's memory, all in all ({origin('engine.gpu_memory_utilization')})"
    yield Flag("--gpu-memory-utilization", number(engine.gpu_memory_utilization), why)
    if part.pool_given:
        why = f"blocks (pages) of the pool in VRAM, all ranks alike ({origin('engine.num_gpu_blocks')})"
        yield Flag("--num-gpu-blocks-override", str(engine.num_gpu_blocks), why)
    yield Flag("--block-size", str(engine.block_tokens), f"tokens a block ({origin('engine.block_tokens')})")
    why = f"reuse of prefixes in VRAM ({origin('engine.prefix_caching')})"
    yield Flag("--enable-prefix-caching" if engine.prefix_caching else "--no-enable-prefix-caching", None, why)
    if engine.scheduling != "fcfs":
        yield Flag("--scheduling-policy", engine.scheduling, f"who goes first ({origin('engine.scheduling')})")
    if engine.enforce_eager:
        yield Flag("--enforce-eager", None, f"no captured graphs ({origin('engine.enforce_eager')})")
    if engine.async_scheduling is False:
        why = f"a step is decided when the one before it has ended ({origin('engine.async_scheduling')})"
        yield Flag("--no-async-scheduling", None, why)
    if not engine.hybrid_kv_cache and not part.model.uniform:
        why = f"layers with a window keep all tokens ({origin('engine.hybrid_kv_cache')})"
        yield Flag("--disable-hybrid-kv-cache-manager", None, why)


def _dtypes(part: Part) -> Iterator[Flag]:
    engine = part.resolved.scenario.engine
    kv = KV_DTYPES.get(engine.kv_dtype, "auto")
    if kv != "auto":
        yield Flag("--kv-cache-dtype", kv, f"{engine.kv_dtype} KV ({part.origin('engine.kv_dtype')})")
    if engine.weight_dtype in WEIGHT_DTYPES and engine.weight_dtype != native_weight_dtype(part.model, "auto"):
        why = f"converted while the checkpoint is loaded ({part.origin('engine.weight_dtype')})"
        yield Flag(*WEIGHT_DTYPES[engine.weight_dtype], why)


def dtypes_missing(
    part: Part, engine_name: str, kv_dtypes: Collection[str] = KV_DTYPES, converted: Collection[str] = WEIGHT_DTYPES
) -> list[str]:
    """Return what of the dtypes only another checkpoint, or nothing, brings."""
    engine = part.resolved.scenario.engine
    found = []
    native = native_weight_dtype(part.model, "auto")
    if engine.weight_dtype not in ("auto", native, *converted):
        what = f"{part.model.name} comes in {native}: name a checkpoint that is in {engine.weight_dtype}"
        found.append(f"engine.weight_dtype = {engine.weight_dtype}: {what}")
    if engine.kv_dtype not in kv_dtypes:
        found.append(f"engine.kv_dtype = {engine.kv_dtype}: {engine_name} keeps no KV in it")
    return found


def offload_flags(part: Part) -> Iterator[Flag]:
    """Yield how much of DRAM is the engine's, and what it keeps there; nothing where it keeps nothing."""
    if not part.offloads or endless(part):
        return
    here = f"a host's {rounded(part.dram_bytes * part.here / GIB)} GiB" + (f" / {part.here} engines" * (part.here > 1))
    of = f", all {part.ranks} ranks together" if part.ranks > 1 else ""
    mla = "; MLA: one copy for all ranks, so that it lasts longer" if part.one_copy else ""
    why = f"GiB of DRAM{of}: {here} ({part.origin('tiers.dram.capacity')}){mla}"
    yield Flag("--kv-offloading-size", number(part.dram_bytes / GIB), why)
    extra = extra_config(part)
    if extra:
        words = "; ".join(f"{key}: {_EXTRA[key]}" for key in extra)
        yield Flag("--kv-transfer-config", compact({"kv_connector_extra_config": extra}), words)


_EXTRA = {
    "store_threshold": "a block is stored when it is looked up for the second time (offload.write)",
    "offload_prompt_only": "generated tokens are stored too (engine.store_outputs)",
    "blocks_per_chunk": "blocks of VRAM in one unit of DRAM (offload.unit_tokens)",
    "spec_name": "tiers below DRAM",
    "secondary_tiers": "files on the SSD (tiers.ssd.capacity); all engines of the host read the same",
}


def extra_config(part: Part) -> dict[str, Any]:
    """Return what is told beside the size."""
    scenario = part.resolved.scenario
    extra: dict[str, Any] = {}
    if scenario.offload.write == "write_through_selective" and not part.uses_ssd:  # refused with tiers below
        extra["store_threshold"] = 2
    if scenario.engine.store_outputs:
        extra["offload_prompt_only"] = False
    if unit_blocks(part.resolved) > 1:
        extra["blocks_per_chunk"] = unit_blocks(part.resolved)
    if part.uses_ssd:
        extra["spec_name"] = "TieringOffloadingSpec"
        extra["secondary_tiers"] = [{"type": "fs", "root_dir": FOLDER}]
    return extra


def _bounded(part: Part) -> Iterator[str]:
    if part.uses_ssd and part.ssd_bytes != float("inf"):
        yield (
            f"tiers.ssd.capacity = {number(part.ssd_bytes * part.here / 1e12)} TB: vLLM never deletes files; the file "
            f"system at {FOLDER} has to be so large, and something has to delete the oldest there"
        )
