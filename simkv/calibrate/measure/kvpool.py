"""KV for attention to read: in random places of a pool, or in one piece, and more of it than the caches hold."""

from __future__ import annotations

from simkv.calibrate.backend import Backend, Tensor, load_torch
from simkv.calibrate.measure.topology import beyond_caches_bytes, free_device_bytes
from simkv.calibrate.model import Decoder
from simkv.rng import stream

BLOCK_TOKENS = 64
"""Of one block in samples that go through a block table."""
_PART_OF_FREE = 4
_GPU_CACHE_BYTES = 256 << 20
_DRAWN = 1 << 20


def most_kv_bytes(backend: Backend) -> int:
    """Return what KV may take at most: a part of the memory that is free."""
    return free_device_bytes(backend) // _PART_OF_FREE


def cold_bytes(backend: Backend) -> int:
    """Return how much memory the caches can't serve."""
    return _GPU_CACHE_BYTES if backend.kind == "cuda" else beyond_caches_bytes()


def random_pool(model: Decoder, slots: int, block_tokens: int) -> Tensor:
    """Return a pool of random KV, ``[slots, 2, kv_heads, block_tokens, d]``."""
    piece_bytes = model.piece_bytes(block_tokens)
    memory = model.backend.device_memory(slots * piece_bytes)
    fill(memory.view(model.backend.torch_dtype))
    return model.view_pool(memory.view(slots, piece_bytes))


def random_tables(backend: Backend, slots: int, layers: int, batch: int, blocks: int) -> Tensor:
    """Return block tables ``[calls, layers, batch, blocks]``: as many calls as find places of their own in the pool."""
    places = layers * batch * blocks
    order = stream(0, "calibrate/tables").permutation(slots)[: slots // places * places]
    return load_torch().from_numpy(order).to(backend.device).view(-1, layers, batch, blocks)


class KvStrip:
    """Random K and V of which each call gets the next part, laid out contiguously."""

    def __init__(self, model: Decoder, nbytes: int) -> None:
        """Make K and V of ``nbytes`` together."""
        self._sizes = model.sizes
        self._strip = model.backend.device_memory(-(-nbytes // 64) * 64).view(model.backend.torch_dtype)
        fill(self._strip)
        self._next = 0

    def next(self, batch: int, context: int) -> tuple[Tensor, Tensor]:
        """Return K and V ``[batch, kv_heads, context, d]``; mutates."""
        numbers = batch * self._sizes.kv_heads * context * self._sizes.head_dim
        if self._next + 2 * numbers > len(self._strip):
            self._next = 0
        both = self._strip[self._next : self._next + 2 * numbers]
        self._next += 2 * numbers
        k, v = both.view(2, batch, self._sizes.kv_heads, context, self._sizes.head_dim)
        return k, v


def fill(numbers: Tensor) -> None:
    """Make flat ``numbers`` normal random ones, which come again after many."""
    torch = load_torch()
    drawn = numbers[:_DRAWN].normal_(generator=torch.Generator(device=numbers.device).manual_seed(0))
    for begun in range(_DRAWN, len(numbers), _DRAWN):
        part = numbers[begun : begun + _DRAWN]
        part.copy_(drawn[: len(part)])
