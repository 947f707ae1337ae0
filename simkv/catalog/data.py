"""Data files of the package: parsed once, their entries found by name or alias, their figures read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from simkv.errors import InputError, Problem
from simkv.hardware import STANDINGS, Figure


@cache
def data(file: str) -> dict[str, Any]:
    """Parse one data file of the package."""
    from importlib.resources import files

    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load(files("simkv").joinpath("data", file).read_text("utf-8"), loader)
    return loaded


def normalise(name: str) -> str:
    """Return a name as the catalogue writes names: lower case, ``-`` for blanks."""
    return "-".join(name.strip().lower().split())


def names(entries: Mapping[str, Mapping[str, Any]]) -> Mapping[str, str]:
    """Map every name and alias to its key; names win over aliases."""
    aliases = {normalise(alias): key for key, entry in entries.items() for alias in entry.get("aliases", ())}
    return MappingProxyType(aliases | {key: key for key in entries})


def find(name: str, what: str, known: Mapping[str, str]) -> str:
    """Return the catalogue key for a name or an alias.

    Raises :class:`InputError` with the nearest names for an unknown one.
    """
    key = known.get(normalise(name)) or known.get(normalise(name).rsplit("/", 1)[-1])
    if key is not None:
        return key
    from difflib import get_close_matches

    near = get_close_matches(normalise(name), list(known), n=5, cutoff=0.3)
    mend = f"nearest: {', '.join(near)}" if near else f"one of {', '.join(sorted(set(known.values())))}"
    raise InputError(Problem(f"is not a {what} of the catalogue", mend, path=what, value=name))


def figures(rows: Mapping[str, list[Any]], sources: Mapping[str, str]) -> Mapping[str, Figure]:
    """Build figures from rows ``[value, unit, standing, source]``; a short source is looked up in ``sources``."""
    return MappingProxyType({name: _figure(row, sources) for name, row in rows.items()})


def _figure(row: list[Any], sources: Mapping[str, str]) -> Figure:
    value, unit, standing, source = row
    if standing not in STANDINGS:
        raise ValueError(f"unknown standing {standing!r}")
    return Figure(float(value), unit, sources.get(source, source), standing)
