"""Rows of ``simkv catalog hardware``, ``instances`` and ``storage``: plain values, one row an entry."""

from __future__ import annotations

from typing import Any

from simkv import catalog
from simkv.catalog.storage import KINDS
from simkv.hardware import Gpu
from simkv.instances import Component, Drive, Instance

Rows = list[dict[str, Any]]

DECIMAL = ("capacity_bytes", "drive_bytes", "ssd_bytes", "endurance_bytes")
"""What drive makers count in 10^12."""


def terabytes(value: float) -> str:
    """Return bytes as drive makers count them."""
    return f"{value / 1e12:,.5g} TB"


def hardware_rows() -> Rows:
    """Return one row an accelerator."""
    return [_gpu(catalog.load_hardware(name)) for name in catalog.list_hardware()]


def instance_rows() -> Rows:
    """Return one row an instance."""
    return [_instance(catalog.load_instance(name)) for name in catalog.list_instances()]


def storage_rows() -> Rows:
    """Return one row a drive, then one for each kind of memory and link."""
    drives = [_drive(catalog.load_drive(name)) for name in catalog.list_drives()]
    parts = [_component(catalog.load_component(name)) for kind in KINDS for name in catalog.list_components(kind)]
    return [*drives, *parts]


def _known(entry: Gpu | Instance | Drive | Component, name: str) -> float | None:
    return entry.figures[name].value if name in entry.figures else None


def _gpu(gpu: Gpu) -> dict[str, Any]:
    names = (
        "vram_bytes", "hbm_bytes_per_s", "flops_fp16_per_s", "flops_fp8_per_s", "h2d_bytes_per_s", "d2h_bytes_per_s",
    )  # fmt: skip
    return {"name": gpu.name} | {name: _known(gpu, name) for name in names}


def _instance(instance: Instance) -> dict[str, Any]:
    price = instance.price
    return {
        "name": instance.name,
        "provider": instance.provider,
        "gpus": instance.gpus,
        "gpu": instance.gpu,
        "gpu_link": instance.gpu_link,
        "gpus_per_uplink": instance.gpus_per_uplink,
        "dram_bytes": instance.dram_bytes,
        "ssd_bytes": instance.ssd_bytes or None,
        "ssd_read_bytes_per_s": _known(instance, "ssd_read_bytes_per_s"),
        "price_per_hour": price.figure.value if price is not None else None,
        "price_per_gpu_hour": instance.price_per_gpu_hour,
        "price_date": price.date if price is not None else None,
    }


def _drive(drive: Drive) -> dict[str, Any]:
    return {
        "name": drive.name,
        "kind": drive.interface,
        "capacity_bytes": drive.capacity_bytes,
        "read_bytes_per_s": _known(drive, "read_bytes_per_s"),
        "write_bytes_per_s": _known(drive, "write_bytes_per_s"),
        "read_iops": _known(drive, "read_iops"),
        "write_iops": _known(drive, "write_iops"),
        "endurance_bytes": drive.endurance.value if drive.endurance is not None else None,
        "peak_bytes_per_s": None,
        "sustained_bytes_per_s": None,
    }


def _component(part: Component) -> dict[str, Any]:
    empty = dict.fromkeys(
        ("capacity_bytes", "read_bytes_per_s", "write_bytes_per_s", "read_iops", "write_iops", "endurance_bytes")
    )
    rates = {name: _known(part, name) for name in ("peak_bytes_per_s", "sustained_bytes_per_s")}
    return {"name": part.name, "kind": part.kind.removesuffix("s"), **empty, **rates}
