"""Which values two resolved scenarios differ in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from simkv.report.folders import RunFolder

IGNORED = ("name", "question")


def flat(folder: RunFolder) -> dict[str, str]:
    """Return the values of the resolved scenario by dotted path, as text."""
    try:
        found = yaml.safe_load(folder.resolved)
    except (yaml.YAMLError, RecursionError):
        return {}
    return dict(_leaves(found)) if isinstance(found, Mapping) else {}


def differing(settings: Mapping[str, Mapping[str, str]]) -> list[tuple[str, dict[str, str]]]:
    """Return ``(path, value by run)`` of what isn't the same in all of ``settings``, in the order of the scenarios."""
    paths = dict.fromkeys(path for each in settings.values() for path in each)
    found = []
    for path in paths:
        values = {name: each.get(path, "") for name, each in settings.items()}
        if path not in IGNORED and len(set(values.values())) > 1:
            found.append((path, values))
    return found


def _leaves(value: Mapping[str, Any], under: str = "") -> Iterator[tuple[str, str]]:
    for key, below in value.items():
        path = f"{under}{key}"
        if isinstance(below, Mapping) and below:
            yield from _leaves(below, f"{path}.")
        else:
            yield path, _text(below)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)
