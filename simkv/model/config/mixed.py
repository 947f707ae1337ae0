"""Attention that differs within a kind of layers: indexers that layers share, heads layer by layer, searched blocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from simkv.model.config.attention import ATTENDING, attending, grouped, head_dim_of, kv_heads_of, latent, made
from simkv.model.config.family import Extra
from simkv.model.config.fields import MOST_LAYERS, Fields
from simkv.model.config.layout import FULL, NONE
from simkv.model.layers import AttentionLayers

INDEX_QUANT_BLOCK = 128
INDEX_SCALE_BYTES = 4
"""An index key is kept in fp8 with one fp32 scale a block of 128 (vLLM: deepseek_v2.py, the indexer's cache)."""


def indexed(fields: Fields, kinds: list[str]) -> tuple[AttentionLayers, ...]:
    """Latents with the key of a sparse-attention indexer; layers that share another's choice keep none (GLM-5.2)."""
    layer, width = latent(fields, FULL), fields.maybe("index_head_dim")
    if width is None:
        return (replace(layer, layers=len(kinds)),)
    own = index_layers(fields, len(kinds))
    fields.note(f"the indexers of {own} layers keep {width} fp8 numbers a token, with a scale each {INDEX_QUANT_BLOCK}")
    kept = width + INDEX_SCALE_BYTES * -(-width // INDEX_QUANT_BLOCK)
    found = replace(layer, layers=own, index_bytes=kept), replace(layer, layers=len(kinds) - own)
    return tuple(kind for kind in found if kind.layers)


def index_layers(fields: Fields, layers: int) -> int:
    """Return how many layers have an indexer of their own: listed, by letters, or every so many."""
    every, offset = fields.maybe("index_topk_freq", 0, MOST_LAYERS), fields.maybe("index_skip_topk_offset", 0)
    for name, own in (("indexer_types", "full"), ("index_topk_pattern", "F")):
        listed = fields.get(name)
        if not listed:
            continue
        if not isinstance(listed, list | str) or len(listed) != layers or own not in listed:
            raise fields.fail(name, f"doesn't say it for {layers} layers", "see num_hidden_layers")
        return sum(item == own for item in listed)
    start = 2 if offset is None else offset
    return sum(max(number - start + 1, 0) % max(every or 1, 1) == 0 for number in range(layers))


def indexer_weights(fields: Fields, kinds: list[str]) -> Extra:
    """The indexers: their queries, their key, the weights of their heads (DeepSeek V3.2, GLM-5)."""
    heads, width = fields.maybe("index_n_heads"), fields.maybe("index_head_dim")
    for name in ("index_topk", "indexer_rope_interleave", "index_share_for_mtp_iteration"):
        fields.key_of(name)
    if heads is None or width is None:
        return Extra()
    hidden = fields.count("hidden_size")
    one = (fields.maybe("q_lora_rank") or hidden) * heads * width + hidden * (width + heads)
    return Extra(passed=index_layers(fields, len(kinds)) * one)


def heads_by_layer(fields: Fields, kinds: list[str]) -> tuple[AttentionLayers, ...]:
    """Query heads that differ from layer to layer, over the same KV heads (Laguna)."""
    seen = attending(kinds)
    heads = fields.counts("num_attention_heads_per_layer", 10**6) or [fields.count("num_attention_heads")] * len(seen)
    if len(heads) != len(seen) or 0 in heads:
        what = f"lists {len(heads)} layers, not {len(seen)}"
        raise fields.fail("num_attention_heads_per_layer", what, "see num_hidden_layers")
    layer = {kind: grouped(fields, kind) for kind in ATTENDING if kind in seen}
    counts = Counter(zip(seen, heads, strict=True))
    return tuple(
        replace(made(fields, kind, wide, layer[kind].kv_heads, layer[kind].head_dim), layers=counts[kind, wide])
        for kind in layer
        for wide in sorted(set(heads))
        if counts[kind, wide]
    )


def _blocks(fields: Fields, part: str) -> list[Fields]:
    """Return the part ``attention`` or ``ffn`` of each layer of a searched architecture (Nemotron-NAS)."""
    blocks = fields.items("block_configs") or []
    found = []
    for number, block in enumerate(blocks):
        inner = block.get(part) if isinstance(block, dict) else None
        if not isinstance(inner, dict):
            raise fields.fail("block_configs", f"layer {number} has no {part}", "see the model's own file")
        found.append(Fields(inner, fields.source, (*fields.path, "block_configs"), None, fields.notes))
    return found


def searched_layout(fields: Fields, layers: int) -> list[str]:
    """Attention in each block that hasn't dropped it or made it linear."""
    blocks = _blocks(fields, "attention")
    if len(blocks) != layers:
        raise fields.fail("block_configs", f"lists {len(blocks)} layers, not {layers}", "see num_hidden_layers")
    return [NONE if block.maybe("n_heads_in_group") is None else FULL for block in blocks]


def searched(fields: Fields, kinds: list[str]) -> tuple[AttentionLayers, ...]:
    """As many KV heads as each block's ``n_heads_in_group`` leaves."""
    heads = fields.count("num_attention_heads")
    groups = Counter(block.maybe("n_heads_in_group") for block in _blocks(fields, "attention"))
    width = head_dim_of(fields, heads)
    found = []
    for group in sorted(size for size in groups if size is not None):
        if heads % group:
            raise fields.fail("block_configs", f"groups of {group} don't divide {heads} heads", "see the model's file")
        found.append(replace(made(fields, FULL, heads, heads // group, width), layers=groups[group]))
    kv_heads_of(fields, heads)
    return tuple(found)


def searched_width(fields: Fields) -> int:
    """Return the mean width of the MLPs: two thirds of ``ffn_mult`` twofold, rounded up to 256; 0 where dropped."""
    hidden, widths = fields.count("hidden_size"), []
    for block in _blocks(fields, "ffn"):
        stretch = block.get("ffn_mult")
        if isinstance(stretch, bool) or not isinstance(stretch, int | float | None) or not 0 <= (stretch or 0) < 1000:
            raise block.fail("ffn_mult", "is not a factor", "see the model's own file")
        widths.append(-(-int(2 * (stretch or 0) * hidden / 3) // 256) * 256)
    if any(one != other for one, other in pairwise(widths)):
        fields.note("intermediate_size differs by layer: counted as the mean")
    return max(1, round(sum(widths) / len(widths)))
