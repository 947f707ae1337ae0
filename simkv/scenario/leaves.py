"""The values of a scenario one by one, as a scenario file holds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simkv.scenario.base import FileRef, Section
from simkv.scenario.quantity import Quantity, quantity_of
from simkv.scenario.text import Path

_FIRST = ("kind", "dist", "process", "policy")


class _Measured(dict[str, Any]):
    """A dict of a section together with what its values measure."""

    def __init__(self, values: dict[str, Any], quantity: Quantity | None) -> None:
        super().__init__(values)
        self.quantity = quantity


def leaves(section: Section | dict[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield ``(path, value as a scenario holds it)`` of everything in ``section`` that has a value."""
    for key, value, quantity in items(section):
        here = (*path, key)
        if isinstance(value, Section | dict):
            yield from leaves(value, here)
        elif value is not None:
            yield here, written(value, quantity)


def items(section: Section | dict[str, Any]) -> list[tuple[str, Any, Quantity | None]]:
    """Return ``(key, value, what it measures)`` with what tells kinds apart first."""
    if not isinstance(section, Section):
        quantity = section.quantity if isinstance(section, _Measured) else None
        return [(key, value, quantity) for key, value in section.items()]
    found = []
    for name, field in type(section).model_fields.items():
        value, quantity = getattr(section, name), quantity_of(field)
        found.append((field.alias or name, _Measured(value, quantity) if isinstance(value, dict) else value, quantity))
    return sorted(found, key=lambda item: item[0] not in _FIRST)


def written(value: Any, quantity: Quantity | None) -> Any:
    """Return ``value`` as a scenario file holds it: text with a unit, a bare number, a list, a file's name."""
    if isinstance(value, FileRef):
        return value.given
    if isinstance(value, Section):
        return {key: written(item, measure) for key, item, measure in items(value) if item is not None}
    if isinstance(value, list | tuple):
        return [written(item, quantity) for item in value]
    if isinstance(value, str | bool) or quantity is None:
        return value
    return quantity.text(value)
