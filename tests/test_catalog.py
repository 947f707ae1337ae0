"""The catalogue: names, aliases, and figures that agree with the published tables."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from simkv.catalog import list_hardware, list_models, load_hardware, load_model
from simkv.errors import InputError
from simkv.formulas.kv_size import kv_bytes_per_token
from simkv.hardware import STANDINGS
from simkv.model import normalise_dtype, weight_bytes_per_param

REQUIRED_FIGURES = [
    "vram_bytes",
    "usable_bytes",
    "hbm_bytes_per_s",
    "flops_fp16_per_s",
    "host_link_bytes_per_s",
    "h2d_bytes_per_s",
    "d2h_bytes_per_s",
    "duplex_bytes_per_s",
    "gpu_link_bytes_per_s",
    "flops_efficiency",
    "weight_bandwidth_efficiency",
    "attention_bandwidth_efficiency",
    "attention_flops_efficiency",
    "tile_fill_loss",
    "sequence_overhead_s",
    "layer_overhead_s",
    "step_overhead_s",
    "eager_layer_overhead_s",
    "allreduce_latency_s",
    "gpu_link_efficiency",
    "mixed_query_rows",
]


@pytest.mark.parametrize("name", ["llama-3.1-8b", "Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct", "LLAMA-3.1 8B"])
def test_load_model_by_alias_or_case_finds_it(name: str) -> None:
    assert load_model(name).name == "llama-3.1-8b"


def test_load_model_unknown_lists_nearest() -> None:
    with pytest.raises(InputError, match=r"model = qwen-3-32b: .*nearest: qwen3-32b"):
        load_model("qwen-3-32b")


def test_load_hardware_unknown_lists_names() -> None:
    with pytest.raises(InputError, match=r"hardware = abacus.*h100-sxm5-80gb"):
        load_hardware("abacus")


def test_load_hardware_alias_finds_card() -> None:
    assert load_hardware("H200").name == "h200-sxm5-141gb"
    assert load_hardware("RTX 4090").name == "rtx-4090"


@pytest.mark.parametrize("name", list_models())
def test_model_is_whole(name: str) -> None:
    model = load_model(name)
    assert model.name == name and model.source and model.max_position_embeddings > 0
    assert model.params >= model.params_active > 0
    assert kv_bytes_per_token(model) > 0


@pytest.mark.parametrize("name", list_hardware())
def test_hardware_figures_have_unit_source_standing(name: str) -> None:
    gpu = load_hardware(name)
    assert set(REQUIRED_FIGURES) <= set(gpu.figures)
    for figure in gpu.figures.values():
        assert figure.unit and figure.source and figure.standing in STANDINGS and figure.value >= 0
    assert gpu.usable_bytes <= gpu.vram_bytes
    assert gpu.link_h2d_bytes_per_s <= gpu.value("host_link_bytes_per_s")


def test_fp8_rate_is_dense() -> None:
    for name in list_hardware():
        gpu = load_hardware(name)
        if gpu.has_dense_rate("fp8"):
            assert 1.9 < gpu.dense_flops_per_s("fp8") / gpu.dense_flops_per_s("bf16") < 2.1
    assert not load_hardware("a100-sxm4-80gb").has_dense_rate("fp8")
    with pytest.raises(InputError, match="flops_fp8_per_s"):
        load_hardware("a100-sxm4-80gb").dense_flops_per_s("fp8")


def test_dtypes_by_alias_and_scales() -> None:
    assert normalise_dtype("bfloat16") == "bf16"
    assert weight_bytes_per_param("int4") == pytest.approx(0.5 + 2.5 / 128)
    with pytest.raises(InputError, match="bf16"):
        normalise_dtype("fp7")


def test_importing_the_catalogue_parses_nothing() -> None:
    code = "import sys, simkv.catalog; sys.exit('yaml' in sys.modules or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], check=False).returncode == 0


@pytest.mark.shared
def test_models_agree_with_published_table(shared: Path) -> None:
    with (shared / "catalog" / "models.csv").open(encoding="utf-8") as file:
        rows = {"-".join(row["name"].lower().split()): row for row in csv.DictReader(file)}
    for name in list_models():
        model, row = load_model(name), rows[name]
        assert kv_bytes_per_token(model) == int(row["kv_bytes_per_token_16bit_all_kv_layers"]), name
        assert model.params / 1e9 == pytest.approx(float(row["params_b_computed"]), rel=2e-3), name
        assert model.params_active / 1e9 == pytest.approx(float(row["params_b_active_computed"]), rel=2e-3), name
        assert row["hf_id"].split("/")[1].lower() in (name, *model.aliases)
