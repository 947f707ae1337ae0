"""Shapes of language models: what decides their bytes and their arithmetic.

Counts are of numbers (parameters), never bytes; ``formulas/`` turns them into bytes and FLOPs.
Only uniform full attention (MHA, GQA, MQA) and MLA are held here: a shape whose cache isn't
linear in the length of a sequence is refused by the catalogue, not approximated.
"""

from __future__ import annotations

from dataclasses import dataclass

from simkv.errors import InputError, Problem

DTYPE_BITS: dict[str, int] = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}
"""Bits of one number; quantisation scales come on top (see :func:`weight_bytes_per_param`)."""

DTYPE_ALIASES: dict[str, str] = {
    "float32": "fp32",
    "float": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "w4a16": "int4",
    "awq": "int4",
    "gptq": "int4",
}

INT4_GROUP = 128
"""Weights that share one 16-bit scale and one 4-bit zero point (AWQ's and GPTQ's usual group)."""


def normalise_dtype(dtype: str) -> str:
    """Return the short name of ``dtype`` (``bfloat16`` -> ``bf16``).

    Raises :class:`InputError` for an unknown name, listing the known ones.
    """
    name = dtype.strip().lower()
    name = DTYPE_ALIASES.get(name, name)
    if name not in DTYPE_BITS:
        raise InputError(Problem("is not a dtype", f"use one of {', '.join(DTYPE_BITS)}", path="dtype", value=dtype))
    return name


def weight_bytes_per_param(dtype: str) -> float:
    """Bytes of one weight of a linear layer, scales included.

    fp8 block scales (4 bytes per 128x128) are below 0.03 % and left out; int4 has 16 bits of scale
    and 4 of zero point per group of 128.
    """
    name = normalise_dtype(dtype)
    scale_bits = (16 + 4) / INT4_GROUP if name == "int4" else 0.0
    return (DTYPE_BITS[name] + scale_bits) / 8


@dataclass(frozen=True, slots=True)
class Mla:
    """Multi-head latent attention: one latent vector a token instead of K and V heads."""

    kv_lora_rank: int
    qk_rope_head_dim: int
    qk_nope_head_dim: int
    v_head_dim: int
    q_lora_rank: int | None = None


@dataclass(frozen=True, slots=True)
class Moe:
    """Mixture of experts: ``experts`` routed ones of which ``top_k`` serve a token, ``shared`` always on."""

    experts: int
    top_k: int
    intermediate: int
    """Width of one expert."""
    shared: int = 0
    first_dense_layers: int = 0
    """Leading layers with an ordinary MLP."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """One decoder-only transformer; ``head_dim`` is given, never hidden/heads."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    """Of K and V in MHA/GQA/MQA; with MLA unused (0)."""
    intermediate: int
    """Width of the dense MLP."""
    vocab: int
    dtype: str
    """Of activations and, unless quantised, of the weights."""
    max_position_embeddings: int
    weight_dtype: str = ""
    """Of the published checkpoint's linear weights; empty: same as ``dtype``."""
    tie_embeddings: bool = False
    mlp_matrices: int = 3
    """3 for gated MLPs (gate, up, down), 2 for OPT's."""
    learned_positions: int = 0
    attention_kind: str = "gqa"
    mla: Mla | None = None
    moe: Moe | None = None
    aliases: tuple[str, ...] = ()
    source: str = ""
    note: str = ""

    @property
    def dtype_bytes(self) -> int:
        """Bytes of one activation."""
        return DTYPE_BITS[self.dtype] // 8

    @property
    def checkpoint_dtype(self) -> str:
        """Dtype of the linear weights as published."""
        return self.weight_dtype or self.dtype

    @property
    def moe_layers(self) -> int:
        """Layers whose MLP is a mixture of experts."""
        return self.layers - self.moe.first_dense_layers if self.moe else 0

    @property
    def attention_q_params(self) -> int:
        """Weights of one layer's query path (whole model, sharded by heads)."""
        if self.mla is None:
            return self.hidden * self.heads * self.head_dim
        width = self.heads * (self.mla.qk_nope_head_dim + self.mla.qk_rope_head_dim)
        rank = self.mla.q_lora_rank
        return self.hidden * width if rank is None else rank * width

    @property
    def attention_replicated_params(self) -> int:
        """Weights of one layer's MLA down-projections, which every tensor-parallel rank holds whole."""
        if self.mla is None:
            return 0
        down = self.hidden * (self.mla.kv_lora_rank + self.mla.qk_rope_head_dim)
        return down + self.hidden * (self.mla.q_lora_rank or 0)

    @property
    def attention_kv_params(self) -> int:
        """Weights of one layer's K and V projections (MLA: the up-projection from the latent)."""
        if self.mla is None:
            return 2 * self.hidden * self.kv_heads * self.head_dim
        return self.mla.kv_lora_rank * self.heads * (self.mla.qk_nope_head_dim + self.mla.v_head_dim)

    @property
    def attention_out_params(self) -> int:
        """Weights of one layer's output projection."""
        width = self.head_dim if self.mla is None else self.mla.v_head_dim
        return self.heads * width * self.hidden

    @property
    def attention_params(self) -> int:
        """Weights of one layer's attention, whole model."""
        return (
            self.attention_q_params
            + self.attention_kv_params
            + self.attention_replicated_params
            + self.attention_out_params
        )

    @property
    def dense_mlp_params(self) -> int:
        """Weights of one dense MLP."""
        return self.mlp_matrices * self.hidden * self.intermediate

    @property
    def expert_params(self) -> int:
        """Weights of one expert in one layer; 0 without experts."""
        return self.mlp_matrices * self.hidden * self.moe.intermediate if self.moe else 0

    @property
    def always_on_params(self) -> int:
        """Linear weights in the layers that every token passes: all but routed experts, embeddings, lm_head."""
        total = self.layers * self.attention_params + (self.layers - self.moe_layers) * self.dense_mlp_params
        if self.moe is not None:
            router = self.hidden * self.moe.experts
            total += self.moe_layers * (router + self.moe.shared * self.expert_params)
        return total

    @property
    def embedding_params(self) -> int:
        """Weights of the token embedding, which is also the size of the lm_head."""
        return self.vocab * self.hidden

    @property
    def other_params(self) -> int:
        """Norms and learned positions: held, but no matrix product."""
        return (2 * self.layers + 1) * self.hidden + self.learned_positions * self.hidden

    @property
    def unquantised_params(self) -> int:
        """Weights that stay 16-bit in quantised checkpoints: embedding, lm_head, norms."""
        return self.embedding_params * (1 if self.tie_embeddings else 2) + self.other_params

    @property
    def routed_params(self) -> int:
        """Weights of all routed experts of all layers."""
        return self.moe_layers * self.moe.experts * self.expert_params if self.moe else 0

    @property
    def params(self) -> int:
        """Weights of the whole model (biases left out)."""
        return self.always_on_params + self.routed_params + self.unquantised_params

    @property
    def params_active(self) -> int:
        """Weights that serve one token; equals ``params`` without experts."""
        if self.moe is None:
            return self.params
        return self.params - self.moe_layers * (self.moe.experts - self.moe.top_k) * self.expert_params
