"""From a configuration to a shape: the inner configuration, its class, its layers, its weights."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simkv.model.config.classes import class_defaults
from simkv.model.config.decoders import DECODERS, UNFAMILIAR
from simkv.model.config.family import Family
from simkv.model.config.fields import BY_DEFAULT, MOST_TOKENS, Fields
from simkv.model.config.hybrids import HYBRIDS
from simkv.model.config.layout import BOTH, EXPERTS, MLP, STATE, kinds_of
from simkv.model.config.mlp import experts_of
from simkv.model.config.refused import CLASSES, check_class, check_direction, check_is_model, check_name, check_unread
from simkv.model.config.source import Source
from simkv.model.config.weights import dtype_of, with_weights
from simkv.model.layers import StateLayers
from simkv.model.shape import ModelShape

FAMILIES: dict[str, Family] = DECODERS | HYBRIDS
_BY_CLASS = {re.sub("[^a-z0-9]", "", name.lower()): name for name in (*CLASSES, *FAMILIES)}
_INNER = ("text_config", "llm_config", "language_config", "thinker_config")
_SUFFIX = re.compile(r"(ForCausalLM|ForConditionalGeneration|LMHeadModel|Model|HeadModel)$")
_PLAIN = (
    "layer_types", "sliding_window", "use_sliding_window", "max_window_layers", "attention_chunk_size",
    "num_attention_heads", "num_key_value_heads", "head_dim", "mlp_layer_types",
)  # fmt: skip
"""What is understood of any class."""


def shape_of_config(config: Mapping[str, Any], name: str, source: Source | None = None) -> ModelShape:
    """Return the shape that a Hugging Face configuration describes, with what was assumed in its ``note``.

    Raises :class:`InputError` for what is missing or unsound, and for classes that can't be sized, with the reason.
    """
    where = source or Source()
    top = Fields(config, where)
    check_is_model(top)
    text = _inner(top)
    names = [*_class_names(text), *(_class_names(top) if text is not top else ())]
    check_class(text, _class_names(text))
    check_class(top, _class_names(top))
    known = next((name for name in names if name in FAMILIES), "")
    family = FAMILIES.get(known, UNFAMILIAR)
    fields = text.with_defaults({**class_defaults(known), **family.defaults})
    check_direction(fields)
    if not family.familiar:
        _must_say_all(fields, names)
    shape = _shape(fields, top, family, name)
    check_unread(_seen(fields), family.familiar, family.mixer is not None)
    if top.get("vision_config") or top.get("audio_config"):
        fields.note("vision and audio towers are not counted")
    return replace(shape, source=where.file or "a configuration given as a mapping", note=_said(fields.notes))


def _said(notes: list[str]) -> str:
    """Return the notes as one text, what was left to the class together."""
    left = [note.removesuffix(BY_DEFAULT) for note in notes if note.endswith(BY_DEFAULT)]
    others = [note for note in notes if not note.endswith(BY_DEFAULT)]
    return "; ".join([*others, *([f"left to the class: {', '.join(left)}"] if left else [])])


def _inner(top: Fields) -> Fields:
    """Return the configuration of the language model inside ``top``; ``top`` itself where there is none."""
    for name in _INNER:
        if isinstance(top.get(name), dict):
            inner = top.section(name)
            if inner is not None and inner.values:
                return _inner(inner)
    return top


def _class_names(fields: Fields) -> list[str]:
    """Return what the class of a configuration may be called, its ``model_type`` first."""
    found = [fields.word("model_type")]
    for architecture in fields.items("architectures") or ():
        if isinstance(architecture, str):
            squeezed = re.sub("[^a-z0-9]", "", _SUFFIX.sub("", architecture).lower())
            found += [_BY_CLASS.get(squeezed, squeezed)]
    return [name for name in found if name]


def _must_say_all(fields: Fields, names: list[str]) -> None:
    """Raise where the file of an unfamiliar class leaves anything to the class."""
    title = names[0] if names else "without a name"
    check_name(fields, title)
    for name in ("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "vocab_size"):
        if fields.get(name) is None:
            what = f"is missing, and what the class ({title}) takes then isn't known"
            raise fields.fail(name, what, f"add {name} if you know it")
    if fields.flag("is_encoder_decoder"):
        raise fields.fail("is_encoder_decoder", f"is set, and the class ({title}) isn't known", "name a decoder")
    seen = fields.with_defaults({})
    for name in _PLAIN:
        seen.key_of(name)
    check_unread(_seen(seen), familiar=False, keeps_states=False)
    fields.note(f"class not known ({title}): read as a plain decoder, parameters may be off")


def _seen(fields: Fields) -> Fields:
    """Mark what the configuration of any class may hold beside its layers."""
    for name in ("model_type", "architectures", "num_nextn_predict_layers"):
        fields.key_of(name)
    return fields


def _shape(fields: Fields, top: Fields, family: Family, name: str) -> ModelShape:
    layers = family.layers(fields)
    kinds = kinds_of(fields, family.layout, layers)
    dtype = dtype_of(fields, top)
    extra = family.extras(fields, kinds)
    moe = experts_of(fields, kinds) if family.mlp else None
    with_experts = moe.layers if moe else 0
    dense = _dense_layers(family, kinds, with_experts)
    longest = _longest(fields, family)
    shape = ModelShape(
        name=name,
        layers=layers,
        hidden=fields.count("hidden_size"),
        attention=family.attention(fields, kinds),
        intermediate=family.width(fields) if dense else 0,
        vocab=fields.count("vocab_size"),
        dtype=dtype,
        max_position_embeddings=longest,
        state=_states(fields, family, kinds, dtype),
        dense_mlp_layers=None if dense == layers - with_experts else dense,
        moe=moe,
        tie_embeddings=_tied(fields, top),
        mlp_matrices=family.matrices(fields),
        learned_positions=longest + family.learned if family.learned is not None else 0,
        extra_params=extra.passed,
        held_params=extra.held,
        encoder_bytes_per_token=extra.encoder_bytes_per_token,
    )
    return with_weights(shape, fields, top)


def _dense_layers(family: Family, kinds: list[str], with_experts: int) -> int:
    if not family.mlp:
        return 0
    if EXPERTS in kinds or MLP in kinds:
        return kinds.count(MLP)
    return len(kinds) if family.dense_beside_experts else len(kinds) - with_experts


def _states(fields: Fields, family: Family, kinds: list[str], dtype: str) -> tuple[StateLayers, ...]:
    counts = Counter(kinds)
    layers = counts[STATE] + counts[BOTH]
    if not layers:
        return ()
    if family.mixer is None:
        raise fields.fail("layer_types", "has layers that keep a state, which this class isn't known to have",
                          "such a model isn't guessed")  # fmt: skip
    return (replace(family.mixer(fields, dtype), layers=layers),)


def _tied(fields: Fields, top: Fields) -> bool:
    """Say whether the embedding is the lm_head: the inner configuration's word, else the file's, else the class's."""
    given = fields.get("tie_word_embeddings") is not None
    return (fields if given else top.with_defaults(fields.defaults)).flag("tie_word_embeddings")


def _longest(fields: Fields, family: Family) -> int:
    """Return the longest sequence in tokens."""
    if not family.longest:
        return fields.count("max_position_embeddings", 1, MOST_TOKENS)
    given = fields.maybe("max_position_embeddings", 1, MOST_TOKENS)
    if given is None:
        fields.note(f"no longest sequence given: {family.longest} tokens")
    return given or family.longest
