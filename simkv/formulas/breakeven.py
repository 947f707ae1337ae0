"""Load a cached span, or compute it again?

Two objectives. *Latency* of one request on an idle machine: loading takes span * alpha / bandwidth,
recomputing takes the prefill, so loading wins above ``alpha * prefill tokens/s``. *Throughput*: what counts
is what each alternative takes from the resource that others wait for; a recompute holds the GPU, a load
holds the link, so loading is worth GPU seconds saved against link seconds spent, at the price of each.
"""

from __future__ import annotations

from simkv.errors import InputError, Problem
from simkv.formulas import attention
from simkv.formulas.kv_size import kv_bytes
from simkv.model import ModelShape

MOONCAKE_A = 4
MOONCAKE_B = 22
"""Constants of Mooncake (FAST'25) Eq. 2: attention FLOPs = a * p * d, linear FLOPs = b * d^2 a token and layer."""


def prefill_flops(model: ModelShape, span_tokens: int, context_before: int = 0) -> float:
    """FLOPs to prefill ``span_tokens`` after ``context_before`` cached ones: linear layers and causal attention.

    Layers with a window see no further than it. The lm_head (one row) is left out.
    """
    active = model.always_on_params + (model.moe_layers * model.moe.top_k * model.expert_params if model.moe else 0)
    return 2.0 * active * span_tokens + attention.prefill_flops(model, span_tokens, context_before)


def prefill_tokens_per_s(model: ModelShape, span_tokens: int, flops_per_s: float) -> float:
    """Mean prefill rate over the span (tokens/s) at an achieved ``flops_per_s``."""
    if span_tokens < 1 or flops_per_s <= 0:
        raise InputError(Problem("needs a span of at least one token and a rate above zero"))
    return span_tokens / (prefill_flops(model, span_tokens) / flops_per_s)


def latency_bytes_per_s(model: ModelShape, span_tokens: int, flops_per_s: float, kv_dtype: str = "auto") -> float:
    """Bandwidth (B/s, all ranks) above which loading the span beats recomputing it for one request.

    Mean bytes of a token (alpha, for uniform models) * prefill tokens/s of the reused span; ``flops_per_s`` is
    what the ranks achieve together. Of windows what they hold is loaded, of states all.
    """
    rate = prefill_tokens_per_s(model, span_tokens, flops_per_s)
    return kv_bytes(model, span_tokens, kv_dtype) / span_tokens * rate


def mooncake_bytes_per_s(
    layer_width: int, gqa: float, span_tokens: int, flops_per_s: float, element_bytes: float = 2.0
) -> float:
    """Mooncake's Eq. 2: B = G * 2 * d * s / (gqa * (a * p * d + b * d^2)) in B/s.

    ``layer_width`` d (hidden size), ``gqa`` heads a KV head, p the span in tokens, G FLOP/s, s bytes of
    an element. Source: Mooncake, FAST'25, Eq. 2, with a = 4 and b = 22. It counts every token against the
    whole span and one shape of MLP, so it is lower than :func:`latency_bytes_per_s` at long spans.
    """
    flops = MOONCAKE_A * span_tokens * layer_width + MOONCAKE_B * layer_width**2
    return flops_per_s * 2 * layer_width * element_bytes / (gqa * flops)


def throughput_gain_s(
    load_bytes: float, bytes_per_s: float, recompute_s: float, link_price: float = 1.0, gpu_price: float = 1.0
) -> float:
    """Priced seconds that a load saves: gpu_price * recompute_s - link_price * load time.

    Positive: loading is the better use. ``link_price`` is what a second of the link is worth relative to a
    second of the GPU (0 where the link idles anyway).
    """
    if bytes_per_s <= 0:
        raise InputError(Problem("needs a bandwidth above zero", path="bytes_per_s", value=str(bytes_per_s)))
    return gpu_price * recompute_s - link_price * load_bytes / bytes_per_s
