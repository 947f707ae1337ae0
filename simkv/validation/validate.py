"""Cases chosen, asked and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from simkv.errors import InputError, Problem
from simkv.jobs.workers import Workers
from simkv.validation.answer import answer_of
from simkv.validation.families import leave_one_out
from simkv.validation.groups import BY_NAME
from simkv.validation.read import Read, own_cases, read_cases
from simkv.validation.study import study

_TOLD = 12
"""How many kinds an error lists."""


def validate(
    cases: str | None,
    data: str | None,
    only: Sequence[str] | None,
    workers: Workers,
    report: Callable[[float, str], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Return the answer to the cases of a file, or to those that come with simkv (None).

    ``only``: those that are of one of these groups or kinds, or have one of these ids. ``data`` is the folder of traces
    that some cases need. Of simkv's own cases, where groups are asked whole, the answer also has the errors with each
    GPU family left out of the fit. ``report`` and ``say`` are told what :func:`simkv.validation.study.study` tells.
    Raises InputError for a name in ``only`` that no case goes by, and for everything that is wrong with the file.
    """
    every = _cases(cases)
    read = _chosen(every, only)
    rows = study(read, data, workers, report, say)
    return answer_of(rows, leave_one_out(read) if cases is None and _whole(every, read) else ())


def _cases(path: str | None) -> list[Read]:
    return own_cases() if path is None else read_cases(path)


def _chosen(cases: list[Read], only: Sequence[str] | None) -> list[Read]:
    """Return the cases that ``only`` names, by their group, their kind or their id, in order."""
    if only is None:
        return cases
    names = {name for one in cases for name in _names(one)}
    found = [one for one in cases if not _names(one).isdisjoint(only)]
    problems = [_unknown(name, cases) for name in only if name not in names and name not in BY_NAME]
    if not found and not problems:
        problems = [Problem("has no case here", _there(cases), path="--only", value=",".join(only))]
    if problems:
        raise InputError(problems)
    return found


def _names(one: Read) -> frozenset[str]:
    return frozenset(name for name in (one.case.group, one.case.kind, one.case.id) if name is not None)


def _unknown(name: str, cases: Sequence[Read]) -> Problem:
    valid = list(dict.fromkeys((*BY_NAME, *_kinds(cases), *(one.case.id for one in cases))))
    near = get_close_matches(name, valid, 3) or [one for one in valid if name and name.lower() in one.lower()][:3]
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    return Problem("is no group, kind or id of a case", guess + _there(cases), path="--only", value=name)


def _kinds(cases: Sequence[Read]) -> list[str]:
    return list(dict.fromkeys(one.case.kind for one in cases if one.case.kind is not None))


def _there(cases: Sequence[Read]) -> str:
    """Return which groups and kinds there are, as many as are read in a line or two."""
    groups, kinds = list(dict.fromkeys(one.case.group for one in cases)), _kinds(cases)
    told = [f"groups {', '.join(groups)}", *([f"kinds {', '.join(kinds[:_TOLD])}"] if kinds else [])]
    return f"there are {'; '.join(told)}{', ...' if len(kinds) > _TOLD else ''}"


def _whole(cases: Sequence[Read], chosen: Sequence[Read]) -> bool:
    """Say whether each group is chosen with all of its cases, or not at all."""
    groups = {one.case.group for one in chosen}
    return len(chosen) == sum(one.case.group in groups for one in cases)
