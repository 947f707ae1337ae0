"""Runs side by side: figures as multiples with their intervals, distributions on each other, parts of a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from simkv.plots.style import FAINT, INK, MARKERS, PALETTE, figure

_HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")
_ROOM = 0.04
_LABEL_CHARS = 26
_MOST_POINTS = 400
_BOX = {"facecolor": "white", "alpha": 0.85, "pad": 1.2, "linewidth": 0}


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
            axes.plot([], [], linestyle="", marker=MARKERS[number % len(MARKERS)], label=_short(run),
                      color=PALETTE[(number + 1) % len(PALETTE)])  # fmt: skip
        axes.set_xscale("log")
        _times(axes)
        axes.set_yticks(range(len(labels)), labels=labels[::-1])
        axes.set_ylim(-0.7, len(labels) - 0.3)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("Times the first run (logarithmic)")
        if len(runs) > 1:
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(3, len(runs)))


def _times(axes: object) -> None:
    from matplotlib.axes import Axes
    from matplotlib.ticker import FixedLocator, NullLocator

    assert isinstance(axes, Axes)
    low, high = axes.get_xlim()
    steps = [a * 10.0**k for k in range(-6, 7) for a in (1, 2, 5)]
    if high / low < 8:
        steps = [
            0.5,
            0.6,
            0.7,
            0.8,
            0.9,
            1.0,
            1.1,
            1.2,
            1.4,
            1.6,
            2.0,
            2.5,
            3.0,
            *(s for s in steps if s < 0.5 or s > 3),
        ]
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
    with figure("", file, form, (5.6, 3.6)) as axes:
        for number, (run, values) in enumerate(runs.items()):
            shown, shares = cumulative(values)
            axes.plot(shown, [100 * share for share in shares], color=PALETTE[number % len(PALETTE)],
                      linestyle=("-", "--", "-.", ":")[number % 4], label=_short(run))  # fmt: skip
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: _seconds(value))
        axes.set_ylim(0, 101)
        axes.set_xlabel(f"{label} (logarithmic)")
        axes.set_ylabel("Requests at or below (%)")
        axes.legend(loc="lower right")


def cumulative(values: NDArray[np.float64]) -> tuple[list[float], list[float]]:
    """Return at most 400 quantiles of the positive ``values`` and the share of them at or below each."""
    known = np.sort(values[np.isfinite(values) & (values > 0)])
    if not len(known):
        return [], []
    rows = np.unique(np.linspace(0, len(known) - 1, min(_MOST_POINTS, len(known))).round().astype(int))
    return known[rows].tolist(), ((rows + 1) / len(known)).tolist()


def stacks(runs: Mapping[str, Mapping[str, float]], unit: str, file: BinaryIO, form: str, decimals: int = 0) -> None:
    """Draw a bar a run of its parts, in ``unit``; parts that no run has aren't named."""
    parts = [part for part in dict.fromkeys(p for each in runs.values() for p in each)
             if any(each.get(part) for each in runs.values())]  # fmt: skip
    most = max((sum(each.values()) for each in runs.values()), default=0.0) or 1.0
    with figure("", file, form, (5.8, 1.3 + 0.45 * len(runs))) as axes:
        for row, each in enumerate(runs.values()):
            left = 0.0
            for number, part in enumerate(parts):
                value = each.get(part, 0.0)
                axes.barh(len(runs) - 1 - row, value, left=left, height=0.62, color=PALETTE[number % len(PALETTE)],
                          hatch=_HATCHES[number % len(_HATCHES)], edgecolor="white", linewidth=0.4,
                          label=part if not row else None)  # fmt: skip
                if value > 0.09 * most:
                    axes.text(left + value / 2, len(runs) - 1 - row, f"{value:.{decimals}f}", ha="center",
                              va="center", color=INK, bbox=_BOX)  # fmt: skip
                left += value
        axes.set_yticks(range(len(runs)), labels=[_short(run) for run in list(runs)[::-1]])
        axes.grid(axis="y", visible=False)
        axes.set_xlim(0, most * (1 + _ROOM))
        axes.set_xlabel(unit)
        axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=4, handlelength=1.4, columnspacing=1.0)


def _seconds(value: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= unit * 0.999:
            return f"{value / unit:g} {name}"
    return f"{value:g} s"


def _short(text: str) -> str:
    plain = "".join(c if c.isprintable() else " " for c in text).replace("$", r"\$")
    return plain if len(plain) <= _LABEL_CHARS else plain[: _LABEL_CHARS - 1] + "…"
