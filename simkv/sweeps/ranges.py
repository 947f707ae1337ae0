"""Ranges of values as text: ``0.1:1.0:0.1``, ``100GiB:400GiB:100GiB``, ``16:256:x2``, ``0.1:1.0``; exact decimals.

A unit may stand on any of the parts; a part without one has that of the next part that has. Values come out in the
smallest unit that is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from pydantic_core import PydanticCustomError

from simkv import units
from simkv.errors import InputError, Problem
from simkv.scenario.quantity import Quantity
from simkv.units import shown

MOST_VALUES = 1_000_000
"""Values of one axis."""
_LONGEST = 400
"""Characters of a range."""
_DIGITS = 6
"""Digits that a geometric value keeps where it has more."""
_PART = re.compile(r"\s*([+-]?(?:[0-9](?:_?[0-9])*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)(\s*)([^\s].*?)?\s*")
_LIKE = "write it like 0.1:1.0:0.1, 16:256:x2 or 100GiB:400GiB:100GiB"


@dataclass(frozen=True, slots=True)
class Span:
    """Everything between two ends: for samples."""

    low: Fraction
    high: Fraction
    unit: str
    """Behind the number, with its gap."""
    log: bool = False

    def at(self, share: float, whole: bool) -> str:
        """Return the value at ``share`` (0 to 1) of the way, to four digits; ``whole``: without a fraction."""
        low, high = float(self.low), float(self.high)
        value = low * (high / low) ** share if self.log else low + (high - low) * share
        rounded = float(f"{value:.4g}")
        held = min(max(rounded, low), high)
        return _written(Fraction(round(held)) if whole else Fraction(repr(held))) + self.unit


@dataclass(frozen=True, slots=True)
class _Part:
    text: str
    number: Fraction
    unit: str
    gap: str


def is_range(text: str) -> bool:
    """Say whether ``text`` reads as a range: two or three parts, the first of which is a number."""
    parts = text[:_LONGEST].split(":")
    return len(parts) > 1 and _PART.fullmatch(parts[0]) is not None


def expand(text: str, quantity: Quantity) -> tuple[str, ...] | Span:
    """Return the values of a range, or its ends where it has no step.

    Raises InputError (what and mend) for a range that is no range of ``quantity`` or has no value, or too many.
    """
    parts = text.split(":") if len(text) <= _LONGEST else []
    if not 2 <= len(parts) <= 3:
        raise _wrong("not a range", _LIKE)
    kind = _step_kind(parts[2]) if len(parts) == 3 else "none"
    measured = parts[:2] if kind in ("none", "factor", "log") else parts
    low, high, *step = _in_one_unit([_part(part) for part in measured], quantity)
    suffix = low.gap + low.unit
    if kind == "factor":
        numbers = _geometric(low.number, high.number, _factor(parts[2]), _whole(quantity))
    elif kind == "step":
        numbers = _stepped(low.number, high.number, step[0].number)
        if _whole(quantity) and step[0].number.denominator > 1:
            raise _wrong("its step is not a whole number", "write it like 16:256:16")
    else:
        if low.number >= high.number:
            raise _wrong("its end isn't above its begin", "swap the ends, or give one value")
        if kind == "log" and low.number <= 0:
            raise _wrong("begins at zero or below", "a geometric range begins above zero")
        return Span(low.number, high.number, suffix, kind == "log")
    return tuple(number + suffix for number in numbers)


def _wrong(what: str, mend: str) -> InputError:
    return InputError(Problem(what, mend))


def _step_kind(text: str) -> str:
    step = text.strip()
    if step == "log":
        return "log"
    return "factor" if step[:1] == "x" else "step"


def _part(text: str) -> _Part:
    match = _PART.fullmatch(text)
    if match is None:
        raise _wrong(
            f"{shown(text.strip())} is not a number with its unit" if text.strip() else "a part is empty", _LIKE
        )
    number, gap, unit = match.groups()
    return _Part(number, Fraction(number.replace("_", "")), re.sub(r"\s*/\s*", "/", unit or ""), gap or "")


def _in_one_unit(parts: list[_Part], quantity: Quantity) -> list[_Part]:
    """Return the parts in the smallest unit among them; raises InputError for a unit of something else."""
    dimension = units.DIMENSIONS[quantity.dimension]
    said: list[_Part] = []
    following = next((part for part in parts if part.unit), _Part("", Fraction(), "", ""))
    for part in reversed(parts):
        following = part if part.unit else following
        said.insert(0, replace(part, unit=following.unit, gap=following.gap))
    for number, part in enumerate(said):
        if number < 2 or part.unit not in dimension.units:
            _held(f"{part.text}{part.gap}{part.unit}", quantity)
        if part.unit not in dimension.units:
            raise _wrong(f"{shown(part.unit)} is no unit of {dimension.noun}", f"write it like {dimension.example}")
    factors = dimension.units
    smallest = min(said, key=lambda part: factors[part.unit])
    scale = factors[smallest.unit]
    return [
        replace(part, number=part.number * factors[part.unit] / scale, unit=smallest.unit, gap=smallest.gap)
        for part in said
    ]


def _held(text: str, quantity: Quantity) -> None:
    """Raise InputError, told of the part, where ``text`` is no value of ``quantity``."""
    try:
        quantity.parse(text)
    except PydanticCustomError as error:
        said = error.context or {}
        verb = "" if said["reason"].startswith("has") else "is "
        raise _wrong(f"{shown(text)} {verb}{said['reason']}", said["mend"]) from None


def _whole(quantity: Quantity) -> bool:
    dimension = units.DIMENSIONS[quantity.dimension]
    return dimension.integer and not dimension.base


def _stepped(low: Fraction, high: Fraction, step: Fraction) -> Iterator[str]:
    if step == 0:
        raise _wrong("its step is zero", "give a step, like 0.1:1.0:0.1")
    if low != high and (high - low) * step < 0:
        raise _wrong(
            "its step leads away from its end, so that it is empty",
            f"swap the ends, or write the step {'-' if step > 0 else ''}{_brief(abs(step))}",
        )
    count = (high - low) // step + 1
    _few(count)
    places = max(_places(low), _places(step))
    first, each = int(low * 10**places), int(step * 10**places)
    return (_decimal(first + each * number, places) for number in range(count))


def _places(number: Fraction) -> int:
    """Return how many decimals ``number``, which was written in some unit, has."""
    twos = (number.denominator & -number.denominator).bit_length() - 1
    rest, fives = number.denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        raise _wrong("its parts are in units that don't divide one another", "write them all in one unit")
    return max(twos, fives)


def _decimal(digits: int, places: int) -> str:
    """Return ``digits`` with its last ``places`` behind the point, without needless zeros."""
    if not places:
        return str(digits)
    text = str(abs(digits)).rjust(places + 1, "0")
    return f"{'-' if digits < 0 else ''}{text[:-places]}.{text[-places:]}".rstrip("0").rstrip(".")


def _factor(text: str) -> Fraction:
    match = _PART.fullmatch(text.strip()[1:])
    if match is None or match.group(3):
        raise _wrong(f"{shown(text.strip())} is not a factor", "write it like 16:256:x2")
    return Fraction(match.group(1).replace("_", ""))


def _geometric(low: Fraction, high: Fraction, factor: Fraction, whole: bool) -> Iterator[str]:
    if low <= 0 or high <= 0 or factor <= 0 or factor == 1:
        raise _wrong("a geometric range has ends above zero and a factor that isn't 1", "write it like 16:256:x2")
    if (high - low) * (factor - 1) < 0:
        raise _wrong("its factor leads away from its end, so that it is empty", "swap the ends")
    if abs(factor - 1) < Fraction(1, 10**9):
        raise _wrong("its factor is nearly 1", "take a larger one, or LOW:HIGH:log with --sample N")
    steps = _log(high / low) / _log(factor)
    _few(int(steps) + 1)
    values = []
    for number in range(int(steps) + 2):
        exact = _rounded(low, factor, number)
        if (exact > high) if factor > 1 else (exact < high):
            break
        values.append(_written(Fraction(round(exact)) if whole else exact))
    return iter(dict.fromkeys(values))


def _log(number: Fraction) -> float:
    return math.log(number.numerator) - math.log(number.denominator)


def _rounded(low: Fraction, factor: Fraction, power: int) -> Fraction:
    """Return ``low * factor ** power``, exactly while that has few digits."""
    size = power * max(factor.numerator.bit_length(), factor.denominator.bit_length())
    if size < 200:
        value = low * factor**power
        if len(_written(value)) <= 2 * _DIGITS:
            return value
    return Fraction(f"{math.exp(_log(low) + power * _log(factor)):.{_DIGITS}g}")


def _few(count: int) -> None:
    if count > MOST_VALUES:
        many = f"{count:,}" if count < 10**15 else "over 10^15"
        raise _wrong(
            f"has {many} values", f"the most is {MOST_VALUES:,}: take larger steps, or LOW:HIGH with --sample N"
        )


def _brief(number: Fraction) -> str:
    text = _written(number)
    return text if len(text) <= 30 else f"{float(number):g}"


def _written(number: Fraction) -> str:
    """Return a number as the shortest decimal text; one that has none is rounded."""
    if number.denominator == 1:
        return str(number.numerator) if abs(number) < 10**60 else f"{_float(number):g}"
    short = number.denominator.bit_length() < 200 and abs(number) < 10**60
    try:
        places = _places(number) if short else _LONGEST
    except InputError:
        places = _LONGEST
    if places > 60:
        return f"{_float(number):.12g}"
    return _decimal(int(number * 10**places), places)


def _float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
