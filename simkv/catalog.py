"""The shipped catalogue: models and accelerators by name.

Names are lower case with ``-`` for blanks; the Hugging Face basename of a model is an alias, and
case doesn't matter. Files are parsed on first use, so importing this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from simkv.errors import InputError, Problem
from simkv.hardware import STANDINGS, Figure, Gpu
from simkv.model import Mla, ModelShape, Moe, normalise_dtype


def load_model(name: str) -> ModelShape:
    """Return a model of the catalogue.

    Raises :class:`InputError` with the nearest names for an unknown one.
    """
    key = _find(name, "model", _model_names())
    return _model(key)


def load_hardware(name: str) -> Gpu:
    """Return an accelerator of the catalogue.

    Raises :class:`InputError` with the nearest names for an unknown one.
    """
    key = _find(name, "hardware", _hardware_names())
    return _gpu(key)


def list_models() -> list[str]:
    """Names of all models, in the order of the file."""
    return list(_data("models.yaml")["models"])


def list_hardware() -> list[str]:
    """Names of all accelerators, in the order of the file."""
    return list(_data("hardware.yaml")["gpus"])


@cache
def _data(file: str) -> dict[str, Any]:
    """Parse one data file of the package."""
    from importlib.resources import files

    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load(files("simkv").joinpath("data", file).read_text("utf-8"), loader)
    return loaded


def _normalise(name: str) -> str:
    return "-".join(name.strip().lower().split())


def _find(name: str, what: str, names: Mapping[str, str]) -> str:
    """Return the catalogue key for a name or an alias."""
    key = names.get(_normalise(name)) or names.get(_normalise(name).rsplit("/", 1)[-1])
    if key is not None:
        return key
    from difflib import get_close_matches

    near = get_close_matches(_normalise(name), list(names), n=5, cutoff=0.3)
    mend = f"nearest: {', '.join(near)}" if near else f"one of {', '.join(sorted(set(names.values())))}"
    raise InputError(Problem(f"is not a {what} of the catalogue", mend, path=what, value=name))


@cache
def _model_names() -> Mapping[str, str]:
    return _names(_data("models.yaml")["models"])


@cache
def _hardware_names() -> Mapping[str, str]:
    return _names(_data("hardware.yaml")["gpus"])


def _names(entries: Mapping[str, Mapping[str, Any]]) -> Mapping[str, str]:
    """Map every name and alias to its key; names win over aliases."""
    aliases = {_normalise(alias): key for key, entry in entries.items() for alias in entry.get("aliases", ())}
    return MappingProxyType(aliases | {key: key for key in entries})


@cache
def _model(key: str) -> ModelShape:
    data = _data("models.yaml")
    entry = dict(data["models"][key])
    entry["source"] = data["sources"][entry["source"]]
    entry["aliases"] = tuple(entry.get("aliases", ()))
    entry["dtype"] = normalise_dtype(entry["dtype"])
    if "mla" in entry:
        entry["mla"] = Mla(**entry["mla"])
    if "moe" in entry:
        entry["moe"] = Moe(**entry["moe"])
    return ModelShape(name=key, **entry)


@cache
def _gpu(key: str) -> Gpu:
    data = _data("hardware.yaml")
    entry = data["gpus"][key]
    rows = data["families"][entry["family"]] | entry["figures"]
    figures = {name: _figure(row, data["sources"]) for name, row in rows.items()}
    return Gpu(
        name=key,
        vendor=entry["vendor"],
        family=entry["family"],
        figures=MappingProxyType(figures),
        aliases=tuple(entry.get("aliases", ())),
        note=entry.get("note", ""),
    )


def _figure(row: list[Any], sources: Mapping[str, str]) -> Figure:
    """Build a figure from ``[value, unit, standing, source]``; a short source is looked up in ``sources``."""
    value, unit, standing, source = row
    if standing not in STANDINGS:
        raise ValueError(f"unknown standing {standing!r}")
    return Figure(float(value), unit, sources.get(source, source), standing)
