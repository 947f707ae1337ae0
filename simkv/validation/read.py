"""Case files read: those that come with simkv, and anybody else's."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import files

from pydantic import ValidationError

from simkv.errors import InputError, Problem
from simkv.scenario import text
from simkv.scenario.problems import problems_of
from simkv.validation.checks import Placed, faults, sound
from simkv.validation.groups import BY_NAME
from simkv.validation.schema import Case, CaseFile

PAGE = "docs/validation-cases.md"
"""Where the format is described."""
_NAME = "use letters, digits, '.', '_', '+' and '-', beginning with a letter or digit"
_MENDS = {
    ("group", "is missing"): f"give one of {', '.join(BY_NAME)}",
    **{(key, "not a name"): _NAME for key in ("id", "kind", "family")},
}
"""By key, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Read:
    """A case, and where it stands; its relative paths start from ``folder``."""

    case: Case
    folder: str
    file: str = ""
    at: text.Path = ()
    """The case's place in the file."""
    tree: text.Tree | None = None

    def line_of(self, path: text.Path) -> int | None:
        """Return the line of a path below the case, or of what is around it."""
        return self.tree.line_of((*self.at, *path)) if self.tree is not None else None


def own_cases() -> list[Read]:
    """Return the cases that come with simkv, group by group."""
    folder = files("simkv").joinpath("data", "validation")
    found: list[Read] = []
    for place in sorted(folder.iterdir(), key=lambda place: place.name):
        if place.name.endswith(".yaml"):
            found += _parsed(place.read_text("utf-8"), str(place), str(folder))
    return in_order(found)


def read_cases(path: str) -> list[Read]:
    """Return the cases of a file, group by group. Raises InputError with everything that is wrong with it."""
    try:
        return in_order(_parsed(text.read_text(path), path, os.path.dirname(os.path.abspath(path))))
    except InputError as error:
        raise InputError([_of_cases(found) for found in error.problems]) from None


def in_order(cases: Iterable[Read]) -> list[Read]:
    """Return cases in the order of the groups; those of a group as they stand."""
    order = list(BY_NAME)
    return sorted(cases, key=lambda read: order.index(read.case.group))


def _parsed(content: str, path: str, folder: str) -> list[Read]:
    tree = text.parse(content, path)
    problems, cases = list(tree.problems), []
    try:
        cases = _placed(CaseFile.model_validate(tree.values).cases)
    except ValidationError as error:
        problems += problems_of(error, tree.values, CaseFile, lambda at: (path, tree.line_of(at)))
        cases = sound(tree.values, [tuple(map(str, one["loc"])) for one in error.errors(include_url=False)])
    problems += [Problem(what, mend, path, tree.line_of(at), ".".join(at), value)
                 for at, what, mend, value in faults(cases)]  # fmt: skip
    if problems:
        raise InputError(sorted(map(_of_a_case, problems), key=lambda one: one.line or 0))
    return [Read(case, folder, path, ("cases", str(number)), tree) for number, case, _ in cases]


def _placed(cases: Iterable[Case]) -> list[Placed]:
    return [Placed(number, case, tuple(range(len(case.observations)))) for number, case in enumerate(cases)]


def _of_a_case(found: Problem) -> Problem:
    """Return a problem with the mend that case files need where it would be that of scenarios."""
    last = found.path.rpartition(".")[2]
    mend = _MENDS.get((last, found.what))
    return replace(found, mend=mend) if mend is not None and found.file else found


def _of_cases(found: Problem) -> Problem:
    """Return a problem of the file as a whole without what it would say of scenario files."""
    of_scenarios = not found.path and ("scenario" in found.mend or "name: chatbot" in found.mend)
    return replace(found, mend=f'begin with "simkv_cases: 1"; {PAGE} describes the format') if of_scenarios else found
