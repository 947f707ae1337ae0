"""Figures of the roofline from tables of times: for models and lengths that weren't measured."""

from __future__ import annotations

from statistics import median

from simkv.formulas.attention import pairs, prefill_flops_per_pair
from simkv.formulas.kv_size import layer_bytes_per_token
from simkv.model import DTYPE_BITS, ModelShape
from simkv.profile.schema import Compute, Rates

FEW_TOKENS = 4
"""Up to so many, matrix products take as long as reading their weights."""
_LARGE = 4.0
"""Attention over at least the longest context by this: its own start no longer counts."""


def fit_rates(compute: Compute, model: ModelShape) -> Rates:
    """Return what the tables of ``compute`` are in FLOP/s and B/s, all for one layer of ``model``."""
    linear, kind = compute.linear, model.attention[0]
    few = [point for point in linear if point[0] <= FEW_TOKENS] or [linear[0]]
    token_bytes = layer_bytes_per_token(kind, compute.dtype)
    reads = [point for row in compute.decode for point in row.context]
    long = max(tokens for tokens, _ in reads) / _LARGE
    pair_flops = prefill_flops_per_pair(kind)
    return Rates(
        flops_per_s=max(tokens * linear_flops(model) / seconds for tokens, seconds in linear),
        weight_bytes_per_s=median(linear_bytes(model, compute.dtype, tokens) / seconds for tokens, seconds in few),
        attention_bytes_per_s=median(tokens * token_bytes / seconds for tokens, seconds in reads if tokens >= long),
        attention_flops_per_s=max(pair_flops * pairs(int(tokens)) / seconds for tokens, seconds in compute.prefill),
    )


def linear_flops(model: ModelShape) -> float:
    """FLOPs of one token in the matrix products of a layer, the mean of all layers."""
    routed = model.moe_layers * model.moe.top_k * model.expert_params if model.moe else 0
    return 2 * (model.always_on_params + routed) / model.layers


def linear_bytes(model: ModelShape, dtype: str, tokens: float) -> float:
    """Bytes of the weights that ``tokens`` tokens read in a layer, the mean of all; of experts at most one each way."""
    routed = 0.0
    if model.moe:
        routed = model.moe_layers * min(model.moe.experts, tokens * model.moe.top_k) * model.expert_params
    return (model.always_on_params + routed) / model.layers * DTYPE_BITS[dtype] / 8
