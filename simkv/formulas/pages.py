"""How an engine cuts memory into pages, and what it then prints as "GPU KV cache size: N tokens".

vLLM hands out pages of one size. A model of one kind of attention has one group of layers, and a page holds
``block_tokens`` tokens of all of them. Where kinds differ (windows, states), layers of one kind are dealt into
groups of equal size; a group has a block table of its own, and a page holds one group's layers, for so many
tokens (or one state) that all groups' pages are equally large::

    group size       = fewest layers of any kind; the most where that is below 1.5 x the fewest
    attention block  = the fewest tokens, in steps of 16, whose page holds a state
    pool pages       = floor(available / (group size * page))
    request's pages  = full: ceil(T / block);  sliding: ceil(min(W - 1 + B, T) / block) + 1
                       chunked: ceil(min(W + B, T) / block);  state: 1, with prefix caching 2
    concurrency      = pool pages / pages of a request of max_model_len

T tokens, W window, B ``max_num_batched_tokens``; all sizes are of one rank. Sources: vLLM
v1/core/kv_cache_utils.py, v1/kv_cache_interface.py; the block raised for a state: platforms/interface.py. The
factor was 1.25 before March 2026 (PR 36684) and absent before November 2025 (PR 29303).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Literal

from simkv.errors import InputError, Problem
from simkv.formulas.kv_size import (
    all_layers_bytes_per_token_per_rank,
    check_tensor_parallel,
    layer_bytes_per_token,
)
from simkv.model import DTYPE_BITS, ModelShape, normalise_dtype

GroupKind = Literal["full", "sliding", "chunked", "state"]
Convention = Literal["groups", "growing_groups", "concurrency"]
"""What the printed number means: pages dealt to all groups (vLLM up to 0.20), dealt to those that grow (vLLM PR
40384, in forks), or concurrency times the longest sequence (vLLM from 0.21 on)."""

NULL_PAGES = 1
"""Pages that vLLM keeps to itself."""
PADDED_BELOW = 1.5
_ALIGN_TOKENS = 16
_ALIGN_LATENT_TOKENS = 64
"""Steps in which the attention block is raised: what FlashAttention's and FlashMLA's kernels can read."""


@dataclass(frozen=True, slots=True)
class PageGroup:
    """Layers with one block table."""

    kind: GroupKind
    layers: int
    """Not counting those that only pad the group."""
    block_tokens: int
    """Tokens of one page; 0: a page holds a state."""
    window: int = 0

    def asked_pages(self, tokens: int, batched_tokens: int, state_pages: int) -> int:
        """Pages that the engine reckons with for one sequence of ``tokens``, at its most."""
        if self.kind == "state":
            return state_pages
        if self.kind == "full":
            return -(-tokens // self.block_tokens)
        if self.kind == "chunked":
            return -(-min(self.window + batched_tokens, tokens) // self.block_tokens)
        # One more: a window needn't begin where a page does.
        return -(-min(self.window - 1 + batched_tokens, tokens) // self.block_tokens) + 1

    def held_pages(self, tokens: int, batched_tokens: int, state_pages: int) -> int:
        """Pages that a sequence of ``tokens`` has while ``batched_tokens`` of it are computed at once."""
        asked = self.asked_pages(tokens, batched_tokens, state_pages)
        return asked if self.kind == "state" else min(asked, -(-tokens // self.block_tokens))


@dataclass(frozen=True, slots=True)
class PageLayout:
    """How one rank's pool is cut."""

    groups: tuple[PageGroup, ...]
    page_bytes: int
    """Of one page: the layers of a group, padding included."""

    @property
    def growing(self) -> tuple[PageGroup, ...]:
        """The groups whose pages grow with the sequence."""
        return tuple(group for group in self.groups if group.kind == "full")

    @property
    def bounded(self) -> tuple[PageGroup, ...]:
        """The groups whose pages stop growing: windows and states."""
        return tuple(group for group in self.groups if group.kind != "full")

    @property
    def block_tokens(self) -> int:
        """Tokens of one block: the fewest that are whole pages of every group that grows (of all, if none does)."""
        groups = self.growing or self.groups
        return math.lcm(*(group.block_tokens for group in groups if group.block_tokens))

    @property
    def pages_per_block(self) -> int:
        """Pages of one block of :attr:`block_tokens` in the groups that grow."""
        return sum(self.block_tokens // group.block_tokens for group in self.growing) or 1

    def pages(self, available_bytes: int) -> int:
        """Return how many pages ``available_bytes`` of one rank hold."""
        return max(0, available_bytes // self.page_bytes)

    def asked_pages(self, tokens: int, batched_tokens: int, state_pages: int = 1) -> int:
        """Pages of one sequence of ``tokens`` as the engine reckons its largest concurrency."""
        return sum(group.asked_pages(tokens, batched_tokens, state_pages) for group in self.groups)

    def bounded_pages(self, tokens: int, batched_tokens: int, state_pages: int = 1) -> int:
        """Pages of windows and states of a sequence of ``tokens``, ``batched_tokens`` of it computed at once."""
        return sum(group.held_pages(tokens, batched_tokens, state_pages) for group in self.bounded)

    def held_pages(self, tokens: int, batched_tokens: int, state_pages: int = 1) -> int:
        """Pages of a sequence of ``tokens``, ``batched_tokens`` of it computed at once (1: it decodes)."""
        return sum(group.held_pages(tokens, batched_tokens, state_pages) for group in self.groups)

    def longest(self, pages: int, batched_tokens: int, state_pages: int = 1, most: int = 1 << 40) -> int:
        """Return the longest sequence that ``pages`` hold alone, at most ``most``; 0 where not one token fits."""
        lengths = range(1, most + 1)
        return bisect_right(lengths, pages, key=lambda tokens: self.asked_pages(tokens, batched_tokens, state_pages))

    def describe(self) -> str:
        """Say what a page is, group by group: "1 x 12 full (16 tokens a page), 1 x 12 sliding (window 128, ...)"."""
        counted: dict[tuple[GroupKind, int, int], list[int]] = {}
        for group in self.groups:
            counted.setdefault((group.kind, group.block_tokens, group.window), []).append(group.layers)
        parts = []
        for (kind, tokens, window), layers in counted.items():
            inside = [f"window {window}"] if window else []
            inside.append(f"{tokens} tokens a page" if tokens else "one state a page")
            parts.append(f"{len(layers)} x {max(layers)} {kind} ({', '.join(inside)})")
        return ", ".join(parts)


def state_pages(prefix_caching: bool) -> int:
    """Pages that one group of states takes of a sequence: with prefix caching also the state before the last block."""
    return 1 + prefix_caching


def check_caches(model: ModelShape, file: str = "") -> None:
    """Raise :class:`InputError` for a model that keeps no KV cache: there is nothing to page or to move."""
    if not any(kind.cached_layers for kind in model.attention):
        what = "keeps states only, and no KV cache"
        raise InputError(Problem(what, "choose a model with attention", file, None, "model", model.name))


def page_layout(
    model: ModelShape,
    kv_dtype: str = "auto",
    tensor_parallel: int = 1,
    block_tokens: int = 16,
    hybrid: bool = True,
    state_dtype: str = "auto",
    padded_below: float = PADDED_BELOW,
) -> PageLayout:
    """Return how vLLM cuts one rank's pool for ``model``.

    ``hybrid`` False: windows aren't freed, their layers page as those that see all tokens (vLLM's
    ``--disable-hybrid-kv-cache-manager``, and whoever switches it off). ``block_tokens`` is the engine's own
    setting; a state may raise it. ``state_dtype``: of recurrent states; ``auto``: the model's.

    Raises :class:`InputError` for a split that the heads don't allow, an unknown dtype, or a model without a cache.
    """
    check_tensor_parallel(model, tensor_parallel)
    check_caches(model)
    if not model.state and (model.uniform or not hybrid):
        grown = all_layers_bytes_per_token_per_rank(model, kv_dtype, tensor_parallel)
        layers = sum(kind.cached_layers for kind in model.attention)
        return PageLayout((PageGroup("full", layers, block_tokens),), block_tokens * grown)
    kinds = _attention_kinds(model, kv_dtype, tensor_parallel, hybrid)
    if not model.state and len({(kind, window) for kind, _, window in kinds}) == 1:
        (kind, _, window), *_ = kinds
        page = block_tokens * sum(layers * size for (_, size, _), layers in kinds.items())
        return PageLayout((PageGroup(kind, sum(kinds.values()), block_tokens, window),), page)
    block = _block_for_state(model, kv_dtype, tensor_parallel, block_tokens, state_dtype)
    page = block * max(size for _, size, _ in kinds)
    states = [kind.layers for kind in model.state]
    per_group = _group_layers([*kinds.values(), *states], padded_below)
    groups = [
        PageGroup(kind, layers, block * (page // (block * size)), window)
        for (kind, size, window), total in kinds.items()
        for layers in _dealt(total, per_group)
    ]
    groups += [PageGroup("state", layers, 0) for total in states for layers in _dealt(total, per_group)]
    return PageLayout(tuple(groups), per_group * page)


def max_concurrency(
    layout: PageLayout, pages: int, max_model_len: int, max_num_batched_tokens: int, state_pages: int = 1
) -> float:
    """Sequences of ``max_model_len`` that the pool holds, as vLLM logs it ("Maximum concurrency")."""
    return pages / layout.asked_pages(max_model_len, max_num_batched_tokens, state_pages)


def max_sequences(
    layout: PageLayout, pages: int, tokens: int, max_num_batched_tokens: int, state_pages: int = 1
) -> int:
    """Sequences of ``tokens`` that ``pages`` hold at once while they decode.

    One of them may be in its prefill, which needs more of a window: ``max_num_batched_tokens`` of it at once.
    """
    if tokens < 1:
        raise InputError(Problem("is not a length", "give at least one token", path="tokens", value=str(tokens)))
    left = pages - NULL_PAGES - layout.held_pages(tokens, max_num_batched_tokens, state_pages)
    return 1 + left // layout.held_pages(tokens, 1, state_pages) if left >= 0 else 0


def printed_tokens(
    layout: PageLayout,
    pages: int,
    max_model_len: int,
    max_num_batched_tokens: int,
    state_pages: int = 1,
    convention: Convention = "concurrency",
) -> int:
    """Return N of vLLM's log line "GPU KV cache size: N tokens" for a pool of ``pages``."""
    if convention == "concurrency":
        return int(max_concurrency(layout, pages, max_model_len, max_num_batched_tokens, state_pages) * max_model_len)
    smallest = min(group.block_tokens for group in layout.groups if group.block_tokens)
    groups = layout.groups if convention == "groups" else [g for g in layout.groups if g.kind != "state"]
    return pages // len(groups) * smallest


def pages_of_printed(
    layout: PageLayout,
    tokens: int,
    max_model_len: int,
    max_num_batched_tokens: int,
    state_pages: int = 1,
    convention: Convention = "concurrency",
) -> int:
    """Return the fewest pages for which vLLM prints ``tokens``: what a log line says of the pool."""

    def printed(pages: int) -> int:
        return printed_tokens(layout, pages, max_model_len, max_num_batched_tokens, state_pages, convention)

    enough = 1
    while printed(enough) < tokens:
        enough *= 2
    return bisect_left(range(enough), tokens, key=printed)


def _attention_kinds(
    model: ModelShape, kv_dtype: str, ranks: int, hybrid: bool
) -> dict[tuple[GroupKind, int, int], int]:
    """Layers with a cache by ``(kind, bytes a token, window)``, in the model's order."""
    kinds: dict[tuple[GroupKind, int, int], int] = {}
    for kind in model.attention:
        window = kind.window or 0 if hybrid else 0
        name: GroupKind = "full" if not window else "chunked" if kind.chunked else "sliding"
        key = (name, layer_bytes_per_token(kind, kv_dtype, ranks), window)
        if kind.cached_layers:
            kinds[key] = kinds.get(key, 0) + kind.cached_layers
    return kinds


def _block_for_state(model: ModelShape, kv_dtype: str, ranks: int, block_tokens: int, state_dtype: str) -> int:
    """Tokens of an attention page that holds the largest state; ``block_tokens`` where that is enough or none is."""
    if not model.state:
        return block_tokens
    largest = max(_state_page_bytes(kind.conv_bytes, kind.recurrent_numbers, kind.recurrent_dtype, state_dtype, ranks)
                  for kind in model.state)  # fmt: skip
    of_token = layer_bytes_per_token(model.attention[0], kv_dtype, ranks)
    step = _ALIGN_LATENT_TOKENS if model.attention[0].mla is not None else _ALIGN_TOKENS
    return max(block_tokens, step * -(-largest // (step * of_token)))


def _state_page_bytes(conv_bytes: int, numbers: int, own_dtype: str, state_dtype: str, ranks: int) -> int:
    dtype = own_dtype if state_dtype == "auto" else normalise_dtype(state_dtype)
    return -(-(conv_bytes + numbers * DTYPE_BITS[dtype] // 8) // ranks)


def _group_layers(counts: list[int], padded_below: float) -> int:
    """Layers a group, of layers by kind."""
    fewest, most = min(counts), max(counts)
    return most if most < fewest * padded_below else fewest


def _dealt(layers: int, per_group: int) -> list[int]:
    """Deal layers to groups of at most ``per_group``, in turn."""
    groups = -(-layers // per_group)
    return [len(range(first, layers, groups)) for first in range(groups)]
