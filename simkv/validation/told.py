"""What a section says is wrong with itself, told with its place in the case file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

from simkv.errors import Problem
from simkv.scenario.text import Path
from simkv.validation.question import Question, asked_for, key_of
from simkv.validation.read import Read

_FILE_MEND = "name it from the case file's folder, or in the case's data and the folder that has it with --data"
"""Where scenarios of their own would say to give a path with ``--set``."""


def told(problems: Iterable[Problem], read: Read, question: Question) -> list[Problem]:
    """Return problems of a question with file, line and path of the case that asks it; each names the case."""
    return [_told(found, read, question) for found in problems]


def _told(found: Problem, read: Read, question: Question) -> Problem:
    mend = _FILE_MEND if "--set" in found.mend and found.path.endswith("path") else found.mend
    file, value = (_as_asked(text, read) for text in (found.file, found.value))
    named = replace(found, what=f"case {read.case.id}: {found.what}", mend=mend, file=file, value=value)
    path = next(_places(found, read, question), None)
    if path is None:
        return named
    return replace(named, file=read.file, line=read.line_of(path), path=".".join((*read.at, *path)))


def _as_asked(text: str, read: Read) -> str:
    """Return a path below the case file's folder as whoever named that file would write it, another text as it is."""
    if os.path.isabs(read.file) or not text.startswith(read.folder + os.sep):
        return text
    return os.path.join(os.path.dirname(read.file), os.path.relpath(text, read.folder))


def _places(found: Problem, read: Read, question: Question) -> Iterator[Path]:
    """Yield where in the case a problem may come from, the likeliest first; nothing where it is about another file."""
    path = tuple(part for part in found.path.split(".") if part)
    path = path[1:] if path[:1] == (question.ask,) else path
    yield from _metrics(found, read, question)
    yield from _set(path, read, question)
    yield from (("data", key) for key, _ in question.files if _within(path, tuple(key.split("."))))
    if found.file in ("", f"case {question.case}", question.file):
        yield (question.ask, *path)


def _metrics(found: Problem, read: Read, question: Question) -> Iterator[Path]:
    if found.path != "metric":
        return
    for number in range(len(read.case.observations)):
        for settings, metric, below in asked_by(number, read):
            if metric == found.value and key_of(settings) == question.key:
                yield (*below, "metric")


def _set(path: Path, read: Read, question: Question) -> Iterator[Path]:
    keys = [key for key, _ in question.settings if _within(path, tuple(key.split(".")))]
    if not keys:
        return
    for number in range(len(read.case.observations)):
        for settings, _, below in asked_by(number, read):
            if key_of(settings) == question.key:
                yield (*below, "set", keys[-1])


def asked_by(number: int, read: Read) -> Iterator[tuple[dict[str, object], str, Path]]:
    """Yield settings, metric and place of what an observation asks."""
    here = ("observations", str(number))
    places = (here, (*here, "relative_to"))
    for (settings, metric), place in zip(asked_for(read.case.observations[number]), places, strict=False):
        yield settings, metric, place


def _within(path: Path, key: Path) -> bool:
    """Say whether one of the two is a section around the other, or the same."""
    shorter = min(len(path), len(key))
    return bool(shorter) and path[:shorter] == key[:shorter]
