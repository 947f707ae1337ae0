"""Feed-forward parts: the width of dense MLPs, the experts, and which layers have which."""

from __future__ import annotations

from collections.abc import Callable

from simkv.model.config.fields import MOST_LAYERS, Fields
from simkv.model.config.layout import EXPERTS, MLP
from simkv.model.layers import Moe

Width = Callable[[Fields], int]


def width_of(fields: Fields) -> int:
    """Return the width of a dense MLP; layers of several widths count as their mean."""
    dense = fields.maybe("dense_intermediate_size")
    if dense is not None:
        fields.key_of("intermediate_size")
        return dense
    if not isinstance(fields.get("intermediate_size"), list):
        return fields.count("intermediate_size")
    widths = fields.counts("intermediate_size", 10**8) or [0]
    mean = round(sum(widths) / len(widths))
    if mean < 1:
        raise fields.fail("intermediate_size", "has no width above 0", "see the model's own file")
    if len(set(widths)) > 1:
        fields.note("intermediate_size differs by layer: counted as the mean")
    return mean


def four_times_hidden(fields: Fields) -> int:
    """Return the width of a dense MLP; missing or null it is four times the hidden size (GPT-2 and its like)."""
    return fields.maybe("intermediate_size") or 4 * fields.count("hidden_size")


def half(fields: Fields) -> int:
    """Qwen's first models count gate and up projection together."""
    return fields.count("intermediate_size", 2) // 2


def expansion(fields: Fields) -> int:
    """Return the width as ``expansion_ratio`` of the hidden size (MPT)."""
    return (fields.maybe("expansion_ratio") or 4) * fields.count("hidden_size")


def in_ffn_config(fields: Fields) -> int:
    """Return the width in ``ffn_config`` (DBRX)."""
    inner = fields.section("ffn_config")
    return inner.count("intermediate_size") if inner is not None else fields.count("intermediate_size")


def adjusted(fields: Fields) -> int:
    """Two thirds, stretched and rounded up, where ``block_auto_adjust_ff_dim`` is set (LFM2)."""
    width = fields.count("intermediate_size")
    if not fields.flag("block_auto_adjust_ff_dim"):
        return width
    stretch = fields.get("block_ffn_dim_multiplier")
    stretch = 1.0 if stretch is None else stretch
    if isinstance(stretch, bool) or not isinstance(stretch, int | float) or not 0 < stretch < 1000:
        raise fields.fail("block_ffn_dim_multiplier", "is not a factor", "see the model's own file")
    unit = fields.maybe("block_multiple_of") or 256
    return unit * -(-int(stretch * (2 * width // 3)) // unit)


def shared_or_dense(fields: Fields) -> int:
    """Return the width of the always-on MLP, which stands alone where there are no experts (Granite 4)."""
    if fields.maybe("num_experts", 0):
        return fields.count("intermediate_size")
    return fields.maybe("shared_expert_intermediate_size", 0) or fields.count("intermediate_size")


def experts_of(fields: Fields, kinds: list[str]) -> Moe | None:
    """Return the experts and how many layers have them; None without."""
    inner = fields.section("ffn_config") or fields
    experts = inner.maybe("num_experts", 0)
    layers = _layers_with_experts(fields, kinds) if experts is not None and experts > 1 else 0
    if experts is None or not layers:
        _leave(inner)
        return None
    top_k = inner.count("num_experts_per_tok")
    if top_k > experts:
        raise inner.fail("num_experts_per_tok", f"is more than the {experts} experts", "see num_experts")
    width = inner.maybe("moe_intermediate_size") or inner.count("intermediate_size")
    shared, shared_width = _shared(fields)
    return Moe(
        experts=experts, top_k=top_k, intermediate=width, layers=layers, shared=shared,
        shared_intermediate=shared_width if shared else 0, expert_hidden=inner.maybe("moe_latent_size") or 0,
    )  # fmt: skip


def _leave(fields: Fields) -> None:
    """Mark what speaks of experts as seen: there are none."""
    for name in ("num_experts_per_tok", "moe_intermediate_size", "n_shared_experts", "decoder_sparse_step"):
        fields.key_of(name)


def _shared(fields: Fields) -> tuple[int, int]:
    """Return how many shared experts, and the width of one (0: as a routed one).

    A width of its own is that of all shared ones together, as the classes that have the key read it.
    """
    width = fields.maybe("shared_expert_intermediate_size", 0) or 0
    count = fields.maybe("n_shared_experts", 0, MOST_LAYERS)
    if width:
        return (0, 0) if count == 0 else (1, width)
    return count or 0, 0


def _layers_with_experts(fields: Fields, kinds: list[str]) -> int:
    """Count the layers with experts, by whichever keys the file uses to say it."""
    if EXPERTS in kinds or MLP in kinds:
        return kinds.count(EXPERTS)
    layers = len(kinds)
    for name, rule in _RULES.items():
        if fields.get(name) is not None or (fields.key_of(name) is None and name in fields.defaults):
            found = rule(fields, layers)
            break
    else:
        found = layers - (fields.maybe("first_k_dense_replace", 0, MOST_LAYERS) or 0)
    return max(0, found)


def _listed(fields: Fields, layers: int) -> int:
    types = fields.items("mlp_layer_types") or []
    return sum(item == "sparse" for item in types[:layers])


def _frequency(fields: Fields, layers: int) -> int:
    first = fields.maybe("first_k_dense_replace", 0, MOST_LAYERS) or 0
    if isinstance(fields.get("moe_layer_freq"), list):
        return sum(bool(item) for item in (fields.counts("moe_layer_freq") or [])[:layers])
    every = fields.count("moe_layer_freq", 1, MOST_LAYERS)
    return sum(number >= first and number % every == 0 for number in range(layers))


def _sparse_step(fields: Fields, layers: int) -> int:
    every = fields.count("decoder_sparse_step", 0, MOST_LAYERS)
    dense = set(fields.counts("mlp_only_layers") or [])
    return sum(every > 0 and (number + 1) % every == 0 and number not in dense for number in range(layers))


def _interleaved(fields: Fields, layers: int) -> int:
    chosen = fields.counts("moe_layers")
    if chosen is not None:
        return len({number for number in chosen if number < layers})
    return layers // fields.count("interleave_moe_layer_step", 1, MOST_LAYERS)


def _periodic(fields: Fields, layers: int) -> int:
    period = fields.count("expert_layer_period", 1, MOST_LAYERS)
    offset = fields.maybe("expert_layer_offset", 0, MOST_LAYERS) or 0
    return sum(number % period == offset for number in range(layers))


def _enumerated(fields: Fields, layers: int) -> int:
    given = fields.get("moe_layers_enum")
    items = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else []
    return len({str(item).strip() for item in items} & {str(number) for number in range(layers)})


def _between(fields: Fields, layers: int) -> int:
    every = fields.maybe("moe_layer_interval", 1, MOST_LAYERS) or 1
    first = fields.maybe("moe_layer_start_index", 0, MOST_LAYERS) or 0
    last = fields.maybe("moe_layer_end_index", -1, MOST_LAYERS)
    last = layers - 1 if last is None or last < 0 else last
    return sum((number + 1) % every == 0 and first <= number <= last for number in range(layers))


def _after_dense(fields: Fields, layers: int) -> int:
    return layers - fields.count("num_dense_layers", 0, MOST_LAYERS)


_RULES: dict[str, Callable[[Fields, int], int]] = {
    "mlp_layer_types": _listed,
    "moe_layer_freq": _frequency,
    "decoder_sparse_step": _sparse_step,
    "interleave_moe_layer_step": _interleaved,
    "expert_layer_period": _periodic,
    "moe_layers_enum": _enumerated,
    "moe_layer_interval": _between,
    "moe_layer_start_index": _between,
    "num_dense_layers": _after_dense,
}
"""What says which layers have experts; the first key that the file has decides."""
