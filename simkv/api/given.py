"""What a program passes, as scenario files and command lines say it; and errors that name arguments, not options."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from simkv import units
from simkv.errors import InputError, Problem
from simkv.units import DimensionName, shown

Settings: TypeAlias = Mapping[str, Any] | Sequence[str]
"""Values by path, ``{"tiers.dram.capacity": "64GiB"}``, or texts ``PATH=VALUE``; a mapping replaces a section whole."""
StrPath: TypeAlias = str | os.PathLike[str]
Quantity: TypeAlias = str | float
"""A text with its unit, or a number in SI."""

_OPTION = re.compile(r"--([a-z][a-z-]*)")
_PARAMETERS = {
    "import": "imports",
    "metric": "metrics",
    "policy": "policies",
    "capacity": "capacities",
    "long": "long=True",
}


def assignments(settings: Settings) -> tuple[str, ...]:
    """Return ``settings`` as ``PATH=VALUE`` texts; raises InputError for anything else."""
    if isinstance(settings, Mapping):
        return tuple(f"{path}={text_of(value, path)}" for path, value in settings.items())
    mend = 'write {"tiers.dram.capacity": "64GiB"} or ["tiers.dram.capacity=64GiB"]'
    if isinstance(settings, str) or not isinstance(settings, Iterable):
        raise InputError(Problem("is neither a mapping nor a list", mend, path="set", value=shown(settings)))
    for one in settings:
        if not isinstance(one, str):
            raise InputError(Problem("is no text PATH=VALUE", mend, path="set", value=shown(one)))
    return tuple(settings)


def text_of(value: Any, path: str) -> str:
    """Return ``value`` as a command line has it: numbers of numpy and files' paths among them."""
    value = plain(value)
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return f".{value}" if value != -math.inf else "-.inf"
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        mend = "write a number, a text, a truth value, None, or a list or mapping of these"
        raise InputError(Problem("is no value of a scenario", mend, path=path, value=shown(str(value)))) from None


def plain(value: Any) -> Any:
    """Return ``value`` with numpy's numbers and arrays as Python's, and paths as texts, inside lists and mappings."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str | bytes):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return value


def listed(texts: str | Sequence[str]) -> list[str]:
    """Return texts as a list; one alone is a list of one."""
    return [texts] if isinstance(texts, str) else list(texts)


def folder_of(out: StrPath | None) -> Path | None:
    """Return where files go; None: nowhere."""
    return None if out is None else Path(out)


def si(value: Quantity, dimension: DimensionName, name: str) -> float:
    """Return a quantity in SI: a text with its unit, or a number that is in SI already."""
    try:
        found = float(value) if isinstance(value, int | float) else float(units.parse(value, dimension))
    except units.QuantityError as error:
        raise InputError(Problem(error.reason, error.mend, path=name, value=units.shown(value))) from None
    if not math.isfinite(found) or found < 0:
        mend = "give a finite value of at least 0"
        raise InputError(Problem("is no such quantity", mend, path=name, value=units.shown(value)))
    return found


@contextmanager
def arguments_named() -> Iterator[None]:
    """Let errors that name an option of the command line name the argument that gives it."""
    try:
        yield
    except InputError as error:
        raise InputError([_of_argument(problem) for problem in error.problems]) from None


def _of_argument(found: Problem) -> Problem:
    file = "set" if found.file == "--set" else found.file
    return replace(found, file=file, path=_named(found.path), mend=_named(found.mend), what=_named(found.what))


def _named(text: str) -> str:
    """Return ``text`` with options as arguments: ``--ssd-path DIR`` is ``ssd_path=DIR``."""
    text = re.sub(r"(--[a-z][a-z-]*) ([A-Z]+)\b", r"\1=\2", text)
    return _OPTION.sub(lambda match: _PARAMETERS.get(match[1], match[1].replace("-", "_")), text)
