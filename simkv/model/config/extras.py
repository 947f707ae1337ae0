"""Weights beside attention, states and MLPs that only some classes have."""

from __future__ import annotations

from simkv.model.config.attention import grouped
from simkv.model.config.family import Extra
from simkv.model.config.fields import MOST_LAYERS, Fields
from simkv.model.config.layout import CROSS, FULL
from simkv.model.dtypes import DTYPE_BITS

CROSS_BYTES = DTYPE_BITS["bf16"] // 8
"""Of one number of cross-attention's cache."""


def output_gate(fields: Fields, kinds: list[str]) -> Extra:
    """The gate of latent attention's output (Kimi K3)."""
    if not fields.flag("mla_use_output_gate"):
        return Extra()
    heads, width = fields.count("num_attention_heads"), fields.count("v_head_dim")
    return Extra(passed=kinds.count(FULL) * fields.count("hidden_size") * heads * width)


def per_layer_embeddings(fields: Fields, kinds: list[str]) -> Extra:
    """Embeddings of each layer and what mixes them in; Gemma 3n's alternating updates; wide MLPs of sharing layers."""
    hidden, layers = fields.count("hidden_size"), len(kinds)
    width = fields.maybe("hidden_size_per_layer_input", 0) or 0
    vocab = fields.maybe("vocab_size_per_layer_input", 0) or 0
    passed = layers * 3 * hidden * width
    passed += layers * 2 * hidden * (fields.maybe("laurel_rank", 0) or 0)
    passed += 2 * max(0, (fields.maybe("altup_num_inputs", 0) or 0) - 1) * hidden * hidden
    if fields.flag("use_double_wide_mlp"):
        wide = fields.maybe("num_kv_shared_layers", 0, MOST_LAYERS) or 0
        passed += wide * 3 * hidden * fields.count("intermediate_size")
    return Extra(passed=passed, held=vocab * layers * width)


def cross_attention(fields: Fields, kinds: list[str]) -> Extra:
    """Layers that attend to an image and keep no text (Llama 3.2 Vision)."""
    layers, layer = kinds.count(CROSS), grouped(fields, FULL)
    kept = layers * 2 * layer.kv_heads * layer.head_dim * CROSS_BYTES
    return Extra(passed=layers * layer.params(fields.count("hidden_size")), encoder_bytes_per_token=kept)


def t5_encoder(fields: Fields, kinds: list[str]) -> Extra:
    """T5: cross-attention in each decoder layer, and an encoder of as many or other layers."""
    hidden, layer = fields.count("hidden_size"), grouped(fields, FULL)
    attention, encoder = layer.params(hidden), fields.count("num_hidden_layers", 1, MOST_LAYERS)
    mlp = if_gated(fields) * hidden * fields.count("intermediate_size")
    return Extra(
        passed=len(kinds) * attention, held=encoder * (attention + mlp),
        encoder_bytes_per_token=len(kinds) * 2 * layer.kv_heads * layer.head_dim * CROSS_BYTES,
    )  # fmt: skip


def if_gated(fields: Fields) -> int:
    """Return the matrices of T5's MLP: three where ``feed_forward_proj`` is gated."""
    return 3 if fields.word("feed_forward_proj").startswith("gated") or fields.flag("is_gated_act") else 2


def bart_encoder(fields: Fields, kinds: list[str]) -> Extra:
    """BART and its like, Whisper: cross-attention in each decoder layer, and an encoder with heads of its own."""
    hidden = fields.count("hidden_size")
    attention, encoder = 4 * hidden * hidden, fields.count("encoder_layers", 1, MOST_LAYERS)
    return Extra(
        passed=len(kinds) * attention, held=encoder * (attention + 2 * hidden * fields.count("encoder_ffn_dim")),
        encoder_bytes_per_token=len(kinds) * 2 * hidden * CROSS_BYTES,
    )  # fmt: skip
