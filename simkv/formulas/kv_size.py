"""Bytes of the KV cache: per token, per rank, per sequence.

Source: the article's alpha = 2 * N_layer * N_head * d_head * b, with N_head the *KV* heads; MLA keeps
one latent of ``kv_lora_rank + qk_rope_head_dim`` a token and layer and has no factor 2.
"""

from __future__ import annotations

from simkv.errors import InputError, Problem
from simkv.model import DTYPE_BITS, ModelShape, normalise_dtype

QUANT_SCALE_BYTES = {"int8": 4, "int4": 4}
"""Scale (and zero point) of one K or V vector of one head: fp32 for int8, 16-bit scale + zero for int4."""


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
    elif model.heads % tensor_parallel:
        problem = f"doesn't divide the {model.heads} heads of {model.name}"
    elif model.mla is None and model.kv_heads % tensor_parallel and tensor_parallel % model.kv_heads:
        problem = f"neither divides nor is a multiple of the {model.kv_heads} KV heads of {model.name}"
    else:
        return
    heads, kv_heads = model.heads, model.heads if model.mla else model.kv_heads
    good = [n for n in range(1, min(heads, 64) + 1) if heads % n == 0 and (kv_heads % n == 0 or n % kv_heads == 0)]
    raise InputError(
        Problem(problem, f"use one of {', '.join(map(str, good))}", path="tensor_parallel", value=str(tensor_parallel))
    )


def kv_heads_per_rank(model: ModelShape, tensor_parallel: int) -> int:
    """KV heads that one rank holds: its share, at least one (replicated where ranks outnumber heads)."""
    check_tensor_parallel(model, tensor_parallel)
    return max(1, model.kv_heads // tensor_parallel)


def kv_bytes_per_token_per_layer_per_rank(model: ModelShape, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """Bytes that one rank keeps of one token in one layer."""
    check_tensor_parallel(model, tensor_parallel)
    if model.mla is not None:
        return vector_bytes(model.mla.kv_lora_rank + model.mla.qk_rope_head_dim, kv_dtype)
    return 2 * kv_heads_per_rank(model, tensor_parallel) * vector_bytes(model.head_dim, kv_dtype)


def kv_bytes_per_token_per_rank(model: ModelShape, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """Bytes that one rank keeps of one token, all layers."""
    return model.layers * kv_bytes_per_token_per_layer_per_rank(model, kv_dtype, tensor_parallel)


def kv_bytes_per_token(model: ModelShape, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """alpha: bytes of one token, all layers and all ranks together (copies included where heads replicate)."""
    return tensor_parallel * kv_bytes_per_token_per_rank(model, kv_dtype, tensor_parallel)


def kv_bytes(model: ModelShape, tokens: int, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """M_KV(T) = alpha * T in bytes, all ranks together."""
    return tokens * kv_bytes_per_token(model, kv_dtype, tensor_parallel)


def block_bytes(model: ModelShape, block_tokens: int, kv_dtype: str = "auto", tensor_parallel: int = 1) -> int:
    """Bytes of one block of ``block_tokens``, all layers and all ranks together."""
    return block_tokens * kv_bytes_per_token(model, kv_dtype, tensor_parallel)
