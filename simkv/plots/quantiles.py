"""Latencies over the share of requests that are faster: the tail has as much room as the middle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from simkv.plots.labels import EndLabel, label_ends, tick_time
from simkv.plots.style import INK, MARKERS, SMALL, figure
from simkv.results.quantity import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]
"""A share from 0 to 1 (below 1), and the seconds that so many stay within."""
_TICKS = (0.0, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)
_NAMED = (0.5, 0.95, 0.99)
_ROOM = 0.55
"""Right of the slowest, for the text at p99."""
_MARGINS = (0.13, 0.06)
"""Of the logarithmic range, below and above."""
_LINEAR_BELOW = 4.0
"""Where the slowest takes less than so many times the fastest, the axis isn't logarithmic."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One distribution; ``sparse``: only some of its quantiles are known, and each is marked."""

    label: str
    points: Sequence[Point]
    colour: str
    sparse: bool = False
    named: bool = False
    """The one that it is about: its p50, p95 and p99 are written beside it, and its line is whole."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A target: so many of the requests within so many seconds; no share: all of them."""

    label: str
    limit_s: float
    share: float | None = None


def quantiles(curves: Sequence[Curve], limits: Sequence[Limit], name: str, file: BinaryIO, form: str) -> None:
    """Draw ``curves`` of latency ``name`` and what they are held to into ``file`` as ``form`` (png or svg)."""
    with figure("", file, form, SMALL) as axes:
        shown = [(curve, [(tail(q), s) for q, s in curve.points if s > 0]) for curve in curves]
        for k, (curve, points) in enumerate(shown):
            look: dict[str, Any] = {"marker": MARKERS[k % len(MARKERS)]} if curve.sparse else {}
            look |= {} if curve.named else {"linestyle": "--"}
            axes.plot([x for x, _ in points], [y for _, y in points], color=curve.colour, **look)
        logarithmic = _upward(axes, [y for _, points in shown for _, y in points], limits)
        _shares(axes, max(x for _, points in shown for x, _ in points))
        for curve, points in shown:
            if curve.named:
                _name_points(axes, points, curve.colour)
        ends = [EndLabel(points[-1][1], curve.label, curve.colour) for curve, points in shown if points]
        ends += [_limit(axes, one) for one in limits]
        axes.set_ylabel(f"{name} (logarithmic)" if logarithmic else name)
        label_ends(axes, ends)


def tail(share: float) -> float:
    """Return where a share lies on the axis: 0.9 at 1, 0.99 at 2, 0.999 at 3."""
    return -math.log10(1.0 - min(share, 1 - 1e-9))


def _shares(axes: Axes, last: float) -> None:
    ticks = [share for share in _TICKS if tail(share) <= max(last, 1.4)]
    axes.set_xticks([tail(share) for share in ticks], [f"{100 * share:.10g}" for share in ticks])
    axes.set_xlim(0, last + _ROOM if last < tail(_NAMED[-1]) + _ROOM else last * 1.01)
    axes.set_xlabel("Share that is faster (%)")


def _upward(axes: Axes, values: Sequence[float], limits: Sequence[Limit]) -> bool:
    """Choose the upward axis so that values and nearby limits are seen; return whether it is logarithmic."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = min(values), max([*values, *(one.limit_s for one in limits)])
    logarithmic = high >= _LINEAR_BELOW * low
    ticks = FuncFormatter(lambda value, _: tick_time(value))
    if not logarithmic:
        axes.yaxis.set_major_formatter(ticks)
        axes.set_ylim(0, 1.08 * high)
        return False
    axes.set_yscale("log")
    decades = math.log10(high / low)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.2 else (1.0,)))
    axes.yaxis.set_major_formatter(ticks)
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(low * 10 ** (-_MARGINS[0] * decades), high * 10 ** (_MARGINS[1] * decades))
    return True


def _name_points(axes: Axes, points: Sequence[Point], colour: str) -> None:
    """Write p50, p95 and p99 under the line, where it reaches so far."""
    for share in _NAMED:
        near = [(x, y) for x, y in points if abs(x - tail(share)) < 1e-6]
        if not near:
            continue
        x, y = near[0]
        axes.plot([x], [y], marker="o", color=colour, markersize=5)
        axes.annotate(
            f"p{100 * share:.0f} {seconds(y)}", (x, y), xytext=(4, -5), textcoords="offset points", va="top",
            ha="left", fontsize=9.0,
        )  # fmt: skip


def _limit(axes: Axes, limit: Limit) -> EndLabel:
    axes.axhline(limit.limit_s, color=INK, linestyle=(0, (4, 3)), linewidth=1.2)
    if limit.share is not None and tail(limit.share) <= axes.get_xlim()[1]:
        axes.plot([tail(limit.share)], [limit.limit_s], marker="v", color=INK, markersize=7)
    return EndLabel(limit.limit_s, limit.label, INK)
