"""Weights of one tensor-parallel rank: how many, in which format, how many bytes.

Heads and MLPs are split; K and V projections replicate where ranks outnumber KV heads; MLA's down-projections are
whole in every rank. Constants are stated with their source below.
"""

from __future__ import annotations

from simkv.formulas.kv_size import kv_heads_per_rank
from simkv.model import DTYPE_BITS, ModelShape, normalise_dtype, weight_bytes_per_param

MXFP4_ALIGN = 256
"""Kernels pad the hidden side of mxfp4 experts to a multiple of this: gpt-oss-120b takes 64.38 GiB on an H100
(vLLM issue 33155), where its 4.25 bits a weight would be 60.7. Marlin (A100, Ada) pads the other side too, by 2 %
(65.97 GiB, issue 23278); that is left out."""


def native_weight_dtype(model: ModelShape, weight_dtype: str) -> str:
    """Return the dtype of the linear weights: the checkpoint's own (its main one) for ``auto``."""
    return normalise_dtype(model.checkpoint_dtype if weight_dtype == "auto" else weight_dtype)


def part_dtypes(model: ModelShape, weight_dtype: str) -> tuple[str, str, str]:
    """Return the dtypes of mixers, of dense MLPs and of routed experts.

    The checkpoint's own, ``auto`` or by name, keeps parts that it has in other formats; any other is that of all.
    """
    main = native_weight_dtype(model, weight_dtype)
    if main != native_weight_dtype(model, "auto"):
        return main, main, main
    mixer, dense, experts = (own or main for own in (model.mixer_dtype, model.dense_dtype, model.expert_dtype))
    return normalise_dtype(mixer), normalise_dtype(dense), normalise_dtype(experts)


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


def linear_parts_per_rank(model: ModelShape, tensor_parallel: int, weight_dtype: str) -> list[tuple[str, float]]:
    """Linear weights of one rank that every token passes, by dtype: ``(dtype, how many)``."""
    mixer, dense, _ = part_dtypes(model, weight_dtype)
    held = linear_params_per_rank(model, tensor_parallel)
    if mixer == dense:
        return [(mixer, held)]
    of_dense = model.dense_params / tensor_parallel
    return [(mixer, held - of_dense), (dense, of_dense)]


def linear_bytes_per_rank(model: ModelShape, tensor_parallel: int, weight_dtype: str) -> float:
    """Bytes of those weights."""
    group = model.weight_group
    parts = linear_parts_per_rank(model, tensor_parallel, weight_dtype)
    return sum(held * weight_bytes_per_param(dtype, group) for dtype, held in parts)


def routed_bytes_per_rank(model: ModelShape, tensor_parallel: int, weight_dtype: str) -> float:
    """Bytes of one rank's routed experts as kernels hold them."""
    _, _, dtype = part_dtypes(model, weight_dtype)
    hidden = (model.moe.expert_hidden if model.moe else 0) or model.hidden
    padding = -(-hidden // MXFP4_ALIGN) * MXFP4_ALIGN / hidden if dtype == "mxfp4" else 1.0
    return model.routed_params / tensor_parallel * weight_bytes_per_param(dtype, model.weight_group) * padding


def weight_bytes_per_rank(model: ModelShape, tensor_parallel: int = 1, weight_dtype: str = "auto") -> int:
    """Bytes of one rank's weights; embedding, lm_head, norms and encoders stay in the model's own 16 (or 32) bits."""
    linear = linear_bytes_per_rank(model, tensor_parallel, weight_dtype)
    routed = routed_bytes_per_rank(model, tensor_parallel, weight_dtype)
    main = native_weight_dtype(model, weight_dtype)
    wide = DTYPE_BITS["fp32"] if main == "fp32" else DTYPE_BITS[model.dtype]
    return round(linear + routed + model.unquantised_params / tensor_parallel * wide / 8)
