"""Shapes of language models: what decides their bytes and their arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from simkv.model.dtypes import DTYPE_BITS
from simkv.model.layers import AttentionLayers, Moe, StateLayers


@dataclass(frozen=True, slots=True)
class ModelShape:
    """One model's decoder: counts of numbers, of which ``formulas/`` makes bytes and FLOPs."""

    name: str
    layers: int
    """Of any kind: attention, state or, where those stand alone, MLP."""
    hidden: int
    attention: tuple[AttentionLayers, ...]
    """By kind; those that see all tokens first."""
    intermediate: int
    """Width of a dense MLP."""
    vocab: int
    dtype: str
    """Of activations and, unless quantised, of the weights."""
    max_position_embeddings: int
    state: tuple[StateLayers, ...] = ()
    dense_mlp_layers: int | None = None
    """None: all layers but those with experts."""
    moe: Moe | None = None
    weight_dtype: str = ""
    """Of the published checkpoint's linear weights; empty: same as ``dtype``."""
    mixer_dtype: str = ""
    """Of its attention and state layers; empty: same as the other linear weights."""
    dense_dtype: str = ""
    """Of its dense MLPs and shared experts; empty: same as the other linear weights."""
    expert_dtype: str = ""
    """Of its routed experts; empty: same as the other linear weights."""
    weight_group: int = 0
    """Weights that share a scale of int4; 0: 128."""
    tie_embeddings: bool = False
    mlp_matrices: int = 3
    """3 for gated MLPs (gate, up, down), 2 for plain ones."""
    learned_positions: int = 0
    extra_params: int = 0
    """Linear weights of other kinds that every token passes (cross-attention, indexers)."""
    held_params: int = 0
    """Weights that no decoded token multiplies: an encoder's, embeddings of each layer."""
    encoder_bytes_per_token: int = 0
    """Of cross-attention, kept once of each *encoder* token at 16 bits."""
    aliases: tuple[str, ...] = ()
    source: str = ""
    note: str = ""

    @property
    def full_attention(self) -> tuple[AttentionLayers, ...]:
        """The kinds of attention whose cache grows with the sequence."""
        return tuple(kind for kind in self.attention if kind.window is None)

    @property
    def windowed_attention(self) -> tuple[AttentionLayers, ...]:
        """The kinds of attention whose cache stops growing."""
        return tuple(kind for kind in self.attention if kind.window is not None)

    @property
    def uniform(self) -> bool:
        """Whether the cache is strictly linear in the length of a sequence."""
        return not self.windowed_attention and not self.state

    @property
    def mla(self) -> bool:
        """Whether the cache holds latents."""
        return any(kind.mla is not None for kind in self.attention)

    @property
    def attention_kind(self) -> str:
        """MHA, GQA, MQA or MLA, and what stands beside it, for people: ``gqa+sliding``, ``mla+linear``."""
        main = self.attention[0] if self.attention else None
        if main is None:
            name = "none"
        elif main.mla is not None:
            name = "mla"
        elif main.kv_heads == main.heads:
            name = "mha"
        else:
            name = "mqa" if main.kv_heads == 1 else "gqa"
        windows = {"chunked" if kind.chunked else "sliding" for kind in self.windowed_attention}
        states = {"mamba" if kind.kind.startswith("mamba") else "linear" for kind in self.state}
        return "+".join([name, *sorted(windows), *sorted(states)])

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
        return self.moe.layers if self.moe else 0

    @property
    def mlp_layers(self) -> int:
        """Layers with a dense MLP."""
        return self.layers - self.moe_layers if self.dense_mlp_layers is None else self.dense_mlp_layers

    @property
    def attention_params(self) -> int:
        """Weights of all attention layers."""
        return sum(kind.layers * kind.params(self.hidden) for kind in self.attention)

    @property
    def dense_mlp_params(self) -> int:
        """Weights of one dense MLP."""
        return self.mlp_matrices * self.hidden * self.intermediate

    @property
    def expert_params(self) -> int:
        """Weights of one routed expert in one layer; 0 without experts."""
        if self.moe is None:
            return 0
        return self.mlp_matrices * (self.moe.expert_hidden or self.hidden) * self.moe.intermediate

    @property
    def mixer_params(self) -> int:
        """Weights of attention and state layers, indexers and cross-attention."""
        return self.attention_params + sum(kind.layers * kind.params for kind in self.state) + self.extra_params

    @property
    def dense_params(self) -> int:
        """Weights of dense MLPs, shared experts, routers and what projects to routed experts and back."""
        total = self.mlp_layers * self.dense_mlp_params
        if self.moe is not None:
            shared = self.mlp_matrices * self.moe.shared_width
            total += self.moe_layers * self.hidden * (self.moe.experts + shared + 2 * self.moe.expert_hidden)
        return total

    @property
    def always_on_params(self) -> int:
        """Linear weights in the layers that every token passes: all but routed experts, embeddings, lm_head."""
        return self.mixer_params + self.dense_params

    @property
    def embedding_params(self) -> int:
        """Weights of the token embedding, which is also the size of the lm_head."""
        return self.vocab * self.hidden

    @property
    def other_params(self) -> int:
        """Norms, learned positions, an encoder: held, but no matrix product of a decoded token."""
        return (2 * self.layers + 1 + self.learned_positions) * self.hidden + self.held_params

    @property
    def unquantised_params(self) -> int:
        """Weights that stay 16-bit in quantised checkpoints: embedding, lm_head, norms, encoders."""
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
        """Weights that serve one token of text; equals ``params`` without experts and held ones."""
        served = self.params - self.held_params
        if self.moe is None:
            return served
        return served - self.moe_layers * (self.moe.experts - self.moe.top_k) * self.expert_params
