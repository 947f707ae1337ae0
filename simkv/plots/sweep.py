"""The settings of a sweep: a metric over an axis, over two as a map, over all of them as dots, and the Pareto front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan, log10, sqrt
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np

from simkv.plots.labels import EndLabel, label_ends
from simkv.plots.style import FAINT, INK, MARKERS, PALETTE, SMALL, clean, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize

_LOGARITHMIC_FROM = 30.0
_LOGARITHMIC_UP = 15.0
_LOW_HALF = 0.3
_CHAR = 0.02
"""Width of a letter, as a share of the axis."""
_LONGEST_TICK = 14
_WRITTEN_CELLS, _WRITTEN_COLUMNS = 60, 7
_MOST_ROWS = 16
_DARK = 0.5
_ON_DARK, _ON_LIGHT = "#F7F7F7", "#101010"
"""Of letters on a map, whose own colours don't follow those of a page."""
_ROOM = 1.08
_DECADES = 300.0
_MARGIN = 0.1
_STYLES = ("-", "--", "-.", ":")


@dataclass(frozen=True, slots=True)
class Along:
    """An axis of the sweep: its name, and where each of its values stands."""

    name: str
    places: Sequence[float]
    ticks: Sequence[str]
    measured: bool
    """Its values have distances; others stand side by side."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A metric: what its axis is called, and how its ticks read."""

    label: str
    tick: Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Line:
    """A metric along an axis; ``halves``: of the intervals, 0 where there is none."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    halves: Sequence[float]


@dataclass(frozen=True, slots=True)
class Spot:
    """A setting by two metrics; ``best``: on the front."""

    x: float
    y: float
    name: str
    best: bool


def lines(along: Along, shown: Sequence[Line], scale: Scale, by: str, file: BinaryIO, form: str) -> None:
    """Draw a metric along one axis, a line for each value of the axis ``by`` (empty: there is one line)."""
    with figure("", file, form, SMALL) as axes:
        ends = []
        for k, line in enumerate(shown):
            colour = PALETTE[k % len(PALETTE)]
            axes.errorbar(
                line.xs, line.ys, yerr=line.halves if any(line.halves) else None, color=colour, capsize=3,
                marker=MARKERS[k % len(MARKERS)], elinewidth=1.2,
                linestyle=_STYLES[k // len(PALETTE) % len(_STYLES)] if along.measured else "",
            )  # fmt: skip
            ends.append(EndLabel(line.ys[-1], clean(line.name, _LONGEST_TICK), colour))
        _across(axes, along)
        tops = [y + half for line in shown for y, half in zip(line.ys, line.halves, strict=True)]
        _upward(axes, scale, [*tops, *(y for line in shown for y in line.ys)])
        if by:
            label_ends(axes, ends)
            axes.annotate(f"{clean(by)}:", (1.0, 1.02), xycoords="axes fraction", ha="right", va="bottom", fontsize=9.0)


def dots(along: Along, xs: Sequence[float], ys: Sequence[float], scale: Scale, file: BinaryIO, form: str) -> None:
    """Draw every setting as a dot over one axis, whatever the others are."""
    with figure("", file, form, SMALL) as axes:
        axes.plot(xs, ys, linestyle="", marker="o", color=PALETTE[0], alpha=0.6)
        _across(axes, along)
        _upward(axes, scale, ys)


def chart(
    across: Along, up: Along, values: Sequence[Sequence[float]], scale: Scale, file: BinaryIO, form: str
) -> None:  # fmt: skip
    """Draw a metric over two axes as a map, a row a value of ``up``; nan: no such setting is there."""
    with figure("", file, form, SMALL) as axes:
        known = [value for row in values for value in row if not isnan(value)]
        picture = axes.imshow(values, aspect="auto", origin="lower", cmap="cividis", norm=_norm(known))
        page = axes.get_figure(root=True)
        assert page is not None, "axes are on a page"
        bar = page.colorbar(picture, ax=axes, label=scale.label)
        bar.ax.yaxis.set_major_formatter(lambda value, _: scale.tick(value))
        bar.ax.yaxis.set_minor_formatter(lambda value, _: "")
        if len(known) <= _WRITTEN_CELLS and len(across.ticks) <= _WRITTEN_COLUMNS:
            _write(axes, values, scale, picture.to_rgba(np.array(values)))
        ticks = [clean(tick, _LONGEST_TICK) for tick in across.ticks]
        kept = _kept(range(len(ticks)), ticks, False)
        axes.set_xticks(kept, [ticks[k] for k in kept])
        every = -(-len(up.ticks) // _MOST_ROWS)
        rows = range(0, len(up.ticks), every)
        axes.set_yticks(rows, [clean(up.ticks[k], _LONGEST_TICK) for k in rows])
        axes.set_xlabel(clean(across.name))
        axes.set_ylabel(clean(up.name))
        axes.grid(visible=False)


def _write(axes: Axes, values: Sequence[Sequence[float]], scale: Scale, colours: Any) -> None:
    """Write each value into its cell, light on dark."""
    for row, cells in enumerate(values):
        for column, value in enumerate(cells):
            if not isnan(value):
                red, green, blue, _ = colours[row][column]
                ink = _ON_DARK if 0.3 * red + 0.59 * green + 0.11 * blue < _DARK else _ON_LIGHT
                axes.text(
                    column, row, scale.tick(float(f"{value:.3g}")), ha="center", va="center", fontsize=7.5, color=ink
                )


def front(spots: Sequence[Spot], x: Scale, y: Scale, file: BinaryIO, form: str) -> None:
    """Draw every setting by two metrics, those that nothing beats in colour and with their names."""
    with figure("", file, form, SMALL) as axes:
        for best, colour, marker in ((False, FAINT, "o"), (True, PALETTE[1], "D")):
            own = [spot for spot in spots if spot.best is best]
            axes.plot([s.x for s in own], [s.y for s in own], linestyle="", marker=marker, color=colour)
        _spread(axes, "x", x, [spot.x for spot in spots])
        _spread(axes, "y", y, [spot.y for spot in spots])
        for spot in spots:
            axes.annotate(clean(spot.name), (spot.x, spot.y), xytext=(6, 4), textcoords="offset points", color=INK)


def _norm(values: Sequence[float]) -> Normalize:
    from matplotlib.colors import LogNorm, Normalize

    low, high = min(values), max(values)
    return LogNorm(low, high) if low > 0 and high >= _LOGARITHMIC_UP * low else Normalize(low, high)


def _across(axes: Axes, along: Along) -> None:
    """Label the axis along which values stand; those without room stay without a label."""
    places = along.places
    if along.measured and _geometric(places):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
    ticks = [clean(tick, _LONGEST_TICK) for tick in along.ticks]
    kept = _kept(places, ticks, axes.get_xscale() == "log")
    axes.set_xticks([places[k] for k in kept], [ticks[k] for k in kept])
    axes.set_xlabel(clean(along.name, 60) + (" (logarithmic)" if axes.get_xscale() == "log" else ""))


def _geometric(places: Sequence[float]) -> bool:
    """Say whether values are of several magnitudes, and not most of them of the largest."""
    if min(places) <= 0 or max(places) < _LOGARITHMIC_FROM * min(places):
        return False
    below = sum(place < sqrt(min(places) * max(places)) for place in places)
    return below >= _LOW_HALF * len(places)


def _kept(places: Sequence[float], ticks: Sequence[str], logarithmic: bool) -> list[int]:
    """Return which ticks have room for their texts, from the first on."""
    at = [log10(place) if logarithmic else place for place in places]
    span = (max(at) - min(at)) or 1.0
    kept: list[int] = []
    for k in sorted(range(len(at)), key=lambda k: at[k]):
        room = _CHAR * (len(ticks[k]) + len(ticks[kept[-1]])) / 2 + 0.02 if kept else 0.0
        if not kept or (at[k] - at[kept[-1]]) / span >= room:
            kept.append(k)
    return kept


def _upward(axes: Axes, scale: Scale, values: Sequence[float]) -> None:
    """Scale the upward axis from 0 on, unless its values are of several magnitudes or below 0."""
    if _of_magnitudes(values) or min(values) < 0:
        _spread(axes, "y", scale, values)
        return
    axes.set_ylim(0, _ROOM * max(values) or 1.0)
    axes.yaxis.set_major_formatter(lambda value, _: scale.tick(value))
    axes.set_ylabel(scale.label)


def _of_magnitudes(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) >= _LOGARITHMIC_UP * min(values)


def _spread(axes: Axes, which: Literal["x", "y"], scale: Scale, values: Sequence[float]) -> None:
    """Scale an axis so that its values fill it, logarithmic where they are of several magnitudes."""
    from matplotlib.ticker import LogLocator

    axis = axes.yaxis if which == "y" else axes.xaxis
    label = scale.label
    axes.margins(_MARGIN)
    if _of_magnitudes(values):
        (axes.set_yscale if which == "y" else axes.set_xscale)("log")
        few = max(values) < _DECADES * min(values)
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
        axis.set_minor_formatter(lambda value, _: "")
        label = f"{label} (logarithmic)"
    axis.set_major_formatter(lambda value, _: scale.tick(value))
    axis.set_label_text(label)
