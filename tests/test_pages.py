"""Pages: groups of layers, blocks that hold a state, and what engines print of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.formulas.kv_size import kv_bytes_per_token_per_rank
from simkv.formulas.pages import (
    PageLayout,
    max_concurrency,
    max_sequences,
    page_layout,
    pages_of_printed,
    printed_tokens,
)
from simkv.formulas.sglang import sglang_tokens
from simkv.model import ModelShape
from tests import shapes

LAYOUTS = [
    page_layout(shapes.uniform(32)),
    page_layout(shapes.gpt_oss(24, 32)),
    page_layout(shapes.gemma_4_26b(), "fp8"),
    page_layout(shapes.gemma_3_27b()),
    page_layout(shapes.qwen_35b(), "fp8"),
    page_layout(shapes.kimi_linear()),
    page_layout(shapes.llama_4_scout()),
    page_layout(shapes.mistral_7b_v01()),
]
layouts = st.sampled_from(LAYOUTS)


def kinds(layout: PageLayout) -> list[tuple[str, int, int]]:
    """Return ``(kind, layers, tokens of a page)`` by group."""
    return [(group.kind, group.layers, group.block_tokens) for group in layout.groups]


def test_uniform_model_is_one_group_of_all_layers() -> None:
    model = shapes.uniform(40, vocab=151936)
    layout = page_layout(model, tensor_parallel=2)
    assert kinds(layout) == [("full", 40, 16)]
    assert layout.page_bytes == 16 * kv_bytes_per_token_per_rank(model, "auto", 2)
    assert layout.block_tokens == 16 and layout.pages_per_block == 1


def test_gpt_oss_halves_share_the_pool() -> None:
    layout = page_layout(shapes.gpt_oss(36, 128))
    assert kinds(layout) == [("full", 18, 16), ("sliding", 18, 16)]
    assert layout.page_bytes == 18 * 16 * 2048


def test_odd_last_group_is_padded() -> None:
    layout = page_layout(shapes.gemma_3_27b())
    assert [group.layers for group in layout.groups] == [10, 9, 9, 9, 9, 8, 8]
    assert layout.page_bytes == 10 * 16 * 16 * 128 * 2 * 2


@pytest.mark.parametrize(("padded_below", "sizes"), [(1.5, [12, 13]), (1.25, [12, 13]), (1.0, [12, 7, 6])])
def test_nearly_equal_kinds_are_padded_to_the_larger(padded_below: float, sizes: list[int]) -> None:
    from dataclasses import replace

    model = shapes.gpt_oss(24, 32)
    full, near = model.attention
    model = replace(model, attention=(full, replace(near, layers=13)))
    assert [g.layers for g in page_layout(model, padded_below=padded_below).groups] == sizes


def test_ratio_between_the_two_rules_decides_the_groups() -> None:
    from dataclasses import replace

    model = shapes.gpt_oss(24, 32)
    full, near = model.attention
    model = replace(model, attention=(replace(full, layers=17), near))
    assert len(page_layout(model).groups) == 2
    assert len(page_layout(model, padded_below=1.25).groups) == 3


def test_pages_of_two_shapes_are_made_equal_by_tokens() -> None:
    layout = page_layout(shapes.gemma_4_26b(), "fp8")
    assert kinds(layout) == [("full", 5, 32), *[("sliding", 5, 16)] * 5]
    assert layout.page_bytes == 5 * 65536
    assert layout.block_tokens == 32 and layout.pages_per_block == 1


@pytest.mark.parametrize(
    ("model", "kv_dtype", "block"),
    [
        (shapes.qwen_9b(), "bf16", 528),
        (shapes.qwen_9b(), "fp8", 1056),
        (shapes.qwen_27b(), "bf16", 784),
        (shapes.qwen_35b(), "fp8", 2096),
        (shapes.qwen_122b(), "fp8", 4176),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_attention_block_is_what_engines_logged(model: ModelShape, kv_dtype: str, block: int) -> None:
    """vLLM: "Setting attention block size to N tokens to ensure that attention page size is >= mamba page size"."""
    layout = page_layout(model, kv_dtype)
    assert layout.block_tokens == block
    [state] = model.state
    assert layout.page_bytes >= layout.groups[0].layers * state.state_bytes


def test_attention_block_under_tensor_parallel_holds_the_ranks_part() -> None:
    model = shapes.qwen_27b()
    assert page_layout(model, tensor_parallel=4).block_tokens == page_layout(model).block_tokens
    # One KV head is left, however many ranks: the state goes on shrinking.
    assert page_layout(model, tensor_parallel=8).block_tokens < page_layout(model).block_tokens


def test_narrower_state_makes_a_smaller_block() -> None:
    wide, narrow = (page_layout(shapes.qwen_27b(), state_dtype=dtype) for dtype in ("auto", "bf16"))
    assert (wide.block_tokens, narrow.block_tokens) == (784, 400)


def test_larger_block_than_the_state_needs_is_kept() -> None:
    assert page_layout(shapes.qwen_27b(), block_tokens=4128).block_tokens == 4128


def test_latents_raise_their_block_in_steps_of_64() -> None:
    layout = page_layout(shapes.kimi_linear())
    assert layout.block_tokens % 64 == 0
    assert (layout.block_tokens - 64) * 1152 < shapes.kimi_linear().state[0].state_bytes <= layout.block_tokens * 1152


def test_no_hybrid_manager_pages_every_attention_layer() -> None:
    layout = page_layout(shapes.gemma_4_26b(), hybrid=False)
    assert kinds(layout) == [("full", 30, 16)]
    assert layout.page_bytes == 16 * 225_280
    states = page_layout(shapes.qwen_27b(), hybrid=False)
    assert states == page_layout(shapes.qwen_27b())


def test_only_windows_make_one_group_that_stops_growing() -> None:
    layout = page_layout(shapes.mistral_7b_v01())
    assert kinds(layout) == [("sliding", 32, 16)] and not layout.growing
    assert layout.asked_pages(131072, 2048) == math.ceil((4095 + 2048) / 16) + 1
    assert layout.bounded_pages(1000, 2048) == math.ceil(1000 / 16)


def test_chunked_attention_asks_for_a_window_and_a_batch() -> None:
    layout = page_layout(shapes.llama_4_scout())
    assert kinds(layout) == [("full", 12, 16), *[("chunked", 12, 16)] * 3]
    assert layout.asked_pages(131072, 2048) == 8192 + 3 * ((8192 + 2048) // 16)


def test_pages_of_a_long_request_are_those_of_the_log() -> None:
    assert page_layout(shapes.gemma_4_26b(), "fp8").asked_pages(131072, 2048) == 4096 + 5 * 193 == 5061
    assert page_layout(shapes.qwen_122b(), "fp8").asked_pages(131072, 8192, 2) == 32 + 3 * 2


def test_one_memory_is_printed_three_ways() -> None:
    """A public report (vLLM 0.19, Qwen3.5-27B, 32,768 tokens): 290,864 tokens beside a concurrency of 33.04."""
    layout = page_layout(shapes.qwen_27b())
    pages = 1487
    assert printed_tokens(layout, pages, 32768, 16384, 1, "groups") == 290_864
    assert round(max_concurrency(layout, pages, 32768, 16384, 1), 2) == 33.04
    assert printed_tokens(layout, pages, 32768, 16384, 1) == int(1487 / 45 * 32768) == 1_082_800
    assert printed_tokens(layout, pages, 32768, 16384, 1, "growing_groups") == 1487 * 784


def test_printed_number_grows_with_the_longest_sequence_only_for_hybrids() -> None:
    hybrid, plain = page_layout(shapes.gpt_oss(24, 32)), page_layout(shapes.uniform(32))
    assert printed_tokens(hybrid, 60000, 131072, 8192) > 1.5 * printed_tokens(hybrid, 60000, 8192, 8192)
    assert printed_tokens(plain, 2588, 32768, 8192) == printed_tokens(plain, 2588, 4096, 8192) == 41_408


@given(layouts, st.integers(1, 100_000), st.integers(1, 300_000), st.integers(1, 8192), st.integers(1, 4))
def test_printed_number_gives_the_pages_back(
    layout: PageLayout, pages: int, longest: int, batched: int, state_pages: int
) -> None:
    printed = printed_tokens(layout, pages, longest, batched, state_pages)
    back = pages_of_printed(layout, printed, longest, batched, state_pages)
    assert printed_tokens(layout, back, longest, batched, state_pages) == printed
    assert back <= pages


@given(layouts, st.integers(1, 200_000), st.integers(1, 300_000), st.integers(1, 8192))
def test_longest_sequence_fits_and_one_token_more_does_not(
    layout: PageLayout, pages: int, most: int, batched: int
) -> None:
    longest = layout.longest(pages, batched, 1, most)
    if longest:
        assert layout.asked_pages(longest, batched) <= pages
    assert longest == most or layout.asked_pages(longest + 1, batched) > pages


@given(layouts, st.integers(1, 200_000), st.integers(1, 300_000), st.integers(1, 8192), st.integers(1, 2))
def test_sequences_at_once_fill_the_pool_and_no_more(
    layout: PageLayout, pages: int, tokens: int, batched: int, state_pages: int
) -> None:
    count = max_sequences(layout, pages, tokens, batched, state_pages)
    blocks = sum(math.ceil(tokens / group.block_tokens) for group in layout.growing)

    def used(sequences: int) -> int:
        prefill = blocks + layout.bounded_pages(tokens, batched, state_pages)
        return prefill + (sequences - 1) * (blocks + layout.bounded_pages(tokens, 1, state_pages))

    assert count == 0 or used(count) <= pages - 1
    assert used(count + 1) > pages - 1


@given(layouts, st.integers(1, 300_000), st.integers(1, 8192))
def test_held_pages_grow_with_length_and_with_what_is_computed_at_once(
    layout: PageLayout, tokens: int, batched: int
) -> None:
    assert layout.bounded_pages(tokens, batched) <= layout.bounded_pages(tokens + 1, batched)
    assert layout.bounded_pages(tokens, 1) <= layout.bounded_pages(tokens, batched)


def test_uniform_concurrency_is_blocks_over_blocks() -> None:
    layout = page_layout(shapes.uniform(32))
    assert max_sequences(layout, 1 + 40, 64, 8192) == 10
    assert max_sequences(layout, 1 + 3, 64, 8192) == 0
    with pytest.raises(InputError, match="tokens"):
        max_sequences(layout, 40, 0, 8192)


def test_sglang_counts_bytes_in_whole_pages() -> None:
    model = shapes.uniform(94, 4, heads=64)
    assert sglang_tokens(model, 10 * 48128 + 48127, tensor_parallel=4) == 10
    assert sglang_tokens(model, 200 * 48128, tensor_parallel=4, page_tokens=64) == 192
