"""Values of a JSON object in a measured file; what is wrong with one is said with its place."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, NoReturn

from simkv.errors import InputError, Problem
from simkv.units import shown

MOST = 1e12
MEND = "give the file as the benchmark wrote it"


class Fields:
    """One object of a file."""

    def __init__(self, values: Mapping[str, Any], file: str, line: int | None = None) -> None:
        self.values = values
        self.file = file
        self.line = line

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def refuse(self, what: str, key: str = "", mend: str = MEND) -> NoReturn:
        """Raise InputError that says what is wrong with ``key``."""
        value = shown(self.values[key]) if key in self.values else ""
        raise InputError(Problem(what, mend, self.file, self.line, key, value))

    def number(self, key: str) -> float:
        """Return a number from 0 up; raises InputError where it is missing or none."""
        if key not in self:
            self.refuse("is missing", key)
        return self._checked(self.values[key], key)

    def above_zero(self, key: str) -> float:
        """Return a number above 0."""
        value = self.number(key)
        if not value:
            self.refuse("is zero: nothing was served", key, "give a run in which requests were served")
        return value

    def count(self, key: str) -> int:
        """Return a whole number from 1 up."""
        value = self.above_zero(key)
        if value != int(value):
            self.refuse("is no whole number", key)
        return int(value)

    def text(self, key: str) -> str:
        """Return a text, empty where there is none."""
        value = self.values.get(key)
        return value[:200] if isinstance(value, str) else ""

    def numbers(self, key: str, length: int | None = None) -> list[float]:
        """Return a list of numbers from 0 up, of ``length`` where it is given."""
        values = self._list(key, length)
        return [self._checked(value, f"{key}[{n}]") for n, value in enumerate(values)]

    def lists(self, key: str, length: int) -> list[list[float]]:
        """Return a list of lists of numbers."""
        found = []
        for n, value in enumerate(self._list(key, length)):
            if not isinstance(value, list):
                self._wrong("is no list", f"{key}[{n}]", value)
            found.append([self._checked(one, f"{key}[{n}][{m}]") for m, one in enumerate(value)])
        return found

    def _list(self, key: str, length: int | None) -> list[Any]:
        values = self.values.get(key)
        if not isinstance(values, list):
            self.refuse("is no list" if key in self.values else "is missing", key)
        if length is not None and len(values) != length:
            what = f"has {len(values)} values, and there are {length} requests"
            raise InputError(Problem(what, MEND, self.file, self.line, key))
        return values

    def _checked(self, value: Any, key: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._wrong("is no number", key, value)
        if not isfinite(value):
            self._wrong("is not a finite number", key, value)
        if not 0 <= value <= MOST:
            self._wrong("is negative" if value < 0 else f"is more than {MOST:g}", key, value)
        return float(value)

    def _wrong(self, what: str, key: str, value: Any) -> NoReturn:
        raise InputError(Problem(what, MEND, self.file, self.line, key, shown(value)))
