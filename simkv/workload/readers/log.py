"""A log of one's own: CSV or JSON Lines with an arrival and two lengths a row, whatever the columns are called.

Arrivals are numbers in a unit, or dates and times of day. A row may name its session, its class,
and what its prompt begins with: ``prefix_hash``, good for the first ``prefix_tokens`` tokens.
Without a column of ``prefix_tokens`` a hash is taken for that of the whole prompt, the shorter of two
prompts being the head of the longer; if it stands for less, hits are overestimated, and the report says so.
What sessions share is told in :mod:`simkv.workload.readers.content`. Every row is an arrival at its own time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from simkv.errors import InputError, Problem
from simkv.workload.readers.civil import MEND, CivilClock, looks_civil
from simkv.workload.readers.content import NO_HEAD, Contents, is_served
from simkv.workload.readers.csvrows import Table, header
from simkv.workload.readers.faults import LATEST_S
from simkv.workload.readers.files import head
from simkv.workload.readers.jsonl import first_objects
from simkv.workload.readers.jsontable import JsonTable
from simkv.workload.readers.report import ReadReport
from simkv.workload.request import Request
from simkv.workload.spec import choose

REQUIRED = ("arrival", "prompt_tokens", "output_tokens")
OPTIONAL = ("session", "prefix_hash", "prefix_tokens", "class")
ROLES = (*REQUIRED, *OPTIONAL)
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "datetime": 0.0}
"""Units of an arrival in a second."""

MOST_CLASSES = 1000


class LogTable(Protocol):
    """What the reader needs of a file, whichever its syntax."""

    @property
    def names(self) -> Sequence[str]:
        """The columns."""

    def column(self, *names: str, setting: str = "") -> Any:
        """Return what finds the column in a row; raises InputError where there is none."""

    def rows(self) -> Iterator[tuple[int, Any]]:
        """Yield line numbers and rows."""

    def cell(self, row: Any, column: Any) -> object:
        """Return what is written there."""

    def text(self, row: Any, column: Any, line: int) -> str:
        """Return a cell as text; empty where there is nothing."""

    def time(self, row: Any, column: Any, line: int) -> float:
        """Return a time in the file's own unit."""

    def tokens(self, row: Any, column: Any, line: int, low: int) -> int:
        """Return a number of tokens."""

    def bad(self, line: int, column: Any, value: object, what: str, mend: str) -> InputError:
        """Return the error that says what is wrong with a cell."""


class LogReader:
    """Reads CSV and JSON Lines by the columns that it is told."""

    name = "log"
    summary = (
        f"CSV or JSONL with {','.join(REQUIRED)}[,{','.join(OPTIONAL)}], or as workload.columns (--columns) names them"
    )

    def __init__(self, columns: Mapping[str, str] | None = None, arrival_unit: str | None = None) -> None:
        """``columns`` maps roles to columns (default: their own names); unit None: s, or what a date says.

        Raises InputError for a role or unit that there isn't.
        """
        self._columns = dict(columns or {})
        for role in self._columns:
            choose(dict.fromkeys(ROLES), role, "workload.columns")
        if "prefix_tokens" in self._columns and "prefix_hash" not in self._columns:
            what, mend = "does nothing without a prefix_hash", "name the column of the hash too"
            raise InputError(Problem(what, mend, path="workload.columns.prefix_tokens"))
        if arrival_unit is not None:
            choose(UNITS, arrival_unit, "workload.arrival_unit")
        self._unit = arrival_unit

    def sniff(self, lines: Sequence[bytes]) -> bool:
        """Return whether a header has two of the required names, or an object all three."""
        names = set(REQUIRED)
        return len(header(lines) & names) >= 2 or any(names <= row.keys() for row in first_objects(lines))

    def has_classes(self, path: Path) -> bool:
        """Return whether rows name their class."""
        table = self._table(path, ReadReport())
        for role in REQUIRED:
            self._required(table, role)
        return self._optional(table, "class") is not None

    def read(self, path: Path, report: ReadReport) -> Iterator[Request]:
        """Yield the requests in file order; rows that can't be served are dropped and noted."""
        table, contents = self._table(path, report), Contents(report)
        when, asked, answered = (self._required(table, role) for role in REQUIRED)
        session_of, class_of = self._optional(table, "session"), self._optional(table, "class")
        heads = _Heads(
            table, contents, report, self._optional(table, "prefix_hash"), self._optional(table, "prefix_tokens")
        )
        classes = _Classes(table, class_of)
        names = (self._name("prompt_tokens"), self._name("output_tokens"))
        report.time_key = self._name("arrival")
        seconds: Callable[[Any, int], float] | None = None
        for line, row in table.rows():
            if seconds is None:
                seconds = self._arrivals(table, when, line, row, report)
            arrival_s = seconds(row, line)
            prompt = table.tokens(row, asked, line, 0)
            output = table.tokens(row, answered, line, 0)
            if not is_served(prompt, output, names, report):
                continue
            session = table.text(row, session_of, line) if session_of is not None else ""
            request = contents.request(arrival_s, prompt, output, session, heads.of(row, line, prompt))
            if class_of is not None:
                request.cls = classes.of(row, line)
            yield request

    def _table(self, path: Path, report: ReadReport) -> LogTable:
        wanted = [self._name(role) for role in ROLES]
        json = head(path).lstrip().startswith((b"{", b"["))
        return JsonTable(path, report, wanted) if json else Table(path, report, wanted)

    def _name(self, role: str) -> str:
        return self._columns.get(role, role)

    def _required(self, table: LogTable, role: str) -> Any:
        return table.column(self._name(role), setting=f"workload.columns.{role}")

    def _optional(self, table: LogTable, role: str) -> Any:
        """Return what finds the column of ``role``, None where the file has none and nobody asked for it."""
        return self._required(table, role) if role in self._columns or role in table.names else None

    def _arrivals(
        self, table: LogTable, column: Any, line: int, row: Any, report: ReadReport
    ) -> Callable[[Any, int], float]:
        """Return what reads an arrival in seconds, looking at the first row where no unit was given."""
        first = table.cell(row, column)
        civil = isinstance(first, str) and looks_civil(first.strip())
        unit = self._unit or ("datetime" if civil else "s")
        if civil and unit != "datetime":
            mend = "leave workload.arrival_unit out, or write datetime"
            raise table.bad(line, column, first, f"is a date, not a number of {unit}", mend)
        if unit == "datetime":
            report.clock = True
            return _civil(table, column)
        if self._unit is None and table.time(row, column, line) > LATEST_S:
            what = "is later than the year 2286 if it is in seconds"
            raise table.bad(line, column, first, what, "give workload.arrival_unit: ms, us or ns")
        per_s = UNITS[unit]
        return lambda row, line: table.time(row, column, line) / per_s


def _civil(table: LogTable, column: Any) -> Callable[[Any, int], float]:
    clock = CivilClock()

    def seconds(row: Any, line: int) -> float:
        text = table.text(row, column, line)
        try:
            return clock.seconds(text)
        except ValueError as error:
            raise table.bad(line, column, text, str(error), MEND) from None

    return seconds


class _Heads:
    """What prompts begin with, as the columns of hash and tokens say."""

    def __init__(self, table: LogTable, contents: Contents, report: ReadReport, hash_of: Any, tokens_of: Any) -> None:
        self._table = table
        self._contents = contents
        self._report = report
        self._hash_of = hash_of
        self._tokens_of = tokens_of

    def of(self, row: Any, line: int, prompt: int) -> tuple[int, int]:
        """Return the stream and the tokens that the prompt of ``row`` begins with."""
        if self._hash_of is None:
            return NO_HEAD
        name = self._table.text(row, self._hash_of, line)
        if not name:
            return NO_HEAD
        if self._tokens_of is None:
            what = "the prefix_hash comes without prefix_tokens: taken for the whole prompt, so hits may be fewer"
            self._report.note("hash_of_prompt", what, line)
            return self._contents.head(name, prompt)
        tokens = self._table.tokens(row, self._tokens_of, line, 0)
        if tokens > prompt:
            what, mend = f"is more than the prompt's {prompt:,} tokens", "count the tokens that the hash stands for"
            raise self._table.bad(line, self._tokens_of, tokens, what, mend)
        return self._contents.head(name, tokens)


class _Classes:
    """Class names, each held once; they are few."""

    def __init__(self, table: LogTable, column: Any) -> None:
        self._table = table
        self._column = column
        self._known: dict[str, str] = {}

    def of(self, row: Any, line: int) -> str:
        """Return the class of ``row``."""
        text = self._table.text(row, self._column, line)
        known = self._known.get(text)
        if known is None:
            if len(self._known) == MOST_CLASSES:
                what = f"is another class, after {MOST_CLASSES:,} different ones"
                raise self._table.bad(line, self._column, text, what, "name a column of few different values")
            known = self._known[text] = text
        return known
