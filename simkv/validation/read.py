"""Case files read: those that come with simkv, and anybody else's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files

from pydantic import ValidationError

from simkv.errors import InputError
from simkv.scenario import text
from simkv.scenario.problems import problems_of
from simkv.validation.groups import BY_NAME
from simkv.validation.schema import Case, CaseFile


@dataclass(frozen=True, slots=True)
class Read:
    """A case, and the folder that its relative paths start from."""

    case: Case
    folder: str


def own_cases() -> list[Read]:
    """Return the cases that come with simkv, group by group."""
    folder = files("simkv").joinpath("data", "validation")
    found: list[Read] = []
    for place in sorted(folder.iterdir(), key=lambda place: place.name):
        if place.name.endswith(".yaml"):
            found += [Read(case, str(folder)) for case in _parsed(place.read_text("utf-8"), str(place)).cases]
    order = list(BY_NAME)
    return sorted(found, key=lambda read: order.index(read.case.group))


def read_cases(path: str) -> list[Read]:
    """Return the cases of a file. Raises InputError with everything that is wrong with it."""
    folder = os.path.dirname(os.path.abspath(path))
    return [Read(case, folder) for case in _parsed(text.read_text(path), path).cases]


def _parsed(content: str, path: str) -> CaseFile:
    tree = text.parse(content, path)
    if tree.problems:
        raise InputError(tree.problems)
    try:
        return CaseFile.model_validate(tree.values)
    except ValidationError as error:
        raise InputError(problems_of(error, tree.values, CaseFile, lambda at: (path, tree.line_of(at)))) from None
