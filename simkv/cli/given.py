"""Options that are quantities, options that go together, and errors that name the option."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from simkv.errors import InputError, Problem

if TYPE_CHECKING:
    from simkv.units import DimensionName

_SPELLED = {"tensor_parallel": "--tp", "gpu_memory_utilization": "--utilization"}
_METAVARS = {
    "size": "SIZE", "rate": "RATE", "time": "TIME", "tokens": "TOKENS", "count": "N", "fraction": "SHARE",
    "number": "X",
}  # fmt: skip
ABOVE_ZERO = 5e-324


def measured(option: str, dimension: DimensionName, text: str, least: float = 0.0) -> Any:
    """Return a typer option whose value is a quantity of at least ``least`` (SI)."""
    return typer.Option(option, parser=parser(option, dimension, least), metavar=_METAVARS[dimension], help=text)


def parser(option: str, dimension: DimensionName, least: float = 0.0) -> Callable[[object], float]:
    """Return what reads an option's (finite) value; what it raises names the option, the value and the mend."""

    def parse(text: object) -> float:
        from simkv import units

        def refuse(what: str, mend: str) -> InputError:
            return InputError(Problem(what, mend, path=option, value=units.shown(text)))

        try:
            value = units.parse(text, dimension)
        except units.QuantityError as error:
            raise refuse(error.reason, error.mend) from None
        if value < least:
            raise refuse("too small", f"the least is {least:g}" if least >= 1 else "it must be above zero")
        if value == inf:
            raise refuse("infinite", "give a finite value")
        return value

    return parse


def dtype(option: str, caches: bool = False) -> Callable[[str], str]:
    """Return what reads a number format, of weights or of caches: its short name, or ``auto``."""

    def parse(text: str) -> str:
        from simkv.calc.kv_size import CACHE_DTYPES
        from simkv.model import DTYPE_ALIASES, DTYPE_BITS

        name = text.strip().lower()
        name, valid = DTYPE_ALIASES.get(name, name), CACHE_DTYPES if caches else tuple(DTYPE_BITS)
        if name != "auto" and name not in valid:
            mend = f"use one of {', '.join(valid)}, or auto"
            raise InputError(Problem("no such format", mend, path=option, value=text))
        return name

    return parse


class Form(NamedTuple):
    """One way to call a command: the options that it needs, and those that it also takes."""

    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()


def chosen(given: Mapping[str, object], *forms: Form) -> Form:
    """Return the form that the options given are of; raises InputError for one that lacks or would ignore some."""
    names = [name for name, value in given.items() if value is not None and value != []]
    form = max(forms, key=lambda form: sum(name in names for name in form.needs))
    missing = [name for name in form.needs if name not in names]
    if missing:
        ways = "; or ".join(", ".join(form.needs) for form in forms)
        raise InputError(Problem("is missing", f"give {ways}", path=missing[0]))
    for name in names:
        if name not in form.needs + form.takes:
            raise InputError(Problem(f"does nothing with {', '.join(form.needs)}", "leave it out", path=name))
    return form


@contextmanager
def options_named() -> Iterator[None]:
    """Let errors about a parameter name the option that gives it."""
    try:
        yield
    except InputError as error:
        raise InputError([_of_option(problem) for problem in error.problems]) from None


def _of_option(found: Problem) -> Problem:
    if found.file or not found.path.isidentifier():
        return found
    option = _SPELLED.get(found.path, f"--{found.path.replace('_', '-')}")
    return Problem(found.what, found.mend, path=option, value=found.value)
