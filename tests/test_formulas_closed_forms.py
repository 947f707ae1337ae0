"""The article's and the field's closed forms, on their own example figures."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.catalog import load_hardware, load_model
from simkv.errors import InputError
from simkv.formulas.breakeven import (
    latency_bytes_per_s,
    mooncake_bytes_per_s,
    prefill_tokens_per_s,
    throughput_gain_s,
)
from simkv.formulas.concurrency import max_concurrency
from simkv.formulas.kv_size import (
    block_bytes,
    kv_bytes,
    kv_bytes_per_token,
    kv_bytes_per_token_per_rank,
    kv_heads_per_rank,
)
from simkv.formulas.latency import average_latency, tiered_latency
from simkv.formulas.overlap import (
    feasible_beta,
    fill_bubble,
    speedup,
    speedup_bounds,
    step_ideal,
    step_pipelined,
    step_serial,
)
from simkv.formulas.score import scaled_ranks, scores
from simkv.formulas.transfer import effective_bytes_per_s, transfer_s
from simkv.model import AttentionLayers, ModelShape

ARTICLE = ModelShape(
    name="article", layers=32, hidden=4096, attention=(AttentionLayers(32, 32, 32, 128),), intermediate=11008,
    vocab=32000, dtype="fp16", max_position_embeddings=131072,
)  # fmt: skip
H100_AT_60_PERCENT = 0.6 * 989e12
seconds = st.floats(0, 1e3, allow_nan=False)


def test_kv_size_article_example_is_512_kib_a_token_and_64_gib() -> None:
    assert kv_bytes_per_token(ARTICLE) == 512 * 1024
    assert kv_bytes(ARTICLE, 128 * 1024) == 64 * 2**30


@pytest.mark.parametrize(
    ("name", "expected"),
    [("llama-2-7b", 524288), ("llama-3.1-8b", 131072), ("qwen3-32b", 262144), ("qwen3-30b-a3b", 98304),
     ("deepseek-v3", 70272), ("mixtral-8x7b-v0.1", 131072), ("llama-3.1-70b", 327680)],
)  # fmt: skip
def test_kv_size_known_models(name: str, expected: int) -> None:
    assert kv_bytes_per_token(load_model(name)) == expected


def test_kv_size_tensor_parallel_splits_then_replicates() -> None:
    model = load_model("qwen3-30b-a3b")  # 4 KV heads
    assert kv_bytes_per_token_per_rank(model, tensor_parallel=4) == 98304 // 4
    assert kv_bytes_per_token_per_rank(model, tensor_parallel=8) == 98304 // 4
    assert kv_bytes_per_token(model, tensor_parallel=8) == 2 * 98304
    assert kv_heads_per_rank(model.attention[0], 8) == 1


def test_kv_size_mla_is_whole_in_every_rank() -> None:
    model = load_model("deepseek-v3")
    assert kv_bytes_per_token_per_rank(model, tensor_parallel=8) == 70272
    assert kv_bytes_per_token(model, tensor_parallel=8) == 8 * 70272


def test_kv_size_auto_is_16_bit_whatever_the_weights() -> None:
    model = load_model("deepseek-v3")
    assert model.checkpoint_dtype == "fp8"
    assert kv_bytes_per_token(model, "auto") == 2 * kv_bytes_per_token(model, "fp8")


def test_kv_size_quantised_counts_scales() -> None:
    model = load_model("llama-3.1-8b")
    assert kv_bytes_per_token(model, "int8") == 65536 + 32 * 2 * 8 * 4
    assert kv_bytes_per_token(model, "int4") == 32768 + 32 * 2 * 8 * 4
    assert block_bytes(model, 16) == 2 * 2**20


@pytest.mark.parametrize("ranks", [0, 3, 64])
def test_kv_size_impossible_split_is_refused(ranks: int) -> None:
    with pytest.raises(InputError, match="tensor_parallel"):
        kv_bytes_per_token(load_model("llama-3.1-8b"), tensor_parallel=ranks)


def test_concurrency_article_example_is_4_then_13() -> None:
    assert max_concurrency(40e9, 10e9) == 4
    assert max_concurrency(40e9, 10e9, 0.3) == 13
    assert max_concurrency(40e9, 10e9, 0.1) == 40


@pytest.mark.parametrize(("free", "size", "p"), [(1.0, 1.0, 0.0), (1.0, 1.0, 1.1), (1.0, 0.0, 1.0), (-1.0, 1.0, 1.0)])
def test_concurrency_nonsense_is_refused(free: float, size: float, p: float) -> None:
    with pytest.raises(InputError):
        max_concurrency(free, size, p)


def test_transfer_article_example_is_0_625_s() -> None:
    assert transfer_s(20e9, 32e9) == 0.625


def test_transfer_edges() -> None:
    assert transfer_s(0, 0, 5, 1.0) == 0.0
    assert transfer_s(1, 0) == math.inf
    assert transfer_s(1e6, math.inf, 4, 1e-5) == 4e-5
    assert effective_bytes_per_s(2**20, 50e9, 1e-5) == pytest.approx(2**20 / (1e-5 + 2**20 / 50e9))
    with pytest.raises(InputError):
        transfer_s(-1, 1)


def test_average_latency_weighs_tiers() -> None:
    assert average_latency(0.9, 1.0, 11.0) == pytest.approx(2.0)
    assert tiered_latency([0.5, 0.3, 0.2], [1, 10, 100]) == pytest.approx(23.5)
    assert tiered_latency([1.0, 0.0], [1.0, math.inf]) == 1.0
    with pytest.raises(InputError, match="sum to one"):
        tiered_latency([0.5, 0.4], [1, 2])
    with pytest.raises(InputError):
        average_latency(1.2, 1, 2)


@given(seconds, seconds, st.integers(1, 128))
def test_step_pipelined_lies_between_ideal_and_serial(compute: float, transfer: float, layers: int) -> None:
    ideal, serial = step_ideal(compute, transfer), step_serial(compute, transfer)
    assert ideal <= step_pipelined(compute, transfer, layers) <= serial * (1 + 1e-12)
    assert fill_bubble(compute, transfer, 1) == pytest.approx(serial - ideal)


@given(st.floats(1e-6, 1e3), st.floats(1e-6, 1e3))
def test_speedup_bounds_never_exceed_two_and_article_binds_where_transfer_is_short(c: float, t: float) -> None:
    bounds = speedup_bounds(c, t)
    assert 1 <= bounds.overlap <= 2 + 1e-12 and bounds.value <= bounds.article + 1e-12
    assert bounds.overlap == pytest.approx((c + t) / max(c, t))
    assert bounds.article == pytest.approx(1 + t / c)
    assert bounds.binding == ("article" if t <= c else "overlap")
    assert speedup(c, t, 0.0) == 1.0
    assert 0 < feasible_beta(c, t) <= 1


def test_speedup_edges() -> None:
    assert speedup(0.0, 0.0, 1.0) == 1.0
    assert speedup(0.0, 1.0, 1.0) == math.inf
    assert feasible_beta(1.0, 4.0) == 0.25
    with pytest.raises(InputError, match="beta"):
        speedup(1.0, 1.0, 1.5)
    with pytest.raises(InputError):
        step_ideal(-1.0, 0.0)
    with pytest.raises(InputError, match="layers"):
        fill_bubble(1.0, 1.0, 0)


def test_scores_at_the_ends_order_as_recency_and_frequency() -> None:
    last_use, counts = [3.0, 9.0, 5.0], [7.0, 1.0, 2.0]
    assert scaled_ranks(last_use) == [0.0, 1.0, 0.5]
    assert scores(last_use, counts, 1.0) == [0.0, 1.0, 0.5]
    assert scores(last_use, counts, 0.0) == [1.0, 0.0, 0.5]
    assert scores(last_use, counts, 0.5) == [0.5, 0.5, 0.5]
    assert scaled_ranks([]) == [] and scaled_ranks([4.0, 4.0]) == [0.0, 0.0]
    with pytest.raises(InputError, match="lambda"):
        scores(last_use, counts, 2.0)
    with pytest.raises(InputError):
        scores(last_use, [1.0], 0.5)


@pytest.mark.parametrize(("span", "practical", "eq2"), [(10_000, 4.9e9, 4.6e9), (100_000, 1.9e9, 1.2e9)])
def test_break_even_llama_8b_on_h100(span: int, practical: float, eq2: float) -> None:
    model = load_model("llama-3.1-8b")
    assert latency_bytes_per_s(model, span, H100_AT_60_PERCENT) == pytest.approx(practical, rel=0.05)
    gqa = model.attention[0].heads / model.attention[0].kv_heads
    assert mooncake_bytes_per_s(model.hidden, gqa, span, H100_AT_60_PERCENT) == pytest.approx(eq2, rel=0.02)


def test_break_even_rate_falls_with_the_span() -> None:
    model = load_model("llama-3.1-8b")
    rates = [prefill_tokens_per_s(model, span, H100_AT_60_PERCENT) for span in (1000, 10_000, 100_000)]
    assert rates == sorted(rates, reverse=True)
    with pytest.raises(InputError):
        prefill_tokens_per_s(model, 0, 1.0)


def test_break_even_throughput_prices_the_link() -> None:
    assert throughput_gain_s(10e9, 10e9, 2.0) == 1.0
    assert throughput_gain_s(10e9, 10e9, 0.5) == -0.5
    assert throughput_gain_s(10e9, 10e9, 0.5, link_price=0.0) == 0.5
    with pytest.raises(InputError):
        throughput_gain_s(1, 0, 1)


def test_hardware_link_example() -> None:
    gpu = load_hardware("h100-sxm5-80gb")
    assert gpu.value("duplex_bytes_per_s") < gpu.value("h2d_bytes_per_s") + gpu.value("d2h_bytes_per_s")
