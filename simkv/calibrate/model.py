"""A decoder with random weights, computed by torch: what is timed, and what the verification run decodes with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from simkv.calibrate.backend import Backend, Tensor, load_torch
from simkv.calibrate.measure.topology import free_device_bytes
from simkv.calibrate.plain import Sizes, plain_sizes
from simkv.errors import InputError, Problem
from simkv.model import ModelShape

EPSILON, ROTARY_BASE = 1e-5, 10_000.0
FEWEST_POSITIONS, MOST_POSITIONS = 32_768, 262_144
"""Of the table of angles, whatever the model was trained for: contexts beyond its own are timed too."""
LEAST_SHARED = 2
"""Layers whose weights are distinct, at least, where layers share them."""

P = ParamSpec("P")
R = TypeVar("R")


def _inference(method: Callable[Concatenate[Decoder, P], R]) -> Callable[Concatenate[Decoder, P], R]:
    """Return ``method`` under ``torch.inference_mode()``."""

    @wraps(method)
    def run(self: Decoder, /, *args: P.args, **named: P.kwargs) -> R:
        with self.torch.inference_mode():
            return method(self, *args, **named)

    return run


@dataclass(frozen=True)
class Weights:
    """One layer's."""

    attention_norm: Tensor
    qkv: Tensor
    out: Tensor
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor


class Decoder:
    """A Llama-like decoder: RMSNorm, rotary embedding, grouped-query attention, SwiGLU, tied or untied head.

    Same inputs of same shapes give the same bits. KV lies outside, in a pool of (block, layer) pieces
    ``[slots, 2, kv_heads, block_tokens, head_dim]`` (K, then V) that :meth:`view_pool` sees in plain bytes.
    """

    def __init__(
        self,
        backend: Backend,
        shape: ModelShape,
        seed: int = 0,
        layers: int | None = None,
        share_layers: bool | None = None,
    ) -> None:
        """Draw the weights.

        ``layers``: absent, the model's. ``share_layers``: layers take turns with the weights of a few; absent, on a
        GPU of which distinct weights would take more than half. Raises :class:`InputError` for models of another
        kind, and for those that don't fit.
        """
        self.torch = load_torch()
        self.backend, self.sizes = backend, plain_sizes(shape, layers)
        self.layers = self.sizes.layers
        distinct = _distinct_layers(backend, self.sizes, share_layers)
        self.share_layers = distinct < self.layers
        draw = _Draw(self.torch, backend, seed)
        self.weights = [_layer(draw, self.sizes) for _ in range(distinct)]
        self.embedding = draw.matrix(self.sizes.vocab, self.sizes.hidden)
        self.lm_head = self.embedding if self.sizes.tied else draw.matrix(self.sizes.vocab, self.sizes.hidden)
        self.last_norm = draw.norm(self.sizes.hidden)
        reach = min(max(shape.max_position_embeddings, FEWEST_POSITIONS), MOST_POSITIONS)
        self.angles = _angles(self.torch, backend, reach, self.sizes.head_dim)
        kv_heads = self.sizes.kv_heads
        self._parts = self.torch.arange(2 * kv_heads, device=backend.device).view(2, 1, kv_heads, 1)
        self._gathered: Tensor = self.torch.empty(0, dtype=backend.torch_dtype, device=backend.device)

    @property
    def layer_bytes(self) -> int:
        """Return the bytes of one layer's weights."""
        return self.sizes.layer_params * _item_bytes(self.backend)

    def piece_bytes(self, block_tokens: int) -> int:
        """Return the bytes of one (block, layer) piece of KV: a row of the pool."""
        return 2 * self.sizes.kv_heads * block_tokens * self.sizes.head_dim * _item_bytes(self.backend)

    def view_pool(self, pool: Tensor) -> Tensor:
        """Return uint8 ``[slots, piece_bytes]`` as ``[slots, 2, kv_heads, block_tokens, head_dim]``, sharing memory."""
        sizes = self.sizes
        typed = pool.view(self.backend.torch_dtype)
        return typed.view(pool.shape[0], 2, sizes.kv_heads, -1, sizes.head_dim)

    @_inference
    def embed(self, tokens: Tensor) -> Tensor:
        """Return ``[batch, hidden]`` of tokens ``[batch]``."""
        return self.embedding[tokens]

    @_inference
    def project(self, layer: int, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return q ``[batch, heads, d]``, k and v ``[batch, kv_heads, d]`` of ``x`` at ``positions`` ``[batch]``."""
        sizes, weights = self.sizes, self.weights[layer % len(self.weights)]
        functional = self.torch.nn.functional
        normed = functional.rms_norm(x, (sizes.hidden,), weights.attention_norm, EPSILON)
        heads = functional.linear(normed, weights.qkv).view(len(x), -1, sizes.head_dim)
        turned = self._rotate(heads[:, : sizes.heads + sizes.kv_heads], positions)
        return turned[:, : sizes.heads], turned[:, sizes.heads :], heads[:, sizes.heads + sizes.kv_heads :]

    def _rotate(self, heads: Tensor, positions: Tensor) -> Tensor:
        """Turn the pairs (i, i + d/2) of every head by its position's angles."""
        cosine, sine = self.angles[positions].unsqueeze(1).chunk(2, -1)
        first, second = heads.chunk(2, -1)
        return self.torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)

    @_inference
    def close(self, layer: int, x: Tensor, attention: Tensor) -> Tensor:
        """Return the layer's output ``[batch, hidden]`` of its input and of attention's ``[batch, heads*d]``."""
        weights, functional = self.weights[layer % len(self.weights)], self.torch.nn.functional
        x = x + functional.linear(attention, weights.out)
        normed = functional.rms_norm(x, (self.sizes.hidden,), weights.mlp_norm, EPSILON)
        gate, up = functional.linear(normed, weights.gate_up).chunk(2, -1)
        return x + functional.linear(functional.silu(gate) * up, weights.down)

    @_inference
    def head(self, x: Tensor) -> Tensor:
        """Return the likeliest next token of each row ``[batch]``."""
        functional = self.torch.nn.functional
        normed = functional.rms_norm(x, (self.sizes.hidden,), self.last_norm, EPSILON)
        return functional.linear(normed, self.lm_head).argmax(-1)

    @_inference
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return ``[batch, heads*d]``: q ``[batch, heads, d]`` over k and v ``[batch, kv_heads, context, d]``."""
        attended = self.torch.nn.functional.scaled_dot_product_attention(q.unsqueeze(2), k, v, enable_gqa=True)
        return attended.reshape(len(q), -1)

    @_inference
    def prefill(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return ``[batch, heads, tokens, d]``: causal attention of a whole prompt, k and v of ``kv_heads``."""
        return self.torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    @_inference
    def gather(self, pool: Tensor, table: Tensor) -> Tensor:
        """Return ``[2, batch, kv_heads, blocks*block_tokens, d]`` of the slots in ``table`` ``[batch, blocks]``.

        Into a buffer that the next call overwrites.
        """
        batch, blocks = table.shape
        slots, _, kv_heads, block_tokens, d = pool.shape
        rows = (table.view(1, batch, 1, blocks) * (2 * kv_heads) + self._parts).view(-1)
        gathered = self._buffer(len(rows) * block_tokens * d).view(len(rows), block_tokens * d)
        self.torch.index_select(pool.view(slots * 2 * kv_heads, block_tokens * d), 0, rows, out=gathered)
        return gathered.view(2, batch, kv_heads, blocks * block_tokens, d)

    def _buffer(self, numbers: int) -> Tensor:
        if len(self._gathered) < numbers:
            self._gathered = self._gathered.new_empty(numbers)
        return self._gathered[:numbers]

    @_inference
    def attend_paged(self, q: Tensor, pool: Tensor, table: Tensor, length: int) -> Tensor:
        """Return ``[batch, heads*d]``: q over the first ``length`` tokens of each row of blocks in ``table``."""
        k, v = self.gather(pool, table)
        return self.attend(q, k[:, :, :length], v[:, :, :length])

    @_inference
    def write(self, pool: Tensor, slots: Tensor, offset: int, k: Tensor, v: Tensor) -> None:
        """Put k and v ``[batch, kv_heads, d]`` at token ``offset`` of the pieces in ``slots`` ``[batch]``."""
        pool.select(3, offset).index_copy_(0, slots, self.torch.stack((k, v), 1))


@lru_cache(maxsize=1)
def decoder(backend: Backend, shape: ModelShape) -> Decoder:
    """Return the decoder of ``shape`` with all its layers; the last one asked for is kept, weights and all."""
    return Decoder(backend, shape)


class _Draw:
    """Random weights of one seed, drawn on the device."""

    def __init__(self, torch: Any, backend: Backend, seed: int) -> None:
        self._generator = torch.Generator(device=backend.device).manual_seed(seed)
        self._torch, self._where = torch, {"dtype": backend.torch_dtype, "device": backend.device}

    def matrix(self, outputs: int, inputs: int) -> Tensor:
        """Return weights that keep the size of what passes through them."""
        drawn = self._torch.empty(outputs, inputs, **self._where)
        return drawn.normal_(0.0, inputs**-0.5, generator=self._generator)

    def norm(self, width: int) -> Tensor:
        return self._torch.ones(width, **self._where)


def _layer(draw: _Draw, sizes: Sizes) -> Weights:
    query, key = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    return Weights(
        attention_norm=draw.norm(sizes.hidden),
        qkv=draw.matrix(query + 2 * key, sizes.hidden),
        out=draw.matrix(sizes.hidden, query),
        mlp_norm=draw.norm(sizes.hidden),
        gate_up=draw.matrix(2 * sizes.intermediate, sizes.hidden),
        down=draw.matrix(sizes.hidden, sizes.intermediate),
    )


def _angles(torch: Any, backend: Backend, positions: int, head_dim: int) -> Tensor:
    """Return cosines, then sines ``[positions, head_dim]`` of each position's angles."""
    turns = ROTARY_BASE ** -(torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angles = torch.outer(torch.arange(positions, dtype=torch.float64), turns)
    table = torch.cat((angles.cos(), angles.sin()), -1)
    return table.to(dtype=backend.torch_dtype, device=backend.device)


def _item_bytes(backend: Backend) -> int:
    return int(backend.torch_dtype.itemsize)


def check_fits(backend: Backend, shape: ModelShape) -> None:
    """Raise InputError for a model that isn't computed, or whose weights are more than the memory that is free."""
    _distinct_layers(backend, plain_sizes(shape), None)


def _distinct_layers(backend: Backend, sizes: Sizes, share: bool | None) -> int:
    """Return how many layers get weights of their own: all, unless ``share``, or unless they take half of a GPU."""
    free, item = free_device_bytes(backend), _item_bytes(backend)
    room = (free // 2 // item - sizes.head_params) // sizes.layer_params
    distinct = sizes.layers
    if share or (share is None and backend.kind == "cuda" and room < sizes.layers):
        distinct = min(sizes.layers, max(LEAST_SHARED, min(room, sizes.layers // 2)))
    needed = item * (sizes.head_params + distinct * sizes.layer_params)
    if needed > free:
        what = f"its weights take {needed / 2**30:.1f} GiB of the {free / 2**30:.1f} GiB that are free"
        raise InputError(Problem(what, "name a smaller model with --model", path="--model", value=sizes.name))
    return distinct
