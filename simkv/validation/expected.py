"""Expected figures as sources print them, in SI and back."""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from typing import NamedTuple

from simkv.errors import InputError, Problem
from simkv.results.quantity import digits
from simkv.units import shown as excerpt

ORACLE = "oracle"
"""Stands where the answer brings what is expected of it, ``METRIC.expected``, and its own tolerance."""
UNITS: dict[str, float] = {
    "": 1.0, "%": 0.01, "pp": 0.01, "x": 1.0,
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0,
    "token/s": 1.0, "tokens/s": 1.0, "tok/s": 1.0, "ktokens/s": 1e3, "ktok/s": 1e3, "tokens/min": 1 / 60,
    "req/s": 1.0, "requests/s": 1.0, "req/min": 1 / 60, "req/h": 1 / 3600,
    "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30,
    "TiB": 2.0**40, "B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12, "MiB/s": 2.0**20, "GiB/s": 2.0**30,
    "Gbit/s": 1.25e8, "Gbps": 1.25e8, "GFLOP/s": 1e9, "TFLOP/s": 1e12, "FLOP/s": 1.0, "token": 1.0, "tokens": 1.0,
    "blocks": 1.0, "requests": 1.0, "KiB/token": 2.0**10, "MiB/token": 2.0**20, "kB/token": 1e3, "MB/token": 1e6,
    "B/token": 1.0,
}  # fmt: skip
"""What a figure may be written in, and how much of SI that is."""
SPELLED: dict[str, str] = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "minutes": "min", "hours": "h",
    "milliseconds": "ms", "usec": "us", "microseconds": "us",
    "percent": "%", "×": "x", "μs": "µs", "KB": "kB", "KB/s": "kB/s",
    **{f"{noun}{per}": "tokens/s" for noun in ("tok", "toks", "token", "tokens") for per in ("/sec", "/second")},
    **dict.fromkeys(("toks/s", "t/s", "tps", "TPS"), "tokens/s"), "tok/min": "tokens/min", "token/min": "tokens/min",
    **dict.fromkeys(("k tokens/s", "k tok/s", "ktoken/s", "ktoks/s"), "ktokens/s"),
    **{f"{noun}{per}": "req/s" for noun in ("req", "reqs", "request", "requests") for per in ("/sec", "/second")},
    **dict.fromkeys(("reqs/s", "request/s", "rps", "RPS", "qps", "QPS"), "req/s"),
    "requests/min": "req/min", "request/min": "req/min", "reqs/min": "req/min",
    "request": "requests", "reqs": "requests", "block": "blocks",
}  # fmt: skip
"""Other ways to write some of them."""
_TEXT = re.compile(r"\s*([+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(\S.*?)?\s*")
_LONGEST, _COUNTED = 100, 1e12


class Figure(NamedTuple):
    """A number in SI, and the unit that it was written in."""

    value: float
    unit: str = ""


def expected_figure(given: object) -> Figure:
    """Return a number, or a text such as ``"266 ms"``; raises InputError for what is neither, or isn't finite."""
    if isinstance(given, str):
        figure = _of_text(given)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        figure = Figure(_float(given))
    else:
        raise _refused("is no number", 'write it like 0.266 or "266 ms"', given)
    if not math.isfinite(figure.value):
        raise _refused("is not finite", "give what was measured", given)
    return figure


def expected_si(given: object) -> float:
    """Return the value of :func:`expected_figure`."""
    return expected_figure(given).value


def written(value: float, unit: str) -> str:
    """Return a number in SI as people read it, in ``unit``: ``0.2662`` in ms is ``266.2 ms``."""
    number = value / UNITS[unit]
    text = f"{number:,.0f}" if number == int(number) and abs(number) < _COUNTED else digits(number, 4)
    return f"{text} {unit}".strip()


def _of_text(given: str) -> Figure:
    match = _TEXT.fullmatch(given) if len(given) <= _LONGEST else None
    if match is None or re.search(r"\d", match[2] or ""):
        raise _refused("is no number with a unit", 'write it like "266 ms"', given)
    unit = " ".join(re.sub(r"\s*/\s*", "/", match[2] or "").split())
    unit = SPELLED.get(unit, unit)
    if unit not in UNITS:
        raise _refused("has a unit that isn't known", _units_like(unit), given)
    return Figure(float(match[1].replace(",", "")) * UNITS[unit], unit)


def _units_like(unit: str) -> str:
    """Return the mend for an unknown unit: never one that differs in its prefix, or in what it is a rate over."""
    alike = [one for one in UNITS if one[:2] == unit[:2] and one.partition("/")[2] == unit.partition("/")[2]]
    near = get_close_matches(unit, alike, 1)
    guess = f"did you mean {near[0]}? " if near else ""
    return f"{guess}valid: {', '.join(filter(None, UNITS))}"


def _float(given: int | float) -> float:
    try:
        return float(given)
    except OverflowError:
        return math.inf


def _refused(what: str, mend: str, given: object) -> InputError:
    return InputError(Problem(what, mend, path="expected", value=excerpt(given)))
