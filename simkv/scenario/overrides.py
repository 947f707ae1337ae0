"""``--set PATH=VALUE``: values by path, written as in the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simkv.errors import InputError, Problem
from simkv.scenario import text
from simkv.scenario.base import SetText
from simkv.units import shown

FILE = "--set"
"""What stands in an error where the file's name would."""
MOST = 1000
"""Assignments."""


def apply(values: dict[str, Any], assignments: Sequence[str]) -> tuple[set[text.Path], list[Problem]]:
    """Put each assignment into ``values`` (changed in place); later ones win, ``null`` takes a key out.

    Returns the paths that were set and what was wrong with assignments that weren't.
    """
    paths: set[text.Path] = set()
    problems: list[Problem] = []
    if len(assignments) > MOST:
        return paths, [Problem(f"{len(assignments):,} values are set", f"the most is {MOST:,}; write a file", FILE)]
    for assignment in assignments:
        try:
            path, value = _split(assignment)
        except InputError as error:
            problems.extend(error.problems)
            continue
        put(values, path, value)
        paths.add(path)
    return paths, problems


def _split(assignment: str) -> tuple[text.Path, Any]:
    name, equals, value = assignment.partition("=")
    path = tuple(part.strip() for part in name.split(".", text.MAX_DEPTH))
    if not equals or not all(path) or len(name) > text.MAX_KEY or len(path) > text.MAX_DEPTH:
        raise InputError(
            Problem(f"{shown(assignment)} is not PATH=VALUE", "write it like tiers.dram.capacity=400GiB", FILE)
        )
    if len(value) > text.MAX_BYTES or not _is_text(assignment):
        what = "is longer than 1 MiB" if len(value) > text.MAX_BYTES else "is not UTF-8 text"
        raise InputError(Problem(what, "write a short text of letters and signs", FILE, path=shown(name)[1:-1]))
    return path, _value(value.strip(), name)


def _is_text(written: str) -> bool:
    """Say whether ``written`` can be encoded: what a command line holds that is no UTF-8 can't."""
    try:
        written.encode()
    except UnicodeEncodeError:
        return False
    return True


def _value(written: str, name: str) -> Any:
    """Read a value: lists, mappings and quoted texts as YAML, anything else as a plain scalar."""
    if written[:1] in ("[", "{", '"', "'"):
        tree = text.parse(f"value: {written}", f"{FILE} {name}")
        if tree.problems:
            raise InputError(tree.problems)
        return _marked(tree.values["value"])
    return _marked(text.scalar(written))


def _marked(value: Any) -> Any:
    """Return ``value`` with its texts marked as the command line's."""
    if isinstance(value, dict):
        return {key: _marked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_marked(item) for item in value]
    return SetText(value) if isinstance(value, str) else value


def put(values: dict[str, Any], path: text.Path, value: Any) -> None:
    """Put ``value`` at ``path`` of nested ``values`` (changed in place); None takes a key out."""
    for key in path[:-1]:
        below = values.get(key)
        if not isinstance(below, dict):
            below = values[key] = {}
        values = below
    if value is None and path[-1] in values:
        del values[path[-1]]
    else:
        values[path[-1]] = value
