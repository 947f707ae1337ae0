"""A text file with one number a line, such as the lengths that someone measured."""

from __future__ import annotations

from pathlib import Path

from simkv.errors import InputError, Problem
from simkv.workload.readers.files import excerpt, head, lines


def numbers_of(path: str | Path) -> list[int]:
    """Return the whole numbers from 1 up in ``path``, one a line; blank lines are skipped.

    Raises InputError for a file that can't be read, and with its line for anything else.
    """
    path = Path(path)
    head(path)
    found = []
    for line, text in enumerate(lines(path), 1):
        shown = text.decode("utf-8", "replace").strip().lstrip("\ufeff")
        if not shown:
            continue
        if not (shown.isascii() and shown.isdigit() and 0 < len(shown) < 10 and int(shown) > 0):
            what = "is not a number of tokens"
            mend = "write one whole number from 1 up a line"
            raise InputError(Problem(what, mend, file=str(path), line=line, path=excerpt(shown)))
        found.append(int(shown))
    return found
