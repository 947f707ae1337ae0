"""What a plan found: cost against latency with the front, and what more of each resource would buy."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, log10
from typing import Any, BinaryIO

from simkv.plots.style import FAINT, INK, MARKERS, PALETTE, figure, label_side

_BAR = 0.36


def cost_against_latency(answer: dict[str, Any], title: str, file: BinaryIO, form: str) -> None:
    """Draw the candidates of ``answer`` (of ``simkv plan --json``) and their Pareto front into ``file``.

    A candidate is at what a million output tokens cost, or an hour where there is no such figure, and at the first
    latency that the SLO names; whoever has neither isn't drawn, nor who didn't hold the SLO when it was confirmed.
    """
    target, limit = next(iter(answer["slo"]["limits"].items()))
    rows = [row for row in answer["candidates"] if _cost(row) is not None and row["latency"].get(target) is not None]
    rows = [row for row in rows if row["confirmed"] is None or row["confirmed"]["holds"]]
    with figure(title, file, form) as axes:
        for k, unit in enumerate(dict.fromkeys(row["unit"]["name"] for row in rows)):
            own = [row for row in rows if row["unit"]["name"] == unit]
            look: Any = {"marker": MARKERS[k % len(MARKERS)], "color": PALETTE[k % len(PALETTE)]}
            where = [_cost(row) or 0.0 for row in own], [row["latency"][target] for row in own]
            axes.plot(*where, linestyle="", alpha=0.8, label=unit, **look)
        _front(axes, [row for row in rows if row["name"] in answer["pareto_names"]], target)
        _winner(axes, answer, target)
        axes.axhline(limit, color=FAINT, linestyle=(0, (4, 3)), label=f"SLO {target}")
        axes.set_yscale("log")
        axes.set_xscale("log")
        axes.set_xlabel(_cost_label(rows, answer))
        axes.set_ylabel(f"{target.replace('_', ' ')} at the planned load (s, logarithmic)")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:.6g}")
            axis.set_minor_formatter(_minor(*axis.get_view_interval()))
        label_side(axes)


def _minor(least: float, most: float) -> Callable[[float, float], str]:
    """Return what labels the ticks between powers of ten; on an axis that few round figures lie on, all of them."""
    low, high = floor(log10(least)), ceil(log10(most))
    round_ones = [digit * 10.0**power for power in range(low, high + 1) for digit in (1, 2, 3, 5)]
    all_of_them = sum(least <= one <= most for one in round_ones) < 2
    return lambda value, _: f"{value:.6g}" if all_of_them or f"{value:e}"[0] in "235" else ""


def _cost(row: dict[str, Any]) -> float | None:
    million = row["cost_per_million_output_tokens"]
    found: float | None = million if million is not None else row["cost_per_hour"]
    return found


def _cost_label(rows: list[dict[str, Any]], answer: dict[str, Any]) -> str:
    currency = answer["currency"] or ""
    if rows and rows[0]["cost_per_million_output_tokens"] is not None:
        return f"Cost ({currency} per million output tokens, logarithmic)"
    return f"Cost ({currency} an hour, logarithmic)"


def _front(axes: Any, rows: list[dict[str, Any]], target: str) -> None:
    where = [_cost(row) for row in rows], [row["latency"][target] for row in rows]
    axes.plot(*where, color=INK, marker=".", markersize=3, linestyle="", label="Pareto front") if rows else None


def _winner(axes: Any, answer: dict[str, Any], target: str) -> None:
    winner = answer["winner"]
    if winner is None or _cost(winner) is None or winner["latency"].get(target) is None:
        return
    axes.plot(_cost(winner), winner["latency"][target], color=INK, marker="o", markersize=12, fillstyle="none",
              linestyle="", label="winner")  # fmt: skip


def sensitivity_bars(answer: dict[str, Any], title: str, file: BinaryIO, form: str) -> None:
    """Draw what more of each resource would buy the winner: the load that it carries, in percent, with its doubt."""
    rows = [(name, one) for name, one in answer["sensitivity"].items() if one.get("load_change") is not None]
    rows.sort(key=lambda row: row[1]["load_change"])
    with figure(title, file, form, (8.0, 1.4 + _BAR * max(3, len(rows)))) as axes:
        places = range(len(rows))
        changes = [100 * one["load_change"] for _, one in rows]
        doubts = [100 * one["doubt"] for _, one in rows]
        axes.barh(places, changes, xerr=doubts, color=PALETTE[0], ecolor=INK, capsize=3, height=0.6)
        axes.set_yticks(places, [name.replace("_", " ") for name, _ in rows])
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("Change of the load that holds the SLO (%)")
