"""Attention of each kind of layer: heads, their widths, windows, latents, shared caches.

A geometry takes the fields and the kind and returns *one* layer of it; :func:`by_kind` counts layers that are alike
together. ``mixed.py`` has what differs within a kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from simkv.model.config.fields import MOST_LAYERS, Fields
from simkv.model.config.layout import BOTH, CHUNKED, FULL, SLIDING
from simkv.model.layers import AttentionLayers, Mla

Geometry = Callable[[Fields, str], AttentionLayers]
Attention = Callable[[Fields, list[str]], tuple[AttentionLayers, ...]]


ATTENDING = (FULL, SLIDING, CHUNKED)
"""Kinds with a cache that grows with the text, those that see all tokens first."""


def by_kind(geometry: Geometry) -> Attention:
    """Return a function that gives each kind of attention with how many layers it has."""

    def attention(fields: Fields, kinds: list[str]) -> tuple[AttentionLayers, ...]:
        seen = attending(kinds)
        counts, shared = Counter(seen), _shared(fields, seen)
        return tuple(
            replace(geometry(fields, kind), layers=counts[kind], shared_cache_layers=shared[kind])
            for kind in ATTENDING
            if counts[kind]
        )

    return attention


def attending(kinds: list[str]) -> list[str]:
    """Return the kinds with a state beside attention as what their attention sees."""
    return [FULL if kind == BOTH else kind for kind in kinds]


def _shared(fields: Fields, kinds: list[str]) -> Counter[str]:
    """Count the layers, by kind, that read another layer's cache."""
    last = fields.maybe("num_kv_shared_layers", 0, MOST_LAYERS) or 0
    if last:
        own = kinds[: len(kinds) - last]
        if last >= len(kinds) or not set(kinds[len(kinds) - last :]) <= set(own):
            raise fields.fail("num_kv_shared_layers", "leaves a kind of layer without a cache", "see layer_types")
        return Counter(kinds[len(kinds) - last :])
    if fields.flag("use_cla"):
        group = fields.maybe("cla_share_factor", 1, MOST_LAYERS) or 1
        return Counter(kind for number, kind in enumerate(kinds) if number % group)
    fields.maybe("cla_share_factor", 0, MOST_LAYERS)
    return Counter()


def window_of(fields: Fields, kind: str) -> int | None:
    """Return the tokens that a layer of ``kind`` sees; None: all."""
    if kind == SLIDING:
        return fields.count("sliding_window")
    return fields.count("attention_chunk_size") if kind == CHUNKED else None


def grouped(fields: Fields, kind: str) -> AttentionLayers:
    """Heads that share KV heads (MHA, GQA, MQA)."""
    heads = fields.count("num_attention_heads")
    return made(fields, kind, heads, kv_heads_of(fields, heads), head_dim_of(fields, heads))


def made(fields: Fields, kind: str, heads: int, kv_heads: int, head_dim: int, v_head_dim: int = 0) -> AttentionLayers:
    """Return one layer of ``kind``; KV heads must divide the heads."""
    if heads % kv_heads:
        raise fields.fail("num_key_value_heads", f"{kv_heads} KV heads don't divide {heads} heads", "see the file")
    return AttentionLayers(
        layers=1, heads=heads, kv_heads=kv_heads, head_dim=head_dim, v_head_dim=v_head_dim,
        window=window_of(fields, kind), chunked=kind == CHUNKED, output_gate=fields.flag("attn_output_gate"),
    )  # fmt: skip


def kv_heads_of(fields: Fields, heads: int) -> int:
    """Return the KV heads: null is one for each head, and so is a missing key unless the class says otherwise."""
    if fields.key_of("num_key_value_heads") is not None and fields.get("num_key_value_heads") is None:
        return heads
    return fields.maybe("num_key_value_heads") or heads


def head_dim_of(fields: Fields, heads: int) -> int:
    """Return the width of a head: as given, else the class's own, else hidden / heads."""
    given = fields.maybe("head_dim")
    if given is not None:
        return given
    hidden = fields.count("hidden_size")
    if hidden % heads:
        mend = "add head_dim, or see num_attention_heads"
        raise fields.fail("head_dim", f"is missing, and {heads} heads don't divide {hidden}", mend)
    return hidden // heads


GROUPED = by_kind(grouped)
"""The attention of most models."""


def latent(fields: Fields, kind: str) -> AttentionLayers:
    """One latent a token (MLA)."""
    heads = fields.count("num_attention_heads")
    for unused in ("num_key_value_heads", "head_dim", "qk_head_dim"):
        fields.key_of(unused)
    mla = Mla(
        kv_lora_rank=fields.count("kv_lora_rank"),
        qk_rope_head_dim=fields.count("qk_rope_head_dim"),
        qk_nope_head_dim=fields.count("qk_nope_head_dim"),
        v_head_dim=fields.maybe("v_head_dim") or fields.count("hidden_size") // heads or 1,
        q_lora_rank=fields.maybe("q_lora_rank"),
    )
    return AttentionLayers(layers=1, heads=heads, kv_heads=heads, head_dim=0, window=window_of(fields, kind), mla=mla)


def global_and_local(fields: Fields, kind: str) -> AttentionLayers:
    """Layers that see all tokens may have other heads (Gemma 4); K and V are both stored even where they are equal."""
    heads = fields.count("num_attention_heads")
    kv_heads, width = kv_heads_of(fields, heads), head_dim_of(fields, heads)
    wide, few = fields.maybe("global_head_dim"), fields.maybe("num_global_key_value_heads")
    equal = fields.flag("attention_k_eq_v")
    if kind == FULL:
        width = wide or width
        kv_heads = few if few is not None and equal else kv_heads
    return made(fields, kind, heads, kv_heads, width)


def own_when_sliding(fields: Fields, kind: str) -> AttentionLayers:
    """Sliding layers with heads of their own, under ``swa_`` names; twice the KV heads without (MiMo-V2).

    ``sliding_window_size`` counts the tokens before the query.
    """
    names = ("num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim")
    own = {name: fields.maybe(f"swa_{name}") for name in names}
    before = fields.maybe("sliding_window_size")
    fields.key_of("attention_chunk_size")
    heads = fields.count("num_attention_heads")
    kv_heads, width, value = kv_heads_of(fields, heads), head_dim_of(fields, heads), fields.maybe("v_head_dim") or 0
    if kind != SLIDING:
        return made(fields, kind, heads, kv_heads, width, value)
    layer = made(
        fields, kind, own["num_attention_heads"] or heads, own["num_key_value_heads"] or 2 * kv_heads,
        own["head_dim"] or width, own["v_head_dim"] or value,
    )  # fmt: skip
    return layer if before is None else replace(layer, window=before + 1)


def other_when_sliding(fields: Fields, kind: str) -> AttentionLayers:
    """Sliding layers with heads of their own, in ``attention_other_setting`` (Step 3.5, 3.7)."""
    layer = grouped(fields, kind)
    other = fields.section("attention_other_setting")
    heads = fields.maybe("num_sliding_attention_heads")
    if kind != SLIDING:
        return layer
    if other is None and heads is None:
        fields.note("no head counts of their own for the sliding layers: taken as the others'")
        return layer
    if other is not None:
        heads = other.count("num_attention_heads")
        kv_heads, width = other.maybe("num_key_value_heads"), other.maybe("head_dim")
        return made(fields, kind, heads, kv_heads or layer.kv_heads, width or layer.head_dim)
    return made(fields, kind, heads or layer.heads, layer.kv_heads, layer.head_dim)


def multi_query(fields: Fields, kind: str) -> AttentionLayers:
    """One KV head where ``multi_query`` is set (GPTBigCode)."""
    heads = fields.count("num_attention_heads")
    return made(fields, kind, heads, 1 if fields.flag("multi_query", True) else heads, head_dim_of(fields, heads))


def falcon(fields: Fields, kind: str) -> AttentionLayers:
    """``num_kv_heads`` with the new architecture, else one KV head with ``multi_query``, else one a head."""
    heads = fields.count("num_attention_heads")
    given = fields.maybe("num_key_value_heads")
    if fields.flag("new_decoder_architecture"):
        kv_heads = given or heads
        fields.flag("multi_query", True)
    else:
        kv_heads = 1 if fields.flag("multi_query", True) else heads
    return made(fields, kind, heads, kv_heads, head_dim_of(fields, heads))


def in_attn_config(fields: Fields, kind: str) -> AttentionLayers:
    """KV heads in ``attn_config`` (MPT, DBRX)."""
    heads = fields.count("num_attention_heads")
    inner = fields.section("attn_config")
    kv_heads = inner.maybe("num_key_value_heads") if inner is not None else None
    name = inner.word("attn_type") if inner is not None else ""
    if kv_heads is None:
        kv_heads = 1 if name == "multiquery_attention" else heads
    if inner is not None and inner.maybe("sliding_window_size", -1) not in (None, -1):
        raise inner.fail("sliding_window_size", "slides in a way that isn't known", "set it to -1")
    return made(fields, kind, heads, kv_heads, head_dim_of(fields, heads))


def multi_query_groups(fields: Fields, kind: str) -> AttentionLayers:
    """``multi_query_group_num`` KV heads where ``multi_query_attention`` is set (ChatGLM)."""
    heads = fields.count("num_attention_heads")
    groups = fields.maybe("multi_query_group_num")
    kv_heads = groups if fields.flag("multi_query_attention") and groups is not None else heads
    return made(fields, kind, heads, kv_heads, head_dim_of(fields, heads))
