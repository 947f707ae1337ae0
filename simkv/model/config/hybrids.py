"""Models whose layers keep a state, all or beside attention, and models with an encoder, by ``model_type``.

Defaults here are those that aren't sizes (``classes.py``), with the same source.
"""

from __future__ import annotations

from simkv.model.config.attention import by_kind, latent, made
from simkv.model.config.extras import bart_encoder, if_gated, output_gate, t5_encoder
from simkv.model.config.family import LIMITLESS, Family, plain_mlp
from simkv.model.config.fields import MOST_LAYERS, Fields
from simkv.model.config.layout import (
    FULL,
    STATE,
    attention_every,
    blocks_in_turn,
    both,
    by_indices,
    by_kda_lists,
    by_numbers,
    by_pattern,
    by_period,
    full,
    or_else,
    states,
)
from simkv.model.config.mlp import adjusted, half, shared_or_dense
from simkv.model.config.states import (
    gated_delta_net,
    gated_recurrence,
    kda,
    lightning,
    mamba1,
    mamba2,
    short_convolution,
)
from simkv.model.layers import AttentionLayers

_DELTA = {
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "attn_output_gate": True,
}  # fmt: skip
_DELTA_MOE = _DELTA | {"decoder_sparse_step": 1, "shared_expert_intermediate_size": 512}
_MAMBA2 = {
    "mamba_num_heads": 128, "n_groups": 1, "ssm_state_size": 256, "conv_kernel": 4,
    "mamba_expand": 2,
}  # fmt: skip
_TIED = {"tie_word_embeddings": True}


def _pattern_length(fields: Fields) -> int:
    """Nemotron-H: the letters of the pattern count where the number isn't given."""
    given = fields.maybe("num_hidden_layers", 1, MOST_LAYERS)
    listed = fields.items("layer_types") or fields.word("hybrid_override_pattern")
    return given or min(len(listed), MOST_LAYERS) or fields.count("num_hidden_layers")


def _decoder_layers(fields: Fields) -> int:
    return fields.maybe("num_decoder_layers", 1, MOST_LAYERS) or fields.count("num_hidden_layers", 1, MOST_LAYERS)


def _bart_layers(fields: Fields) -> int:
    fields.key_of("num_hidden_layers")
    return fields.count("decoder_layers", 1, MOST_LAYERS)


def _bart_heads(fields: Fields, kind: str) -> AttentionLayers:
    heads, hidden = fields.count("decoder_attention_heads"), fields.count("hidden_size")
    if hidden % heads:
        raise fields.fail("decoder_attention_heads", f"doesn't divide the width {hidden}", "see d_model")
    fields.key_of("encoder_attention_heads")
    return made(fields, kind, heads, heads, hidden // heads)


def _bart_width(fields: Fields) -> int:
    return fields.count("decoder_ffn_dim")


_MAMBA1 = Family(_TIED | {"ssm_state_size": 16, "conv_kernel": 4}, layout=states,
                 mixer=mamba1("intermediate_size"), mlp=False, longest=LIMITLESS)  # fmt: skip
_LFM2 = Family(_TIED, layout=or_else("full_attn_idxs", by_indices("full_attn_idxs"), full),
               mixer=short_convolution, width=adjusted)  # fmt: skip

HYBRIDS: dict[str, Family] = {
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text"),
        Family(_DELTA_MOE, attention_every(4), mixer=gated_delta_net),
    ),
    **dict.fromkeys(
        ("qwen3_5", "qwen3_5_text"),
        Family(_DELTA, attention_every(4), mixer=gated_delta_net),
    ),
    "kimi_linear": Family(layout=by_kda_lists, attention=by_kind(latent), mixer=kda, extras=output_gate),
    **dict.fromkeys(("minimax", "minimax_m1", "minimax_text_01", "minimax_vl_01"),
                    Family(layout=by_numbers("attn_type_list", STATE, FULL),
                           mixer=lightning)),
    "nemotron_h": Family(layout=by_pattern, mixer=mamba2("fp32"),
                         matrices=plain_mlp, layers=_pattern_length),
    "jamba": Family(
        {"num_experts": 16, "num_experts_per_tok": 2, "expert_layer_period": 2,
         "expert_layer_offset": 1, "ssm_state_size": 16, "conv_kernel": 4}, layout=by_period, mixer=mamba1(),
    ),
    "bamba": Family(_MAMBA2, layout=by_indices("attn_layer_indices"), mixer=mamba2()),
    "granitemoehybrid": Family(_MAMBA2, layout=states, mixer=mamba2(), width=shared_or_dense),
    "falcon_h1": Family(_MAMBA2, layout=both, mixer=mamba2()),
    **dict.fromkeys(("mamba", "falcon_mamba"), _MAMBA1),
    "mamba2": Family({"num_heads": 128, "head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4},
                     layout=states, mixer=mamba2(), mlp=False, longest=LIMITLESS),
    **dict.fromkeys(("lfm2", "lfm2_moe"), _LFM2),
    "recurrent_gemma": Family(_TIED | {"sliding_window": 2048}, layout=blocks_in_turn, mixer=gated_recurrence,
                              width=half, longest=LIMITLESS),
    "olmo_hybrid": Family({"linear_conv_kernel_dim": 4}, layout=attention_every(4), mixer=gated_delta_net),
    **dict.fromkeys(("t5", "mt5", "umt5", "byt5"),
                    Family(_TIED, matrices=if_gated, layers=_decoder_layers, extras=t5_encoder, longest=LIMITLESS)),
    **dict.fromkeys(("bart", "mbart", "pegasus", "whisper", "m2m_100", "marian", "blenderbot", "plbart"),
                    Family(_TIED, attention=by_kind(_bart_heads), width=_bart_width, matrices=plain_mlp,
                           layers=_bart_layers, extras=bart_encoder, learned=2)),
}  # fmt: skip
