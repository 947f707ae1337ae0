"""What ``docs/validation-cases.md`` has from the code: keys, groups, units, and what each section is asked.

A block between ``<!-- from code: NAME -->`` and ``<!-- end -->`` is filled with what is here;
``python -m simkv.validation.reference docs/validation-cases.md`` fills them anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from simkv.scenario.base import Section
from simkv.validation.asks import MODULES, metrics
from simkv.validation.expected import SPELLED, UNITS
from simkv.validation.groups import GROUPS, Group
from simkv.validation.schema import Case, Observation, Relative, Source
from simkv.validation.words import limit_of

_BLOCK = re.compile(r"(<!-- from code: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_TYPES = {str: "text", int: "whole number", float: "number", bool: "true or false", NoneType: ""}


def filled(text: str) -> str:
    """Return a page with its blocks filled."""
    return _BLOCK.sub(lambda block: f"{block[1]}{BLOCKS[block['name']]()}{block[3]}", text)


def _keys(section: type[Section]) -> str:
    rows = [
        (f"`{name}`", _type(field.annotation), "yes" if field.is_required() else "", field.description or "")
        for name, field in section.model_fields.items()
    ]
    return _table(("Key", "Is", "Needed", "What it is"), rows)


def _type(annotation: Any) -> str:
    """Return what a key holds, in words."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is dict:
        return "mapping"
    if origin is list:
        return "list"
    if origin is Annotated:
        return _type(inside[0])
    if inside and not isinstance(inside[0], str):
        return " or ".join(dict.fromkeys(filter(None, map(_type, inside))))
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return "section"
    return "one of the groups" if inside else _TYPES.get(annotation, "text")


def _groups() -> str:
    rows = [(f"`{group.name}`", group.title, _held(group), _errors(group)) for group in GROUPS]
    return _table(("Group", "What is in it", "Held to", "Error"), rows)


def _held(group: Group) -> str:
    if not group.each:
        return f"a median of at most {limit_of(group.target or 0, group.difference)}"
    own = f" ({group.every:g} where it has none)" if group.every is not None else ""
    return f"each case to its own tolerance{own}"


def _errors(group: Group) -> str:
    return "predicted - expected" if group.difference else "predicted / expected - 1"


def _units() -> str:
    units, spelled = (", ".join(f"`{unit}`" for unit in names if unit) for names in (UNITS, SPELLED))
    return f"{units}.\n\nThese are read, too: {spelled}; and thousands with commas, as in `4,205 tokens/s`.\n"


def _ask(name: str) -> Callable[[], str]:
    return lambda: _docstring(import_module(MODULES[name]).__doc__)


def _docstring(text: str | None) -> str:
    """Return a module's docstring as Markdown."""
    return f"{(text or '').strip().replace('``', '`')}\n"


def _metrics() -> str:
    text = re.sub(r":data:`(\w+)`", lambda found: _named(found[1]), metrics.__doc__ or "")
    made = ", ".join(f"`{name}`" for name in metrics.MADE)
    return f"{_docstring(text)}\nMade of the summary: {made}.\n"


def _named(table: str) -> str:
    """Return the names in one of the module's tables."""
    return ", ".join(f"`{name}`" for name in getattr(metrics, table))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


BLOCKS: dict[str, Callable[[], str]] = {
    "case": lambda: _keys(Case),
    "observation": lambda: _keys(Observation),
    "relative": lambda: _keys(Relative),
    "source": lambda: _keys(Source),
    "groups": _groups,
    "units": _units,
    "metrics": _metrics,
    **{name: _ask(name) for name in MODULES if name != "scenario"},
}
"""What a block is filled with, by its name."""

if __name__ == "__main__":
    for place in map(Path, sys.argv[1:]):
        place.write_text(filled(place.read_text("utf-8")), "utf-8")
