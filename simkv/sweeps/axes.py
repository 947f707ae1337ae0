"""What varies: a path of the scenario and its values, as the command line or the scenario's file has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from simkv import units
from simkv.errors import InputError, Problem
from simkv.scenario.quantity import Quantity
from simkv.scenario.text import MAX_DEPTH
from simkv.sweeps.names import ALONG, Along, path_of
from simkv.sweeps.paths import quantity_at
from simkv.sweeps.ranges import MOST_VALUES, Span, expand, is_range
from simkv.units import shown

GRID = "--grid"
"""What stands in an error where the file's name would."""
_YAML = {"[": "]", "{": "}", '"': '"', "'": "'"}
_STOPS = re.compile(r"""[\[\]{}"']|\\+""")


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing that varies."""

    name: str
    """As the user wrote it: ``p``, ``tiers.dram.capacity``."""
    path: str
    values: tuple[str, ...]
    """As texts, in order; none where it is everything between two ends."""
    settings: tuple[str, ...] = ()
    """``PATH=VALUE`` of what it brings along, or takes out (``null``)."""
    only_with: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Paths that are taken out except with these of its values."""
    span: Span | None = None
    """Everything between two ends: for samples only."""
    file: str = GRID
    within: str = ""
    """Section of ``file`` in which it stands: ``sweep.grid``."""

    def assignments(self, value: str) -> tuple[str, ...]:
        """Return what is set in a scenario for ``value``."""
        return (*self.along(value), f"{self.path}={value}")

    def along(self, value: str) -> tuple[str, ...]:
        """Return what else is set, or taken out, for ``value``."""
        return (*self.settings, *(f"{path}=null" for path, values in self.only_with if value not in values))

    @property
    def place(self) -> str:
        """What errors call it."""
        return f"{self.within}.{self.name}" if self.within else self.name

    def problem(self, what: str, mend: str, value: str = "") -> Problem:
        """Return a problem with the place of this axis."""
        return Problem(what, mend, self.file, None, self.place, shown(value) if value else "")


def parse_axes(texts: Sequence[str], file: str = GRID) -> tuple[Axis, ...]:
    """Return the axes of ``--grid`` options; raises InputError with everything that is wrong."""
    return _together(partial(_of_option, text, file) for text in texts)


def section_axes(section: Mapping[str, object], file: str, within: str) -> tuple[Axis, ...]:
    """Return the axes of a section of a scenario (``sweep.grid``, ``plan.vary``); raises InputError with all faults."""
    return _together(partial(parse_axis, values, name, file, within) for name, values in section.items())


def parse_axis(values: object, name: str, file: str = GRID, within: str = "") -> Axis:
    """Return the axis ``name`` with ``values``: one text as on the command line, or a list of them.

    Raises InputError for a path that no scenario has, and for values that are no list and no range.
    """
    written = shown(values) if isinstance(values, str) else ""
    where = f"{within}.{name}" if within else name
    try:
        path = path_of(name)
        quantity = quantity_at(path)
        found = _expanded(_texts(values), quantity)
    except InputError as error:
        raise InputError(
            [replace(one, file=file, path=_brief(where), value=one.value or written) for one in error.problems]
        ) from None
    along = ALONG.get(path, Along())
    settings = (
        *(f"{other}=null" for other in along.replaces), *(f"{other}={value}" for other, value in along.implies)
    )  # fmt: skip
    span = found if isinstance(found, Span) else None
    listed = () if isinstance(found, Span) else found
    return Axis(name, path, listed, settings, along.only_with, span, file, within)


def assignments(axes: Sequence[Axis], point: Mapping[str, str]) -> tuple[str, ...]:
    """Return what is set in a scenario at ``point``: what axes bring along first, then sections before their parts."""
    of_point = [axis for axis in axes if axis.name in point]
    along = [setting for axis in of_point for setting in axis.along(point[axis.name])]
    outer_first = sorted(of_point, key=lambda axis: axis.path.count("."))
    return (*along, *(f"{axis.path}={point[axis.name]}" for axis in outer_first))


def _of_option(text: str, file: str) -> Axis:
    name, equals, values = text.partition("=")
    if not equals or not name.strip():
        mend = "write it like p=0.1:1.0:0.1 or tiers.dram.capacity=100GiB,200GiB"
        raise InputError(Problem(f"{shown(text)} is not PATH=VALUES", mend, file))
    return parse_axis(values, name.strip(), file)


def _together(makers: Iterable[Callable[[], Axis]]) -> tuple[Axis, ...]:
    """Return all axes, none twice; raises InputError with what is wrong with each."""
    axes: dict[str, Axis] = {}
    problems: list[Problem] = []
    for make in makers:
        try:
            axis = make()
        except InputError as error:
            problems += error.problems
            continue
        if axis.path in axes:
            first = axes[axis.path].name
            what = "is there twice" if first == axis.name else f"varies the same as {first}"
            problems.append(axis.problem(what, "put all of its values into one"))
        axes.setdefault(axis.path, axis)
    if problems:
        raise InputError(problems)
    return tuple(axes.values())


def _brief(text: str) -> str:
    return shown(text)[1:-1]


# ---- values -----------------------------------------------------------------------------------


def _texts(values: object) -> list[str]:
    """Return values one by one; raises InputError where there is none."""
    if isinstance(values, str):
        return _pieces(values)
    listed = values if isinstance(values, list | tuple) else [values]
    if not listed:
        raise InputError(Problem("has no value", "list some, like [0.1, 0.5], or write a range like 0.1:1.0:0.1"))
    return [_text(value) for value in listed]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, float) or (isinstance(value, int) and value.bit_length() < 1000):
        return repr(value)
    raise InputError(Problem("is no value", "write a number or a text", value=shown(value)))


def _pieces(text: str) -> list[str]:
    """Return the parts of ``text`` between commas that are outside brackets and quotes."""
    pieces: list[str] = []
    start = 0
    while start <= len(text):
        end = _end_of_piece(text, start)
        piece = text[start:end].strip()
        if not piece:
            what = "nothing is behind '='" if not text.strip() else "a value is empty"
            raise InputError(Problem(what, "list values, like 0.1,0.5, or write a range like 0.1:1.0:0.1"))
        pieces.append(piece)
        if len(pieces) > MOST_VALUES:
            raise _too_many()
        start = end + 1
    return pieces


def _too_many() -> InputError:
    return InputError(Problem(f"has more than {MOST_VALUES:,} values", "take fewer, or LOW:HIGH with --sample N"))


def _end_of_piece(text: str, start: int) -> int:
    """Return where the value that begins at ``start`` ends: at a comma outside of what it opens."""
    first = start
    while first < len(text) and text[first].isspace():
        first += 1
    behind = _closed(text, first) if text[first : first + 1] in tuple(_YAML) else first
    comma = text.find(",", behind)
    return len(text) if comma < 0 else comma


def _closed(text: str, start: int) -> int:
    """Return where what opens at ``start`` is closed; raises InputError where it isn't."""
    waiting: list[str] = []
    escaped_at = -1
    for match in _STOPS.finditer(text, start):
        mark = match.group()
        inside = waiting[-1] if waiting else ""
        if mark[0] == "\\":
            escaped_at = match.end() if inside == '"' and len(mark) % 2 else -1
        elif inside in ("'", '"'):
            if mark == inside and match.start() != escaped_at:
                waiting.pop()
        elif mark in _YAML:
            waiting.append(_YAML[mark])
        elif mark == inside:
            waiting.pop()
        else:
            break
        if not waiting:
            return match.end()
        if len(waiting) > MAX_DEPTH:
            raise InputError(Problem("is nested too deeply", f"the most is {MAX_DEPTH} brackets in one another"))
    raise InputError(Problem("a bracket or quote isn't closed", "close it, or put the value into quotes"))


def _expanded(texts: list[str], quantity: Quantity | None) -> tuple[str, ...] | Span:
    """Return all values, ranges written out; raises InputError for one that is there twice, or for too many."""
    values: list[str] = []
    for text in texts:
        found: tuple[str, ...] | Span = (text,)
        if quantity is not None and is_range(text):
            try:
                found = expand(text, quantity)
            except InputError as error:
                raise InputError([replace(one, value=shown(text)) for one in error.problems]) from None
        if isinstance(found, Span):
            if len(texts) > 1:
                raise InputError(Problem("has no step, and other values stand beside it", "give it a step", value=text))
            return found
        values.extend(found)
        if len(values) > MOST_VALUES:
            raise InputError(
                Problem(f"has more than {MOST_VALUES:,} values", "take fewer, or LOW:HIGH with --sample N")
            )
    if len(texts) > 1:
        _once(values, quantity)
    return tuple(values)


def _once(values: list[str], quantity: Quantity | None) -> None:
    """Raise InputError where two values are the same, by whatever spelling."""
    seen: dict[float | str, str] = {}
    for value in values:
        key = _canonical(value, quantity)
        if key in seen:
            what = "is there twice" if seen[key] == value else f"is the same value as {seen[key]}"
            raise InputError(Problem(what, "leave one of them out", value=shown(value)))
        seen[key] = value


def _canonical(value: str, quantity: Quantity | None) -> float | str:
    if quantity is None:
        return value
    try:
        return units.parse(value, quantity.dimension)
    except units.QuantityError:
        return value
