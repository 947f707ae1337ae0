"""Figures in words, for who can't see them: lines by their ends and turns, points one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

Points: TypeAlias = Sequence[tuple[float, float]]
"""(x, y), by x."""
T = TypeVar("T")
Show: TypeAlias = Callable[[float], str]

_MOST = 12
_SAME = 1e-9
"""Values that differ by less, relatively, are the same to the eye."""


def line(name: str, points: Points, show_x: Show, show_y: Show) -> str:
    """Return a line in a sentence: where it begins and ends, and its extremes where these lie between."""
    if not points:
        return ""
    (first_x, first), (last_x, last) = points[0], points[-1]
    ends = f"from {show_y(first)} at {show_x(first_x)} to {show_y(last)} at {show_x(last_x)}"
    turns = [
        f"{word} {show_y(y)} at {show_x(x)}"
        for word, (x, y) in (("least", min(points, key=_upward)), ("most", max(points, key=_upward)))
        if not _near(y, first) and not _near(y, last)
    ]
    return f"{name}: {', '.join([ends, *turns])}."


def dots(name: str, points: Points, show_x: Show, show_y: Show) -> str:
    """Return points in a sentence, each with its height; of many only some, the first and the last among them."""
    if not points:
        return ""
    kept = thinned(points, _MOST)
    some = f" ({len(kept)} of {len(points)} points)" if len(kept) < len(points) else ""
    return f"{name}{some}: {'; '.join(f'{show_y(y)} at {show_x(x)}' for x, y in kept)}."


def thinned(rows: Sequence[T], most: int) -> list[T]:
    """Return at most ``most`` of ``rows``, evenly, the first and the last among them."""
    if len(rows) <= most:
        return list(rows)
    return [rows[round(k * (len(rows) - 1) / (most - 1))] for k in range(most)]


def listed(names: Iterable[str]) -> str:
    """``a, b and c``."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _upward(point: tuple[float, float]) -> float:
    return point[1]


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * max(abs(one), abs(other))
