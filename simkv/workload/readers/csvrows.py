"""Rows of CSV under a header, and fields of them, checked: each complaint names file, line, field and value.

Columns are found by name, so their order and any others don't matter. Lines are split at the
commas; from the first line with a quote on, the csv module takes over.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import chain
from pathlib import Path

from simkv.errors import InputError, Problem
from simkv.workload.readers.faults import MAX_TIME, Fault, time_fault, tokens_fault
from simkv.workload.readers.files import BOM, excerpt, lines
from simkv.workload.readers.report import ReadReport

Row = list[str]
Lines = Iterator[tuple[int, bytes]]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SURE_DIGITS = 9
"""So many digits are below every limit on tokens."""


class Table:
    """One CSV file while it is read: its header at once, then its rows."""

    def __init__(self, path: Path, report: ReadReport, wanted: Sequence[str] = ()) -> None:
        """Read the header; ``wanted`` are the format's own columns. Raises InputError where there is no header."""
        self._path = path
        self._report = report
        self._wanted = wanted
        self._lines: Lines = enumerate(lines(path), 1)
        self._header_line, self.names = self._header()

    def column(self, *names: str, setting: str = "") -> int:
        """Return where the column is that has one of ``names``; ``setting`` is what says so in a scenario.

        Raises InputError where none has, or two have.
        """
        found = [k for k, name in enumerate(self.names) if name in names]
        if len(found) == 1:
            return found[0]
        if found:
            raise self._of_header(names[0], "is in the header twice", "rename one of the two")
        raise self._of_header(names[0], "is missing from the header", self._mend_missing(names[0], setting))

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield ``(line number, cells)`` of each row; blank lines are skipped and noted.

        Raises InputError for a row that doesn't have as many cells as the header.
        """
        report, width = self._report, len(self.names)
        for number, line in self._lines:
            if b'"' in line:
                yield from self._quoted(number, line)
                return
            cells = self._text(number, line).rstrip("\r\n").split(",")
            report.line = number
            if len(cells) == width:
                yield number, cells
            else:
                self._wrong_width(number, cells)

    def bad(self, line: int, column: int, value: object, what: str, mend: str) -> InputError:
        """Return the error that says what is wrong with a cell."""
        text = str(value).strip()
        shown = text if not text or _NUMBER.fullmatch(text) else f'"{text}"'
        return _problem(self._path, line, self.names[column], excerpt(shown), what, mend)

    # ---- cells

    def cell(self, row: Row, column: int) -> object:
        """Return what is written there."""
        return row[column]

    def text(self, row: Row, column: int, line: int) -> str:
        """Return a cell as text, without blanks around it."""
        return row[column].strip()

    def tokens(self, row: Row, column: int, line: int, low: int) -> int:
        """Return a number of tokens, at least ``low``; ``5.0`` passes as 5."""
        cell = row[column]
        if cell.isdecimal() and len(cell) <= _SURE_DIGITS and (value := int(cell)) >= low:
            return value
        number, fault = _number(cell)
        what, mend = fault if fault[0] else tokens_fault(number, low)
        if what:
            raise self.bad(line, column, cell, what, mend)
        return int(number)

    def time(self, row: Row, column: int, line: int) -> float:
        """Return a time in the file's own unit, finite and not negative."""
        cell = row[column]
        try:
            number = float(cell)
        except ValueError:
            number = -1.0
        if 0 <= number <= MAX_TIME and "_" not in cell:
            return number
        number, fault = _number(cell)
        what, mend = fault if fault[0] else time_fault(number)
        raise self.bad(line, column, cell, what, mend)

    # ---- lines

    def _header(self) -> tuple[int, list[str]]:
        for number, line in self._lines:
            self._report.line = number
            text = self._text(number, line.removeprefix(BOM))
            if not text.strip():
                self._note_blank(number)
                continue
            if "\r" in text.rstrip("\r\n"):
                what, mend = "has lines that end in a carriage return alone", "convert them: tr '\\r' '\\n'"
                raise _problem(self._path, number, "", "", what, mend)
            try:
                return number, [name.strip() for name in next(csv.reader([text], strict=True))]
            except csv.Error as error:
                what, mend = f"is no header: {error}", "write the names of the columns, commas between them"
                raise _problem(self._path, number, excerpt(text), "", what, mend) from None
        what, mend = "has no header", "write the names of the columns on the first line"
        raise InputError(Problem(what, mend, file=str(self._path)))

    def _quoted(self, number: int, line: bytes) -> Iterator[tuple[int, Row]]:
        """Yield the rows from a first quoted one on; a quoted cell may hold line ends."""
        feed = _Feed(self, chain([(number, line)], self._lines))
        reader = csv.reader(feed, strict=True)
        start = number
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                what, mend = f"is not CSV: {error}", 'write "" for a quote inside quotes, and close each'
                raise _problem(self._path, start, "", "", what, mend) from None
            self._report.line = start
            if len(cells) == len(self.names):
                yield start, cells
            else:
                self._wrong_width(start, cells)
            start = feed.number + 1

    def _text(self, number: int, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            what = f"is not UTF-8 text: {error.reason}"
            raise _problem(self._path, number, excerpt(line), "", what, "convert the file to UTF-8") from None

    def _wrong_width(self, number: int, cells: Row) -> None:
        """Note a blank line; raise for anything else."""
        if not any(cell.strip() for cell in cells) and len(cells) <= 1:
            self._note_blank(number)
            return
        has, wants = len(cells), len(self.names)
        what = f"has {has} cell{'s' * (has != 1)} where the header has {wants} columns"
        mend = "it may be cut off: complete or remove it" if has < wants else "put a cell with a comma into quotes"
        raise _problem(self._path, number, excerpt(",".join(cells)), "", what, mend)

    def _note_blank(self, number: int) -> None:
        self._report.note("blank_line", "the line is blank", number, dropped=True)

    # ---- complaints about the header

    def _of_header(self, name: str, what: str, mend: str) -> InputError:
        return _problem(self._path, self._header_line, name, "", what, mend)

    def _mend_missing(self, name: str, setting: str) -> str:
        if all(_NUMBER.fullmatch(cell) for cell in self.names):
            return "the first line is data: write the names of the columns above it"
        if len(self.names) == 1:
            for mark, label in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
                if mark in self.names[0]:
                    return f"its columns are separated by {label}: write commas"
            return f"the first line has no comma: is this CSV? It begins {excerpt(self.names[0], 40)!r}"
        return mend_missing(name, self.names, self._wanted, setting)


class _Feed:
    """Hands lines to the csv module as text, and knows how far it has come."""

    def __init__(self, table: Table, source: Lines) -> None:
        self._table = table
        self._source = source
        self.number = 0

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        self.number, line = next(self._source)
        return self._table._text(self.number, line)


def mend_missing(name: str, names: Sequence[str], wanted: Sequence[str], setting: str) -> str:
    """Return what to do about a column that isn't among ``names``; ``setting`` would name another for it.

    Those of ``wanted`` are what they say and can't be meant.
    """
    near = get_close_matches(name, [other for other in names if other not in wanted], 1, 0.6)
    if near:
        return f"rename {near[0]!r}" + (f", or write {setting}: {near[0]}" if setting else "")
    shown = excerpt(", ".join(names[:8]) + (", ..." if len(names) > 8 else ""), 200)
    return f"the columns are {shown}" + (f": say which it is with {setting}" if setting else "")


def header(head_lines: Sequence[bytes]) -> set[str]:
    """Return the names on the first of ``head_lines``, for sniffing; empty where it is no header."""
    try:
        return {name.strip() for name in next(csv.reader([head_lines[0].removeprefix(BOM).decode()], strict=True))}
    except (csv.Error, UnicodeDecodeError, IndexError, StopIteration):
        return set()


_NO_NUMBER: Fault = ("is not a number", "write a number")
_EMPTY: Fault = ("is empty", "write a number, or remove the row")


def _number(cell: str) -> tuple[float, Fault]:
    """Return the number in ``cell`` and what is wrong with it, of which one is to be used."""
    cell = cell.strip()
    if _NUMBER.fullmatch(cell):
        return float(cell), ("", "")
    return 0.0, _NO_NUMBER if cell else _EMPTY


def _problem(path: Path, line: int, field: str, value: str, what: str, mend: str) -> InputError:
    return InputError(Problem(what, mend, file=str(path), line=line, path=field, value=value))
