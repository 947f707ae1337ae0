"""What pydantic finds wrong, told as :class:`~simkv.errors.Problem` with place, value and mend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from simkv import units
from simkv.errors import Problem
from simkv.scenario.base import TAG, Section, literal_values
from simkv.scenario.quantity import quantity_of
from simkv.scenario.text import Path

Place = Callable[[Path], tuple[str, int | None]]
"""From a path to the file (or ``--set``) and the line that it comes from."""

MOST = 500
"""Problems that are told of one file: who made more will run it again."""

Told = tuple[Path, str, str, bool]
"""Path, what is wrong, mend, and whether the value says something."""


def problems_of(error: ValidationError, tree: Mapping[str, Any], root: type[Section], place: Place) -> list[Problem]:
    """Return one problem for each error (of the first many), in the order of the file."""
    found = []
    for detail in error.errors(include_url=False)[:MOST]:
        path, what, mend, show = _told(detail, tree, root)
        found.append(problem(path, what, mend, tree, place, show))
    return sorted(found, key=lambda p: (p.file, p.line or 0))


def problem(path: Path, what: str, mend: str, tree: Mapping[str, Any], place: Place, show: bool = True) -> Problem:
    """Return a problem about ``path`` of ``tree``, with its place and (if it says something) its value."""
    file, line = place(path)
    value = _at(tree, path)
    text = units.shown(value) if show and not isinstance(value, dict | list | _Absent) else ""
    return Problem(what, mend, file, line, ".".join(path), text)


def _told(detail: Any, tree: Mapping[str, Any], root: type[Section]) -> Told:
    tags = tuple(str(part) for part in detail["loc"])
    path = tuple(part for part in tags if not part.startswith(TAG) and part != "[key]")
    kind, context = detail["type"], detail.get("ctx", {})
    teller = _TELLERS.get(kind)
    if teller is not None:
        return teller(path, context, tree, tags, root)
    if kind.endswith(("_type", "_parsing")) and kind.split("_")[0] in _NOUNS:
        noun, mend = _NOUNS[kind.split("_")[0]]
        return path, noun, mend, True
    what = str(detail["msg"])
    return path, what[:1].lower() + what[1:], "`simkv schema` says what goes here", True


_NOUNS = {
    "bool": ("not true or false", "write true or false"),
    "string": ("not a text", 'write it in quotes, like "text"'),
    "model": ("not a section", "write its keys below it, indented, or like {key: value}"),
    "dict": ("not a section", "write its keys below it, indented, or like {key: value}"),
    "int": ("not a whole number", "write it like 256"),
    "float": ("not a number", "write it like 0.7"),
    "list": ("not a list", "write it like [a, b]"),
    "tuple": ("not a list", "write it like [a, b]"),
}


def _quantity(path: Path, context: Any, *_: Any) -> Told:
    return path, context["reason"], context["mend"], True


def _fault(path: Path, context: Any, *_: Any) -> Told:
    where = (*path, context["key"]) if context["key"] else path
    return where, context["reason"], context["mend"], True


def _missing(path: Path, context: Any, tree: Any, tags: tuple[str, ...], root: type[Section]) -> Told:
    field = field_at(tags, root)
    if path[-1].isdigit() and field is not None and field.examples:  # of a list of so many
        return path[:-1], "too short", f"write it like {field.examples[0]}", False
    example = _example(path[-1], field) if field is not None else ""
    return path, "is missing", f"add {example}" if example else "add it", False


def _unknown_key(path: Path, context: Any, tree: Any, tags: tuple[str, ...], root: type[Section]) -> Told:
    section = section_at(tags[:-1], root)
    valid = [field.alias or name for name, field in section.model_fields.items()] if section is not None else []
    return path, "unknown key", nearest(path[-1], valid), False


def _unknown_arm(path: Path, context: Any, tree: Mapping[str, Any], *_: Any) -> Told:
    key, valid = context["key"], context["valid"].split(", ")
    section = _at(tree, path)
    if not isinstance(section, dict):
        return path, "not a section", f"write it like {{{key}: {valid[0]}, ...}}", True
    if section.get(key) is None:
        return (*path, key), "is missing", f'add "{key}: {valid[0]}"; valid: {", ".join(valid)}', False
    return (*path, key), f"unknown {key}", nearest(section[key], valid), True


def _literal(path: Path, context: Any, tree: Mapping[str, Any], tags: tuple[str, ...], root: type[Section]) -> Told:
    field = field_at(tags, root)
    valid = literal_values(field.annotation) if field is not None else ()
    return path, "not one of the choices", nearest(_at(tree, path), valid or (context["expected"],)), True


def _pattern(path: Path, context: Any, tree: Any, tags: tuple[str, ...], root: type[Section]) -> Told:
    if path[-1:] == ("currency",):
        return path, "not a currency", 'write its three letters, like "USD"', True
    if path[-1:] == ("date",):
        return path, "not a date", 'write it like "2026-05-01"', True
    if path == ("name",):
        return path, "not a name", "use one line of text, without what can't be seen", True
    return path, "not a name", "use letters, digits, '.', '_' and '-', beginning with a letter or digit", True


def _too_long(path: Path, context: Any, *_: Any) -> Told:
    most = context.get("max_length")
    return path, "too long", f"the most is {most}", False


def _too_short(path: Path, context: Any, *_: Any) -> Told:
    return path, "empty", "give at least one", False


def _beyond(path: Path, context: Any, *_: Any) -> Told:
    """Tell of a number outside of the limits that the field states."""
    words = {"ge": "the least is", "gt": "it must be above", "le": "the most is", "lt": "it must be below"}
    key, limit = next((key, context[key]) for key in words if key in context)
    return path, "too small" if key in ("ge", "gt") else "too large", f"{words[key]} {limit:g}", True


def _finite(path: Path, *_: Any) -> Told:
    return path, "not a finite number", "write it like 0.7", True


_TELLERS: dict[str, Callable[..., Told]] = {
    "greater_than_equal": _beyond,
    "greater_than": _beyond,
    "less_than_equal": _beyond,
    "less_than": _beyond,
    "finite_number": _finite,
    "quantity": _quantity,
    "fault": _fault,
    "missing": _missing,
    "extra_forbidden": _unknown_key,
    "unknown_arm": _unknown_arm,
    "literal_error": _literal,
    "string_pattern_mismatch": _pattern,
    "string_too_long": _too_long,
    "too_long": _too_long,
    "string_too_short": _too_short,
    "too_short": _too_short,
}


def nearest(given: object, valid: list[str] | tuple[str, ...]) -> str:
    """Return the mend for an unknown name: the nearest valid one, and all of them while they are few."""
    text = str(given)
    near = get_close_matches(text.lower(), valid, n=1, cutoff=0.6)
    guess = f'did you mean "{near[0]}"?' if near else ""
    if len(valid) > 16:
        return guess or f"valid are {', '.join(get_close_matches(text, valid, n=5, cutoff=0.0))}, ..."
    listed = f"valid: {', '.join(valid)}" if valid else "nothing goes here"
    return f"{guess} {listed}" if guess else listed


class _Absent:
    pass


def _at(tree: Any, path: Path) -> Any:
    """Return the value at ``path`` of the tree, an ``_Absent`` where there is none."""
    for part in path:
        if isinstance(tree, dict) and part in tree:
            tree = tree[part]
        elif isinstance(tree, list) and part.isdigit() and int(part) < len(tree):
            tree = tree[int(part)]
        else:
            return _Absent()
    return tree


def _example(key: str, field: FieldInfo) -> str:
    if field.examples:
        return f'"{key}: {field.examples[0]}"'
    quantity = quantity_of(field)
    if quantity is not None:
        return f'"{key}: {units.DIMENSIONS[quantity.dimension].example.split(" or ")[0]}"'
    choices = literal_values(field.annotation)
    if choices:
        return f'"{key}: {choices[0]}"' + (f" ({' | '.join(choices)})" if len(choices) > 1 else "")
    return f'"{key}: ..."'


def section_at(tags: tuple[str, ...], root: type[Section]) -> type[Section] | None:
    """Return the section class that an error location (tags included) leads to, or None."""
    annotation: Any = root
    for part in tags:
        if part.startswith(TAG):
            annotation = _arm(annotation, part[len(TAG) :])
        else:
            section = _as_section(annotation)
            field = _field(section, part) if section is not None else None
            annotation = field.annotation if field is not None else _item(annotation)
    return _as_section(annotation)


def field_at(tags: tuple[str, ...], root: type[Section]) -> FieldInfo | None:
    """Return the field that an error location leads to, or None."""
    while tags and (tags[-1].startswith(TAG) or tags[-1].isdigit()):
        tags = tags[:-1]
    section = section_at(tags[:-1], root) if tags else None
    return _field(section, tags[-1]) if section is not None else None


def _field(section: type[Section], key: str) -> FieldInfo | None:
    return next((field for name, field in section.model_fields.items() if (field.alias or name) == key), None)


def _arms(annotation: Any) -> list[Any]:
    """Return the parts of unions and Annotateds inside ``annotation``, outermost first."""
    found = [annotation]
    for arm in get_args(annotation):
        found.extend(_arms(arm))
    return found


def _as_section(annotation: Any) -> type[Section] | None:
    sections = [a for a in _arms(annotation) if isinstance(a, type) and issubclass(a, Section)]
    return sections[0] if len(sections) == 1 else None


def _arm(annotation: Any, tag: str) -> Any:
    """Return the section of a union whose kind is ``tag``."""
    for arm in _arms(annotation):
        if isinstance(arm, type) and issubclass(arm, Section):
            kinds = [v for field in arm.model_fields.values() for v in literal_values(field.annotation)]
            if tag in kinds or tag == "section":
                return arm
    return None


def _item(annotation: Any) -> Any:
    """Return the type of what a dict or list holds."""
    arguments = get_args(annotation)
    return arguments[-1] if arguments else None
