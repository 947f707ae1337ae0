"""Which files describe which client: ``chunk-N-trace.csv`` and ``chunk-N-dataset.json`` side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from simkv.errors import InputError, Problem
from simkv.workload.readers.files import entries, inside, named

_NAME = re.compile(r"chunk-(\d+)-(trace\.csv|dataset\.json)")


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """The two files of client ``number``."""

    number: int
    trace: Path
    dataset: Path


def client_files(path: Path) -> list[ClientFiles]:
    """Return the clients of a folder, by number, or the one client of a file.

    Raises InputError where there are none, or a file lacks its counterpart.
    """
    if not path.is_dir():
        return [_of_file(path)]
    found = sorted(int(match[1]) for entry in inside(path) if (match := _NAME.fullmatch(entry.name)))
    numbers = list(dict.fromkeys(found))
    if not numbers:
        mend = f"chunk-N-trace.csv and chunk-N-dataset.json are looked for; {named(entries(path))}"
        raise InputError(Problem("has no files of clients", mend, file=str(path)))
    return [_pair(path, number) for number in numbers]


def _of_file(path: Path) -> ClientFiles:
    match = _NAME.fullmatch(path.name)
    if match is None:
        mend = "give a folder of chunk-N-trace.csv and chunk-N-dataset.json, or one of these"
        raise InputError(Problem("is no file of a client", mend, file=str(path)))
    return _pair(path.parent, int(match[1]))


def _pair(folder: Path, number: int) -> ClientFiles:
    files = ClientFiles(number, folder / f"chunk-{number}-trace.csv", folder / f"chunk-{number}-dataset.json")
    for file, other in ((files.trace, files.dataset), (files.dataset, files.trace)):
        if not file.is_file():
            mend = f"{other.name} needs it beside it: get both, or leave this client out"
            raise InputError(Problem("does not exist", mend, file=str(file)))
    return files
