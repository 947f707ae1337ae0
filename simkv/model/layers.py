"""Kinds of layers: attention that caches K and V, mixers that keep a state, experts.

Counts are of numbers, never bytes. A model is a few of these, not a list of its layers: what matters
is how many there are of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass

from simkv.model.dtypes import DTYPE_BITS


@dataclass(frozen=True, slots=True)
class Mla:
    """Multi-head latent attention: one latent vector a token instead of K and V heads."""

    kv_lora_rank: int
    qk_rope_head_dim: int
    qk_nope_head_dim: int
    v_head_dim: int
    q_lora_rank: int | None = None

    @property
    def cached_width(self) -> int:
        """Numbers kept of one token in one layer."""
        return self.kv_lora_rank + self.qk_rope_head_dim


@dataclass(frozen=True, slots=True)
class AttentionLayers:
    """Layers of one kind of softmax attention."""

    layers: int
    """That compute this attention, those that share another layer's cache included."""
    heads: int
    kv_heads: int
    """With MLA not the cache's: there every rank keeps the latent whole."""
    head_dim: int
    """Of Q and K; with MLA unused (0)."""
    v_head_dim: int = 0
    """Of V; 0: as ``head_dim``."""
    window: int | None = None
    """Tokens that a query sees, itself included; None: all before it."""
    chunked: bool = False
    """Whether the window starts anew at each multiple of itself (Llama 4) instead of sliding."""
    shared_cache_layers: int = 0
    """How many of ``layers`` read the cache of another one and keep none of their own."""
    index_bytes: int = 0
    """Of a sparse-attention indexer, kept of one token in one layer whatever the KV dtype."""
    output_gate: bool = False
    """Whether the query projection also makes a gate of the output's width."""
    mla: Mla | None = None

    @property
    def cached_layers(self) -> int:
        """Layers with a cache of their own."""
        return self.layers - self.shared_cache_layers

    @property
    def value_dim(self) -> int:
        """Width of one V head (of one output head)."""
        return self.mla.v_head_dim if self.mla else self.v_head_dim or self.head_dim

    def held_tokens(self, tokens: int) -> int:
        """Tokens of a sequence of ``tokens`` that must be kept."""
        return tokens if self.window is None else min(tokens, self.window)

    def q_params(self, hidden: int) -> int:
        """Weights of one layer's query path (sharded by heads)."""
        if self.mla is None:
            return hidden * self.heads * self.head_dim * (2 if self.output_gate else 1)
        width = self.heads * (self.mla.qk_nope_head_dim + self.mla.qk_rope_head_dim)
        rank = self.mla.q_lora_rank
        return hidden * width if rank is None else rank * width

    def replicated_params(self, hidden: int) -> int:
        """Weights of one layer's MLA down-projections, which every tensor-parallel rank holds whole."""
        if self.mla is None:
            return 0
        return hidden * (self.mla.cached_width + (self.mla.q_lora_rank or 0))

    def kv_params(self, hidden: int) -> int:
        """Weights of one layer's K and V projections (MLA: the up-projection from the latent)."""
        if self.mla is None:
            return hidden * self.kv_heads * (self.head_dim + self.value_dim)
        return self.mla.kv_lora_rank * self.heads * (self.mla.qk_nope_head_dim + self.mla.v_head_dim)

    def out_params(self, hidden: int) -> int:
        """Weights of one layer's output projection."""
        return self.heads * self.value_dim * hidden

    def params(self, hidden: int) -> int:
        """Weights of one layer's attention, whole model."""
        return self.q_params(hidden) + self.replicated_params(hidden) + self.kv_params(hidden) + self.out_params(hidden)


@dataclass(frozen=True, slots=True)
class StateLayers:
    """Layers that keep a state of constant size a sequence: Mamba and linear attention."""

    kind: str
    """mamba, mamba2, gated_delta_net, kda, lightning, short_convolution, gated_recurrence: for people."""
    layers: int
    conv_numbers: int
    """Of the short convolution's inputs kept of one sequence in one layer."""
    recurrent_numbers: int
    params: int
    """Weights of one layer's mixer."""
    conv_dtype: str = "bf16"
    recurrent_dtype: str = "fp32"

    @property
    def conv_bytes(self) -> int:
        """Of one sequence in one layer, all ranks together."""
        return self.conv_numbers * DTYPE_BITS[self.conv_dtype] // 8

    @property
    def recurrent_bytes(self) -> int:
        """Of one sequence in one layer, all ranks together."""
        return self.recurrent_numbers * DTYPE_BITS[self.recurrent_dtype] // 8

    @property
    def state_bytes(self) -> int:
        """Of one sequence in one layer, all ranks together; ranks divide it."""
        return self.conv_bytes + self.recurrent_bytes


@dataclass(frozen=True, slots=True)
class Moe:
    """Mixture of experts: ``experts`` routed ones of which ``top_k`` serve a token, ``shared`` always on."""

    experts: int
    top_k: int
    intermediate: int
    """Width of one routed expert."""
    layers: int
    """How many layers have experts."""
    shared: int = 0
    shared_intermediate: int = 0
    """Width of one shared expert; 0: as a routed one."""
    expert_hidden: int = 0
    """Width of what routed experts take and return; 0: the model's, else projected to it and back once a layer."""

    @property
    def shared_width(self) -> int:
        """Width of the shared experts of one layer together."""
        return self.shared * (self.shared_intermediate or self.intermediate)
