"""Cells and phrases that the sections of a run share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simkv.report.document import Cell
from simkv.results.quantity import MISSING, count, data, digits, seconds, share

QUANTILES: Mapping[str, float] = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
"""Those of every distribution in a summary, with the share of values that they are above."""

_ROUNDING = 1e-9
"""Of a mean: half widths below are those of numbers that are all the same."""


def cell(value: float | None, show: Callable[[float], str]) -> Cell:
    """Return a number as a cell; its text only where there is none."""
    return Cell(MISSING) if value is None else Cell(show(value), value)


def time(value_s: float | None) -> Cell:
    """Return seconds as a cell."""
    return cell(value_s, seconds)


def part(value: float | None) -> Cell:
    """Return a share as a cell."""
    return cell(value, share)


def size(value_bytes: float | None) -> Cell:
    """Return bytes as a cell."""
    return cell(value_bytes, data)


def number(value: float | None) -> Cell:
    """Return a count or a ratio as a cell."""
    return cell(value, lambda one: count(one) if float(one).is_integer() else digits(one))


def half_width_s(values: Mapping[str, Any]) -> float | None:
    """Return the half width of a distribution's interval; None where there is none."""
    if not values["ci95"]:
        return None
    half = float(values["ci95"][1] - values["mean"])
    return half if half > _ROUNDING * abs(values["mean"]) else 0.0


def mean_text(values: Mapping[str, Any]) -> str:
    """Return ``102 ms ± 8.45 ms``; without what is ± nothing."""
    half = half_width_s(values)
    return seconds(values["mean"]) if not half else f"{seconds(values['mean'])} ± {seconds(half)}"


def interval_text(ends: Sequence[float] | None) -> str:
    """Return ``[-526 ms, -326 ms]``; nothing where there is no interval."""
    return f"[{seconds(ends[0])}, {seconds(ends[1])}]" if ends else ""


def difference_text(difference: Mapping[str, Any]) -> str:
    """Return a difference with its interval: ``-426 ms [-526 ms, -326 ms]``."""
    return f"{seconds(difference['mean'])} {interval_text(difference['ci95'])}".rstrip()


def capital(text: str) -> str:
    """Return ``text`` with its first letter large."""
    return text[:1].upper() + text[1:]
