"""Bytes of the KV cache of some sequences, kind of layer by kind of layer (formulas/kv_size)."""

from __future__ import annotations

from typing import Any

from simkv.calc.answer import Answer, Line
from simkv.calc.machine import kv_dtype_line, too_long
from simkv.formulas import kv_size as forms
from simkv.model import DTYPE_BITS, AttentionLayers, ModelShape, StateLayers

CACHE_DTYPES = ("fp32", "bf16", "fp16", "fp8", "int8", "int4")
"""Formats of a cache; weights have more."""

_LINEAR = """\
bytes = sequences x tokens x bytes_per_token
bytes_per_token = layers x KV heads x (K + V width) x bytes a number;  latents: layers x width x bytes a number"""
_KINDS = """\
bytes = sequences x (sum over kinds of layers: layers x held tokens x bytes of a token in one + states)
held tokens = tokens where a layer sees all, at most the window elsewhere;  bytes_per_token: of those that see all"""


def kv_size(model: ModelShape, tokens: int, batch: int = 1, kv_dtype: str = "auto", tensor_parallel: int = 1) -> Answer:
    """Return the bytes of ``batch`` sequences of ``tokens`` each: of one copy, of one rank and of all ranks.

    Raises InputError for a split that the heads don't allow, or an unknown dtype.
    """
    rank = batch * forms.kv_bytes_per_rank(model, tokens, kv_dtype, tensor_parallel)
    all_ranks = batch * forms.kv_bytes(model, tokens, kv_dtype, tensor_parallel)
    one_copy = batch * forms.kv_bytes(model, tokens, kv_dtype)
    inputs = [
        Line("model", model.name, "model", "text", f"{model.attention_kind}, {model.layers} layers"),
        Line("tokens", tokens, "tokens of a sequence", "tokens"),
        Line("batch", batch, "sequences", "count"),
        kv_dtype_line(kv_dtype, _overhead(kv_dtype)),
        Line("tensor_parallel", tensor_parallel, "ranks", "count"),
    ]
    steps = [_kind_line(kind, kv_dtype, tensor_parallel) for kind in model.attention]
    steps += [_state_line(kind) for kind in model.state]
    result = [*_growth(model, kv_dtype), Line("bytes", one_copy, "all sequences", "size")]
    if tensor_parallel > 1:
        copies = f"{all_ranks / one_copy:.3g} copies" if all_ranks > one_copy else "split, no copies"
        result.append(Line("bytes_all_ranks", all_ranks, "on all ranks", "size", copies))
    result.append(Line("bytes_per_rank", rank, "on one rank", "size"))
    more = {
        "all_layers_bytes_per_token": forms.all_layers_bytes_per_token(model, kv_dtype),
        "state_bytes_per_sequence": forms.state_bytes_per_sequence(model),
        "window_tokens": max((kind.window or 0 for kind in model.windowed_attention), default=None),
        "kinds": [_row(kind, tokens, kv_dtype, tensor_parallel) for kind in model.attention],
    }
    return Answer(
        "Size of the KV cache", _LINEAR if model.uniform else _KINDS, inputs, steps, result, more, _notes(model),
        too_long(model, tokens),
    )  # fmt: skip


def _growth(model: ModelShape, kv_dtype: str) -> list[Line]:
    """Return what a token adds, and a sequence."""
    grown, everywhere = forms.kv_bytes_per_token(model, kv_dtype), forms.all_layers_bytes_per_token(model, kv_dtype)
    state = forms.state_bytes_per_sequence(model)
    lines = [
        Line("bytes_per_token", grown, "a token", "size", "" if model.uniform else "of layers that see all tokens")
    ]
    if everywhere > grown:
        lines.append(Line("", everywhere, "a token, all layers", "size", "where what left a window isn't freed"))
    if state:
        lines.append(Line("", state, "states of a sequence", "size", "whatever its length"))
    return lines


def _state_line(kind: StateLayers) -> Line:
    note = f"of a sequence, one layer: {kind.conv_bytes:,} B of convolution, {kind.recurrent_bytes:,} B recurrent"
    return Line("", kind.state_bytes, f"{kind.layers} layers, {kind.kind} states", "size", note)


def _kind_line(kind: AttentionLayers, kv_dtype: str, ranks: int) -> Line:
    sees = "all tokens" if kind.window is None else f"{'chunks' if kind.chunked else 'windows'} of {kind.window:,}"
    size = forms.layer_bytes_per_token(kind, kv_dtype, ranks)
    note = f"of a token, one layer, one rank: {_worked(kind, kv_dtype, ranks)}"
    if kind.shared_cache_layers:
        note += f"; {kind.shared_cache_layers} of them read another layer's and keep none"
    return Line("", size, f"{kind.layers} layers, {sees}", "size", note)


def _worked(kind: AttentionLayers, kv_dtype: str, ranks: int) -> str:
    """Return what a token's bytes in one layer and rank are made of."""
    bits = DTYPE_BITS[forms.kv_dtype_or_default(kv_dtype)]
    if kind.mla is not None:
        made = f"(latent {kind.mla.kv_lora_rank} + rope {kind.mla.qk_rope_head_dim}) x {bits} bits"
        made += ", whole in every rank" if ranks > 1 else ""
    else:
        heads = forms.kv_heads_per_rank(kind, ranks)
        made = f"{heads} KV head{'s' * (heads > 1)} x ({kind.head_dim} + {kind.value_dim}) x {bits} bits"
        made += f", copied: {ranks} ranks for {kind.kv_heads}" if ranks > kind.kv_heads else ""
    return f"{made} + {kind.index_bytes} B of index" if kind.index_bytes else made


def _overhead(kv_dtype: str) -> str:
    scale = forms.QUANT_SCALE_BYTES.get(forms.kv_dtype_or_default(kv_dtype), 0)
    return f"and {scale} B of scale a vector" if scale else ""


def _row(kind: AttentionLayers, tokens: int, kv_dtype: str, ranks: int) -> dict[str, Any]:
    return {
        "layers": kind.layers,
        "cached_layers": kind.cached_layers,
        "window_tokens": kind.window,
        "held_tokens": kind.held_tokens(tokens),
        "bytes_per_token_per_layer_per_rank": forms.layer_bytes_per_token(kind, kv_dtype, ranks),
    }


def _notes(model: ModelShape) -> list[str]:
    notes = [f"{model.name}: {model.note}."] if model.note else []
    if model.encoder_bytes_per_token:
        kept = f"Cross-attention keeps {model.encoder_bytes_per_token:,} B more, once, of each token of the encoder."
        notes.append(kept)
    return notes
