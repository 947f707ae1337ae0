"""What a scenario can have at a path: found by walking the schema, through every kind of each union."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from simkv.scenario.base import Section
from simkv.scenario.quantity import Quantity, quantity_of
from simkv.scenario.schema import Scenario

LONGEST = 200
"""Characters of a path."""
_ABOUT = ("name", "question", "sweep", "plan", "run.replications")
"""What no run depends on."""
_DEEPEST = 6


def decides(path: str) -> bool:
    """Say whether a run depends on what is at ``path``."""
    return not any(path == about or path.startswith(f"{about}.") for about in _ABOUT)


def exists(path: str) -> bool:
    """Say whether some scenario has something at ``path``, a section or a value."""
    return len(path) <= LONGEST and bool(_annotations(path))


def quantity_at(path: str) -> Quantity | None:
    """Return what a value at ``path`` measures; None where it isn't a quantity in any kind of scenario."""
    if not exists(path):
        return None
    found = (_quantity(field) for field in _annotations(path))
    return next((quantity for quantity in found if quantity is not None), None)


def _quantity(found: Any) -> Quantity | None:
    return quantity_of(found if isinstance(found, FieldInfo) else FieldInfo(annotation=found))


@cache
def all_paths() -> tuple[str, ...]:
    """Return every path of values and sections that a run depends on; of free names none."""
    return tuple(sorted({path for path in _below(Scenario, (), _DEEPEST) if decides(path)}))


def _below(section: type[Section], path: tuple[str, ...], deep: int) -> Iterator[str]:
    for key, field in _fields(section):
        here = (*path, key)
        yield ".".join(here)
        if deep > 1:
            for inner in _sections(field.annotation):
                yield from _below(inner, here, deep - 1)


@lru_cache(maxsize=4096)
def _annotations(path: str) -> tuple[Any, ...]:
    """Return the fields (or, of mappings with free keys, types) that ``path`` can lead to."""
    here: list[Any] = [FieldInfo(annotation=Scenario)]
    for key in path.split("."):
        here = [found for at in here for found in _step(at.annotation if isinstance(at, FieldInfo) else at, key)]
    return tuple(here)


def _step(annotation: Any, key: str) -> Iterator[Any]:
    for section in _sections(annotation):
        yield from (field for name, field in _fields(section) if name == key)
    if key:
        yield from (get_args(arm)[1] for arm in _arms(annotation) if get_origin(arm) is dict)


def _fields(section: type[Section]) -> Iterator[tuple[str, FieldInfo]]:
    return ((field.alias or name, field) for name, field in section.model_fields.items())


def _arms(annotation: Any) -> Iterator[Any]:
    """Yield ``annotation`` and the parts of its unions; what lists and mappings hold isn't part of it."""
    yield annotation
    if get_origin(annotation) not in (dict, list, tuple):
        for arm in get_args(annotation):
            yield from _arms(arm)


def _sections(annotation: Any) -> list[type[Section]]:
    return [arm for arm in _arms(annotation) if isinstance(arm, type) and issubclass(arm, Section)]
