"""Instances by name, from ``data/instances.yaml``; what follows from their memory and drives is filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from simkv.catalog.data import data, figures, find, names
from simkv.catalog.hardware import hardware_names, load_hardware
from simkv.catalog.storage import load_component, load_drive
from simkv.hardware import Figure, Gpu, Standing
from simkv.instances import Groups, Instance, Price, Topology

_FILE = "instances.yaml"
_OF_DRIVES = {
    "ssd_read_bytes_per_s": "read_bytes_per_s",
    "ssd_write_bytes_per_s": "write_bytes_per_s",
    "ssd_read_iops": "read_iops",
    "ssd_write_iops": "write_iops",
}
"""Figures of a host that are so many times a drive's."""


def load_instance(name: str) -> Instance:
    """Return an instance of the catalogue.

    Raises :class:`InputError` with the nearest names for an unknown one.
    """
    return _instance(find(name, "instance", _names()))


def load_machine(name: str) -> Gpu | Instance:
    """Return an accelerator or an instance of the catalogue, whichever has that name.

    Raises :class:`InputError` with the nearest names of both for an unknown one.
    """
    key = find(name, "hardware", {**_names(), **hardware_names()})
    return load_hardware(key) if key in hardware_names() else _instance(key)


def list_instances() -> list[str]:
    """Names of all instances, in the order of the file."""
    return list(data(_FILE)["instances"])


@cache
def _names() -> Mapping[str, str]:
    return names(data(_FILE)["instances"])


@cache
def _instance(key: str) -> Instance:
    file = data(_FILE)
    entry, sources = file["instances"][key], file["sources"]
    given = figures(entry["figures"], sources)
    share = figures({"share": file["dram_sustained_share"]}, sources)["share"]
    memory, drive = entry.get("memory", ""), entry.get("drive", "")
    derived = dict(_of_memory(memory, given, share)) | dict(_of_drives(drive, given))
    return Instance(
        name=key,
        provider=entry["provider"],
        gpu=entry["gpu"],
        gpu_link=entry["gpu_link"],
        topology=_topology(entry["topology"], sources),
        figures=MappingProxyType({**given, **{name: figure for name, figure in derived.items() if name not in given}}),
        memory=memory,
        drive=drive,
        price=_price(entry.get("price"), given),
        aliases=tuple(entry.get("aliases", ())),
        note=entry.get("note", ""),
    )


def _topology(entry: Mapping[str, Any], sources: Mapping[str, str]) -> Topology:
    return Topology(
        numa=_groups(entry["numa"]),
        uplinks=_groups(entry["uplinks"]),
        standing=entry["standing"],
        source=sources.get(entry["source"], entry["source"]),
    )


def _groups(lists: list[list[int]]) -> Groups:
    return tuple(tuple(group) for group in lists)


def _price(entry: Mapping[str, str] | None, given: Mapping[str, Figure]) -> Price | None:
    return Price(given["price_per_hour"], entry["date"], entry["terms"]) if entry is not None else None


def _of_memory(name: str, given: Mapping[str, Figure], share: Figure) -> Iterator[tuple[str, Figure]]:
    """Yield the bandwidth of so many channels or sockets, by the data sheet and sustained."""
    if not name:
        return
    count, memory = given["memory_count"], load_component(name)
    peak = _times(count, memory.figures["peak_bytes_per_s"], memory.name)
    yield "dram_peak_bytes_per_s", peak
    if "sustained_bytes_per_s" in memory.figures:
        yield "dram_bytes_per_s", _times(count, memory.figures["sustained_bytes_per_s"], memory.name)
    else:
        source = f"{share.value:g} of {peak.source}; {share.source}"
        yield "dram_bytes_per_s", Figure(share.value * peak.value, peak.unit, source, share.standing)


def _of_drives(name: str, given: Mapping[str, Figure]) -> Iterator[tuple[str, Figure]]:
    """Yield what all drives hold and do together, and how long one takes."""
    count = given["drives"]
    if not count.value:
        return
    if not name:
        yield "ssd_bytes", _times(count, given["drive_bytes"], "drives")
        return
    drive = load_drive(name)
    yield "ssd_bytes", _times(count, drive.figures["capacity_bytes"], name)
    yield "ssd_latency_s", drive.figures["read_latency_s"]
    for figure, of_one in _OF_DRIVES.items():
        if of_one in drive.figures:
            yield figure, _times(count, drive.figures[of_one], name)
    if drive.endurance is not None:
        yield "ssd_endurance_bytes", _times(count, drive.endurance, name)


def _times(count: Figure, one: Figure, what: str) -> Figure:
    """Return ``count`` times a figure; it stands no better than the worse of the two."""
    worst: Standing = "assumed" if "assumed" in (count.standing, one.standing) else one.standing
    return Figure(count.value * one.value, one.unit, f"{count.value:g} x {what}: {one.source}", worst)
