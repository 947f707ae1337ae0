"""An answer: the formula, the figures that went in, the steps between, the result; as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal

from simkv import units

Kind = Literal["size", "rate", "time", "tokens", "count", "number", "fraction", "flops", "text"]
Value = float | str | None
WIDTH = 100
_NARROWEST = 20


@dataclass(frozen=True, slots=True)
class Line:
    """One figure: its key in JSON (empty: in the text only), its value in SI, its name, what it measures, a remark."""

    key: str
    value: Value
    label: str
    kind: Kind
    note: str = ""

    @property
    def shown(self) -> str:
        """The value with its unit."""
        return shown(self.value, self.kind)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a calculator worked out."""

    title: str
    formula: str
    inputs: Sequence[Line]
    steps: Sequence[Line]
    result: Sequence[Line]
    more: Mapping[str, Any] = field(default_factory=dict)
    """What only JSON holds, such as tables that are lines in the text."""
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    """Not part of the text: they go to stderr."""

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain data in SI; infinite values are null."""
        figures = {line.key: _finite(line.value) for line in (*self.steps, *self.result) if line.key}
        return {
            "formula": self.formula,
            "inputs": {line.key: _finite(line.value) for line in self.inputs},
            **figures,
            **{key: _finite_inside(value) for key, value in self.more.items()},
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the answer as lines of at most ``WIDTH`` columns."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        parts = (("given", self.inputs), ("so", self.steps), ("answer", self.result))
        widths = _widths([line for _, lines in parts for line in lines])
        yield self.title
        yield from _wrapped(self.formula, "  ")
        for head, lines in parts:
            if lines:
                yield from ("", head)
            for line in lines:
                yield from _row(line, *widths)
        if self.notes:
            yield ""
        for note in self.notes:
            yield from _wrapped(note, "")


def shown(value: Value, kind: Kind) -> str:
    """Return ``value`` with its unit, for people."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else _SHOW[kind](value)


def _widths(lines: Sequence[Line]) -> tuple[int, int]:
    labels, shown = [len(line.label) for line in lines], [len(line.shown) for line in lines if line.note]
    return max(labels, default=0), max(shown, default=0)


def _row(line: Line, label_width: int, shown_width: int) -> Iterator[str]:
    row = f"  {line.label:<{label_width}}  {line.shown:<{shown_width}}"
    first, *rest = textwrap.wrap(line.note, max(_NARROWEST, WIDTH - len(row) - 2)) or [""]
    yield f"{row}  {first}".rstrip()
    yield from (f"{'':{len(row) + 2}}{part}" for part in rest)


def _wrapped(text: str, indent: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from textwrap.wrap(line, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")


def _size(value: float) -> str:
    exact = f"{value:,.0f} B"
    if abs(value) < 1024 or not isfinite(value):
        return exact
    return f"{exact} = {'-' * (value < 0)}{units.short(abs(value), 'size')}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


_SHOW: dict[Kind, Callable[[float], str]] = {
    "size": _size,
    "rate": lambda value: units.short(value, "rate"),
    "time": lambda value: units.short(value, "time"),
    "tokens": lambda value: f"{value:,.0f}",
    "count": lambda value: f"{value:,.0f}",
    "number": _number,
    "fraction": lambda value: f"{100 * value:.4g} %",
    "flops": lambda value: f"{_number(value / 1e12)} TFLOP/s",
}


def _finite(value: Value) -> Value:
    return None if isinstance(value, float) and not isfinite(value) else value


def _finite_inside(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite_inside(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite_inside(item) for item in value]
    return _finite(value)
