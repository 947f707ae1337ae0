"""Instances and storage of the catalogue: whole, plausible, equal to the published table, listed and shown."""

from __future__ import annotations

import csv
import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.catalog import (
    list_components,
    list_drives,
    list_hardware,
    list_instances,
    load_component,
    load_drive,
    load_hardware,
    load_instance,
    load_machine,
)
from simkv.catalog.data import data
from simkv.cli import app
from simkv.errors import InputError
from simkv.hardware import STANDINGS
from simkv.instances import Drive, Instance

INSTANCES = [load_instance(name) for name in list_instances()]
DRIVES = [load_drive(name) for name in list_drives()]


@pytest.mark.parametrize("instance", INSTANCES, ids=list_instances())
def test_instance_figures_are_positive_and_sourced(instance: Instance) -> None:
    for name, figure in instance.figures.items():
        assert figure.value > 0 or (name == "drives" and figure.value == 0), name
        assert figure.standing in STANDINGS and len(figure.source) > 3 and figure.unit
    assert instance.note and instance.provider in {"aws", "azure", "gcp", "lambda", "on-premise"}


@pytest.mark.parametrize("instance", INSTANCES, ids=list_instances())
def test_instance_groups_partition_its_gpus(instance: Instance) -> None:
    everyone = list(range(instance.gpus))
    for groups in (instance.topology.numa, instance.topology.uplinks):
        assert sorted(gpu for group in groups for gpu in group) == everyone
    assert {len(group) for group in instance.topology.uplinks} == {instance.gpus_per_uplink}
    assert (instance.gpus_per_uplink > 1) == ("uplink_bytes_per_s" in instance.figures)
    for group in instance.topology.uplinks:
        assert any(set(group) <= set(node) for node in instance.topology.numa), "an uplink crosses NUMA nodes"
    assert instance.topology.standing in STANDINGS and instance.topology.source


@pytest.mark.parametrize("instance", INSTANCES, ids=list_instances())
def test_instance_names_what_the_catalogue_has(instance: Instance) -> None:
    gpu = load_hardware(instance.gpu)
    assert gpu.name == instance.gpu
    assert not instance.memory or load_component(instance.memory).kind == "memory"
    assert not instance.drive or load_drive(instance.drive).name == instance.drive
    assert (instance.gpu_link == "none") == (instance.gpus == 1)
    if "h2d_bytes_per_s" in instance.figures:
        assert instance.figure("h2d_bytes_per_s").value <= gpu.value("h2d_bytes_per_s"), "a host makes no link faster"


@pytest.mark.parametrize("instance", INSTANCES, ids=list_instances())
def test_instance_price_has_date_terms_and_source(instance: Instance) -> None:
    if instance.price is None:
        assert instance.provider == "on-premise" and instance.price_per_gpu_hour is None
        return
    date = datetime.date.fromisoformat(instance.price.date)
    assert datetime.date(2025, 1, 1) < date < datetime.date(2027, 1, 1)
    assert "on-demand" in instance.price.terms or "pay as you go" in instance.price.terms
    assert instance.price.currency == "USD" and instance.price.figure.source
    assert instance.price_per_gpu_hour == pytest.approx(instance.price.figure.value / instance.gpus)


@pytest.mark.parametrize("instance", INSTANCES, ids=list_instances())
def test_instance_storage_adds_up(instance: Instance) -> None:
    figures = instance.figures
    count = figures["drives"].value
    assert (instance.ssd_bytes > 0) == (count > 0)
    if instance.drive:
        drive = load_drive(instance.drive)
        assert instance.ssd_bytes == count * drive.capacity_bytes and drive.endurance is not None
        assert figures["ssd_read_bytes_per_s"].value == count * drive.figures["read_bytes_per_s"].value
        assert figures["ssd_endurance_bytes"].value == count * drive.endurance.value
    elif count:
        assert "endurance" in instance.note and "not published" in instance.note
        assert {"ssd_read_bytes_per_s", "ssd_write_bytes_per_s", "ssd_latency_s"} <= set(figures)


@pytest.mark.parametrize("instance", INSTANCES, ids=list_instances())
def test_instance_memory_sustains_less_than_its_peak(instance: Instance) -> None:
    if instance.memory:
        sustained, peak = (instance.figure(name).value for name in ("dram_bytes_per_s", "dram_peak_bytes_per_s"))
        assert 0.5 * peak < sustained < peak
        assert peak == instance.figure("memory_count").value * load_component(instance.memory).figures[
            "peak_bytes_per_s"].value  # fmt: skip


def test_instances_are_many_and_told_apart_from_cards() -> None:
    names = [name for i in INSTANCES for name in (i.name, *i.aliases)]
    assert len(INSTANCES) >= 16 and {i.provider for i in INSTANCES} >= {"aws", "azure", "gcp", "on-premise"}
    assert len(names) == len(set(names)) and not set(names) & set(list_hardware())
    assert load_instance("Standard_ND96isr_H100_v5").name == "nd96isr-h100-v5"
    assert load_instance("DGX H100").gpus == 8


def test_machine_by_name_is_a_card_or_an_instance() -> None:
    assert load_machine("H100").name == "h100-sxm5-80gb"
    assert load_machine("p5.48xlarge") is load_instance("p5.48xlarge")
    with pytest.raises(InputError, match=r"hardware = p5\.48xlarg: .*nearest: p5\.48xlarge"):
        load_machine("p5.48xlarg")
    with pytest.raises(InputError, match="instance = abacus"):
        load_instance("abacus")
    with pytest.raises(InputError, match=r"p4d\.24xlarge has no figure 'wheels'"):
        load_instance("p4d.24xlarge").figure("wheels")


@pytest.mark.parametrize("drive", DRIVES, ids=list_drives())
def test_drive_figures_are_positive_and_below_their_link(drive: Drive) -> None:
    for figure in drive.figures.values():
        assert figure.value > 0 and figure.standing in STANDINGS and figure.source and figure.unit
    generation = drive.interface.split()[1][:3]
    link = load_component(f"pcie-{generation}-x4").figures["peak_bytes_per_s"].value
    assert drive.figures["write_bytes_per_s"].value <= drive.figures["read_bytes_per_s"].value < link
    assert drive.endurance is not None and drive.endurance.value > 100 * drive.capacity_bytes


def test_drive_endurance_is_as_stated_or_daily_writes_over_the_warranty() -> None:
    stated, daily = load_drive("micron-9550-max-6.4tb"), load_drive("pm1733")
    assert stated.endurance is not None and stated.endurance.value == 35.04e15
    assert daily.endurance is not None and daily.endurance.value == pytest.approx(365 * 5 * 3.84e12)
    figures = {k: v for k, v in daily.figures.items() if k != "drive_writes_per_day"}
    assert replace(daily, figures=figures).endurance is None


DRIVE_ROWS = {
    "Gen3 x4 consumer (970 EVO Plus class)": ("gen3-x4-consumer-1tb",),
    "Intel P4500 4TB": ("intel-p4500-4tb",),
    "Micron 9200": ("micron-9200-max-6.4tb",),
    "Gen4 x4 consumer (980 PRO class)": ("gen4-x4-consumer-1tb",),
    "Intel/Solidigm D7-P5500/P5600": ("intel-d7-p5500-3.84tb", "intel-d7-p5600-3.2tb"),
    "Micron 9550 MAX": ("micron-9550-max-6.4tb",),
    "Samsung PM1743": ("samsung-pm1743-3.84tb",),
    "Kioxia CM7-R": ("kioxia-cm7-r-7.68tb",),
}


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.replace("/", "-").split("-") if part.strip()]


@pytest.fixture(scope="module")
def rows(shared: Path) -> dict[str, dict[str, str]]:
    with (shared / "catalog" / "storage_dram.csv").open(encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


@pytest.mark.shared
def test_storage_table_every_row_is_there_or_left_out_with_its_reason(rows: dict[str, dict[str, str]]) -> None:
    left_out = data("storage.yaml")["left_out"]
    by_kind: dict[str, set[str]] = {}
    for row in rows.values():
        by_kind.setdefault(row["kind"], set()).add(row["name"])
    assert by_kind["nvme"] == set(DRIVE_ROWS)
    assert all(key in left_out and left_out[key] for key in (
        "llmservingsim-host-memory-presets", "vllm-kv-block-old-per-layer-layout"))  # fmt: skip
    assert len(by_kind["dram_config"]) == len(by_kind["copy_unit"]) == 1


@pytest.mark.shared
@pytest.mark.parametrize("name", DRIVE_ROWS)
def test_drive_lies_in_the_ranges_of_its_row(name: str, rows: dict[str, dict[str, str]]) -> None:
    columns = {
        "read_bytes_per_s": ("seq_read_mb_s", 1e6), "write_bytes_per_s": ("seq_write_mb_s", 1e6),
        "read_iops": ("rand4k_read_kiops", 1e3), "write_iops": ("rand4k_write_kiops", 1e3),
        "read_latency_s": ("lat_4k_read_us", 1e-6), "write_latency_s": ("lat_4k_write_us", 1e-6),
    }  # fmt: skip
    for drive in map(load_drive, DRIVE_ROWS[name]):
        for figure, (column, scale) in columns.items():
            stated = _numbers(rows[name][column])
            if stated:
                value = drive.figures[figure].value / scale
                assert min(stated) - 1e-9 <= value <= max(stated) + 1e-9, figure


@pytest.mark.shared
def test_memory_and_links_equal_their_rows(rows: dict[str, dict[str, str]]) -> None:
    for row in rows.values():
        if row["kind"] in ("dram_channel", "dram_socket"):
            part = load_component(row["name"])
            assert part.figures["peak_bytes_per_s"].value == float(row["bw_gbs_theoretical"]) * 1e9
            if row["bw_gbs_measured"]:
                assert part.figures["sustained_bytes_per_s"].value == float(row["bw_gbs_measured"]) * 1e9
        if row["kind"] == "link":
            generation = row["name"][4]
            for lanes, rate in zip((4, 16), row["bw_gbs_theoretical"].split(" / "), strict=True):
                link = load_component(f"pcie-{generation}.0-x{lanes}")
                assert link.figures["peak_bytes_per_s"].value == float(rate) * 1e9
    own = set(list_components("memory")) - {"-".join(name.lower().split()) for name in rows}
    assert own == {"ddr5-4400"}, "two modules a channel"


def simkv(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize(
    ("kind", "name"), [("instances", "p5.48xlarge"), ("storage", "samsung-pm1743-3.84tb"), ("hardware", "mi300x")]
)
def test_catalog_lists_machines_as_table_and_json(kind: str, name: str) -> None:
    listed = json.loads(simkv("catalog", kind, "--json").stdout)
    assert name in [row["name"] for row in listed]
    assert any(line.startswith(name + " ") for line in simkv("catalog", kind).stdout.splitlines())


@pytest.mark.parametrize("name", ["p4d.24xlarge", "pm1743", "gh200", "ddr5-4800", "pcie-5.0-x16", "llama-3.1-8b"])
def test_catalog_show_gives_every_figure_with_source_and_standing(name: str) -> None:
    rows = json.loads(simkv("catalog", "show", name, "--json").stdout)
    sourced = [row for row in rows if row["standing"]]
    assert sourced and all(row["source"] and {"figure", "value", "unit"} <= set(row) for row in sourced)
    shown = simkv("catalog", "show", name).stdout
    assert all(f"\n{row['figure']} " in shown for row in rows)


def test_catalog_show_breaks_long_sources_and_keeps_json_whole() -> None:
    text = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["catalog", "show", "p4d.24xlarge"]).stdout
    assert max(len(line) for line in text.splitlines()) <= 130, "no longer than the longest address"
    rows = {row["figure"]: row for row in json.loads(simkv("catalog", "show", "p4d.24xlarge", "--json").stdout)}
    assert rows["uplinks"]["value"] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert rows["price_per_hour"]["value"] == 21.957642
    assert "0 1 | 2 3 | 4 5 | 6 7" in text and "21.9576 USD/h" in text and "as above" in text
