"""Accelerators by name, from ``data/hardware.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from simkv.catalog.data import data, figures, find, names
from simkv.hardware import Gpu

_FILE = "hardware.yaml"


def load_hardware(name: str) -> Gpu:
    """Return an accelerator of the catalogue.

    Raises :class:`InputError` with the nearest names for an unknown one.
    """
    return _gpu(find(name, "hardware", hardware_names()))


def list_hardware() -> list[str]:
    """Names of all accelerators, in the order of the file."""
    return list(data(_FILE)["gpus"])


@cache
def hardware_names() -> Mapping[str, str]:
    """Map every name and alias of an accelerator to its key."""
    return names(data(_FILE)["gpus"])


@cache
def _gpu(key: str) -> Gpu:
    file = data(_FILE)
    entry = file["gpus"][key]
    return Gpu(
        name=key,
        vendor=entry["vendor"],
        family=entry["family"],
        figures=figures(file["families"][entry["family"]] | entry["figures"], file["sources"]),
        aliases=tuple(entry.get("aliases", ())),
        note=entry.get("note", ""),
    )
