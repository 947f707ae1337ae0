"""KV capacities that engines logged, from the memory that they logged beside them."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from simkv.formulas.kv_size import kv_bytes_per_token_per_rank
from simkv.formulas.pages import max_concurrency, page_layout, printed_tokens, sglang_tokens
from simkv.model import ModelShape
from tests import shapes

GIB = 1 << 30
TOLERANCE = 0.002
IDS = ("1", "3a", "6", "8", "13", "14b", "16a", "17", "19", "21", "22b", "24a", "25", "37")

Row = dict[str, str]


def rows(shared: Path) -> dict[str, Row]:
    """Return the published rows by id."""
    with (shared / "catalog" / "kv_capacity_logs.csv").open(encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def uniform_shape(row: Row) -> ModelShape:
    """Return the shape that the row's text gives: ``32L kv8 hd128``."""
    found = re.search(r"(\d+)L kv(\d+) hd(\d+)", row["config_source"])
    assert found is not None, row
    layers, kv_heads, head_dim = map(int, found.groups())
    return shapes.uniform(layers, kv_heads, head_dim, heads=64)


def vllm_uniform(row: Row) -> int:
    layout = page_layout(uniform_shape(row), row["kv_dtype"], int(row["tp"]), int(row["block"]))
    pages = layout.pages(int(float(row["available_kv_gib_per_rank"]) * GIB))
    return printed_tokens(layout, pages, int(row["max_model_len"] or 32768), 2048, convention="groups")


def sglang(model: ModelShape, kv_dtype: str) -> Callable[[Row], int]:
    def predict(row: Row) -> int:
        pool = int(float(row["available_kv_gib_per_rank"]) * GIB)
        # Row 16a is served by eight data-parallel ranks: each holds the latents whole.
        ranks = 1 if "dp8" in row["gpu"] else int(row["tp"])
        return sglang_tokens(model, pool, kv_dtype, ranks, int(row["block"]))

    return predict


def vllm_hybrid(model: ModelShape, batched: int, concurrency: str) -> Callable[[Row], int]:
    """Predict by the page-group rule, and hold the concurrency and the block against the row too."""

    def predict(row: Row) -> int:
        layout = page_layout(model, row["kv_dtype"].split()[0], int(row["tp"]))
        assert min(group.block_tokens for group in layout.groups if group.block_tokens) == int(row["block"])
        pages = layout.pages(int(float(row["available_kv_gib_per_rank"]) * GIB))
        longest = int(row["max_model_len"])
        assert f"{max_concurrency(layout, pages, longest, batched, 2):.2f}x" == concurrency
        assert concurrency in row["note"]
        old = row["kind"] == "hybrid-old"
        return printed_tokens(layout, pages, longest, batched, 2, "groups" if old else "concurrency")

    return predict


def patched_fork(row: Row) -> int:
    """Row 37: 50 pages by override; the fork doesn't count groups of states, and drafts three tokens a step."""
    layout = page_layout(shapes.qwen_27b(), block_tokens=int(row["block"]))
    longest, batched, state_pages = int(row["max_model_len"]), 4128, 2 + 3
    assert layout.asked_pages(longest, batched, state_pages) == 65
    assert f"{max_concurrency(layout, 50, longest, batched, state_pages):.2f}x" in row["note"]
    return printed_tokens(layout, 50, longest, batched, state_pages, "growing_groups")


PREDICT: dict[str, Callable[[Row], int]] = {
    **dict.fromkeys(("1", "3a", "6", "8", "13", "19", "21"), vllm_uniform),
    "14b": sglang(shapes.uniform(94, 4, heads=64), "bf16"),
    "16a": sglang(shapes.deepseek_v32(), "fp8"),
    "17": sglang(shapes.qwen_9b(), "bf16"),
    "22b": vllm_hybrid(shapes.qwen_35b(), 8192, "4.33x"),
    "24a": vllm_hybrid(shapes.qwen_122b(), 8192, "11.79x"),
    "25": vllm_hybrid(shapes.gemma_4_26b(), 2048, "33.42x"),
    "37": patched_fork,
}


@pytest.mark.shared
@pytest.mark.parametrize("name", IDS)
def test_logged_capacity_follows_from_the_logged_memory(name: str, shared: Path) -> None:
    row = rows(shared)[name]
    predicted = PREDICT[name](row)
    assert abs(predicted / int(row["kv_tokens"]) - 1) <= TOLERANCE
    assert predicted == int(row["predicted_tokens"])


@pytest.mark.shared
def test_every_row_with_a_prediction_is_tested(shared: Path) -> None:
    assert tuple(name for name, row in rows(shared).items() if row["predicted_tokens"]) == IDS
    assert set(PREDICT) == set(IDS)


@pytest.mark.shared
def test_bytes_of_a_token_are_those_of_the_rows(shared: Path) -> None:
    counted = 0
    for row in rows(shared).values():
        if row["kind"] == "uniform" and re.search(r"\d+L kv\d+ hd\d+", row["config_source"]):
            counted += 1
            size = kv_bytes_per_token_per_rank(uniform_shape(row), row["kv_dtype"], int(row["tp"]))
            assert size == int(row["bytes_per_token_per_rank"]), row["id"]
    assert counted == 13
    assert kv_bytes_per_token_per_rank(shapes.deepseek_v32(), "fp8") == 48_068
    assert kv_bytes_per_token_per_rank(shapes.qwen_9b(), "bf16", 2) == 16_384
