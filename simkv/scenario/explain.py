"""A resolved scenario as text: a table of where each value came from, and a file that runs again."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from simkv import units
from simkv.scenario.base import FileRef, Section
from simkv.scenario.checks import idle_paths
from simkv.scenario.leaves import items, leaves, written
from simkv.scenario.resolve import Resolved
from simkv.scenario.text import Path, scalar

NOT_OF_A_RUN = ("sweep", "plan")
"""Sections that say what else to run, not how."""


class Row(NamedTuple):
    """One value: its path, the value as a scenario writes it, and where it came from."""

    path: str
    value: str
    origin: str


def explain(resolved: Resolved) -> list[Row]:
    """Return every value of the scenario, in the order of the sections."""
    rows = ((path, value) for path, value in leaves(resolved.scenario) if path[0] not in NOT_OF_A_RUN)
    return [Row(".".join(path), _inline(value), resolved.origin(path)) for path, value in rows]


def budget_rows(resolved: Resolved) -> list[Row]:
    """Return the memory budget of one GPU, line by line: label, size, note; empty on inline hardware."""
    if resolved.budget is None:
        return []
    rows = []
    for label, size, note in resolved.budget.lines:
        sign = "-" if size < 0 else ""
        rows.append(Row(label, f"{sign}{units.short(abs(size), 'size')}", note))
    return rows


def to_yaml(resolved: Resolved) -> str:
    """Return a scenario file with every value written out; running it from here gives the same result."""
    lines = ["# Every value of this run; behind each, where it came from. Runs again as it is.\n"]
    lines.extend(_yaml_section(resolved.scenario, (), resolved))
    return "".join(lines)


def _yaml_section(section: Section | dict[str, Any], path: Path, resolved: Resolved) -> Iterator[str]:
    indent = "  " * len(path)
    for key, value, quantity in items(section):
        here = (*path, key)
        if value is None or value == {} or here in idle_paths(resolved.scenario) or (key in NOT_OF_A_RUN and not path):
            continue
        if isinstance(value, Section | dict) and items(value):
            yield f"{indent}{_key(key)}:\n"
            yield from _yaml_section(value, here, resolved)
        else:
            line = f"{indent}{_key(key)}: {_flow(_placed(value) or written(value, quantity))}"
            yield f"{line}{' ' * max(1, 44 - len(line))}# {resolved.origin(here)}\n"


def _placed(value: Any) -> str | None:
    """Return how a file is found from the working directory, whichever folder the scenario lies in; None: no file."""
    if not isinstance(value, FileRef):
        return None
    return value.given if os.path.exists(value.given) or not os.path.exists(value.path) else os.path.relpath(value.path)


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        shown = ", ".join(_inline(item) for item in value[:8])
        return f"[{shown}{', ...' if len(value) > 8 else ''}]"
    return str(value)


def _flow(value: Any) -> str:
    """Return ``value`` as one line of YAML."""
    if isinstance(value, list):
        return f"[{', '.join(_flow(item) for item in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value if _is_plain(value) else _quoted(value)
    return repr(value)


def _key(key: str) -> str:
    return key if _is_plain(key) else _quoted(key)


_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./% -")


def _is_plain(text: str) -> bool:
    """Say whether ``text`` needs no quotes: it reads back as itself, as text, in any YAML reader."""
    odd = not text or text != text.strip() or not set(text) <= _SAFE or text[0] in "-%." or " -" in text
    if odd or not isinstance(scalar(text), str) or text.lower() in ("yes", "no", "on", "off", "y", "n"):
        return False
    return not _is_date(text)


def _is_date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _quoted(text: str) -> str:
    """Return ``text`` in quotes: as JSON writes it, but for letters for which JSON takes two and YAML one."""
    letters = (json.dumps(letter)[1:-1] if letter <= "\uffff" else f"\\U{ord(letter):08x}" for letter in text)
    return f'"{"".join(letters)}"'
