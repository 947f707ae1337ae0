"""Accelerators of the catalogue: whole, plausible, and equal to the published table row by row."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from simkv.catalog import list_hardware, load_hardware
from simkv.hardware import STANDINGS, Gpu

LEFT_OUT = {
    ("rtx-pro-6000-blackwell-server", "measured_hbm_gbs"): "1597",
    ("b300-sxm-288gb", "int8"): "int8 left out",
    ("gh200-96gb", "measured_bidir_gbs"): "sum of one-way figures",
    ("gb200", "fp8"): "10000 (FP8) is with sparsity",
    ("h200-sxm5-141gb", "fp8"): "1979/3958 are sparse",
    ("l40s", "fp8"): "1466 (FP8) is with sparsity",
}
"""Figures of the published sources that aren't sound, and what the card's note says of them."""

CUT_DOWN = {"a800-sxm4-80gb": "a100-sxm4-80gb", "h800-sxm5-80gb": "h100-sxm5-80gb"}
"""Cards that aren't in the table, and those that they are but for the link between GPUs."""


@pytest.fixture(scope="module")
def table(shared: Path) -> dict[str, dict[str, str]]:
    """Return the rows of the published table by the name they have in the catalogue."""
    with (shared / "catalog" / "hardware.csv").open(encoding="utf-8") as file:
        return {_key(row["name"]): row for row in csv.DictReader(file)}


def _key(name: str) -> str:
    return "-".join(re.sub(r"\(.*?\)", "", name).lower().split())


def _cards() -> list[Gpu]:
    return [load_hardware(name) for name in list_hardware()]


@pytest.mark.parametrize("gpu", _cards(), ids=list_hardware())
def test_gpu_figures_are_positive_or_nothing_and_sourced(gpu: Gpu) -> None:
    may_be_zero = {"layer_overhead_s", "step_overhead_s"}
    for name, figure in gpu.figures.items():
        assert figure.value > 0 or (figure.value == 0 and name in may_be_zero), name
        assert figure.standing in STANDINGS and len(figure.source) > 3 and figure.unit


@pytest.mark.parametrize("gpu", _cards(), ids=list_hardware())
def test_gpu_rates_are_dense_and_shares_below_one(gpu: Gpu) -> None:
    sixteen = gpu.dense_flops_per_s("bf16")
    for dtype, most in (("fp8", 2.1), ("int8", 4.1)):
        if gpu.has_dense_rate(dtype):
            assert sixteen < gpu.dense_flops_per_s(dtype) <= most * sixteen
    for name, figure in gpu.figures.items():
        assert not name.endswith("efficiency") or 0 < figure.value <= 1
    assert 0.9 * gpu.vram_bytes < gpu.usable_bytes <= gpu.vram_bytes


@pytest.mark.parametrize("gpu", _cards(), ids=list_hardware())
def test_gpu_copies_stay_below_their_link(gpu: Gpu) -> None:
    link = gpu.value("host_link_bytes_per_s")
    assert gpu.value("h2d_bytes_per_s") <= link and gpu.value("d2h_bytes_per_s") <= link
    most = max(gpu.value("h2d_bytes_per_s"), gpu.value("d2h_bytes_per_s"))
    assert most <= gpu.value("duplex_bytes_per_s") <= gpu.value("h2d_bytes_per_s") + gpu.value("d2h_bytes_per_s")


@pytest.mark.parametrize("gpu", _cards(), ids=list_hardware())
def test_gpu_price_range_is_ordered_and_dated(gpu: Gpu) -> None:
    low, high = (gpu.figures.get(f"price_usd_per_hour_{end}") for end in ("low", "high"))
    if low is not None:
        assert low.unit == "USD/h" and (re.search(r"20\d\d", low.source) or "datacrunch" in low.source)
    if high is not None:
        assert low is not None and low.value <= high.value


def test_gpu_fitted_figures_belong_to_fitted_architectures() -> None:
    fitted = {gpu.family for gpu in _cards() if any(f.standing == "fitted" for f in gpu.figures.values())}
    assert fitted == {"ada-geforce", "ada", "ampere-gddr", "ampere", "hopper", "turing"}, "turing: the link of the T4"


def test_gpu_names_and_aliases_are_told_apart() -> None:
    names = [name for gpu in _cards() for name in (gpu.name, *gpu.aliases)]
    assert len(names) == len(set(names))
    assert load_hardware("GB200").name == "gb200" and load_hardware("RTX PRO 6000").vram_bytes == 96 << 30


@pytest.mark.shared
def test_gpu_table_every_row_is_in_the_catalogue(table: dict[str, dict[str, str]]) -> None:
    assert set(table) | set(CUT_DOWN) == set(list_hardware())


@pytest.mark.parametrize(("name", "whole"), CUT_DOWN.items())
def test_gpu_sold_with_less_nvlink_is_else_the_same(name: str, whole: str) -> None:
    less, card = load_hardware(name), load_hardware(whole)
    changed = {key for key, figure in less.figures.items() if figure != card.figures[key]}
    assert changed == {"gpu_link_bytes_per_s"} and less.family == card.family
    assert less.value("gpu_link_bytes_per_s") < card.value("gpu_link_bytes_per_s")


@pytest.mark.shared
@pytest.mark.parametrize("name", [name for name in list_hardware() if name not in CUT_DOWN])
def test_gpu_equals_its_row(name: str, table: dict[str, dict[str, str]]) -> None:
    gpu, row = load_hardware(name), table[name]
    assert gpu.vram_bytes in (float(row["vram_gb"]) * 2**30, float(row["vram_gb"]) * 1e9)
    assert gpu.vendor == row["vendor"].lower()
    columns = {
        "hbm_bytes_per_s": ("hbm_bw_gbs", 1e9),
        "flops_fp16_per_s": ("fp16_bf16_dense_tflops", 1e12),
        "flops_fp8_per_s": ("fp8_dense_tflops", 1e12),
        "flops_int8_per_s": ("int8_dense_tops", 1e12),
        "price_usd_per_hour_low": ("price_usd_per_h_low", 1),
        "price_usd_per_hour_high": ("price_usd_per_h_high", 1),
    }
    for figure, (column, scale) in columns.items():
        if row[column]:
            assert gpu.value(figure) == pytest.approx(float(row[column]) * scale), figure
        else:
            assert figure not in gpu.figures, figure
    link = row["host_link_gbs_per_dir_theoretical"].split(" or ")[0]
    assert gpu.value("host_link_bytes_per_s") == float(link) * 1e9


@pytest.mark.shared
def test_gpu_usable_memory_is_at_most_what_the_driver_shows(table: dict[str, dict[str, str]]) -> None:
    shown = {name: float(row["vram_usable_gib_nvidia_smi"]) for name, row in table.items()
             if row["vram_usable_gib_nvidia_smi"]}  # fmt: skip
    assert len(shown) == 5
    for name, gib in shown.items():
        assert 0.98 * gib < load_hardware(name).usable_bytes / 2**30 <= gib


@pytest.mark.parametrize(("card", "figure"), LEFT_OUT)
def test_gpu_unsound_figure_is_left_out_with_its_reason(card: str, figure: str) -> None:
    assert LEFT_OUT[card, figure] in load_hardware(card).note
