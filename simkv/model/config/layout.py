"""What kind each layer is: as the file lists them, or by the rule of the class that reads it.

A rule takes the fields and the number of layers and returns one kind a layer, first to last.
"""

from __future__ import annotations

from collections.abc import Callable

from simkv.model.config.fields import MOST_LAYERS, Fields

FULL, SLIDING, CHUNKED, STATE, BOTH, CROSS, NONE, MLP, EXPERTS = (
    "full", "sliding", "chunked", "state", "state and full", "cross", "none", "mlp", "experts",
)  # fmt: skip
"""See all tokens, a window, a chunk; keep a state; both side by side; attend to another sequence; attend to nothing;
an MLP or experts instead of a mixer."""

Layout = Callable[[Fields, int], list[str]]

LISTED = {
    "full_attention": FULL,
    "attention": FULL,
    "indexed_attention": FULL,
    "deepseek_sparse_attention": FULL,
    "sliding_attention": SLIDING,
    "chunked_attention": CHUNKED,
    "linear_attention": STATE,
    "mamba": STATE,
    "conv": STATE,
    "recurrent": STATE,
    "hybrid": BOTH,
    "mlp": MLP,
    "moe": EXPERTS,
}
"""Names in ``layer_types`` and ``layers_block_type``."""


_SAID_TWICE = (
    "sliding_window_pattern", "full_attention_interval", "no_rope_layers", "no_rope_layer_interval", "attn_type_list",
    "hybrid_layer_pattern", "hybrid_override_pattern", "global_attn_every_n_layers", "max_window_layers",
    "attn_layer_indices", "full_attn_idxs", "block_types",
)  # fmt: skip
"""What needn't be asked where a file lists its layers."""


def kinds_of(fields: Fields, rule: Layout, layers: int) -> list[str]:
    """Return the kind of each layer: listed in the file, else by ``rule``; windows that are off count as full."""
    listed = fields.items("layer_types")
    for name in _SAID_TWICE if listed is not None else ():
        fields.key_of(name)
    kinds = rule(fields, layers) if listed is None else _listed(fields, listed, layers)
    if CHUNKED in kinds and fields.maybe("attention_chunk_size") is None:
        kinds = [FULL if kind == CHUNKED else kind for kind in kinds]
    if SLIDING in kinds and not window_on(fields):
        kinds = [FULL if kind == SLIDING else kind for kind in kinds]
    return kinds


def window_on(fields: Fields) -> bool:
    """Say whether the file has a window and doesn't switch it off."""
    window = fields.maybe("sliding_window", 0)
    return fields.flag("use_sliding_window", True) and bool(window)


def _listed(fields: Fields, listed: list[object], layers: int) -> list[str]:
    unknown = [item for item in listed if not isinstance(item, str) or item not in LISTED]
    if unknown:
        raise fields.fail(
            "layer_types", f"{unknown[0]!r} is no kind of layer that can be sized", f"know {', '.join(LISTED)}"
        )
    drafts = fields.maybe("num_nextn_predict_layers", 0, MOST_LAYERS) or 0
    if len(listed) not in (layers, layers + drafts):
        raise fields.fail("layer_types", f"lists {len(listed)} layers, not {layers}", "see num_hidden_layers")
    kinds = [LISTED[str(item)] for item in listed[:layers]]
    if SLIDING in kinds and fields.key_of("sliding_window") is None and fields.maybe("sliding_window") is None:
        raise fields.fail("sliding_window", "is missing, and some layers slide", "add their window in tokens")
    if CHUNKED in kinds and fields.maybe("attention_chunk_size") is None:
        raise fields.fail(
            "attention_chunk_size", "is missing, and some layers are chunked", "add their chunk in tokens"
        )
    return kinds


def full(fields: Fields, layers: int) -> list[str]:
    """All layers see all tokens; says so where the file has a window that the class doesn't use."""
    fields.maybe("max_window_layers", 0)
    if window_on(fields):
        fields.note("sliding_window is not used by this class")
    return [FULL] * layers


def full_without_windows(fields: Fields, layers: int) -> list[str]:
    """All layers see all tokens, as far as the file says: a window without kinds of layers is ambiguous."""
    if window_on(fields):
        raise fields.fail("sliding_window", "is set, but not for which layers", "add layer_types, or set it to null")
    fields.maybe("max_window_layers", 0)
    return [FULL] * layers


def full_but_cross(fields: Fields, layers: int) -> list[str]:
    """All layers see all tokens but those that attend to an image (Llama 3.2 Vision)."""
    numbers = fields.counts("cross_attention_layers") or [3, 8, 13, 18, 23, 28, 33, 38]
    cross = _within(fields, numbers, "cross_attention_layers", 0, layers - 1)
    return [CROSS if number in cross else FULL for number in range(layers)]


def sliding(fields: Fields, layers: int) -> list[str]:
    """All layers slide (Mistral, Phi-3, Mixtral)."""
    fields.maybe("max_window_layers", 0)
    return [SLIDING] * layers


def sliding_from_max_window_layers(fields: Fields, layers: int) -> list[str]:
    """The first ``max_window_layers`` layers see all tokens, the others slide (Qwen2, Qwen3)."""
    fields.key_of("max_window_layers")
    first = fields.maybe("max_window_layers", 0, MOST_LAYERS) if window_on(fields) else None
    if first is None:
        return [FULL] * layers
    return [SLIDING if number >= first else FULL for number in range(layers)]


def full_every(period: int, key: str = "sliding_window_pattern", first: bool = False, last: bool = False) -> Layout:
    """Every ``period``-th layer sees all tokens, the others slide; ``key`` of the file may say another period.

    ``first``, ``last``: the first or last layer sees all tokens too.
    """

    def rule(fields: Fields, layers: int) -> list[str]:
        if key and isinstance(fields.get(key), str):
            return _letters(fields, key, layers)
        every = fields.maybe(key, 0, MOST_LAYERS) if key else None
        every = period if every is None else every
        kinds = [SLIDING if every == 0 or (number + 1) % every else FULL for number in range(layers)]
        if first:
            kinds[0] = FULL
        if last:
            kinds[-1] = FULL
        return kinds

    return rule


def _letters(fields: Fields, key: str, layers: int) -> list[str]:
    """``L`` for a window and ``G`` for all tokens, repeated (EXAONE 4)."""
    letters = fields.word(key)
    if not letters or set(letters) - {"L", "G"}:
        raise fields.fail(key, "holds something else than L and G", "see the model's own file")
    return [SLIDING if letters[number % len(letters)] == "L" else FULL for number in range(layers)]


def full_where_no_rope(fields: Fields, layers: int) -> list[str]:
    """Layers without rotary positions see all tokens, the others their chunk (Llama 4).

    ``no_rope_layers`` has 1 for a layer *with* them; missing or empty it is every 4th layer without.
    """
    interval = fields.maybe("no_rope_layer_interval", 1, MOST_LAYERS) or 4
    if fields.items("no_rope_layers") is None:
        return [CHUNKED if (number + 1) % interval else FULL for number in range(layers)]
    return by_numbers("no_rope_layers", FULL, CHUNKED)(fields, layers)


def attention_every(period: int) -> Layout:
    """Every ``period``-th layer is attention, the others keep a state (Qwen3-Next: ``full_attention_interval``)."""

    def rule(fields: Fields, layers: int) -> list[str]:
        every = fields.maybe("full_attention_interval", 1, MOST_LAYERS) or period
        return [STATE if (number + 1) % every else FULL for number in range(layers)]

    return rule


def by_numbers(key: str, zero: str, one: str) -> Layout:
    """Kinds as numbers in the list ``key`` (MiniMax: 1 for attention; MiMo-V2: 1 for a window)."""

    def rule(fields: Fields, layers: int) -> list[str]:
        types = fields.counts(key, 1)
        if types is None:
            raise fields.fail(key, "is missing", f"add it: 1 for {one}, 0 for {zero}")
        if len(types) != layers:
            raise fields.fail(key, f"lists {len(types)} layers, not {layers}", "see num_hidden_layers")
        return [one if number else zero for number in types]

    return rule


def or_else(key: str, listed: Layout, otherwise: Layout) -> Layout:
    """Use ``listed`` where the file has ``key``, else ``otherwise``."""

    def rule(fields: Fields, layers: int) -> list[str]:
        return (listed if fields.items(key) is not None else otherwise)(fields, layers)

    return rule


def by_period(fields: Fields, layers: int) -> list[str]:
    """Attention at ``attn_layer_offset`` of each ``attn_layer_period``, a state elsewhere (Jamba)."""
    period = fields.maybe("attn_layer_period", 1, MOST_LAYERS) or 8
    offset = fields.maybe("attn_layer_offset", 0, MOST_LAYERS)
    offset = 4 if offset is None else offset
    return [FULL if number % period == offset else STATE for number in range(layers)]


def by_indices(key: str) -> Layout:
    """Attention in the layers that ``key`` lists, from 0; a state elsewhere; without the list all are states."""

    def rule(fields: Fields, layers: int) -> list[str]:
        chosen = _within(fields, fields.counts(key, MOST_LAYERS) or [], key, 0, layers - 1)
        return [FULL if number in chosen else STATE for number in range(layers)]

    return rule


def by_kda_lists(fields: Fields, layers: int) -> list[str]:
    """Attention and KDA in the layers that ``linear_attn_config`` lists, from 1 (Kimi Linear)."""
    linear = fields.section("linear_attn_config")
    if linear is None:
        raise fields.fail("linear_attn_config", "is missing", "add full_attn_layers and kda_layers")
    attention = _within(linear, linear.counts("full_attn_layers") or [], "full_attn_layers", 1, layers)
    delta = _within(linear, linear.counts("kda_layers") or [], "kda_layers", 1, layers)
    if len(attention) + len(delta) != layers or attention & delta:
        what = f"lists {len(attention)} layers of attention and {len(delta)} of KDA, not {layers} in all"
        raise fields.fail("linear_attn_config", what, "see num_hidden_layers")
    return [FULL if number + 1 in attention else STATE for number in range(layers)]


def _within(fields: Fields, numbers: list[int], key: str, least: int, most: int) -> set[int]:
    wrong = next((number for number in numbers if not least <= number <= most), None)
    if wrong is not None:
        raise fields.fail(key, f"{wrong} is no layer: they go from {least} to {most}", "see num_hidden_layers")
    return set(numbers)


def states(fields: Fields, layers: int) -> list[str]:
    """All layers keep a state (Mamba)."""
    return [STATE] * layers


def both(fields: Fields, layers: int) -> list[str]:
    """All layers have attention and a state side by side (Falcon-H1)."""
    return [BOTH] * layers


PATTERN = {"M": STATE, "*": FULL, "-": MLP, "E": EXPERTS}
"""Letters of Nemotron-H's ``hybrid_override_pattern``."""


def by_pattern(fields: Fields, layers: int) -> list[str]:
    """One letter a layer (Nemotron-H)."""
    pattern = fields.word("hybrid_override_pattern")
    unknown = next((letter for letter in pattern if letter not in PATTERN), None)
    if unknown is not None:
        raise fields.fail("hybrid_override_pattern", f"{unknown!r} is no kind of layer", f"know {', '.join(PATTERN)}")
    if len(pattern) != layers:
        what = f"has {len(pattern)} letters, not {layers}"
        raise fields.fail("hybrid_override_pattern", what, "see num_hidden_layers")
    return [PATTERN[letter] for letter in pattern]


def blocks_in_turn(fields: Fields, layers: int) -> list[str]:
    """``block_types`` repeated: recurrent or attention with a window (RecurrentGemma)."""
    turn = fields.items("block_types") or ["recurrent", "recurrent", "attention"]
    kinds = {"recurrent": STATE, "attention": SLIDING}
    if not all(item in ("recurrent", "attention") for item in turn):
        raise fields.fail("block_types", "holds something else than recurrent and attention", "see the model's file")
    return [kinds[turn[number % len(turn)]] for number in range(layers)]
