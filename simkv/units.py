"""Text with units to SI numbers and back. GB is not GiB; a bare number where a unit is needed is an error.

Start with :func:`parse`; :func:`exact` writes a value so that ``parse`` gives it back to the last
bit, :func:`short` writes it for people.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from simkv.errors import InputError, Problem

DimensionName = Literal[
    "size", "rate", "time", "request_rate", "tokens", "fraction", "count", "number"
]  # fmt: skip

_DECIMAL = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5}
_SIZES = {f"{p}B": Fraction(1000**e) for p, e in _DECIMAL.items()} | {
    f"{p}B": Fraction(1024**e) for p, e in _BINARY.items()
}
_TIMES = {
    "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000), "s": Fraction(1), "min": Fraction(60), "h": Fraction(3600), "d": Fraction(86400),
}  # fmt: skip
_PER_TIME = {"s": Fraction(1), "min": Fraction(1, 60), "h": Fraction(1, 3600)}
_REQUESTS = {f"{noun}/{t}": f for noun in ("req", "", "requests") for t, f in _PER_TIME.items()}
_TOKENS = {f"{p}{gap}{noun}": Fraction(1024**e) for p, e in {"": 0, **_BINARY}.items()
           for gap, noun in (("", ""), ("", "tokens"), (" ", "tokens"), ("", "token"), (" ", "token"))}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dimension:
    """What a quantity measures: its units, how it is written, and what values make sense."""

    noun: str
    """As in "not a rate"."""
    units: dict[str, Fraction]
    base: str
    """The unit of the SI value; ``""`` where a bare number is right."""
    suggest: tuple[str, ...]
    """Units to propose when one is missing."""
    written: tuple[str, ...]
    """Units that :func:`exact` may use; the first is used for zero and infinity."""
    largest: int
    """Finite values above this are refused."""
    example: str
    integer: bool = False
    infinite: bool = False
    """Whether ``inf`` makes sense."""
    gap: str = ""
    """Between number and unit when written."""


DIMENSIONS: dict[DimensionName, Dimension] = {
    "size": Dimension(
        "a size", _SIZES, "B", ("GiB", "GB"),
        ("GiB", "TiB", "MiB", "KiB", "TB", "GB", "MB", "kB", "B"), 10**21, "80GiB", integer=True, infinite=True,
    ),
    "rate": Dimension(
        "a rate", {f"{u}/s": f for u, f in _SIZES.items()}, "B/s", ("GB/s", "GiB/s"),
        ("GB/s", "GiB/s", "TB/s", "MB/s", "MiB/s", "kB/s", "B/s"), 10**18, "25 GB/s", infinite=True, gap=" ",
    ),
    "time": Dimension(
        "a time", _TIMES, "s", ("s", "ms"), ("s", "ms", "us", "ns", "min", "h"), 10**10, "20ms", infinite=True,
    ),
    "request_rate": Dimension(
        "a request rate", _REQUESTS, "req/s", ("req/s", "req/min"), ("req/s", "req/min", "req/h"), 10**9,
        "12 req/s", gap=" ",
    ),
    "tokens": Dimension(
        "a number of tokens", _TOKENS, "", ("",), ("",), 2**40, "4096 or 128Ki", integer=True,
    ),
    "fraction": Dimension("a fraction", {"": Fraction(1), "%": Fraction(1, 100)}, "", ("",), ("",), 1, "0.9 or 90%"),
    "count": Dimension("a count", {"": Fraction(1)}, "", ("",), ("",), 2**40, "256", integer=True),
    "number": Dimension("a number", {"": Fraction(1)}, "", ("",), ("",), 10**15, "0.7"),
}  # fmt: skip

_NUMBER = re.compile(
    r"\s*([+-]?(?:[0-9](?:_?[0-9])*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?|[+-]?\.?inf|\.?nan)\s*", re.IGNORECASE
)
_LONGEST = 80


class QuantityError(InputError):
    """A value that isn't the quantity it should be; ``reason`` reads on from it, ``mend`` says how to write it."""

    def __init__(self, shown: str, reason: str, mend: str) -> None:
        self.shown, self.reason, self.mend = shown, reason, mend
        verb = "" if reason.startswith("has") else "is "
        super().__init__(Problem(f"{shown} {verb}{reason}", mend))


def shown(value: object) -> str:
    """Return ``value`` as an error message shows it: texts in quotes, anything long cut short."""
    if isinstance(value, str):
        text = f'"{value}"'
    elif value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    else:
        text = _digits(value) if isinstance(value, int) else repr(value)
    text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def parse(value: object, dimension: DimensionName) -> float:
    """Return ``value`` (text, or a bare number where that is right) in SI; integers for sizes, tokens and counts.

    Raises :class:`QuantityError` with a mend for anything else: a missing, foreign or ambiguous
    unit, a negative, not-a-number or absurdly large value, an infinity where none makes sense.
    """
    dim = DIMENSIONS[dimension]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError(shown(value), f"not {dim.noun}", f"write it like {_quoted(dim.example)}")
    text = _digits(value) if not isinstance(value, str) else value
    match = _NUMBER.match(text) if len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError(shown(value), f"not {dim.noun}", f"write it like {_quoted(dim.example)}")
    number, unit = match.group(1).lower(), text[match.end() :].strip()
    unit = re.sub(r"\s*/\s*", "/", unit)
    if "nan" in number:
        raise QuantityError(shown(value), "not a number", f"write it like {_quoted(dim.example)}")
    factor = dim.units.get(unit)
    if factor is None:
        raise QuantityError(shown(value), *_wrong_unit(number, unit, dim))
    return _checked(value, number, factor, dim)


def _digits(value: float) -> str:
    if isinstance(value, int):
        return str(value) if abs(value) < 10**60 else f"{'-' if value < 0 else ''}1e60"
    return repr(value)


def _quoted(example: str) -> str:
    return " or ".join(f'"{e}"' for e in example.split(" or "))


def _checked(value: object, number: str, factor: Fraction, dim: Dimension) -> float:
    """Scale ``number`` and hold it to the dimension's limits."""
    if number.startswith("-") and number.strip("-0.") != "":
        raise QuantityError(shown(value), "negative", f"{dim.noun} is zero or more")
    if "inf" in number:
        if not dim.infinite:
            raise QuantityError(shown(value), "infinite", f"write a finite value like {_quoted(dim.example)}")
        return math.inf
    exact_value = Fraction(number) * factor
    if exact_value > dim.largest:
        limit = "1" if dim.largest == 1 else f"{float(dim.largest):.3g} {dim.base}".strip()
        raise QuantityError(shown(value), "too large", f"the most that makes sense here is {limit}")
    if not dim.integer:
        return float(exact_value)
    if dim.base == "" and exact_value.denominator != 1:
        raise QuantityError(shown(value), "not a whole number", f"write it like {_quoted(dim.example)}")
    return round(exact_value)


def _wrong_unit(number: str, unit: str, dim: Dimension) -> tuple[str, str]:
    """Say what is wrong with ``unit`` and how to write the quantity."""
    if unit == "":
        asked = [f'"{number}{dim.gap}{u}"' for u in dim.suggest]
        return "has no unit", f"write {' or '.join(asked)}"
    meant = [u for u in dim.units if u.casefold() in _spellings(unit, dim)]
    binary = [u for u in meant if "i" in u]
    meant = ([u for u in meant if u not in binary][:1] + binary[:1]) or list(dim.suggest if unit in _OTHERS else ())
    reason = f"not {dim.noun}"
    if re.fullmatch(r"[kKMGT]i?b(it)?(s|/s|ps)?", unit):
        return f"{reason} (it counts bits)", f"write it in bytes, like {_quoted(dim.example)}; 8 bits are one byte"
    if not meant:
        return reason, f"write it like {_quoted(dim.example)}"
    return reason, "write " + " or ".join(f'"{number}{dim.gap}{u}"' for u in meant)


def _spellings(unit: str, dim: Dimension) -> set[str]:
    """Lower-case units that a writer of ``unit`` may have meant."""
    low = unit.casefold().removesuffix("ps") if dim.noun == "a rate" else unit.casefold()
    low = {"sec": "s", "secs": "s", "second": "s", "seconds": "s", "m": "min", "mins": "min", "minutes": "min",
           "hours": "h", "hour": "h", "hr": "h", "days": "d", "usec": "us", "msec": "ms"}.get(low, low)  # fmt: skip
    bare = low.removesuffix("/s")
    found = {low, bare, f"{bare}/s"}
    if len(bare) == 1 and bare in "kmgtp":
        found |= {f"{bare}b", f"{bare}ib", f"{bare}b/s", f"{bare}ib/s", f"{bare}i"}
    if dim.noun == "a number of tokens" and bare.removesuffix("tokens").strip() in ("k", "m"):
        found.add(bare[0] + "i")
    return found


_OTHERS = {unit for dim in DIMENSIONS.values() for unit in dim.units}


def exact(value: float, dimension: DimensionName) -> str:
    """Return the shortest text that :func:`parse` turns back into exactly ``value``."""
    dim = DIMENSIONS[dimension]
    first = dim.written[0]
    if value == 0 or math.isinf(value):
        return ("0" if value == 0 else "inf") + _unit_text(dim, first)
    texts = []
    for unit in dim.written:
        number = _trim(float(Fraction(value) / dim.units[unit]), dim.integer)
        scaled = Fraction(number) * dim.units[unit]
        if (round(scaled) if dim.integer else float(scaled)) == value:
            texts.append((len(number) + (unit != dim.base), dim.written.index(unit), number + _unit_text(dim, unit)))
    if not texts:
        return _digits(value) + _unit_text(dim, dim.base)
    return min(texts)[2]


def _unit_text(dim: Dimension, unit: str) -> str:
    return dim.gap + unit if unit else ""


def _trim(number: float, integer: bool) -> str:
    """Return ``number`` as text without a needless ``.0``."""
    text = repr(number)
    if text.endswith(".0"):
        return text[:-2]
    if integer and "e+" in text:
        return str(int(number))
    return text


_SHORT: dict[DimensionName, tuple[tuple[float, str], ...]] = {
    "size": ((1024.0**4, " TiB"), (1024.0**3, " GiB"), (1024.0**2, " MiB"), (1024.0, " KiB"), (1.0, " B")),
    "rate": ((1e12, " TB/s"), (1e9, " GB/s"), (1e6, " MB/s"), (1e3, " kB/s"), (1.0, " B/s")),
    "time": ((86400.0, " d"), (3600.0, " h"), (60.0, " min"), (1.0, " s"), (1e-3, " ms"), (1e-6, " µs"), (1e-9, " ns")),
    "request_rate": ((1.0, " req/s"), (1 / 60, " req/min"), (1 / 3600, " req/h")),
}


def short(value: float, dimension: DimensionName) -> str:
    """Return ``value`` for people: three digits and a fitting unit (``1.17 TiB``, ``32.4 ms``, ``131,072``)."""
    if math.isnan(value):
        return "-"
    scales = _SHORT.get(dimension)
    if scales is None:
        return f"{value:,.0f}" if DIMENSIONS[dimension].integer else f"{value:.3g}"
    if math.isinf(value):
        return "unlimited"
    factor, unit = next(
        (s for s in scales if value >= s[0] * (2 if s[0] in (60.0, 3600.0, 86400.0) else 1)), scales[-1]
    )
    return (
        _three_digits(value / factor) + unit
        if value
        else f"0{scales[-1][1] if dimension == 'size' else _unit_of_zero(dimension)}"
    )


def _unit_of_zero(dimension: DimensionName) -> str:
    """Return the unit, with its gap, in which people read a zero."""
    return {"rate": " GB/s", "time": " s", "request_rate": " req/s"}.get(dimension, "")


def _three_digits(number: float) -> str:
    if number >= 99.95:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 9.995 else f"{number:.2f}"
