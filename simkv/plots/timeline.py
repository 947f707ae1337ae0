"""Lines over the time of a run, each named at its end; the warm-up is shaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from simkv.plots.labels import EndLabel, label_ends, time_unit
from simkv.plots.style import FAINT, SMALL, figure

_SHADE = 0.18


@dataclass(frozen=True, slots=True)
class Line:
    """What is drawn: a value a time; ``bold`` for the one that it is about."""

    label: str
    values: Sequence[float]
    colour: str
    bold: bool = False
    dashed: bool = False


def timeline(
    times_s: Sequence[float], lines: Sequence[Line], axis: str, top: float | None, warm_up_s: float, file: BinaryIO,
    form: str,
) -> None:  # fmt: skip
    """Draw ``lines`` over ``times_s`` into ``file`` as ``form`` (png or svg), from 0 to ``top`` (None: as they are).

    ``times_s`` are those of the values, or one more: then they are the edges of the spans that values are means of.
    """
    unit_s, unit = time_unit(times_s[-1] - times_s[0])
    where = [one / unit_s for one in times_s]
    with figure("", file, form, SMALL) as axes:
        if warm_up_s > 0:
            axes.axvspan(where[0], warm_up_s / unit_s, color=FAINT, alpha=_SHADE, linewidth=0)
            axes.annotate("warm-up", (where[0], 1.0), xycoords=("data", "axes fraction"), xytext=(1, 2),
                          textcoords="offset points", va="bottom", fontsize=9.0, color=FAINT)  # fmt: skip
        for line in sorted(lines, key=lambda one: one.bold):
            width, style = 2.6 if line.bold else 1.3, (0, (4, 2)) if line.dashed else "-"
            if len(where) == len(line.values) + 1:
                axes.stairs(line.values, where, color=line.colour, linewidth=width, linestyle=style, baseline=None)
            else:
                axes.plot(where, line.values, color=line.colour, linewidth=width, linestyle=style)
        axes.set_xlim(where[0], where[-1])
        axes.set_ylim(0, top or 1.08 * max(max(line.values) for line in lines) or None)
        axes.set_xlabel(f"Time since the first arrival ({unit})")
        axes.set_ylabel(axis)
        label_ends(axes, [EndLabel(line.values[-1], line.label, line.colour, line.bold) for line in lines])
