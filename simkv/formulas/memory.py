"""Memory budget of one GPU: what is left for KV, line by line.

Follows vLLM: utilisation x usable memory is the engine's share; weights, the peak of a profiling
forward pass and what lives outside the allocator come off it; the rest is the KV pool, cut into
blocks (pages, where kinds of layers share the pool). ``weights.py`` has the bytes of weights. All
sizes are of one rank unless said otherwise. Constants are stated with their source below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from simkv.errors import InfeasibleError, InputError, Problem
from simkv.formulas.kv_size import check_tensor_parallel
from simkv.formulas.pages import NULL_PAGES, PageLayout, page_layout, state_pages
from simkv.formulas.weights import part_dtypes, weight_bytes_per_rank
from simkv.hardware import Gpu
from simkv.model import DTYPE_BITS, ModelShape

GIB = 1 << 30
SAMPLER_BYTES_PER_LOGIT = 38
"""Peak of the sampler's dummy run a (sequence, vocabulary entry): fp32 logits and their processed copy
(8), sorted values with int64 indices (12), softmax and cumulative sum over the sorted ones (8), mask and
scatter (5), the final softmax and its exponentials (5). Checked against logged pools (docs/model.md)."""
CONTEXT_BYTES_SINGLE = int(0.13 * GIB)
CONTEXT_BYTES_PARALLEL = int(0.55 * GIB)
"""CUDA context and libraries outside the allocator; more with NCCL.
Measured on H100 with vLLM 0.11 (llm-d-planner, docs/empirical-vllm-memory-results.md)."""


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Where one GPU's memory goes, and the KV pool that is left."""

    lines: tuple[tuple[str, int, str], ...]
    """``(name, bytes of one rank, why)`` from the card's memory down to the pool."""
    num_gpu_blocks: int
    """As the engine counts, in pages of the pool: one of them is vLLM's null block, and not usable."""
    block_bytes: int
    """Bytes of one of them, all ranks: of all layers, or of one group's where kinds of layers share the pool."""
    layout: PageLayout

    @property
    def kv_bytes(self) -> int:
        """The pool of all ranks together."""
        return self.num_gpu_blocks * self.block_bytes

    @property
    def kv_bytes_per_rank(self) -> int:
        """The pool of one rank."""
        return self.num_gpu_blocks * self.layout.page_bytes

    @property
    def kv_tokens(self) -> int:
        """Tokens that the pool holds where nothing but growing layers takes pages; of uniform models vLLM logs it."""
        return self.num_gpu_blocks // self.layout.pages_per_block * self.layout.block_tokens


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
    hybrid: bool = True,
    prefix_caching: bool = True,
    set_aside_bytes: int | None = None,
) -> MemoryBudget:
    """Return the memory budget of one replica.

    ``max_model_len`` (if given) must fit the pool, as engines demand at start. ``hybrid`` as in
    :func:`simkv.formulas.pages.page_layout`; ``prefix_caching`` decides how many pages a state takes.
    ``set_aside_bytes``: what the engine keeps for the work by a rule of its own; None: the peak of a profiling pass.

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
        max_num_batched_tokens, max_model_len or block_tokens, hybrid, state_pages(prefix_caching),
        set_aside_bytes,
    )  # fmt: skip
    budget = shape.budget()
    if budget.num_gpu_blocks - NULL_PAGES < shape.needed_pages(budget.layout):
        raise InfeasibleError(_refusal(shape, budget))
    return budget


def override_blocks(budget: MemoryBudget, num_gpu_blocks: int, source: str = "given") -> MemoryBudget:
    """Return the budget with the pool that an engine logged; the estimate stays visible in the lines."""
    if num_gpu_blocks <= NULL_PAGES:
        raise InputError(
            Problem("leaves no usable block", "give the engine's num_gpu_blocks", "", None, "num_gpu_blocks",
                    str(num_gpu_blocks))
        )  # fmt: skip
    size = num_gpu_blocks * budget.layout.page_bytes
    line = ("kv_cache_override", size, f"{num_gpu_blocks} blocks, {source}, instead of the estimate")
    return replace(budget, lines=(*budget.lines, line), num_gpu_blocks=num_gpu_blocks)


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


def context_bytes(tensor_parallel: int) -> int:
    """What a rank's CUDA context and libraries take outside the allocator."""
    return CONTEXT_BYTES_SINGLE if tensor_parallel == 1 else CONTEXT_BYTES_PARALLEL


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
    hybrid: bool
    state_pages: int
    set_aside_bytes: int | None

    def layout(self) -> PageLayout:
        """How the pool is cut."""
        return page_layout(self.model, self.kv_dtype, self.ranks, self.block_tokens, self.hybrid)

    def needed_pages(self, layout: PageLayout) -> int:
        """Pages of one sequence at full length."""
        return layout.asked_pages(self.max_model_len, self.max_num_batched_tokens, self.state_pages)

    def longest(self, layout: PageLayout, pages: int) -> int:
        """Tokens of the longest sequence that usable ``pages`` hold, in whole pages where they can be."""
        return layout.longest(pages, self.max_num_batched_tokens, self.state_pages, self.max_model_len)

    def fits(self) -> bool:
        """Say whether one full-length sequence fits."""
        budget = self.budget()
        return budget.num_gpu_blocks - NULL_PAGES >= self.needed_pages(budget.layout)

    def budget(self) -> MemoryBudget:
        """Return the budget; a pool below zero shows as a negative number of bytes and no blocks."""
        layout = self.layout()
        lines = self._lines()
        pool = sum(size for name, size, _ in lines if name != "vram")
        pages, page = layout.pages(pool), layout.page_bytes
        unit = "blocks" if len(layout.groups) == 1 else "pages"
        lines.append(("kv_cache", pool, f"what is left: {pages:,} {unit} of {page:,} B"))
        if len(layout.groups) > 1:
            lines.append(("kv_pages", pages * page, layout.describe()))
        return MemoryBudget(tuple(lines), pages, page * self.ranks, layout)

    def _lines(self) -> list[tuple[str, int, str]]:
        usable = self.gpu.usable_bytes
        share = int(usable * self.utilization)
        weights = weight_bytes_per_rank(self.model, self.ranks, self.weight_dtype)
        activations, why = self._activations()
        context = context_bytes(self.ranks)
        billions = self.model.params / 1e9
        return [
            ("vram", usable, f"usable of {self.gpu.name} ({self.gpu.figure('usable_bytes').standing})"),
            ("engine_share", share, f"usable x utilisation {self.utilization:g}"),
            ("weights", -weights, f"{billions:.1f} B parameters, {self._dtypes()}, {self.ranks} rank(s)"),
            ("activations", -activations, why),
            ("context", -context, "CUDA context and libraries outside the allocator"),
            ("cuda_graphs", 0, "captured after the pool is sized, from the memory outside the engine's share"),
        ]

    def _activations(self) -> tuple[int, str]:
        if self.set_aside_bytes is not None:
            return self.set_aside_bytes, "what the engine sets aside by rule"
        peak = activation_bytes(self.model, self.ranks, self.max_num_seqs, self.max_num_batched_tokens)
        return peak, f"{self.max_num_batched_tokens} tokens, {self.max_num_seqs} sequences"

    def _dtypes(self) -> str:
        mixer, dense, experts = part_dtypes(self.model, self.weight_dtype)
        moe = self.model.moe
        parts = {"attention": mixer}
        if self.model.mlp_layers or (moe and moe.shared_width):
            parts["MLPs"] = dense
        if moe:
            parts["experts"] = experts
        if len(set(parts.values())) == 1:
            return mixer
        return ", ".join(f"{part} {dtype}" for part, dtype in parts.items())


def _refusal(shape: _Shape, budget: MemoryBudget) -> str:
    """Say by how much the model misses, and what would make it fit."""
    pool = next(size for name, size, _ in budget.lines if name == "kv_cache")
    need = (shape.needed_pages(budget.layout) + NULL_PAGES) * budget.layout.page_bytes
    missing = need - pool
    head = (
        f"{shape.model.name} on {shape.ranks} x {shape.gpu.name} misses {missing / GIB:.1f} GiB a GPU: "
        f"{pool / GIB:.1f} GiB left for KV, {need / GIB:.1f} GiB needed for one sequence "
        f"of {shape.max_model_len} tokens"
    )
    remedies = _remedies(shape, budget)
    return f"{head}; fits with {', or '.join(remedies)}" if remedies else f"{head}; nothing tried makes it fit"


def _remedies(shape: _Shape, budget: MemoryBudget) -> list[str]:
    """One change at a time: more ranks, narrower weights or KV, a shorter sequence, another card."""
    found: list[str] = []
    for ranks in (2, 4, 8, 16):
        if ranks > shape.ranks and _splits(shape.model, ranks) and replace(shape, ranks=ranks).fits():
            found.append(f"tensor_parallel {ranks}")
            break
    for dtype in ("fp8", "int4"):
        if DTYPE_BITS[dtype] < _widest_bits(shape) and replace(shape, weight_dtype=dtype).fits():
            found.append(f"weight_dtype {dtype}")
            break
    if shape.kv_dtype in ("auto", "bf16", "fp16") and replace(shape, kv_dtype="fp8").fits():
        found.append("kv_dtype fp8")
    longest = shape.longest(budget.layout, budget.num_gpu_blocks - NULL_PAGES)
    if 0 < longest < shape.max_model_len:
        found.append(f"max_model_len {longest}")
    return found + _bigger_cards(shape)


def _widest_bits(shape: _Shape) -> int:
    """Bits of the weights that a narrower dtype would narrow."""
    return max(DTYPE_BITS[dtype] for dtype in part_dtypes(shape.model, shape.weight_dtype))


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
