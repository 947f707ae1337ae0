"""Reading a workload section that is already plain SI values: what is missing or unknown is said."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from math import isfinite
from typing import Any, TypeVar

from simkv.errors import InputError, Problem

T = TypeVar("T")
Spec = Mapping[str, Any]


def bad(where: str, value: object, what: str, mend: str = "") -> InputError:
    """Return the error that says that ``where`` with ``value`` is wrong."""
    return InputError(Problem(what, mend, path=where, value="" if value is None else repr(value)))


def need(spec: Spec, key: str, where: str) -> Any:
    """Return ``spec[key]``; raise InputError where it is absent or null."""
    value = spec.get(key)
    if value is None:
        raise InputError(Problem("is missing", "give it a value", path=f"{where}.{key}"))
    return value


def choose(table: Mapping[str, T], name: object, where: str) -> T:
    """Return ``table[name]``; raise InputError that lists the valid names."""
    if isinstance(name, str) and name in table:
        return table[name]
    near = get_close_matches(str(name), table, 1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    raise bad(where, name, "is not known", f"{guess}valid: {', '.join(table)}")


def number(value: object, where: str, low: float, *, above: bool = False) -> float:
    """Return ``value`` as a finite float of at least ``low`` (more than it with ``above``)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise bad(where, value, "is not a number", "write a number")
    if not isfinite(value) or value < low or (above and value == low):
        what = f"must be a finite number {'above' if above else 'of at least'} {low:g}"
        raise bad(where, value, what, f"the least is {low:g}" if not above else f"write a number above {low:g}")
    return float(value)


def whole(value: object, where: str, low: int) -> int:
    """Return ``value`` as an int of at least ``low``; a float without fraction will do."""
    result = number(value, where, low)
    if result != int(result):
        raise bad(where, value, "must be a whole number", f"write {int(result)} or {int(result) + 1}")
    return int(value)  # type: ignore[call-overload, no-any-return]
