"""Rows of JSON Lines, and fields of them, checked: each complaint names file, line, field and value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import orjson

from simkv.errors import InputError, Problem
from simkv.workload.readers.faults import MAX_TIME, MAX_TOKENS, time_fault, tokens_fault
from simkv.workload.readers.files import BOM, excerpt, lines
from simkv.workload.readers.report import ReadReport

Row = dict[str, Any]


def rows(path: Path, report: ReadReport) -> Iterator[tuple[int, Row]]:
    """Yield ``(line number, object)`` of each line; blank lines are skipped and noted."""
    for number, line in enumerate(lines(path), 1):
        report.line = number
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            row = _second_try(path, number, line, error, report)
        if type(row) is dict:
            yield number, row
        elif row is not _BLANK:
            what = f"is {kind(row)}, not an object"
            raise _problem(path, number, "", excerpt(line), what, 'write one {"key": value, ...} a line')


def first_objects(head_lines: Sequence[bytes]) -> list[Row]:
    """Return the objects among the first lines, for sniffing; whatever is no object is left out."""
    found = []
    for line in head_lines:
        try:
            row = orjson.loads(line.removeprefix(BOM))
        except orjson.JSONDecodeError:
            continue
        if isinstance(row, dict):
            found.append(row)
    return found


class Fields:
    """Takes checked values from the rows of one file; messages about line 0 name no line."""

    def __init__(self, path: Path, keys: Sequence[str] = (), prefix: str = "") -> None:
        """``path`` is what messages name; ``keys`` are those of the format; ``prefix`` goes before each key."""
        self._path = path
        self._keys = keys
        self.prefix = prefix

    def under(self, prefix: str) -> Fields:
        """Return the same for objects inside a row, whose keys messages show behind ``prefix``."""
        return Fields(self._path, self._keys, prefix)

    def tokens(self, row: Row, key: str, line: int, low: int) -> int:
        """Return a number of tokens, at least ``low``; ``5.0`` passes as 5."""
        value = row.get(key)
        if type(value) is int and low <= value <= MAX_TOKENS:
            return value
        value = self._number(row, key, line)
        what, mend = tokens_fault(value, low)
        if what:
            raise self.bad(line, key, value, what, mend)
        return int(value)

    def time(self, row: Row, key: str, line: int) -> float:
        """Return a time in the file's own unit, finite and not negative."""
        value = row.get(key)
        if (type(value) is int or type(value) is float) and 0 <= value <= MAX_TIME:
            return float(value)
        value = self._number(row, key, line)
        what, mend = time_fault(value)
        if what:
            raise self.bad(line, key, value, what, mend)
        return float(value)

    def missing(self, row: Row, key: str, line: int) -> InputError:
        """Return the error that ``row`` lacks ``key``, with the key that it may have been meant as."""
        near = get_close_matches(key, [name for name in row if name not in self._keys], 1, 0.5)
        mend = f"rename {near[0]!r}" if near else f"the row has {', '.join(map(repr, list(row)[:6])) or 'no keys'}"
        return _problem(self._path, line, self.prefix + key, "", "is missing", mend)

    def bad(self, line: int, key: str, value: object, what: str, mend: str) -> InputError:
        """Return the error that says what is wrong with the value of ``key``."""
        shown = excerpt(json.dumps(value, ensure_ascii=False))
        return _problem(self._path, line, self.prefix + key, shown, what, mend)

    def _number(self, row: Row, key: str, line: int) -> int | float:
        value = row.get(key)
        if value is None and key not in row:
            raise self.missing(row, key, line)
        if type(value) is int:
            return value
        if type(value) is not float:
            raise self.bad(line, key, value, f"is {kind(value)}, not a number", "write a number")
        return value


_BLANK = object()


def _second_try(path: Path, number: int, line: bytes, error: ValueError, report: ReadReport) -> object:
    """Return what a line that didn't parse holds after all: nothing, or JSON behind a byte order mark."""
    if not line.strip():
        report.note("blank_line", "the line is blank", number, dropped=True)
        return _BLANK
    if line.startswith(BOM):
        try:
            return orjson.loads(line.removeprefix(BOM))
        except orjson.JSONDecodeError as again:
            error = again
    try:
        line.decode()
    except UnicodeDecodeError:
        mend = "save it as UTF-8, one JSON object a line, plain or compressed with gzip"
        raise _problem(path, number, "", "", "is not UTF-8 text", mend) from None
    mend = "write one JSON object a line (NaN and Infinity are no JSON)"
    raise _problem(path, number, "", excerpt(line), f"is not JSON: {error}", mend) from None


def kind(value: object) -> str:
    """Return what a JSON value is, with its article."""
    kinds = {type(None): "null", bool: "a boolean", str: "text", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")


def _problem(path: Path, line: int, key: str, value: str, what: str, mend: str) -> InputError:
    if not key:
        key, value = value, ""
    return InputError(Problem(what, mend, file=str(path), line=line or None, path=key, value=value))
