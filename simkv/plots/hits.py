"""Where prompt tokens come from: shares by tier under the ceiling of an infinite cache, as bars and over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import BinaryIO

from simkv.plots.labels import EndLabel, label_ends, time_unit
from simkv.plots.style import INK, NAME_CHARS, SMALL, TIER_COLOURS, clean, figure
from simkv.results.quantity import share

NAMES = {"vram": "VRAM", "dram": "DRAM", "ssd": "SSD", "miss": "computed"}
_SEEN = 0.0005
"""A part narrower than this isn't named."""
_SHOWN = 0.07
"""A part of a bar narrower than this carries no figure."""


def hit_shares(rows: Sequence[tuple[str, Mapping[str, float]]], file: BinaryIO, form: str) -> None:
    """Draw bars of shares by source (``vram dram ssd miss``, with ``ceiling``) under each other, each by its name."""
    seen = [key for key in NAMES if any(rates[key] >= _SEEN for _, rates in rows)]
    with figure("", file, form, (SMALL[0], 1.25 + 0.72 * len(rows))) as axes:
        for k, (_, rates) in enumerate(rows):
            begin = 0.0
            for key in NAMES:
                axes.barh(k, 100 * rates[key], left=100 * begin, color=TIER_COLOURS[key], height=0.5, label=_once(
                    NAMES[key], k == 0 and key in seen))  # fmt: skip
                if rates[key] >= _SHOWN:
                    axes.annotate(share(rates[key]), (100 * (begin + rates[key] / 2), k - 0.29), ha="center",
                                  va="bottom", fontsize=9.0)  # fmt: skip
                begin += rates[key]
            axes.plot([100 * rates["ceiling"]] * 2, [k - 0.25, k + 0.34], color=INK, linewidth=2.2,
                      label=_once("ceiling (infinite cache)", k == 0))  # fmt: skip
        axes.set_yticks(range(len(rows)), [clean(label, NAME_CHARS) for label, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.72)
        axes.set_xlim(0, 100)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("Prompt tokens (%)")
        axes.figure.legend(loc="outside lower center", ncols=len(seen) + 1, fontsize=9.0, handlelength=1.0,
                           columnspacing=1.0)  # fmt: skip


def _once(label: str, shown: bool) -> str:
    return label if shown else "_"


def hits_over_time(edges_s: Sequence[float], bins: Mapping[str, Sequence[float]], file: BinaryIO, form: str) -> None:
    """Draw shares of prompt tokens by tier, one on the other, and the ceiling, over when requests arrived.

    ``edges_s`` bound the spans of time that the shares are of: one more than those.
    """
    unit_s, unit = time_unit(edges_s[-1] - edges_s[0])
    edges = [one / unit_s for one in edges_s]
    with figure("", file, form, SMALL) as axes:
        below, ends = [0.0] * (len(edges) - 1), []
        for key in ("vram", "dram", "ssd"):
            if not any(bins[key]):
                continue
            top = [low + 100 * value for low, value in zip(below, bins[key], strict=True)]
            axes.stairs(top, edges, baseline=below, fill=True, color=TIER_COLOURS[key], linewidth=0)
            ends.append(EndLabel((below[-1] + top[-1]) / 2, NAMES[key], TIER_COLOURS[key]))
            below = top
        ceiling = [100 * value for value in bins["ceiling"]]
        axes.stairs(ceiling, edges, baseline=None, color=INK, linestyle=(0, (4, 2)), linewidth=1.3)
        ends.append(EndLabel(ceiling[-1], "ceiling", INK))
        axes.set_ylim(0, 100)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylabel("Prompt tokens from cache (%)")
        axes.set_xlabel(f"Arrival since the first ({unit})")
        label_ends(axes, ends)
