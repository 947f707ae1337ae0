"""What each serving engine ships with, as data: default values by version, and which knobs it really has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from simkv.errors import InputError, Problem

NAMES = tuple(sorted(one.name.removesuffix(".yaml") for one in files(__name__).iterdir() if one.name.endswith(".yaml")))
"""Every preset: the files of this folder."""
DRAM_MEASURES = ("capacity", "ratio", "per_gpu")
"""Keys of ``tiers.dram`` of which one says how much there is."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One engine at one version."""

    key: str
    name: str
    """As its makers write it."""
    version: str
    versions: tuple[str, ...]
    values: Mapping[str, Any]
    """Sections as in a scenario file."""
    has: Mapping[str, tuple[Any, ...]]
    """By path: the values (SI) that the engine can be told; paths that aren't here are free."""
    source: str = ""
    """Where the values were read."""


def load(key: str, version: str | None = None) -> Preset:
    """Return preset ``key`` at ``version`` (None: the newest known).

    Raises :class:`InputError` that lists what there is.
    """
    if key not in NAMES:
        raise InputError(Problem("unknown preset", f"one of {', '.join(NAMES)}", path="engine.preset", value=key))
    data = _data(key)
    base = _data(data["like"]) if "like" in data else {"values": {}, "has": {}}
    versions = tuple(data["versions"])
    chosen = version or data["newest"]
    if chosen not in versions:
        known = ", ".join(f'"{v}"' for v in versions)
        mend = f"one of {known} (in quotes), or leave it out for the newest"
        raise InputError(
            Problem(f"no defaults of that version of {data['name']}", mend, path="engine.version", value=f'"{chosen}"')
        )
    own = dict(data["versions"][chosen])
    knobs = {**base["has"], **data["has"], **own.pop("has", {})}  # a version's own, null where it is free there
    values = merge(merge(merge(base["values"], data["values"]), own), {"engine": {"version": chosen}})
    has = {path: tuple(_frozen(one) for one in allowed) for path, allowed in knobs.items() if allowed is not None}
    return Preset(key, data["name"], chosen, versions, values, has, data.get("source", ""))


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Return both nested mappings as one; where both have a value, ``upper``'s. Null is no value."""
    result = dict(lower)
    for key, value in upper.items():
        below = result.get(key)
        if value is None and below is not None:
            continue
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[key] = merge(below, value) if both else value  # type: ignore[arg-type]
    return result


def beside(values: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    """Return a preset's ``values`` without its measure of DRAM where the scenario, as ``written``, has its own."""
    tiers = written.get("tiers")
    dram = tiers.get("dram") if isinstance(tiers, Mapping) else None
    if not isinstance(dram, Mapping) or all(dram.get(key) is None for key in DRAM_MEASURES):
        return dict(values)
    left = {key: value for key, value in values["tiers"]["dram"].items() if key not in DRAM_MEASURES}
    return {**values, "tiers": {**values["tiers"], "dram": left}}


@cache
def _data(key: str) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = files("simkv.scenario.presets").joinpath(f"{key}.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.load(text, loader)
    return loaded
