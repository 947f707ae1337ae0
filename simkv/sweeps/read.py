"""A sweep's folder: whose it is, what its file keeps of the last command, and the points read back from it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from simkv.errors import InputError, Problem
from simkv.jobs.store import Kept, Store
from simkv.sweeps.owned import check_owned
from simkv.sweeps.point import Ended, Point
from simkv.sweeps.result import SweepResult

FILE = "sweep.sqlite"
SCENARIO = "scenario.yaml"
_META = "command"
_APART = 1 << 32
"""Positions of one command's points come after those of the commands before it."""
_MOST_COMMANDS = 1 << 30


@dataclass(frozen=True, slots=True)
class Command:
    """What the last command asked for."""

    scenario: str
    axes: Mapping[str, Sequence[str]]
    points: int
    notes: tuple[str, ...]
    number: int = 0
    """How many commands came before it."""


def check_folder(folder: Path, scenario: str) -> None:
    """Raise InputError where a sweep of ``scenario`` can't be written to ``folder``, or go on there."""
    check_owned(folder, FILE, _META, scenario)


def keep_points(store: Store, command: Command, points: Sequence[Point]) -> None:
    """Keep what is asked for, so that the folder can be read while it is being answered."""
    before = store.get_meta(_META)
    try:
        number = _number(before) + 1 if before else 0
    except (TypeError, KeyError, ValueError) as error:
        raise _damaged(store) from error
    first = number * _APART
    rows = ((first + k, json.dumps(dict(p.params)), p.seed, p.key) for k, p in enumerate(points))
    store.put_points(rows)
    for point in points:
        if point.failure is not None and store.get(point.key) is None:
            store.failed(point.key, point.failure, 0.0)
    store.put(_META, asdict(command) | {"number": number})


def keep_notes(store: Store, notes: Sequence[str]) -> None:
    """Keep what is said of the points, now that all are there."""
    store.put(_META, store.get_meta(_META) | {"notes": list(notes)})


def read(folder: Path) -> SweepResult:
    """Return the points of the last command in ``folder`` that have ended, while it runs too.

    Raises InputError where there is no sweep.
    """
    file = folder / FILE
    try:
        there = file.is_file()
        what = "has no sweep in it" if folder.is_dir() else "is no folder" if folder.exists() else "doesn't exist"
    except OSError as error:
        there, what = False, f"can't be read: {error.strerror}"
    if not there:
        raise InputError(Problem(what, "name the folder that `simkv sweep` wrote to", str(folder)))
    with Store.read(file) as store:
        found = store.get_meta(_META)
        if found is None:
            raise InputError(Problem("the sweep there has no points yet", "look again in a moment", str(folder)))
        try:
            return _result(store, found)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise _damaged(store) from error


def _damaged(store: Store) -> InputError:
    return InputError(Problem("it is damaged", "move it away and run it again", str(store.path)))


def _result(store: Store, command: dict[str, Any]) -> SweepResult:
    _check(command)
    number = _number(command)
    first, keys, ended = number * _APART, set(), []
    for row in store.points():
        if row.position < first:
            continue
        keys.add(row.key)
        params = dict(json.loads(row.params))
        if params.keys() != command["axes"].keys() or not _texts(params.values()):
            raise ValueError("a setting that is not as people write it")
        point = Point(params, row.seed, row.key)
        if row.kept is not None and (one := ended_of(point, row.kept)) is not None:
            ended.append(one)
    elsewhere = len(store.finished() - keys)
    pending = command["points"] - len(ended)
    return SweepResult(command["scenario"], command["axes"], tuple(ended), pending, elsewhere, tuple(command["notes"]))


def _check(command: dict[str, Any]) -> None:
    """Raise ValueError for a command that isn't as it was kept."""
    axes: dict[str, list[str]] = command["axes"]
    values = all(isinstance(those, list) and _texts(those) for those in axes.values())
    if not (values and isinstance(command["points"], int) and _texts([command["scenario"], *command["notes"]])):
        raise ValueError("a command that is none")


def _number(command: dict[str, Any]) -> int:
    """Return how many commands came before one; raises ValueError for what is no such number."""
    found = command["number"]
    if not isinstance(found, int) or not 0 <= found < _MOST_COMMANDS:
        raise ValueError("a number that is none")
    return found


def _texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def ended_of(point: Point, kept: Kept) -> Ended | None:
    """Return what became of ``point``; None: its run is being done, or was stopped."""
    if kept.status == "begun":
        return None
    return Ended(point, kept.status, kept.attempts, kept.answer, kept.failure, kept.wall_s)
