"""The resolved scenario of a run as it was written: values as text, and behind each where it came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import yaml

from simkv import units
from simkv.errors import InputError, Problem
from simkv.report.folders import RunFolder
from simkv.results.write import RESOLVED

Tree: TypeAlias = "str | list[Tree] | dict[str, Tree]"

_LISTED = 8


@dataclass(frozen=True)
class Settings:
    """Values by dotted path, and their origins (``scenario``, ``default``, ``preset vllm 0.33``, ...)."""

    tree: Mapping[str, Tree]
    origins: Mapping[str, str]

    def get(self, path: str) -> Tree | None:
        """Return what is at ``path``; None where there is nothing."""
        found: Tree | None = dict(self.tree)
        for key in path.split("."):
            if not isinstance(found, dict) or key not in found:
                return None
            found = found[key]
        return found

    def text(self, path: str) -> str | None:
        """Return what is at ``path`` in words; None where there is nothing."""
        found = self.get(path)
        return None if found is None else words(found)

    def amount(self, path: str, dimension: units.DimensionName) -> float | None:
        """Return what is at ``path`` in SI; None where there is nothing, or no such quantity."""
        found = self.get(path)
        try:
            return units.parse(found, dimension) if isinstance(found, str) else None
        except InputError:
            return None

    def origin(self, *paths: str) -> str:
        """Return where the values at and under ``paths`` came from, each origin once."""
        found = dict.fromkeys(
            origin
            for path in paths
            for key, origin in self.origins.items()
            if key == path or key.startswith(f"{path}.")
        )
        return "; ".join(found)


def settings(folder: RunFolder) -> Settings:
    """Return the settings of a run; raises InputError where its resolved scenario isn't one."""
    try:
        root = yaml.compose(folder.resolved, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _broken(folder) from error
    if not isinstance(root, yaml.MappingNode):
        raise _broken(folder)
    lines = folder.resolved.splitlines()
    tree = _tree(root)
    assert isinstance(tree, dict)
    return Settings(tree, dict(_origins(root, "", lines)))


def _broken(folder: RunFolder) -> InputError:
    return InputError(
        Problem("isn't the scenario of a run", "run it again with --out", file=str(folder.path / RESOLVED))
    )


def _tree(node: yaml.Node) -> Tree:
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _tree(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_tree(one) for one in node.value]
    return str(node.value)


def _origins(node: yaml.MappingNode, above: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield what stands as a comment behind each value."""
    for key, value in node.value:
        path = f"{above}.{key.value}" if above else str(key.value)
        if isinstance(value, yaml.MappingNode):
            yield from _origins(value, path, lines)
            continue
        line = lines[value.end_mark.line] if value.end_mark.line < len(lines) else ""
        behind = line[value.end_mark.column :].strip()
        if behind.startswith("#"):
            yield path, behind[1:].strip()


def words(value: Tree) -> str:
    """Return a value as people read it: ``lognormal, median 120, sigma 1.0``."""
    if isinstance(value, dict):
        return ", ".join(_pair(key, one) for key, one in value.items() if one not in ({}, ""))
    if isinstance(value, list):
        return " / ".join([*(words(one) for one in value[:_LISTED]), *(["..."] if len(value) > _LISTED else [])])
    return f"{int(value):,}" if value.isdecimal() and len(value) > 3 else value


_UNSAID = ("dist", "process", "kind", "pattern", "policy")
_YES_NO = {"true": "yes", "false": "no"}


def _pair(key: str, value: Tree) -> str:
    if key in _UNSAID:
        return words(value)
    shown = words(value)
    if isinstance(value, dict):
        return f"{key.replace('_', ' ')} ({shown})"
    return f"{key.replace('_', ' ')} {_YES_NO.get(shown, shown)}"
