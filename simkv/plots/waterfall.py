"""Where time goes: one part after the other as a staircase, and whole times beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from simkv.plots.labels import time_unit
from simkv.plots.style import FAINT, INK, NAME_CHARS, PALETTE, SMALL, clean, figure
from simkv.results.quantity import seconds, share

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

PART_COLOURS: Mapping[str, str] = {
    "queue": FAINT, "load DRAM": PALETTE[2], "load SSD": PALETTE[4], "prefill": PALETTE[3], "decode": PALETTE[5],
    "recompute": PALETTE[1], "preempted": PALETTE[0], "decode or preempted": PALETTE[5], "computing": PALETTE[5],
    "waiting for loads": PALETTE[6], "waiting for write-backs": PALETTE[7], "waiting for the CPU": PALETTE[1],
    "computing slowed": PALETTE[4],
}  # fmt: skip
"""Neighbours are told apart in light and in dark: blue never lies beside light blue."""
_SEEN = 0.0005
"""Parts of less than this of the whole aren't drawn beside others."""
_ROOM = 1.38
"""Times the longest bar: how far the axis goes, so that a label fits behind it."""
_LETTERS = 75
"""That fit beside each other in a legend."""
_WIDTH = SMALL[0]
_BAR_INCHES, _MARGIN_INCHES = 0.36, 1.0


@dataclass(frozen=True, slots=True)
class Whole:
    """A time and what it is made of: ``parts`` sum to it, in the order in which they follow each other."""

    label: str
    parts: Sequence[tuple[str, float]]

    @property
    def total_s(self) -> float:
        """Return the sum of the parts."""
        return sum(value for _, value in self.parts)


def waterfall(whole: Whole, axis: str, file: BinaryIO, form: str) -> None:
    """Draw the parts of ``whole`` as steps down a staircase, and their sum, into ``file`` (png or svg)."""
    rows = [(name, value) for name, value in whole.parts if value > 0]
    unit_s, unit = time_unit(whole.total_s, minutes=False)
    with figure("", file, form, (_WIDTH, _MARGIN_INCHES + _BAR_INCHES * (len(rows) + 1))) as axes:
        begin = 0.0
        for k, (name, value) in enumerate(rows):
            axes.barh(k, value / unit_s, left=begin / unit_s, color=PART_COLOURS[name], height=0.66)
            _beside(axes, (begin + value) / unit_s, k, f"{seconds(value)} ({share(value / whole.total_s)})")
            begin += value
            axes.plot([begin / unit_s] * 2, [k + 0.33, k + 0.67], color=FAINT, linewidth=0.8)
        axes.barh(len(rows), whole.total_s / unit_s, color=INK, height=0.66)
        _beside(axes, whole.total_s / unit_s, len(rows), seconds(whole.total_s), bold=True)
        _rows(axes, [*(name for name, _ in rows), whole.label], whole.total_s / unit_s)
        axes.set_xlabel(f"{axis} ({unit})")


def beside(wholes: Sequence[Whole], axis: str, file: BinaryIO, form: str) -> None:
    """Draw ``wholes`` as bars under each other on one scale, with their parts in their colours."""
    longest = max(whole.total_s for whole in wholes)
    unit_s, unit = time_unit(longest, minutes=False)
    seen = parts_seen(wholes)
    with figure("", file, form, (_WIDTH, _MARGIN_INCHES + 0.45 + 1.45 * _BAR_INCHES * len(wholes))) as axes:
        for k, whole in enumerate(wholes):
            begin = 0.0
            for name, value in whole.parts:
                label = name if name in seen and k == 0 else "_"
                axes.barh(k, value / unit_s, left=begin / unit_s, color=PART_COLOURS[name], height=0.62, label=label)
                begin += value
            _beside(axes, begin / unit_s, k, seconds(whole.total_s), bold=True)
        _rows(axes, [clean(whole.label, NAME_CHARS) for whole in wholes], longest / unit_s, 1.2)
        axes.set_xlabel(f"{axis} ({unit})")
        axes.figure.legend(handles=_handles(seen), loc="outside lower center", ncols=_columns(seen), fontsize=9.0,
                           handlelength=1.0, columnspacing=1.2)  # fmt: skip


def parts_seen(wholes: Sequence[Whole]) -> list[str]:
    """Return the parts that are wide enough to be seen in any of the bars, in order."""
    longest = max(whole.total_s for whole in wholes)
    names = dict.fromkeys(name for whole in wholes for name, _ in whole.parts)
    most = {name: max(dict(whole.parts).get(name, 0.0) for whole in wholes) for name in names}
    return [name for name in names if most[name] > _SEEN * longest]


def _columns(names: Sequence[str]) -> int:
    """Return how many names fit beside each other."""
    fit = next((k for k in range(len(names), 1, -1) if k * max(len(name) + 5 for name in names) <= _LETTERS), 1)
    return min(len(names), fit)


def _handles(names: Sequence[str]) -> list[Artist]:
    from matplotlib.patches import Patch

    return [Patch(color=PART_COLOURS[name], label=name) for name in names]


def _beside(axes: Axes, x: float, row: int, text: str, bold: bool = False) -> None:
    axes.annotate(text, (x, row), xytext=(4, 0), textcoords="offset points", va="center", ha="left", fontsize=9.0,
                  fontweight="bold" if bold else "normal")  # fmt: skip


def _rows(axes: Axes, labels: Sequence[str], longest: float, room: float = _ROOM) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.set_xlim(0, longest * room)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
