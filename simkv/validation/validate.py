"""Cases chosen, asked and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simkv.errors import InputError, Problem, unknown
from simkv.jobs.workers import Workers
from simkv.validation.answer import answer_of
from simkv.validation.families import leave_one_out
from simkv.validation.groups import BY_NAME
from simkv.validation.read import Read, own_cases, read_cases
from simkv.validation.study import study


def validate(
    cases: str | None,
    data: str | None,
    only: Sequence[str] | None,
    workers: Workers,
    report: Callable[[float, str], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Return the answer to the cases of a file, or to those that come with simkv (None); ``only``: of these groups.

    ``data`` is the folder of traces that some cases need. Of simkv's own cases the answer also has the errors with each
    GPU family left out of the fit. ``report`` and ``say`` are told what :func:`simkv.validation.study.study` tells.
    Raises InputError for a group that isn't one, and for everything that is wrong with the file.
    """
    read = _of_groups(_cases(cases), _groups(only))
    rows = study(read, data, workers, report, say)
    return answer_of(rows, leave_one_out(read) if cases is None else ())


def _cases(path: str | None) -> list[Read]:
    return own_cases() if path is None else read_cases(path)


def _of_groups(cases: Sequence[Read], wanted: Sequence[str]) -> list[Read]:
    found = [one for one in cases if one.case.group in wanted]
    if not found:
        there = ", ".join(dict.fromkeys(one.case.group for one in cases))
        raise InputError(Problem("has no case here", f"there are {there}", path="--only", value=",".join(wanted)))
    return found


def _groups(only: Sequence[str] | None) -> tuple[str, ...]:
    for name in only or ():
        if name not in BY_NAME:
            raise unknown("group", name, tuple(BY_NAME), "--only")
    return tuple(BY_NAME if only is None else only)
