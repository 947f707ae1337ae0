"""``simkv calc kv-size``: the article's figures, every kind of layer, ranks, formats, and JSON keys."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from simkv.calc import concurrency
from simkv.calc.kv_size import CACHE_DTYPES, kv_size
from simkv.catalog import load_hardware
from simkv.cli import app
from simkv.model import AttentionLayers
from tests import shapes

KIB, GIB = 1 << 10, 1 << 30
SHAPES = [shapes.uniform(32), shapes.gpt_oss(24, 32), shapes.kimi_linear(), shapes.gemma_4_26b()]
ranks = st.sampled_from((1, 2, 4, 8, 16))


def simkv(*args: str) -> Any:
    return CliRunner().invoke(app, ["calc", "kv-size", *args])


def sized(*args: str) -> dict[str, Any]:
    done = simkv(*args, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_kv_size_article_512_kib_a_token_and_64_gib_at_128ki() -> None:
    found = sized("--model", "llama-2-7b", "--tokens", "128Ki")
    assert found["bytes_per_token"] == 512 * KIB
    assert found["bytes"] == found["bytes_per_rank"] == 64 * GIB


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("llama-2-7b", 524288), ("llama-3.1-8b", 131072), ("llama-3.1-70b", 327680), ("qwen3-32b", 262144),
        ("qwen3-30b-a3b", 98304), ("deepseek-v3", 70272), ("mixtral-8x7b-v0.1", 131072),
    ],
)  # fmt: skip
def test_kv_size_of_a_token_at_16_bits(model: str, expected: int) -> None:
    assert sized("--model", model, "--tokens", "1")["bytes_per_token"] == expected


def test_kv_size_json_has_its_keys() -> None:
    found = sized("--model", "llama-3.1-8b", "--tokens", "4Ki", "--batch", "3", "--tp", "2", "--kv-dtype", "fp8")
    assert {"bytes_per_token", "bytes", "bytes_per_rank", "formula", "all_layers_bytes_per_token", "window_tokens",
            "state_bytes_per_sequence", "bytes_all_ranks", "kinds", "warnings"} <= found.keys()  # fmt: skip
    assert all(isinstance(found[key], int) for key in ("bytes_per_token", "bytes", "bytes_per_rank"))
    assert found["bytes"] == 3 * 4096 * 65536 == 2 * found["bytes_per_rank"]
    assert found["inputs"] == {"model": "llama-3.1-8b", "tokens": 4096, "batch": 3, "kv_dtype": "fp8",
                               "tensor_parallel": 2}  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "vector"), [("fp32", 512), ("bf16", 256), ("fp16", 256), ("fp8", 128), ("int8", 132), ("int4", 68)]
)
def test_kv_size_format_counts_its_scales(dtype: str, vector: int) -> None:
    assert sized("--model", "llama-3.1-8b", "--tokens", "1", "--kv-dtype", dtype)["bytes"] == 32 * 2 * 8 * vector
    assert dtype in CACHE_DTYPES


def test_kv_size_latents_are_whole_in_every_rank() -> None:
    one, eight = (sized("--model", "deepseek-v3", "--tokens", "128Ki", "--tp", n) for n in ("1", "8"))
    assert one["bytes"] == eight["bytes"] == eight["bytes_per_rank"] == 70272 * 131072
    assert eight["bytes_all_ranks"] == 8 * eight["bytes"]
    assert "8 copies" in simkv("--model", "deepseek-v3", "--tokens", "1Ki", "--tp", "8").stdout


def test_kv_size_more_ranks_than_heads_copy_them() -> None:
    found = sized("--model", "llama-3.1-8b", "--tokens", "1Ki", "--tp", "16")
    assert found["bytes_per_rank"] == found["bytes"] // 8 and found["bytes_all_ranks"] == 2 * found["bytes"]
    assert "2 copies" in simkv("--model", "llama-3.1-8b", "--tokens", "1Ki", "--tp", "16").stdout


def test_kv_size_beyond_the_models_longest_only_warns() -> None:
    done = simkv("--model", "llama-2-7b", "--tokens", "128Ki", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["warnings"] == ["131,072 tokens are more than llama-2-7b's longest, 4,096"]
    assert done.stderr == "warning: 131,072 tokens are more than llama-2-7b's longest, 4,096\n"
    assert sized("--model", "llama-2-7b", "--tokens", "4Ki")["warnings"] == []


def test_kv_size_windows_stop_growing_and_states_do_not_depend_on_length() -> None:
    found = kv_size(shapes.gpt_oss(24, 32), 131072, 2).to_json()
    assert (found["bytes_per_token"], found["all_layers_bytes_per_token"]) == (24576, 49152)
    assert found["window_tokens"] == 128
    assert found["bytes"] == 2 * (24576 * 131072 + 24576 * 128)
    state = kv_size(shapes.kimi_linear(), 1000).to_json()
    assert state["bytes"] - state["state_bytes_per_sequence"] == 8064 * 1000
    assert "windows of 128" in kv_size(shapes.gpt_oss(24, 32), 1).text()
    assert "states of a sequence" in kv_size(shapes.kimi_linear(), 1).text()


def test_kv_size_layers_that_share_a_cache_keep_none_and_say_so() -> None:
    shape = shapes.uniform(32)
    (kind,) = shape.attention
    sharing = replace(shape, attention=(replace(kind, shared_cache_layers=8),), encoder_bytes_per_token=12288)
    found = kv_size(sharing, 100)
    assert found.to_json()["bytes"] == 24 * 4096 * 100
    assert "8 of them read another layer's and keep none" in " ".join(found.text().split())
    assert "12,288 B more, once, of each token of the encoder" in found.text()


@given(st.integers(1, 10**6), st.integers(1, 64), st.sampled_from(CACHE_DTYPES), ranks)
def test_kv_size_uniform_model_is_linear_in_tokens_and_sequences(
    tokens: int, batch: int, dtype: str, tensor_parallel: int
) -> None:
    shape = shapes.uniform(32)
    found = kv_size(shape, tokens, batch, dtype, tensor_parallel).to_json()
    assert found["bytes"] == batch * tokens * found["bytes_per_token"]
    assert found["bytes_per_rank"] == batch * tokens * kv_size(shape, 1, 1, dtype, tensor_parallel).to_json()[
        "bytes_per_rank"
    ]  # fmt: skip


@given(st.sampled_from(SHAPES), st.integers(1, 10**6), st.integers(1, 9), st.sampled_from((1, 2, 4)))
def test_kv_size_ranks_together_hold_at_least_one_copy_and_it_grows_with_length(
    shape: Any, tokens: int, batch: int, tensor_parallel: int
) -> None:
    found = kv_size(shape, tokens, batch, "auto", tensor_parallel).to_json()
    longer = kv_size(shape, tokens + 1, batch, "auto", tensor_parallel).to_json()
    assert found["bytes_per_rank"] * tensor_parallel >= found["bytes"]
    assert longer["bytes"] - found["bytes"] >= batch * found["bytes_per_token"]
    assert longer["bytes"] - found["bytes"] <= batch * found["all_layers_bytes_per_token"]
    parts = sum(
        row["cached_layers"] * row["held_tokens"] * row["bytes_per_token_per_layer_per_rank"] for row in found["kinds"]
    )
    states = batch * found["state_bytes_per_sequence"]
    assert found["bytes_per_rank"] == batch * parts + batch * -(-states // batch // tensor_parallel)


def test_kv_size_worked_line_names_index_and_widths() -> None:
    text = " ".join(kv_size(shapes.deepseek_v32(), 1).text().split())
    assert "(latent 512 + rope 64) x 16 bits + 132 B of index" in text
    odd = shapes.uniform(4)
    odd = replace(odd, attention=(AttentionLayers(4, 32, 1, 192, v_head_dim=128),))
    assert "1 KV head x (192 + 128) x 16 bits" in " ".join(kv_size(odd, 1).text().split())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--model", "llama-3.1-8b", "--tokens", "128k"), '--tokens = "128k": not a number of tokens; write "128Ki"'),
        (("--model", "llama-3.1-8b", "--tokens", "0"), '--tokens = "0": too small; the least is 1'),
        (
            ("--model", "llama-3.1-8b", "--tokens", "1", "--kv-dtype", "nvfp4"),
            "--kv-dtype = nvfp4: no such format;",
        ),
        (("--model", "llama-3.1-8b", "--tokens", "1", "--tp", "3"), "--tp = 3: doesn't divide the 32 heads"),
        (("--model", "lama-3.1-8b", "--tokens", "1"), "lama-3.1-8b"),
    ],
)
def test_kv_size_bad_option_is_named_with_value_and_mend(args: tuple[str, ...], message: str) -> None:
    done = simkv(*args)
    assert done.exit_code == 2 and message in done.stderr and done.stdout == ""


@pytest.mark.shared
def test_kv_size_every_config_grows_as_worked_out(shared: Path) -> None:
    """Growth a token of real config.json files; the few that can't be sized are refused."""
    folder = shared / "catalog"
    with (folder / "kv_expected.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    wrong = []
    for row in rows:
        args = ("--model", str(folder / "hf_configs" / row["file"]), "--tokens", "128Ki")
        if not row["growth_bytes_per_token"].isdigit():
            assert simkv(*args).exit_code == 2, row["file"]
            continue
        found = sized(*args)
        got = (found["bytes_per_token"], found["all_layers_bytes_per_token"])
        if got != (int(row["growth_bytes_per_token"]), int(row["all_layers_bytes_per_token"])):
            wrong.append((row["file"], got, row["growth_bytes_per_token"], row["all_layers_bytes_per_token"]))
    assert wrong == [] and len(rows) > 20


def test_kv_size_path_that_is_not_there_is_told() -> None:
    done = simkv("--model", "./nowhere/config.json", "--tokens", "1")
    assert done.exit_code == 2 and "nowhere/config.json" in done.stderr


def test_concurrency_windows_count_in_pages() -> None:
    found = concurrency.of_machine(shapes.gpt_oss(24, 32), load_hardware("h100-sxm5-80gb"), 131072).to_json()
    page = 12 * 2048 * 16
    assert found["sequence_bytes"] == (131072 // 16 + 128 // 16 + 1) * page
    assert found["free_bytes"] % page == 0
    assert found["c_max"] == found["free_bytes"] // found["sequence_bytes"]
