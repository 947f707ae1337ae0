"""The points of a sweep: a metric over an axis, and one metric against another with what nothing beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from simkv.plots.style import FAINT, MARKERS, PALETTE, SMALL, figure, label_below


@dataclass(frozen=True, slots=True)
class Place:
    """A metric at one value of the axis, with half its interval where it has one."""

    at: float
    value: float
    half: float | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """What is drawn along: its label, and the names of its values where they are no plain numbers."""

    label: str
    ticks: Mapping[float, str]
    words: bool = False
    """Its values have no distance: nothing lies between them."""


def over_axis(axis: Axis, lines: Mapping[str, Sequence[Place]], metric: str, file: BinaryIO, form: str) -> None:
    """Draw ``metric`` over ``axis`` into ``file``: a line for each combination of what else varies, by its name."""
    least = min(one.value for line in lines.values() for one in line)
    with figure("", file, form, SMALL) as axes:
        for k, (name, line) in enumerate(lines.items()):
            halves = [one.half or 0.0 for one in line]
            axes.errorbar(
                [one.at for one in line], [one.value for one in line], yerr=halves if any(halves) else None,
                color=PALETTE[k % len(PALETTE)], marker=MARKERS[k % len(MARKERS)], capsize=3, label=name,
                linestyle="" if axis.words else "-",
            )  # fmt: skip
        if axis.ticks:
            axes.set_xticks(list(axis.ticks), list(axis.ticks.values()))
        axes.set_xlabel(axis.label)
        axes.set_ylabel(metric)
        axes.set_ylim(bottom=0 if least >= 0 else None)
        if len(lines) > 1:
            label_below(axes, columns=1)


def against(
    beaten: Sequence[tuple[float, float]], front: Sequence[tuple[float, float]], labels: tuple[str, str],
    file: BinaryIO, form: str,
) -> None:  # fmt: skip
    """Draw points as (x, y) into ``file``: those that others beat, and a line through those that none does."""
    with figure("", file, form, SMALL) as axes:
        axes.plot([x for x, _ in beaten], [y for _, y in beaten], linestyle="", marker="o", color=FAINT)
        axes.plot([x for x, _ in front], [y for _, y in front], color=PALETTE[0], marker="o")
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
