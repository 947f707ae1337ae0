"""Bytes of the KV cache: per token, per rank, per sequence.

Source: the article's alpha = 2 * N_layer * N_head * d_head * b, with N_head the *KV* heads; MLA keeps
one latent of ``kv_lora_rank + qk_rope_head_dim`` a token and layer and has no factor 2. Layers with a
window stop growing at it; Mamba and linear attention hold a state of constant size a sequence; layers that
share another one's cache hold none. alpha is the growth at long context: of the layers that see all tokens.

Tensor parallel: ranks split the KV heads, and replicate them where ranks outnumber heads; latents and
indexers are whole in every rank; states are split.
"""

from __future__ import annotations

from simkv.errors import InputError, Problem
from simkv.model import DTYPE_BITS, AttentionLayers, Mla, ModelShape, normalise_dtype

QUANT_SCALE_BYTES = {"int8": 4, "int4": 4}
"""Scale (and zero point) of one K or V vector of one head: fp32 for int8, 16-bit scale + zero for int4."""
_SPARSE_SCALE_GROUP = 128
"""Numbers of an fp8 latent that share an fp32 scale where a sparse-attention kernel reads it."""


def kv_dtype_or_default(kv_dtype: str) -> str:
    """Return the cache's dtype: 16-bit for ``auto`` whatever the weights are."""
    return "bf16" if kv_dtype == "auto" else normalise_dtype(kv_dtype)


def vector_bytes(width: int, kv_dtype: str) -> int:
    """Bytes of one K or V vector of ``width`` numbers, scales included."""
    dtype = kv_dtype_or_default(kv_dtype)
    return -(-width * DTYPE_BITS[dtype] // 8) + QUANT_SCALE_BYTES.get(dtype, 0)


def check_tensor_parallel(model: ModelShape, tensor_parallel: int) -> None:
    """Raise :class:`InputError` where the heads can't be split over ``tensor_parallel`` ranks."""
    if tensor_parallel < 1:
        problem = "is not a number of ranks"
    else:
        problem = next((p for kind in model.attention if (p := _unsplit(kind, tensor_parallel))), "")
        problem = problem and f"{problem} of {model.name}"
    if not problem:
        return
    good = [n for n in range(1, 65) if not any(_unsplit(kind, n) for kind in model.attention)]
    raise InputError(
        Problem(problem, f"use one of {', '.join(map(str, good))}", path="tensor_parallel", value=str(tensor_parallel))
    )


def _unsplit(kind: AttentionLayers, ranks: int) -> str:
    """Return what keeps ``ranks`` from splitting the heads; "" where nothing does."""
    if kind.heads % ranks:
        return f"doesn't divide the {kind.heads} heads"
    if kind.mla is None and kind.kv_heads % ranks and ranks % kind.kv_heads:
        return f"neither divides nor is a multiple of the {kind.kv_heads} KV heads"
    return ""


def kv_heads_per_rank(kind: AttentionLayers, tensor_parallel: int) -> int:
    """KV heads that one rank holds: its share, at least one (replicated where ranks outnumber heads)."""
    return max(1, kind.kv_heads // tensor_parallel)


def layer_bytes_per_token(kind: AttentionLayers, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """Bytes that one rank keeps of one token in one layer of this kind."""
    if kind.mla is not None:
        return latent_bytes(kind, kind.mla, kv_dtype) + kind.index_bytes
    one = vector_bytes(kind.head_dim, kv_dtype) + vector_bytes(kind.value_dim, kv_dtype)
    return kv_heads_per_rank(kind, tensor_parallel) * one + kind.index_bytes


def latent_bytes(kind: AttentionLayers, mla: Mla, kv_dtype: str = "auto") -> int:
    """Bytes of one token's latent in one layer.

    Sparse attention keeps an fp8 latent with scales of its own and the rotary part in 16 bits: 656 bytes for
    DeepSeek-V3.2 (vLLM's and SGLang's ``fp8_ds_mla``, FlashMLA's sparse kernels).
    """
    if kv_dtype_or_default(kv_dtype) == "fp8" and kind.index_bytes:
        return mla.kv_lora_rank + 4 * -(-mla.kv_lora_rank // _SPARSE_SCALE_GROUP) + 2 * mla.qk_rope_head_dim
    return vector_bytes(mla.cached_width, kv_dtype)


def kind_bytes_per_token(kind: AttentionLayers, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """Bytes that one rank keeps of one token in all layers of this kind."""
    return kind.cached_layers * layer_bytes_per_token(kind, kv_dtype, tensor_parallel)


def kv_bytes_per_token_per_rank(model: ModelShape, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """Bytes by which one rank's cache grows a token at long context: layers that see all tokens."""
    check_tensor_parallel(model, tensor_parallel)
    return sum(kind_bytes_per_token(kind, kv_dtype, tensor_parallel) for kind in model.full_attention)


def kv_bytes_per_token(model: ModelShape, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """alpha: growth a token at long context, all ranks together (copies included where heads replicate)."""
    return tensor_parallel * kv_bytes_per_token_per_rank(model, kv_dtype, tensor_parallel)


def all_layers_bytes_per_token_per_rank(model: ModelShape, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """Growth a token on one rank where the engine doesn't free what has left a window."""
    check_tensor_parallel(model, tensor_parallel)
    return sum(kind_bytes_per_token(kind, kv_dtype, tensor_parallel) for kind in model.attention)


def all_layers_bytes_per_token(model: ModelShape, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """Growth a token where the engine doesn't free what has left a window, all ranks together."""
    return tensor_parallel * all_layers_bytes_per_token_per_rank(model, kv_dtype, tensor_parallel)


def state_bytes_per_sequence(model: ModelShape) -> int:
    """Bytes of the states of one sequence, whatever its length, all ranks together."""
    return sum(kind.layers * kind.state_bytes for kind in model.state)


def kv_bytes_per_rank(model: ModelShape, tokens: int, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """Bytes of one sequence of ``tokens`` on one rank: windows at what they hold, states included."""
    return _cache_bytes(model, tokens, kv_dtype, tensor_parallel) + -(
        -state_bytes_per_sequence(model) // tensor_parallel
    )


def kv_bytes(model: ModelShape, tokens: int, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """M_KV(T): bytes of one sequence of ``tokens``, all ranks together; alpha * T for uniform models."""
    return tensor_parallel * _cache_bytes(model, tokens, kv_dtype, tensor_parallel) + state_bytes_per_sequence(model)


def _cache_bytes(model: ModelShape, tokens: int, kv_dtype: str, tensor_parallel: int) -> int:
    """Bytes that one rank keeps of the K and V of one sequence."""
    check_tensor_parallel(model, tensor_parallel)
    kinds = model.attention
    return sum(kind.held_tokens(tokens) * kind_bytes_per_token(kind, kv_dtype, tensor_parallel) for kind in kinds)


def block_bytes(model: ModelShape, block_tokens: int, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """Bytes of one block of ``block_tokens``, all growing layers and all ranks together."""
    return block_tokens * kv_bytes_per_token(model, kv_dtype, tensor_parallel)
