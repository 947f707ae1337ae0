"""Models of the catalogue: found by every name, whole, and in agreement with the published table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from simkv.catalog import list_models, load_model
from simkv.errors import InputError
from simkv.formulas.kv_size import (
    all_layers_bytes_per_token,
    kv_bytes,
    kv_bytes_per_token,
    state_bytes_per_sequence,
)
from simkv.model import ModelShape
from simkv.model.config import read_config

WINDOWS_ONLY = {"mistral-7b-v0.1", "phi-3-medium-4k"}
"""No layer sees all tokens: at long context nothing grows."""
SAME_FILE = {
    "deepseek-v3": "deepseek-v3.json",
    "gemma-4-26b-a4b": "google--gemma-4-26B-A4B.json",
    "gpt-oss-120b": "openai--gpt-oss-120b.json",
    "gpt-oss-20b": "gpt-oss-20b.json",
    "kimi-k2": "moonshotai--Kimi-K2-Instruct.json",
    "llama-2-7b": "llama-2-7b-hf.json",
    "llama-3.1-405b": "llama-3.1-405b.json",
    "llama-3.1-8b": "llama-3.1-8b.json",
    "mixtral-8x7b-v0.1": "mixtral-8x7b-v0.1.json",
    "qwen3-30b-a3b": "qwen3-30b-a3b.json",
    "qwen3-32b": "qwen3-32b.json",
    "qwen3.5-35b-a3b": "qwen3.5-35b-a3b-hybrid.json",
}


def table(shared: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the catalogue's name and the row of every model of the published table."""
    with (shared / "catalog" / "models.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield "-".join(row["name"].lower().split()), row


@pytest.mark.parametrize("name", ["llama-3.1-8b", "Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct", "LLAMA-3.1 8B"])
def test_load_model_by_alias_or_case_finds_it(name: str) -> None:
    assert load_model(name).name == "llama-3.1-8b"


def test_load_model_unknown_lists_nearest() -> None:
    with pytest.raises(InputError, match=r"model = qwen-3-32b: .*nearest: qwen3-32b"):
        load_model("qwen-3-32b")


@pytest.mark.parametrize("name", list_models())
def test_model_is_whole(name: str) -> None:
    model = load_model(name)
    assert model.name == name and model.source and model.max_position_embeddings > 0
    assert model.params >= model.params_active > 0
    assert (kv_bytes_per_token(model) > 0) == (name not in WINDOWS_ONLY)
    assert all_layers_bytes_per_token(model) >= kv_bytes_per_token(model)
    assert sum(kind.layers for kind in model.attention) + sum(kind.layers for kind in model.state) <= model.layers
    assert (state_bytes_per_sequence(model) > 0) == bool(model.state)


@pytest.mark.parametrize("name", list_models())
def test_cache_of_a_long_sequence_grows_by_the_full_layers_only(name: str) -> None:
    model = load_model(name)
    longest = max([kind.window or 0 for kind in model.attention], default=0)
    assert kv_bytes(model, longest + 1001) - kv_bytes(model, longest + 1) == 1000 * kv_bytes_per_token(model)
    assert kv_bytes(model, 1) - kv_bytes(model, 0) == all_layers_bytes_per_token(model)


@pytest.mark.shared
def test_every_row_of_the_published_table_is_there_under_all_its_names(shared: Path) -> None:
    names = [name for name, _ in table(shared)]
    # Not of the table: one small enough to calibrate a CPU with, and five that others measured.
    assert [*names, "smollm2-135m", "llama-7b", "llama-65b", "gpt-j-6b", "bloom-176b", "llama-3.2-1b"] == list_models()
    for name, row in table(shared):
        assert load_model(row["name"]).name == load_model(row["hf_id"]).name == name
        assert load_model(row["hf_id"].split("/")[1]).name == name


@pytest.mark.shared
def test_bytes_a_token_agree_with_the_published_table(shared: Path) -> None:
    for name, row in table(shared):
        model = load_model(name)
        growth, paged = row["kv_bytes_per_token_16bit_full_layers"], row["kv_bytes_per_token_16bit_all_kv_layers"]
        if growth:
            assert kv_bytes_per_token(model) == int(growth), name
            assert model.attention_kind == row["attention_kind"], name
        if paged:
            assert all_layers_bytes_per_token(model) == int(paged), name
        if row["linear_or_mamba_layers"]:
            assert sum(kind.layers for kind in model.state) == int(row["linear_or_mamba_layers"]), name


@pytest.mark.shared
def test_parameters_agree_with_the_published_table(shared: Path) -> None:
    for name, row in table(shared):
        model = load_model(name)
        for column, params in (("params_b_computed", model.params), ("params_b_active_computed", model.params_active)):
            if row[column]:
                assert params / 1e9 == pytest.approx(float(row[column]), rel=2e-3), (name, column)
            elif column == "params_b_computed" and row["params_b_nominal"]:
                assert params / 1e9 == pytest.approx(float(row["params_b_nominal"]), rel=0.015), name


@pytest.mark.shared
@pytest.mark.parametrize(("name", "file"), SAME_FILE.items())
def test_catalogue_and_config_agree(shared: Path, name: str, file: str) -> None:
    ours, theirs = load_model(name), read_config(str(shared / "catalog" / "hf_configs" / file))
    assert _figures(ours) == _figures(theirs)


def _figures(model: ModelShape) -> dict[str, object]:
    """Return what decides bytes and arithmetic; the width of dense MLPs only where there are some."""
    left_out = {"name", "aliases", "source", "note", "dense_mlp_layers", "intermediate"}
    figures = {name: getattr(model, name) for name in ModelShape.__dataclass_fields__ if name not in left_out}
    return figures | {"mlp_layers": model.mlp_layers, "dense_params": model.dense_params}
