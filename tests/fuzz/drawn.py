"""Values drawn from the schema of scenarios: valid by themselves, and as small or large as it lets them be."""

from __future__ import annotations

import math
import types
from functools import cache
from random import Random
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import StrictBool
from pydantic.fields import FieldInfo

from simkv import units
from simkv.scenario.base import FileRef, Section
from simkv.scenario.quantity import Quantity, quantity_of
from simkv.scenario.schema import Scenario

_FILES = ("mooncake.jsonl", "lengths.jsonl", "nowhere.jsonl", ".", "/dev/null")
_DEEPEST = 4


@cache
def fields() -> tuple[tuple[str, FieldInfo], ...]:
    """Return every path of the schema with its field, sections included."""
    return tuple(_below(Scenario, (), 6))


def _below(section: type[Section], path: tuple[str, ...], deep: int) -> Any:
    for name, field in section.model_fields.items():
        here = (*path, field.alias or name)
        yield ".".join(here), field
        for inner in _sections(field.annotation) if deep > 1 else ():
            yield from _below(inner, here, deep - 1)


def _sections(annotation: Any) -> list[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [found for arm in get_args(annotation) for found in _sections(arm)]


def drawn(rng: Random, field: FieldInfo, deep: int = 0) -> Any:
    """Return a value that the schema allows at ``field``, as a scenario file would have it."""
    quantity = quantity_of(field)
    if quantity is not None and not _sections(field.annotation) and get_origin(field.annotation) not in (list, tuple):
        return extreme(rng, quantity)
    return _of(rng, field.annotation, quantity, deep)


def _of(rng: Random, annotation: Any, quantity: Quantity | None, deep: int) -> Any:
    origin, arms = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        found = next((note for note in arms[1:] if isinstance(note, Quantity)), None)
        return extreme(rng, found) if found is not None else _of(rng, arms[0], quantity, deep)
    if origin in (Union, types.UnionType):
        return _of(rng, rng.choice(arms), quantity, deep)
    if origin is Literal:
        return rng.choice(arms)
    if origin is dict:
        return {rng.choice(("a", "interactive", "batch", "ttft_p95", "p", "rate")): _of(rng, arms[1], quantity, deep)}
    if origin in (list, tuple):
        return [_of(rng, arms[0], quantity, deep) for _ in range(rng.choice((0, 1, 2, 2, 5)))]
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return _section(rng, annotation, deep)
    if quantity is not None and annotation is not type(None):
        return extreme(rng, quantity)
    return _plain(rng, annotation)


def _plain(rng: Random, annotation: Any) -> Any:
    if annotation in (bool, StrictBool):
        return rng.random() < 0.5
    if annotation is FileRef:
        return rng.choice(_FILES)
    if annotation in (int, float):
        return rng.choice((0, 1, -1, 2**40, 1e308, 0.5))
    return rng.choice((None, "x", "", "llama-3.1-8b", "0.1:1.0:0.1")) if annotation is not type(None) else None


def _section(rng: Random, section: type[Section], deep: int) -> dict[str, Any]:
    values = {}
    for name, field in section.model_fields.items():
        if field.is_required() or (deep < _DEEPEST and rng.random() < 0.4):
            values[field.alias or name] = drawn(rng, field, deep + 1)
    return values


def extreme(rng: Random, quantity: Quantity) -> Any:
    """Return a value between the least and the most that ``quantity`` allows, rather one of the two."""
    if quantity.words and rng.random() < 0.2:
        return rng.choice(quantity.words)
    dimension = units.DIMENSIONS[quantity.dimension]
    least = max(quantity.least, quantity.or_none)
    most = min(quantity.most or math.inf, float(dimension.largest))
    if dimension.infinite and quantity.most is None and rng.random() < 0.1:
        return "inf"
    value = rng.choice((least, most, 0, _between(rng, least, most), _between(rng, least, most), rng.randint(1, 100)))
    value = round(value) if dimension.integer else float(value)
    try:
        return quantity.text(value)
    except (ValueError, OverflowError):
        return value


def _between(rng: Random, least: float, most: float) -> float:
    """Return a value that is as likely of one magnitude as of another."""
    low = max(least, 1e-12 if most > 1 else most * 1e-6)
    return float(f"{low * (most / low) ** rng.random():.3g}")
