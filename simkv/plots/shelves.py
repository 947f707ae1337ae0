"""How full the tiers are, at some moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from simkv.plots.style import FAINT, INK, PALETTE, SMALL, figure


def filled_shelves(
    names: Sequence[str], moments: Sequence[str], shares: Sequence[Sequence[float]], file: BinaryIO, form: str
) -> None:
    """Draw a group of bars a shelf, one a moment: ``shares`` of its room, by shelf and moment."""
    thick = 0.8 / len(moments)
    height = 0.8 + 0.75 * len(names)
    with figure("", file, form, (SMALL[0], min(height, SMALL[1]))) as axes:
        for row, values in enumerate(shares):
            for k, (value, moment) in enumerate(zip(values, moments, strict=True)):
                y = row + (k - (len(moments) - 1) / 2) * thick
                shade = 0.45 + 0.55 * k / max(1, len(moments) - 1)
                axes.barh(y, 100 * value, thick * 0.9, color=PALETTE[0], alpha=shade)
                axes.text(102, y, f"{moment} {value:.0%}", va="center", fontsize=8.5, color=INK)
        axes.set_yticks(range(len(names)), [name[:24] for name in names])
        axes.invert_yaxis()
        axes.set_xlim(0, 132)
        axes.set_xticks([0, 25, 50, 75, 100])
        axes.axvline(100, color=FAINT, linewidth=1.0)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("used, % of the tier's room")
