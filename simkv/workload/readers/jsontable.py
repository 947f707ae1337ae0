"""JSON Lines seen as a table: columns are keys, found by name, and a row may lack some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from simkv.errors import InputError, Problem
from simkv.workload.readers.csvrows import mend_missing
from simkv.workload.readers.files import lines
from simkv.workload.readers.jsonl import Fields, Row, first_objects, kind, rows
from simkv.workload.readers.report import ReadReport

LOOKED_AT = 16
"""The lines at the front that say which columns there are."""


class JsonTable:
    """One file of JSON Lines while it is read."""

    def __init__(self, path: Path, report: ReadReport, wanted: Sequence[str]) -> None:
        """Look at the first lines; ``wanted`` are the format's own keys. Raises InputError for an unreadable file."""
        self._path = path
        self._report = report
        self._wanted = wanted
        self._fields = Fields(path, wanted)
        first = first_objects(list(islice(lines(path), LOOKED_AT)))
        self.names: list[str] = list(dict.fromkeys(key for row in first for key in row))

    def column(self, *names: str, setting: str = "") -> str:
        """Return the key that is one of ``names``; ``setting`` is what says so in a scenario.

        Raises InputError where none of the first rows has one.
        """
        found = [name for name in names if name in self.names]
        if found or not self.names:
            return found[0] if found else names[0]
        what = f"is missing from the first {LOOKED_AT} rows"
        mend = mend_missing(names[0], self.names, self._wanted, setting)
        raise InputError(Problem(what, mend, file=str(self._path), line=1, path=names[0]))

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield ``(line number, object)`` of each line; blank lines are skipped and noted."""
        return rows(self._path, self._report)

    def cell(self, row: Row, column: str) -> object:
        """Return what is written there, None where there is nothing."""
        return row.get(column)

    def text(self, row: Row, column: str, line: int) -> str:
        """Return a value as text, a whole number too; empty where there is none."""
        value = row.get(column)
        if value is None:
            return ""
        if type(value) is str:
            return value.strip()
        if type(value) is int:
            return str(value)
        raise self._fields.bad(line, column, value, f"is {kind(value)}, not text", "write text or a whole number")

    def time(self, row: Row, column: str, line: int) -> float:
        """Return a time in the file's own unit, finite and not negative."""
        return self._fields.time(row, column, line)

    def tokens(self, row: Row, column: str, line: int, low: int) -> int:
        """Return a number of tokens, at least ``low``."""
        return self._fields.tokens(row, column, line, low)

    def bad(self, line: int, column: str, value: object, what: str, mend: str) -> InputError:
        """Return the error that says what is wrong with a value."""
        return self._fields.bad(line, column, value, what, mend)
