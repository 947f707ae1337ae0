"""What is not sized, and why: classes by name, files that are no model's, keys that nobody understood."""

from __future__ import annotations

import re

from simkv.errors import InputError, Problem
from simkv.model.config.fields import Fields
from simkv.model.config.source import FILE_NAME

_COMPRESSED = "keeps compressed caches with several page sizes, of which the file gives no layout"
_SPARSE = "keeps a sparse-attention index whose cache the file doesn't fix"
_SHARED_BLOCKS = "applies shared attention blocks between Mamba layers, which this tool doesn't count"
_RECURRENT = "is recurrent: no KV cache, and a state that this tool doesn't know"
_ENCODER = "is an encoder: it keeps no KV cache"
_DIFFUSION = "generates by diffusion over whole blocks, not with a growing KV cache"
_TWICE = "has two attentions a layer and experts that compute nothing"

CLASSES: dict[str, str] = {
    "deepseek_v4": _COMPRESSED,
    **dict.fromkeys(("minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text"), _SPARSE),
    **dict.fromkeys(("zamba", "zamba2"), _SHARED_BLOCKS),
    **dict.fromkeys(("rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm", "retnet"), _RECURRENT),
    **dict.fromkeys(("longcat_flash",), _TWICE),
    **dict.fromkeys(("llada", "dream", "diffusion_gemma", "sdar"), _DIFFUSION),
    **dict.fromkeys(
        ("bert", "roberta", "xlm-roberta", "xlm-roberta-xl", "distilbert", "albert", "electra", "deberta", "deberta-v2",
         "mpnet", "modernbert", "nomic_bert", "new", "gte", "camembert", "ernie", "esm", "eurobert", "longformer",
         "big_bird", "funnel", "layoutlm", "layoutlmv3", "splinter", "squeezebert", "clip", "siglip", "siglip2", "vit",
         "dinov2", "wav2vec2", "hubert", "wavlm", "t5_encoder", "bge", "jina_embeddings_v3"),
        _ENCODER,
    ),
}  # fmt: skip

STATES = "layers that keep a state"
_HINTS: tuple[tuple[str, str], ...] = (
    (r"compress\w*_(ratio|rate|rope|dim|stride|block|kernel)", "compressed caches"),
    (r"sparse_att|sparse_attention|^index_|indexer|blocksparse|block_sparse|^nsa_|^moba_", "sparse attention"),
    (r"_pattern$|(layers?|block|attn|attention)_types?(_list)?$", "kinds of layers"),
    (r"^block_configs$|^layers_config$|per_layer|_other_setting$|_per_layer$", "layers that differ"),
    (r"kv_lora|latent", "latents"),
    (r"mamba|ssm|rwkv|recurrent|^lru_|linear_(att|num|key|value|conv)|short_conv|^conv_|state_size|delta_net", STATES),
    (r"kv_shar|shared?_kv|^use_cla|^cla_|yoco|cross_layer", "layers that share a cache"),
    (r"window|attention_chunk|local_att|global_att|attn_every|dilat", "attention that doesn't see all tokens"),
    (r"cross_att", "cross-attention"),
    (r"(^|_)loops?(_|$)|ut_steps|layer_group|linear_silu", "layers that run several times, or in groups"),
)  # fmt: skip
"""Keys that speak of a cache other than plain K and V of every token in every layer."""

_NAMES = re.compile("linear|mamba|hybrid|delta|rwkv|sparse|ssm|recurrent|retnet|diffusion|loop|rnn|lstm")
_HEADS = re.compile(r"heads|head_dim|head_size|query_groups")
_HARMLESS = re.compile(
    r"^(rope|rotary|partial_rotary|vision|image|audio|video|mtp|pruned_heads|mm)_|lora$|_scale|_norm$"
)

_NOT_A_MODEL: tuple[tuple[frozenset[str], str, str], ...] = (
    (frozenset({"tokenizer_class"}), "is a tokenizer's configuration", f"name the {FILE_NAME} beside it"),
    (frozenset({"peft_type"}), "is an adapter's configuration", "name the configuration of its base model"),
    (frozenset({"max_new_tokens"}), "is a generation configuration", f"name the {FILE_NAME} beside it"),
    (frozenset({"weight_map"}), "is an index of weights", f"name the {FILE_NAME} beside it"),
    (frozenset({"n_layers", "dim"}), "is not in Hugging Face's format", f"name the {FILE_NAME} of a converted model"),
    (frozenset({"_class_name"}), "is a diffusion pipeline's configuration", "it has no KV cache"),
)
_MODEL_KEYS = frozenset({"model_type", "architectures", "text_config", "hidden_size"})


def check_is_model(top: Fields) -> None:
    """Raise for a file that is no model's configuration."""
    if _MODEL_KEYS & top.values.keys():
        return
    for keys, what, mend in _NOT_A_MODEL:
        if keys <= top.values.keys():
            raise InputError(Problem(what, mend, top.source.file, 1 if top.source.text else None))
    what = "has neither model_type nor architectures"
    raise InputError(Problem(what, f"name a model's {FILE_NAME}", top.source.file, 1 if top.source.text else None))


def check_class(fields: Fields, names: list[str]) -> None:
    """Raise where one of a file's class names is known not to be sized."""
    for name in names:
        if name in CLASSES:
            key = "model_type" if fields.get("model_type") == name else "architectures"
            mend = "give model as kv_bytes_per_token in the scenario" if CLASSES[name] != _ENCODER else "name a decoder"
            raise fields.fail(key, f"{name} {CLASSES[name]}", mend)


def check_name(fields: Fields, title: str) -> None:
    """Raise for an unfamiliar class whose name alone speaks of another cache."""
    if _NAMES.search(title.lower()):
        raise fields.fail("model_type", f"{title} sounds like more than plain attention, and isn't known",
                          "give model as kv_bytes_per_token in the scenario")  # fmt: skip


def check_direction(fields: Fields) -> None:
    """Raise for attention that looks both ways: nothing is generated token by token."""
    value = fields.get("use_bidirectional_attention")
    if value is True or value == "all":
        raise fields.fail("use_bidirectional_attention", _ENCODER, "name a decoder")


def check_unread(fields: Fields, familiar: bool, keeps_states: bool) -> None:
    """Raise where a key that nobody read speaks of the cache; of an unfamiliar class also one that speaks of heads.

    A class whose states are known has other keys about them that don't matter.
    """
    for key in fields.unread():
        lowered = key.lower()
        if _HARMLESS.search(lowered) or lowered == "chunk_size_feed_forward":
            continue
        hint = next((hint for pattern, hint in _HINTS if re.search(pattern, lowered)), "")
        if not hint and not familiar and _HEADS.search(lowered):
            hint = "heads of other layers"
        if hint and not (keeps_states and hint == STATES):
            what = f"speaks of {hint}, and this class isn't known to have that"
            raise fields.fail(key, what, "such a model isn't guessed: give model as kv_bytes_per_token in the scenario")
