"""Attention's arithmetic and traffic: FLOPs of a pair, pairs of a prefill, tokens that a decode step reads.

FLOPs of a pair        = 2 * H * (d_qk + d_v)            a layer
                         MLA decode, on the latent: 2 * H * (2 * rank + rope);  prefill: 2 * H * (nope + rope + v)
pairs of a prefill     = P(before + new) - P(before)
P(n), no window        = n * (n + 1) / 2
P(n), window W         = n * (n + 1) / 2 up to W, then W more each token
P(n), chunks of W      = floor(n / W) * W * (W + 1) / 2 + r * (r + 1) / 2, r = n mod W
tokens of a decode     = its context; with a window at most W, with chunks (W + 1) / 2 in the mean once beyond W
"""

from __future__ import annotations

from dataclasses import dataclass

from simkv.model import AttentionLayers, ModelShape


def decode_flops_per_pair(kind: AttentionLayers) -> int:
    """FLOPs of one query token with one cached token in one layer, all heads (MLA: on the latent)."""
    if kind.mla is None:
        return 2 * kind.heads * (kind.head_dim + kind.value_dim)
    return 2 * kind.heads * (2 * kind.mla.kv_lora_rank + kind.mla.qk_rope_head_dim)


def prefill_flops_per_pair(kind: AttentionLayers) -> int:
    """FLOPs of one (query, key) pair of a prefill in one layer, all heads."""
    if kind.mla is None:
        return 2 * kind.heads * (kind.head_dim + kind.value_dim)
    return 2 * kind.heads * (kind.mla.qk_nope_head_dim + kind.mla.qk_rope_head_dim + kind.mla.v_head_dim)


def pairs(tokens: int, window: int | None = None, chunked: bool = False) -> int:
    """(query, key) pairs of the first ``tokens`` tokens of a sequence, each with itself and what it sees before."""
    if window is None or tokens <= window:
        return tokens * (tokens + 1) // 2
    if not chunked:
        return window * (window + 1) // 2 + (tokens - window) * window
    chunks, rest = divmod(tokens, window)
    return chunks * (window * (window + 1) // 2) + rest * (rest + 1) // 2


def prefill_pairs(new: int, before: int, window: int | None = None, chunked: bool = False) -> int:
    """Pairs of ``new`` tokens after ``before`` that are cached."""
    return pairs(before + new, window, chunked) - pairs(before, window, chunked)


def prefill_flops(model: ModelShape, new: int, before: int = 0) -> int:
    """Attention FLOPs of a prefill of ``new`` tokens after ``before``, all layers and heads."""
    return sum(
        kind.layers * prefill_flops_per_pair(kind) * prefill_pairs(new, before, kind.window, kind.chunked)
        for kind in model.attention
    )


@dataclass(frozen=True, slots=True)
class WindowedAttention:
    """Seconds of the layers that see no further than ``window`` tokens."""

    window: int
    chunked: bool
    kv_s: float
    """Of one context token in a pure decode."""
    mixed_kv_s: float
    """The same beside a prefill."""
    read_s: float
    """Of reading one token's KV."""
    pair_s: float
    """Of one pair of a prefill."""

    def grows(self, sequences: int, context_tokens: int) -> bool:
        """Say whether a step that reads ``context_tokens`` would read more of them if there were more."""
        return context_tokens <= self.window * sequences

    def read_tokens(self, sequences: int, context_tokens: int) -> float:
        """Tokens that ``sequences`` read which together have ``context_tokens``, taken to be equally long."""
        if self.grows(sequences, context_tokens):
            return context_tokens
        return sequences * (self.window + 1) / 2 if self.chunked else sequences * self.window

    def steps_to_knot(self, sequences: int, context_tokens: int) -> int:
        """Decode steps, from one that grows on, in which each reads a token more for each sequence."""
        return (self.window * sequences - context_tokens) // sequences + 1

    def chunk_s(self, new: int, before: int) -> float:
        """Seconds of a prefill chunk: arithmetic or reading, whichever is longer."""
        compute = self.pair_s * prefill_pairs(new, before, self.window, self.chunked)
        seen = before % self.window if self.chunked else min(before, self.window - 1)
        reading = self.read_s * (seen + new)
        return compute if compute > reading else reading
