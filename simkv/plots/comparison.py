"""Runs side by side: figures as multiples with their intervals, distributions on each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from simkv.plots.labels import tick_time
from simkv.plots.style import FAINT, MARKERS, NAME_CHARS, PALETTE, SMALL, clean, figure, label_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NEAR = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6, 2.0, 2.5, 3.0)
"""Where the axis has ticks that doesn't reach far."""
_MOST_POINTS = 400


@dataclass(frozen=True, slots=True)
class Multiple:
    """One figure of one run, over the same figure of the first run."""

    ratio: float
    low: float | None
    high: float | None
    noise: bool


def multiples(rows: Mapping[str, Sequence[Multiple | None]], runs: Sequence[str], file: BinaryIO, form: str) -> None:
    """Draw a row a figure, a mark a run; hollow: noise. ``runs``: those after the first, in the order of the marks."""
    labels = list(rows)
    with figure("", file, form, (5.8, 1.0 + 0.3 * len(labels))) as axes:
        axes.axvline(1.0, color=FAINT)
        for number, run in enumerate(runs):
            shift = (number - (len(runs) - 1) / 2) * 0.6 / max(1, len(runs))
            for k, label in enumerate(labels):
                one = rows[label][number]
                if one is None or one.ratio <= 0:
                    continue
                colour, height = PALETTE[(number + 1) % len(PALETTE)], len(labels) - 1 - k - shift
                if one.low is not None and one.high is not None:
                    low = max(one.low, one.ratio / 100)
                    axes.plot([low, one.high], [height, height], color=colour, linewidth=1.4)
                axes.plot(one.ratio, height, linestyle="", marker=MARKERS[number % len(MARKERS)], color=colour,
                          fillstyle="none" if one.noise else "full", markersize=6.0)  # fmt: skip
            axes.plot([], [], linestyle="", marker=MARKERS[number % len(MARKERS)], label=clean(run, NAME_CHARS),
                      color=PALETTE[(number + 1) % len(PALETTE)])  # fmt: skip
        axes.set_xscale("log")
        _times(axes)
        axes.set_yticks(range(len(labels)), labels=labels[::-1])
        axes.set_ylim(-0.7, len(labels) - 0.3)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("Times the first run (logarithmic)")
        if len(runs) > 1:
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(3, len(runs)))


def _times(axes: Axes) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    low, high = axes.get_xlim()
    steps = [a * 10.0**k for k in range(-6, 7) for a in (1, 2, 5)]
    if high / low < 8:
        steps = [*_NEAR, *(step for step in steps if not _NEAR[0] <= step <= _NEAR[-1])]
    shown = [step for step in sorted(set(steps)) if low <= step <= high]
    while len(shown) > 7:
        shown = (
            [step for k, step in enumerate(shown) if (k - shown.index(1.0)) % 2 == 0] if 1.0 in shown else shown[::2]
        )
    axes.xaxis.set_major_locator(FixedLocator(shown or [1.0]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")


def distributions(runs: Mapping[str, NDArray[np.float64]], label: str, file: BinaryIO, form: str) -> None:
    """Draw the share of requests at or below each value, a line a run, over a logarithmic axis in seconds."""
    with figure("", file, form, SMALL) as axes:
        for number, (run, values) in enumerate(runs.items()):
            shown, shares = cumulative(values)
            axes.plot(shown, [100 * share for share in shares], color=PALETTE[number % len(PALETTE)],
                      linestyle=("-", "--", "-.", ":")[number % 4], label=clean(run, NAME_CHARS))  # fmt: skip
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: tick_time(value))
        axes.set_ylim(0, 101)
        axes.set_xlabel(f"{label} (logarithmic)")
        axes.set_ylabel("Requests at or below (%)")
        label_below(axes)


def cumulative(values: NDArray[np.float64]) -> tuple[list[float], list[float]]:
    """Return at most 400 quantiles of the positive ``values``, and the share of all finite ones at or below each."""
    finite = np.sort(values[np.isfinite(values)])
    known = finite[finite > 0]
    if not len(known):
        return [], []
    rows = np.unique(np.linspace(0, len(known) - 1, min(_MOST_POINTS, len(known))).round().astype(int))
    return known[rows].tolist(), ((rows + 1 + len(finite) - len(known)) / len(finite)).tolist()
