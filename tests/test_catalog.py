"""The catalogue: names, aliases, and figures that agree with the published tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from simkv.catalog import list_hardware, load_hardware
from simkv.errors import InputError
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


def test_load_hardware_unknown_lists_names() -> None:
    with pytest.raises(InputError, match=r"hardware = abacus.*h100-sxm5-80gb"):
        load_hardware("abacus")


def test_load_hardware_alias_finds_card() -> None:
    assert load_hardware("H200").name == "h200-sxm5-141gb"
    assert load_hardware("RTX 4090").name == "rtx-4090"


@pytest.mark.parametrize("name", list_hardware())
def test_hardware_figures_have_unit_source_standing(name: str) -> None:
    gpu = load_hardware(name)
    assert set(REQUIRED_FIGURES) <= set(gpu.figures)
    for figure in gpu.figures.values():
        assert figure.unit and figure.source and figure.standing in STANDINGS and figure.value >= 0
    assert gpu.usable_bytes <= gpu.vram_bytes
    assert gpu.value("h2d_bytes_per_s") <= gpu.value("host_link_bytes_per_s")


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
