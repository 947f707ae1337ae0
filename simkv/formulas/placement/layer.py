"""One layer of a model as batch mode sees it: every layer the same."""

from __future__ import annotations

from dataclasses import dataclass

from simkv.errors import InputError, Problem
from simkv.formulas.attention import decode_flops_per_pair, prefill_flops_per_pair
from simkv.formulas.kv_size import layer_bytes_per_token
from simkv.model import DTYPE_BITS, ModelShape, normalise_dtype

GROUP = 64
"""Numbers that share a scale of int4. FlexGen and ZeRO-Inference: group_size 64, asymmetric."""
_SCALE_BITS = 32
"""Of a group: its least value and its scale, 16 bits each."""
WIDE_BYTES = 2
"""Bytes of a number that is computed with."""


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Counts of one layer; bytes are of one layer, and of one token of one sequence where a token is named."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    params: int
    weight_bytes: int
    """As stored."""
    kv_bytes: int
    """Of a token, as stored."""
    kv_wide_bytes: int
    """Of a token, in 16 bits."""
    query_bytes: int
    """Of a token: what travels to the CPU to attend there, and as much comes back."""
    prefill_pair_flops: int
    """Of one query with one key, all heads."""
    decode_pair_flops: int
    quantised_weights: bool = False
    quantised_kv: bool = False
    kv_groups: int = 1
    """Heads of queries to a head of KV."""

    @property
    def matrices(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Numbers of the matrices of attention (queries, keys, values, output) and of the MLP, in order."""
        queries = self.hidden * self.query_bytes // WIDE_BYTES
        keys = self.hidden * self.kv_wide_bytes // WIDE_BYTES // 2
        mlp = self.hidden * self.intermediate
        count = max(1, round((self.params - 2 * (queries + keys)) / mlp))
        return (queries, keys, keys, queries), (mlp,) * count

    @property
    def first_part(self) -> float:
        """The first matrix that is loaded, as a part of the weights: the queries' projection."""
        return min(1.0, self.hidden * self.query_bytes / WIDE_BYTES / self.params)

    @property
    def last_part(self) -> float:
        """The last one: the MLP's way back."""
        return min(1.0, self.hidden * self.intermediate / self.params)

    @property
    def activation_bytes(self) -> int:
        """Of a token."""
        return WIDE_BYTES * self.hidden

    @property
    def wide_weight_bytes(self) -> int:
        """Of the layer's weights in 16 bits."""
        return WIDE_BYTES * self.params


def number_bytes(dtype: str) -> float:
    """Bytes of one stored number, int4 with its share of a group's scale and least value."""
    name = normalise_dtype(dtype)
    return (DTYPE_BITS[name] + (_SCALE_BITS / GROUP if name == "int4" else 0)) / 8


def layer_shape(model: ModelShape, weight_dtype: str = "fp16", kv_dtype: str = "fp16") -> LayerShape:
    """Return a layer of ``model``.

    Raises :class:`InputError` for models whose layers differ (windows, states) or hold experts: the schedule
    carries whole, equal layers.
    """
    odd = _odd(model)
    if odd:
        mend = "choose a model of equal dense layers, such as opt-30b or llama-2-70b"
        raise InputError(Problem(f"batch mode streams whole equal layers, and this model has {odd}", mend, path="model",
                                 value=model.name))  # fmt: skip
    kind = model.attention[0]
    params = round(model.always_on_params / model.layers)
    wide = layer_bytes_per_token(kind, "fp16")
    return LayerShape(
        layers=model.layers,
        hidden=model.hidden,
        intermediate=model.intermediate,
        heads=kind.heads,
        params=params,
        weight_bytes=round(params * number_bytes(weight_dtype)),
        kv_bytes=round(wide / WIDE_BYTES * number_bytes(kv_dtype)),
        kv_wide_bytes=wide,
        query_bytes=WIDE_BYTES * kind.heads * kind.head_dim,
        prefill_pair_flops=prefill_flops_per_pair(kind),
        decode_pair_flops=decode_flops_per_pair(kind),
        quantised_weights=number_bytes(weight_dtype) < WIDE_BYTES,
        quantised_kv=number_bytes(kv_dtype) < WIDE_BYTES,
        kv_groups=kind.heads // max(1, kind.kv_heads),
    )


def _odd(model: ModelShape) -> str:
    """Return what keeps the layers from being equal; "" where nothing does."""
    found = {
        "experts": model.moe is not None,
        "states": bool(model.state),
        "windows": bool(model.windowed_attention),
        "layers of several kinds": len(model.attention) != 1,
    }
    return next((name for name, there in found.items() if there), "")
