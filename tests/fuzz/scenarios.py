"""Scenarios: lines and bytes of good ones changed, values that nobody should write, and valid ones that go too far."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from pydantic.fields import FieldInfo

from simkv.scenario import text
from tests.fuzz.asked import Command, Generator
from tests.fuzz.base import NASTY, bases, scenario_text, write_traces
from tests.fuzz.drawn import drawn, fields
from tests.fuzz.lines import mutated

_NAME = "s.yaml"


def run_of(notes: list[str], *more: str) -> Command:
    """Return the run of the scenario that was written."""
    args = ("run", _NAME, *more, "--json", "--out", "out")
    return Command(args, out="out", holds="summary.json", json=True, notes=tuple(notes))


def _scenario(rng: Random, folder: Path) -> Command:
    """Change lines and bytes."""
    data, notes = mutated(rng, scenario_text(rng))
    write_traces(folder)
    (folder / _NAME).write_bytes(data)
    return run_of(notes)


@cache
def trees() -> dict[str, dict[str, Any]]:
    """Return the values of the shortened scenarios by name."""
    return {name: text.parse(content, name).values for name, content in bases().items()}


class Raw(str):
    """A text that is written into a file as it stands."""

    __slots__ = ()


def flow(value: Any) -> str:
    """Return ``value`` as YAML in flow style; a mapping at the top has a line for each key."""
    if isinstance(value, Raw):
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, float):
        return repr(value).replace("inf", ".inf").replace("nan", ".nan")
    return json.dumps(value)


def put(tree: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy of ``tree`` with ``value`` at ``path``; what is in its way goes."""
    key, _, rest = path.partition(".")
    below = tree.get(key)
    return {**tree, key: put(below if isinstance(below, dict) else {}, rest, value) if rest else value}


def write_tree(folder: Path, tree: dict[str, Any]) -> None:
    """Write ``tree`` as the scenario."""
    write_traces(folder)
    lines = "".join(f"{key}: {flow(value)}\n" for key, value in tree.items())
    (folder / _NAME).write_bytes(lines.encode("utf-8", "surrogatepass"))


def likely(rng: Random, tree: dict[str, Any]) -> tuple[str, FieldInfo]:
    """Return a path of the schema with its field: mostly one that is in ``tree``, or beside something that is."""
    if rng.random() < 0.15:
        return rng.choice(fields())
    near = [found for found in fields() if _section_of(tree, found[0]) is not None]
    here = [found for found in near if found[0].rpartition(".")[2] in (_section_of(tree, found[0]) or ())]
    return rng.choice(here if rng.random() < 0.5 else near)


def _section_of(tree: dict[str, Any], path: str) -> dict[str, Any] | None:
    """Return the section of ``tree`` that ``path`` is in; None where there is none."""
    for key in path.split(".")[:-1]:
        below = tree.get(key)
        if not isinstance(below, dict):
            return None
        tree = below
    return tree


def _value(rng: Random, folder: Path) -> Command:
    """Put a nasty value at a path of the schema."""
    name, tree = rng.choice(list(trees().items()))
    notes = [name]
    for _ in range(rng.choice((1, 1, 1, 2))):
        path, nasty = likely(rng, tree)[0], Raw(rng.choice(NASTY))
        tree = put(tree, path, nasty)
        notes.append(f"{path}: {nasty[:100]!r}")
    write_tree(folder, tree)
    return run_of(notes)


def _extreme(rng: Random, folder: Path) -> Command:
    """Put values at paths of the schema that it allows there."""
    name, tree = rng.choice(list(trees().items()))
    notes = [name]
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        path, field = likely(rng, tree)
        value = drawn(rng, field)
        tree = put(tree, path, value)
        notes.append(f"{path}: {flow(value)[:200]}")
    write_tree(folder, tree)
    return run_of(notes)


def _set(rng: Random, folder: Path) -> Command:
    """Give values on the command line, well and badly."""
    write_traces(folder)
    name = rng.choice(list(bases()))
    (folder / _NAME).write_text(bases()[name])
    more: list[str] = []
    for _ in range(rng.choice((1, 1, 1, 2, 4, 30))):
        more += ["--set", assignment(rng, trees()[name])]
    return run_of([], *more, *(_ODD_OPTIONS[rng.randrange(len(_ODD_OPTIONS))] if rng.random() < 0.1 else ()))


_ODD_OPTIONS = (
    ("--seed", "-1"), ("--seed", "1e99"), ("--seed", "9" * 40), ("--seed", "9" * 5000), ("--seed", "nan"), ("--set",),
    ("--set", ""), ("--set", "="), ("--set", "a"), ("--set", "=1"), ("--set", "a=b=c"), ("--set", "run.seed"),
    ("--trace-window", "5:1"), ("--trace-window", "nan:inf"), ("--trace-window", "1e400s:2s"), ("--trace-window", ":"),
)  # fmt: skip


def assignment(rng: Random, tree: dict[str, Any]) -> str:
    """Return something for ``--set``: a path that is one or not, and a value that fits it or not."""
    path, field = likely(rng, tree)
    shown = flow(drawn(rng, field)) if rng.random() < 0.6 else _on_line(rng.choice(NASTY))
    if rng.random() < 0.15:
        path = rng.choice((
            "", ".", "..", f"{path}.", f".{path}", f"{path}.x", path.upper(), path.replace(".", ". "), f"{path}.0",
            "x" * 100_000, ".".join("a" * 60), ".".join("a" * 5000), "\u202e", "\udcff", "a\nb", "__class__.x", "?",
        ))  # fmt: skip
    return f"{path}={shown}"


def _on_line(text: str) -> str:
    """Return what a command line can carry of ``text``."""
    return text.replace("\x00", "\\0")


GENERATORS: dict[str, Generator] = {"scenario": _scenario, "value": _value, "extreme": _extreme, "set": _set}
