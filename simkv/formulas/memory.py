"""Memory budget of one GPU: what is left for KV, line by line.

Follows vLLM: utilisation x usable memory is the engine's share; weights, the peak of a profiling
forward pass and what lives outside the allocator come off it; the rest is the KV pool, cut into
blocks. All sizes are of one rank unless said otherwise. Constants are stated with their source below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from simkv.errors import InfeasibleError, InputError, Problem
from simkv.formulas.kv_size import check_tensor_parallel, kv_bytes_per_token_per_rank, kv_heads_per_rank
from simkv.hardware import Gpu
from simkv.model import DTYPE_BITS, ModelShape, normalise_dtype, weight_bytes_per_param

GIB = 1 << 30
SAMPLER_BYTES_PER_LOGIT = 38
"""Peak of the sampler's dummy run a (sequence, vocabulary entry): fp32 logits and their processed copy
(8), sorted values with int64 indices (12), softmax and cumulative sum over the sorted ones (8), mask and
scatter (5), the final softmax and its exponentials (5). Checked against logged pools (docs/model.md)."""
CONTEXT_BYTES_SINGLE = int(0.13 * GIB)
CONTEXT_BYTES_PARALLEL = int(0.55 * GIB)
"""CUDA context and libraries outside the allocator; more with NCCL.
Measured on H100 with vLLM 0.11 (llm-d-planner, docs/empirical-vllm-memory-results.md)."""
NULL_BLOCKS = 1
"""Blocks that vLLM keeps to itself: usable blocks are ``num_gpu_blocks - 1``."""


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Where one GPU's memory goes, and the KV pool that is left."""

    lines: tuple[tuple[str, int, str], ...]
    """``(name, bytes of one rank, why)`` from the card's memory down to the pool."""
    kv_bytes: int
    """The pool of all ranks together."""
    kv_bytes_per_rank: int
    num_gpu_blocks: int
    """As the engine counts: one of them is vLLM's null block, and not usable."""
    block_tokens: int
    block_bytes: int
    """Bytes of one block, all layers and ranks."""
    source: str = "estimated"

    @property
    def kv_tokens(self) -> int:
        """What vLLM logs as GPU KV cache size (uniform models)."""
        return self.num_gpu_blocks * self.block_tokens


def kv_budget(
    model: ModelShape,
    gpu: Gpu,
    tensor_parallel: int = 1,
    gpu_memory_utilization: float = 0.9,
    weight_dtype: str = "auto",
    kv_dtype: str = "auto",
    block_tokens: int = 16,
    max_num_seqs: int = 256,
    max_num_batched_tokens: int = 8192,
    max_model_len: int | None = None,
) -> MemoryBudget:
    """Return the memory budget of one replica.

    ``max_model_len`` (if given) must fit the pool, as engines demand at start.

    Raises :class:`InfeasibleError` saying by how much the model misses and what would make it fit,
    :class:`InputError` for a split or a utilisation that makes no sense.
    """
    if not 0 < gpu_memory_utilization <= 1:
        raise InputError(
            Problem("is not a share of the memory", "use 0.9", "", None, "gpu_memory_utilization",
                    str(gpu_memory_utilization))
        )  # fmt: skip
    shape = _Shape(
        model, gpu, tensor_parallel, gpu_memory_utilization, weight_dtype, kv_dtype, block_tokens, max_num_seqs,
        max_num_batched_tokens, max_model_len or block_tokens,
    )  # fmt: skip
    budget = shape.budget()
    if budget.num_gpu_blocks - NULL_BLOCKS < shape.needed_blocks():
        raise InfeasibleError(_refusal(shape, budget))
    return budget


def override_blocks(budget: MemoryBudget, num_gpu_blocks: int, source: str = "given") -> MemoryBudget:
    """Return the budget with the pool that an engine logged; the estimate stays visible in the lines."""
    if num_gpu_blocks <= NULL_BLOCKS:
        raise InputError(
            Problem("leaves no usable block", "give the engine's num_gpu_blocks", "", None, "num_gpu_blocks",
                    str(num_gpu_blocks))
        )  # fmt: skip
    total = num_gpu_blocks * budget.block_bytes
    ranks = max(1, round(budget.kv_bytes / budget.kv_bytes_per_rank)) if budget.kv_bytes_per_rank else 1
    line = ("kv_cache_override", total // ranks, f"{num_gpu_blocks} blocks, {source}, instead of the estimate")
    return replace(
        budget, lines=(*budget.lines, line), kv_bytes=total, kv_bytes_per_rank=total // ranks,
        num_gpu_blocks=num_gpu_blocks, source=source,
    )  # fmt: skip


def logged_kv_tokens(text: str) -> int | None:
    """Return N of an engine's log line ``GPU KV cache size: N tokens``; None where the text has no such line."""
    found = re.search(r"GPU KV cache size:\s*(\d[\d,_]*)\s*tokens", text, re.IGNORECASE)
    return int(re.sub("[,_]", "", found[1])) if found else None


def blocks_from_engine_log(text: str, block_tokens: int) -> int:
    """Return ``num_gpu_blocks`` from an engine's log line.

    Reads ``GPU KV cache size: 41,408 tokens``, ``num_gpu_blocks: 2588``, ``num_gpu_blocks = 2588``
    and ``# GPU blocks: 2588``. Sound for uniform models only: hybrids print another number.

    Raises :class:`InputError` where the text has none of them.
    """
    tokens = logged_kv_tokens(text)
    if tokens is not None:
        return tokens // block_tokens
    blocks = re.search(r"(?:num_gpu_blocks\W{1,4}|#\s*GPU blocks:\s*)([\d,_]+)", text, re.IGNORECASE)
    if blocks:
        return int(re.sub("[,_]", "", blocks[1]))
    raise InputError(Problem("has no KV cache size", 'paste the line "GPU KV cache size: N tokens"', value=text[:80]))


def native_weight_dtype(model: ModelShape, weight_dtype: str) -> str:
    """Return the dtype of the linear weights: the checkpoint's own for ``auto``."""
    return normalise_dtype(model.checkpoint_dtype if weight_dtype == "auto" else weight_dtype)


def linear_params_per_rank(model: ModelShape, tensor_parallel: int) -> float:
    """Linear weights of one rank that every token passes (no routed experts, embedding or lm_head).

    Heads and MLPs are split; K and V projections replicate where ranks outnumber KV heads; MLA's
    down-projections are whole in every rank.
    """
    held = model.always_on_params / tensor_parallel
    for kind in model.attention:
        whole = kind.replicated_params(model.hidden)
        more = whole * (1 - 1 / tensor_parallel)
        if kind.mla is None:
            share = kv_heads_per_rank(kind, tensor_parallel) / kind.kv_heads
            more += kind.kv_params(model.hidden) * (share - 1 / tensor_parallel)
        held += kind.layers * more
    return held


def weight_bytes_per_rank(model: ModelShape, tensor_parallel: int = 1, weight_dtype: str = "auto") -> int:
    """Bytes of one rank's weights; embedding, lm_head and norms stay in the model's own 16 (or 32) bits."""
    dtype = native_weight_dtype(model, weight_dtype)
    linear = linear_params_per_rank(model, tensor_parallel) + model.routed_params / tensor_parallel
    wide = DTYPE_BITS["fp32"] if dtype == "fp32" else DTYPE_BITS[model.dtype]
    return round(linear * weight_bytes_per_param(dtype) + model.unquantised_params / tensor_parallel * wide / 8)


def activation_bytes(model: ModelShape, tensor_parallel: int, max_num_seqs: int, max_num_batched_tokens: int) -> int:
    """Peak of the profiling pass: the larger of the forward pass and the sampler over the whole vocabulary.

    Forward: of each token the residual stream and a copy, normed input and output, and one MLP's gate,
    up and product (a MoE layer: of its ``top_k`` experts), all in the model's dtype.
    """
    if model.moe is not None:
        width = model.moe.top_k * model.moe.intermediate + model.moe.shared_width
    else:
        width = model.intermediate
    forward = max_num_batched_tokens * (4 * model.hidden + 3 * width / tensor_parallel) * model.dtype_bytes
    sampler = min(max_num_seqs, max_num_batched_tokens) * model.vocab * SAMPLER_BYTES_PER_LOGIT
    return int(max(forward, sampler))


@dataclass(frozen=True, slots=True)
class _Shape:
    """The arguments of a budget, so that the remedies can vary one at a time."""

    model: ModelShape
    gpu: Gpu
    ranks: int
    utilization: float
    weight_dtype: str
    kv_dtype: str
    block_tokens: int
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int

    def needed_blocks(self) -> int:
        """Blocks of one sequence at full length."""
        return -(-self.max_model_len // self.block_tokens)

    def block_bytes_per_rank(self) -> int:
        return self.block_tokens * kv_bytes_per_token_per_rank(self.model, self.kv_dtype, self.ranks)

    def fits(self) -> bool:
        """Say whether one full-length sequence fits."""
        return self.budget().num_gpu_blocks - NULL_BLOCKS >= self.needed_blocks()

    def budget(self) -> MemoryBudget:
        """Return the budget; a pool below zero shows as a negative number of bytes and no blocks."""
        check_tensor_parallel(self.model, self.ranks)
        lines = self._lines()
        pool = sum(size for name, size, _ in lines if name != "vram")
        page = self.block_bytes_per_rank()
        blocks = max(0, pool // page)
        lines.append(("kv_cache", pool, f"what is left: {blocks} blocks of {page} B"))
        return MemoryBudget(
            tuple(lines), blocks * page * self.ranks, blocks * page, blocks, self.block_tokens, page * self.ranks
        )

    def _lines(self) -> list[tuple[str, int, str]]:
        usable = self.gpu.usable_bytes
        share = int(usable * self.utilization)
        dtype = native_weight_dtype(self.model, self.weight_dtype)
        weights = weight_bytes_per_rank(self.model, self.ranks, self.weight_dtype)
        activations = activation_bytes(self.model, self.ranks, self.max_num_seqs, self.max_num_batched_tokens)
        context = CONTEXT_BYTES_SINGLE if self.ranks == 1 else CONTEXT_BYTES_PARALLEL
        billions = self.model.params / 1e9
        return [
            ("vram", usable, f"usable of {self.gpu.name} ({self.gpu.figure('usable_bytes').standing})"),
            ("engine_share", share, f"usable x utilisation {self.utilization:g}"),
            ("weights", -weights, f"{billions:.1f} B parameters, {dtype}, {self.ranks} rank(s)"),
            ("activations", -activations, f"{self.max_num_batched_tokens} tokens, {self.max_num_seqs} sequences"),
            ("context", -context, "CUDA context and libraries outside the allocator"),
            ("cuda_graphs", 0, "captured after the pool is sized, from the memory outside the engine's share"),
        ]


def _refusal(shape: _Shape, budget: MemoryBudget) -> str:
    """Say by how much the model misses, and what would make it fit."""
    pool = budget.lines[-1][1]
    need = (shape.needed_blocks() + NULL_BLOCKS) * shape.block_bytes_per_rank()
    missing = need - pool
    head = (
        f"{shape.model.name} on {shape.ranks} x {shape.gpu.name} misses {missing / GIB:.1f} GiB a GPU: "
        f"{pool / GIB:.1f} GiB left for KV, {need / GIB:.1f} GiB needed for one sequence "
        f"of {shape.max_model_len} tokens"
    )
    remedies = _remedies(shape, pool)
    return f"{head}; fits with {', or '.join(remedies)}" if remedies else f"{head}; nothing tried makes it fit"


def _remedies(shape: _Shape, pool: int) -> list[str]:
    """One change at a time: more ranks, narrower weights or KV, a shorter sequence, another card."""
    found: list[str] = []
    for ranks in (2, 4, 8, 16):
        if ranks > shape.ranks and _splits(shape.model, ranks) and replace(shape, ranks=ranks).fits():
            found.append(f"tensor_parallel {ranks}")
            break
    for dtype in ("fp8", "int4"):
        narrower = DTYPE_BITS[dtype] < DTYPE_BITS[native_weight_dtype(shape.model, shape.weight_dtype)]
        if narrower and replace(shape, weight_dtype=dtype).fits():
            found.append(f"weight_dtype {dtype}")
            break
    if shape.kv_dtype in ("auto", "bf16", "fp16") and replace(shape, kv_dtype="fp8").fits():
        found.append("kv_dtype fp8")
    blocks = pool // shape.block_bytes_per_rank() - NULL_BLOCKS
    if 0 < blocks < shape.needed_blocks():
        found.append(f"max_model_len {blocks * shape.block_tokens}")
    return found + _bigger_cards(shape)


def _splits(model: ModelShape, ranks: int) -> bool:
    try:
        check_tensor_parallel(model, ranks)
    except InputError:
        return False
    return True


def _bigger_cards(shape: _Shape) -> list[str]:
    """The smallest card of the catalogue on which the same thing fits."""
    from simkv.catalog import list_hardware, load_hardware

    cards = sorted((load_hardware(name) for name in list_hardware()), key=lambda card: card.usable_bytes)
    for card in cards:
        if card.usable_bytes > shape.gpu.usable_bytes and replace(shape, gpu=card).fits():
            return [card.name]
    return []
