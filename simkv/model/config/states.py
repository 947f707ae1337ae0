"""Layers that keep a state of constant size a sequence: short convolutions, Mamba, linear attention.

A mixer takes the fields and the dtype of the activations and returns *one* layer of it. Shapes are those
that engines allocate (vLLM: mamba_utils.py): the convolution's last ``kernel - 1`` inputs, and the recurrent state.
"""

from __future__ import annotations

from collections.abc import Callable

from simkv.errors import InputError
from simkv.model.config.fields import Fields
from simkv.model.dtypes import DTYPE_BITS, normalise_dtype
from simkv.model.layers import StateLayers

Mixer = Callable[[Fields, str], StateLayers]

_WIDTH = 10**6
"""Above any kernel, head count or head width there will be."""


def state_dtype(fields: Fields, otherwise: str) -> str:
    """Return the dtype of the recurrent state: the file's ``mamba_ssm_dtype`` or ``mamba_ssm_cache_dtype``."""
    name = fields.word("mamba_ssm_cache_dtype")
    if not name:
        fields.note(f"the recurrent state's dtype isn't given: {otherwise}")
        return otherwise
    try:
        dtype = normalise_dtype(name)
    except InputError:
        dtype = ""
    if dtype not in ("fp32", "bf16", "fp16"):
        raise fields.fail("mamba_ssm_cache_dtype", "is no dtype of a state", f"know {', '.join(DTYPE_BITS)}")
    return dtype


def gated_delta_net(fields: Fields, dtype: str) -> StateLayers:
    """Gated delta net (Qwen3-Next, Qwen3.5): one matrix a value head."""
    keys = _width(fields, "linear_num_key_heads") * _width(fields, "linear_key_head_dim")
    heads, kernel = _width(fields, "linear_num_value_heads"), _width(fields, "linear_conv_kernel_dim")
    values = heads * _width(fields, "linear_value_head_dim")
    hidden, convolved = fields.count("hidden_size"), 2 * keys + values
    return StateLayers(
        kind="gated_delta_net", layers=1, conv_numbers=convolved * (kernel - 1),
        recurrent_numbers=values * fields.count("linear_key_head_dim"),
        params=hidden * (convolved + values + 2 * heads) + convolved * kernel + values * hidden,
        conv_dtype=dtype, recurrent_dtype=state_dtype(fields, "fp32"),
    )  # fmt: skip


def kda(fields: Fields, dtype: str) -> StateLayers:
    """Kimi delta attention: one matrix a head; decay, and mostly the gate, through a bottleneck of a head's width."""
    linear = fields.section("linear_attn_config") or fields
    heads, head = _width(linear, "num_heads"), _width(linear, "head_dim")
    kernel, hidden = _width(linear, "linear_conv_kernel_dim"), fields.count("hidden_size")
    width = heads * head
    bottleneck = head * (hidden + width)
    gate = hidden * width if linear.flag("use_full_rank_gate") else bottleneck
    return StateLayers(
        kind="kda", layers=1, conv_numbers=3 * width * (kernel - 1), recurrent_numbers=width * head,
        params=4 * hidden * width + bottleneck + gate + hidden * heads + 3 * width * kernel,
        conv_dtype=dtype, recurrent_dtype="fp32",
    )  # fmt: skip


def lightning(fields: Fields, dtype: str) -> StateLayers:
    """Lightning attention (MiniMax): one matrix a head, no convolution."""
    heads, hidden = fields.count("num_attention_heads"), fields.count("hidden_size")
    width = heads * fields.count("head_dim")
    return StateLayers(
        kind="lightning", layers=1, conv_numbers=0, recurrent_numbers=width * width // heads,
        params=5 * hidden * width, conv_dtype=dtype, recurrent_dtype=dtype,
    )  # fmt: skip


def mamba2(otherwise: str = "") -> Mixer:
    """Mamba-2, with heads and groups; ``otherwise``: dtype of the state where the file has none ("": the model's)."""

    def mixer(fields: Fields, dtype: str) -> StateLayers:
        heads, head, hidden = *_mamba_heads(fields), fields.count("hidden_size")
        kernel, state = _width(fields, "conv_kernel"), _width(fields, "ssm_state_size")
        inner = heads * head
        convolved = inner + 2 * _width(fields, "n_groups") * state
        return StateLayers(
            kind="mamba2", layers=1, conv_numbers=convolved * (kernel - 1), recurrent_numbers=inner * state,
            params=hidden * (inner + convolved + heads) + convolved * kernel + inner * hidden,
            conv_dtype=dtype, recurrent_dtype=state_dtype(fields, otherwise or dtype),
        )  # fmt: skip

    return mixer


def _mamba_heads(fields: Fields) -> tuple[int, int]:
    """Return heads and their width; ``auto`` shares the expanded width out."""
    named = fields.key_of("mamba_num_heads") is not None or "mamba_num_heads" in fields.defaults
    heads = _width(fields, "mamba_num_heads" if named else "num_heads")
    for name in ("mamba_head_dim", "head_dim"):
        if fields.key_of(name) and fields.get(name) not in (None, "auto"):
            fields.maybe("mamba_expand")
            return heads, _width(fields, name)
    inner = fields.maybe("mamba_d_ssm") or fields.count("hidden_size") * (fields.maybe("mamba_expand") or 2)
    if inner % heads:
        raise fields.fail("mamba_num_heads", f"{heads} heads don't divide {inner}", "see mamba_expand")
    return heads, inner // heads


def mamba1(inner_name: str = "") -> Mixer:
    """Mamba, one state vector a channel; ``inner_name``: the key of the channels ("": expanded hidden size)."""

    def mixer(fields: Fields, dtype: str) -> StateLayers:
        hidden, kernel, state = (fields.count(name) for name in ("hidden_size", "conv_kernel", "ssm_state_size"))
        expanded = hidden * (fields.maybe("mamba_expand") or 2)
        inner = (fields.maybe(inner_name) or expanded) if inner_name else expanded
        auto = fields.get("time_step_rank") in (None, "auto")
        rank = -(-hidden // 16) if auto else _width(fields, "time_step_rank")
        weights = 2 * hidden * inner + inner * kernel + inner * (rank + 2 * state) + rank * inner + inner * hidden
        return StateLayers(
            kind="mamba", layers=1, conv_numbers=inner * (kernel - 1), recurrent_numbers=inner * state,
            params=weights, conv_dtype=dtype, recurrent_dtype=state_dtype(fields, dtype),
        )  # fmt: skip

    return mixer


def short_convolution(fields: Fields, dtype: str) -> StateLayers:
    """Gated short convolution (LFM2): no recurrent state."""
    hidden, kernel = fields.count("hidden_size"), _width(fields, "conv_L_cache")
    return StateLayers(
        kind="short_convolution", layers=1, conv_numbers=hidden * (kernel - 1), recurrent_numbers=0,
        params=4 * hidden * hidden + hidden * kernel, conv_dtype=dtype,
    )  # fmt: skip


def gated_recurrence(fields: Fields, dtype: str) -> StateLayers:
    """Real-gated linear recurrent unit (RecurrentGemma): one number a channel."""
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    width, kernel = fields.maybe("lru_width") or hidden, fields.maybe("conv1d_width", 1, _WIDTH) or 4
    return StateLayers(
        kind="gated_recurrence", layers=1, conv_numbers=width * (kernel - 1), recurrent_numbers=width,
        params=3 * hidden * width + width * kernel + 2 * width * width // heads, conv_dtype=dtype,
        recurrent_dtype="fp32",
    )  # fmt: skip


def _width(fields: Fields, name: str) -> int:
    return fields.count(name, 1, _WIDTH)
