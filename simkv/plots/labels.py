"""Labels beside what they name: at the ends of lines, as far apart as it takes; times with their own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_LONG_SPANS = 3.0
"""A span is told in a unit that it holds so many times; below a second: once."""
_SIZE = 9.0
_GAP = 0.065
"""Of the height of the axes, between two labels."""


@dataclass(frozen=True, slots=True)
class EndLabel:
    """A text beside the right end of a line, at height ``y`` in data."""

    y: float
    text: str
    colour: str
    bold: bool = False


def label_ends(axes: Axes, labels: Sequence[EndLabel]) -> None:
    """Write ``labels`` right of the axes, apart from each other; limits of the axes must be settled."""
    axes.autoscale_view()
    ordered = sorted(labels, key=lambda one: one.y)
    places = spread([height(axes, one.y) for one in ordered], _GAP)
    for label, place in zip(ordered, places, strict=True):
        axes.annotate(
            label.text, (1.015, place), xycoords="axes fraction", va="center", ha="left", fontsize=_SIZE,
            color=label.colour, fontweight="bold" if label.bold else "normal", annotation_clip=False, parse_math=False,
        )  # fmt: skip


def height(axes: Axes, y: float) -> float:
    """Return where ``y`` is, as a share of the axes' height, kept within them."""
    shown = axes.transAxes.inverted().transform(axes.transData.transform((axes.get_xlim()[1], y)))
    return float(min(1.0, max(0.0, shown[1])))


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return rising ``places`` moved as little as it takes for ``gap`` between any two, within 0 to 1 if they fit."""
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + gap) if found else place)
    ceiling = max(1.0, gap * (len(found) - 1))
    for k in range(len(found) - 1, -1, -1):
        found[k] = min(found[k], ceiling)
        ceiling = found[k] - gap
    return found


def time_unit(span_s: float, minutes: bool = True) -> tuple[float, str]:
    """Return the seconds of a unit in which a span is told, and its name; without ``minutes``: as single times are."""
    for unit_s, name in _UNITS:
        if (minutes or name != "min") and span_s >= unit_s * (_LONG_SPANS if unit_s > 1 else 1.0):
            return unit_s, name
    return _UNITS[-1]


def tick_time(value_s: float) -> str:
    """Return a round time as an axis labels it: ``0.2`` to ``200 ms``, ``100`` to ``100 s``."""
    if value_s == 0:
        return "0"
    for unit_s, name in _UNITS[3:]:
        if abs(value_s) >= unit_s * 0.9995:
            return f"{_plain(value_s / unit_s)} {name}"
    return f"{value_s:g} s"


def _plain(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.6g}"
