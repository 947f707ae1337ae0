"""Drives, memory and links by name, from ``data/storage.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from simkv.catalog.data import data, figures, find, names
from simkv.instances import Component, Drive

_FILE = "storage.yaml"

Kind = Literal["memory", "links"]
KINDS: tuple[Kind, ...] = ("memory", "links")


def load_drive(name: str) -> Drive:
    """Return a drive of the catalogue.

    Raises :class:`InputError` with the nearest names for an unknown one.
    """
    return _drive(find(name, "drive", _drive_names()))


def list_drives() -> list[str]:
    """Names of all drives, in the order of the file."""
    return list(data(_FILE)["drives"])


def load_component(name: str) -> Component:
    """Return memory or a link of the catalogue.

    Raises :class:`InputError` with the nearest names for an unknown one.
    """
    return _component(find(name, "component", _component_names()))


def list_components(kind: Kind) -> list[str]:
    """Names of all memory or all links, in the order of the file."""
    return list(data(_FILE)[kind])


@cache
def _drive_names() -> Mapping[str, str]:
    return names(data(_FILE)["drives"])


@cache
def _component_names() -> Mapping[str, str]:
    return names({key: entry for kind in KINDS for key, entry in data(_FILE)[kind].items()})


@cache
def _drive(key: str) -> Drive:
    file = data(_FILE)
    entry = file["drives"][key]
    return Drive(
        name=key,
        interface=entry["interface"],
        figures=figures(entry["figures"], file["sources"]),
        aliases=tuple(entry.get("aliases", ())),
        note=entry.get("note", ""),
    )


@cache
def _component(key: str) -> Component:
    file = data(_FILE)
    kind = next(kind for kind in KINDS if key in file[kind])
    entry = file[kind][key]
    return Component(key, kind, figures(entry["figures"], file["sources"]), entry.get("note", ""))
