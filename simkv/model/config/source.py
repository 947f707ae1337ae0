"""A configuration file: found, read as JSON, and its lines told by path."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from simkv.errors import InputError, Problem
from simkv.reading import read_bounded

FILE_NAME = "config.json"
MAX_BYTES = 16 << 20
"""The longest known (quantised models that list every layer) are below 1 MiB."""
_LFS = "version https://git-lfs.github.com/spec/"
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|\n')

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a configuration came from, for errors; a dict of the caller's own has neither file nor lines."""

    file: str = ""
    text: str = ""

    def line_of(self, path: Path) -> int | None:
        """Return the line of a key, or of the nearest section around it that is in the file."""
        found: dict[Path, int] = {}
        for key, line in _keys(self.text):
            found.setdefault(key, line)
        while path and path not in found:
            path = path[:-1]
        return found.get(path)


def _keys(text: str) -> Iterator[tuple[Path, int]]:
    """Yield the path of every key of a JSON text, and its line; what isn't JSON yields nonsense but ends."""
    line, last = 1, ""
    around: list[str | None] = []
    """Of each open bracket the key before it; None for a list's."""
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "\n":
            line += 1
        elif token in "{[":
            around.append(last if token == "{" else None)
            last = ""
        elif token in "}]":
            del around[-1:]
        elif token == ":":
            if None not in around:
                yield (*(key for key in around[1:] if key is not None), last), line
        elif token != ",":
            last = token[1:-1]


def read_source(path: str) -> tuple[dict[str, Any], Source]:
    """Return what a config.json holds, or the one in a folder; ``Infinity`` and ``NaN`` are read as Python does.

    Raises :class:`InputError` with file and line for anything but a JSON object.
    """
    file = os.path.join(path, FILE_NAME) if os.path.isdir(path) else path
    text = _text(file)
    source = Source(file, text)
    if text.startswith(_LFS):
        raise InputError(Problem("is a Git LFS pointer, not the file itself", "run git lfs pull", file, 1))
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        mend = f"name a model's {FILE_NAME}"
        raise InputError(Problem(f"is not JSON: {error.msg}", mend, file, error.lineno)) from None
    except RecursionError:
        raise InputError(Problem("is nested too deeply", f"name a model's {FILE_NAME}", file)) from None
    except ValueError as error:
        raise InputError(Problem(f"is not JSON: {error}", f"name a model's {FILE_NAME}", file)) from None
    if not isinstance(values, dict):
        raise InputError(Problem("holds no JSON object", f"name a model's {FILE_NAME}", file, 1))
    return values, source


def _text(file: str) -> str:
    shown = file if file.isprintable() else ascii(file)
    try:
        data = read_bounded(file, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(Problem(f"can't be read: {reason}", f"name a model's {FILE_NAME}", shown)) from None
    if len(data) > MAX_BYTES:
        what = f"is longer than {MAX_BYTES >> 20} MiB"
        raise InputError(Problem(what, f"name a model's {FILE_NAME}, not its weights", shown))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(Problem("is not UTF-8 text", f"name a model's {FILE_NAME}", shown, line)) from None
