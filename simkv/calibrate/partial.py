"""What a session has measured so far, a line a task, so that an end at any moment loses one task at most."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from simkv.errors import InputError, Problem
from simkv.profile.schema import Sample

MARK = "simkv_partial"
VERSION = 1


@dataclass(frozen=True)
class Kept:
    """A task that is done: its samples, and how long it took."""

    samples: tuple[Sample, ...]
    took_s: float


class Partial:
    """The file beside a profile that is being measured.

    Its first line says how and where things are measured; what another machine, other settings or another version
    measured isn't taken over: ``differs`` then names what is different, and the file is begun anew.
    """

    def __init__(self, path: Path, measured_as: dict[str, Any], fresh: bool = False) -> None:
        """``measured_as``: settings and machine, plain JSON. Raises :class:`InputError` where it can't be written."""
        self.path = path
        self.kept: dict[str, Kept] = {}
        self.differs: tuple[str, ...] = ()
        header = {MARK: VERSION, **measured_as}
        try:
            lines = [] if fresh else self._whole_lines()
            if lines and not (differs := _differences(lines[0], header)):
                self.kept = dict(_kept(line) for line in lines[1:])
            else:
                self.differs = differs if lines else ()
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(header) + "\n", "utf-8")
        except OSError as error:
            raise _unwritable(path, error) from None

    def add(self, key: str, samples: Sequence[Sample], took_s: float) -> None:
        """Keep what the task ``key`` measured: when this returns, the end of the process doesn't lose it."""
        line = json.dumps({"key": key, "took_s": took_s, "samples": [one.model_dump() for one in samples]})
        try:
            with self.path.open("ab") as file:
                file.write(line.encode() + b"\n")
        except OSError as error:
            raise _unwritable(self.path, error) from None
        self.kept[key] = Kept(tuple(samples), took_s)

    def remove(self) -> None:
        """Remove the file: all of it is in a profile."""
        self.path.unlink(missing_ok=True)

    def _whole_lines(self) -> list[dict[str, Any]]:
        """Return the lines that were written whole, and cut off what follows them."""
        if not self.path.exists():
            return []
        found: list[dict[str, Any]] = []
        text, good = self.path.read_bytes(), 0
        for line in text.splitlines(keepends=True):
            if not line.endswith(b"\n") or not _is_whole(value := _parsed(line), first=not found):
                break
            found.append(value)
            good += len(line)
        if good < len(text):
            with self.path.open("r+b") as file:
                file.truncate(good)
        return found


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _is_whole(value: Any, first: bool) -> bool:
    if not isinstance(value, dict):
        return False
    if first:
        return MARK in value
    try:
        _kept(value)
    except (KeyError, TypeError, ValueError, ValidationError):
        return False
    return True


def _kept(value: dict[str, Any]) -> tuple[str, Kept]:
    return value["key"], Kept(tuple(Sample.model_validate(one) for one in value["samples"]), float(value["took_s"]))


def _differences(before: dict[str, Any], now: dict[str, Any]) -> tuple[str, ...]:
    """Return the entries of two headers that aren't the same."""
    return tuple(sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key)))


def _unwritable(path: Path, error: OSError) -> InputError:
    why = error.strerror or str(error)
    return InputError(Problem(f"can't be written: {why}", "name another place by --out", file=str(path)))
