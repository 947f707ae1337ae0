"""What a plan found: cost against latency with the front, and what more of each resource would buy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from simkv.plots.labels import tick_time
from simkv.plots.style import FAINT, INK, MARKERS, PALETTE, SMALL, clean, figure, label_below, label_side
from simkv.results.words import MORE_OF
from simkv.units import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Answer: TypeAlias = Mapping[str, Any]
"""As ``plan.json`` has it."""
Row: TypeAlias = Mapping[str, Any]

_BAR = 0.36


def cost_against_latency(answer: Answer, title: str, file: BinaryIO, form: str) -> None:
    """Draw the candidates of ``answer`` (of ``simkv plan --json``) and their Pareto front into ``file``.

    A candidate is at what a million output tokens cost, or an hour where there is no such figure, and at the first
    latency that the SLO names; whoever has neither isn't drawn, nor who didn't hold the SLO when it was confirmed.
    """
    with figure(title, file, form) as axes:
        _against(axes, answer, marker=".", markersize=3)
        label_side(axes)


def front(answer: Answer, file: BinaryIO, form: str) -> None:
    """Draw the same as small as a report has it, without a title."""
    with figure("", file, form, SMALL) as axes:
        _against(axes, answer, marker="s", markersize=9, fillstyle="none")
        axes.set_ylabel(f"{next(iter(answer['slo']['limits'])).replace('_', ' ')} (s, logarithmic)")
        label_below(axes)


def drawn(answer: Answer) -> list[Row]:
    """Return the candidates that have a place among costs and latencies, and didn't fail to hold the SLO."""
    target = next(iter(answer["slo"]["limits"]))
    rows = [row for row in answer["candidates"] if cost_of(row) is not None and row["latency"].get(target) is not None]
    return [row for row in rows if row["confirmed"] is None or row["confirmed"]["holds"]]


def _against(axes: Axes, answer: Answer, **front_look: Any) -> None:
    target, limit = next(iter(answer["slo"]["limits"].items()))
    rows = drawn(answer)
    for k, unit in enumerate(dict.fromkeys(row["unit"]["name"] for row in rows)):
        own = [row for row in rows if row["unit"]["name"] == unit]
        look: Any = {"marker": MARKERS[k % len(MARKERS)], "color": PALETTE[k % len(PALETTE)]}
        where = [cost_of(row) or 0.0 for row in own], [row["latency"][target] for row in own]
        axes.plot(*where, linestyle="", alpha=0.8, label=clean(unit), **look)
    _front(axes, [row for row in rows if row["name"] in answer["pareto_names"]], target, front_look)
    _winner(axes, answer, target)
    axes.axhline(limit, color=FAINT, linestyle=(0, (4, 3)), label=f"SLO {target}")
    axes.set_yscale("log")
    axes.set_xscale("log")
    axes.set_xlabel(cost_label(answer))
    axes.set_ylabel(f"{target.replace('_', ' ')} at the planned load (s, logarithmic)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:.6g}")
        axis.set_minor_formatter(_minor(*axis.get_view_interval()))


def _minor(least: float, most: float) -> Callable[[float, float], str]:
    """Return what labels the ticks between powers of ten; on an axis that few round figures lie on, all of them."""
    low, high = floor(log10(least)), ceil(log10(most))
    round_ones = [digit * 10.0**power for power in range(low, high + 1) for digit in (1, 2, 3, 5)]
    all_of_them = sum(least <= one <= most for one in round_ones) < 2
    return lambda value, _: f"{value:.6g}" if all_of_them or f"{value:e}"[0] in "235" else ""


def cost_of(row: Row) -> float | None:
    """Return what a million output tokens cost, or an hour where nobody can say."""
    million = row["cost_per_million_output_tokens"]
    found: float | None = million if million is not None else row["cost_per_hour"]
    return found


def cost_label(answer: Answer) -> str:
    """Return what the axis of costs is called."""
    rows, currency = drawn(answer), answer["currency"] or ""
    if rows and rows[0]["cost_per_million_output_tokens"] is not None:
        return f"Cost ({currency} per million output tokens, logarithmic)"
    return f"Cost ({currency} an hour, logarithmic)"


def _front(axes: Axes, rows: list[Row], target: str, look: Mapping[str, Any]) -> None:
    where = [cost_of(row) or 0.0 for row in rows], [row["latency"][target] for row in rows]
    axes.plot(*where, color=INK, linestyle="", label="Pareto front", **look) if rows else None


def _winner(axes: Axes, answer: Answer, target: str) -> None:
    winner = answer["winner"]
    if winner is None or cost_of(winner) is None or winner["latency"].get(target) is None:
        return
    axes.plot(cost_of(winner) or 0.0, winner["latency"][target], color=INK, marker="o", markersize=12, fillstyle="none",
              linestyle="", label="winner")  # fmt: skip


def sensitivity_bars(answer: Answer, title: str, file: BinaryIO, form: str) -> None:
    """Draw what more of each resource would buy the winner: the load that it carries, in percent, with its doubt."""
    rows = moved(answer)
    with figure(title, file, form, (8.0, 1.4 + _BAR * max(3, len(rows)))) as axes:
        _bars(axes, rows)


def bars(answer: Answer, file: BinaryIO, form: str) -> None:
    """Draw the same as small as a report has it, without a title."""
    rows = moved(answer)
    with figure("", file, form, (SMALL[0], 0.9 + 0.8 * _BAR * max(3, len(rows)))) as axes:
        _bars(axes, rows)


def moved(answer: Answer) -> list[tuple[str, Row]]:
    """Return the resources that were measured, that which buys most last."""
    rows = [(name, one) for name, one in answer["sensitivity"].items() if one.get("load_change") is not None]
    return sorted(rows, key=lambda row: row[1]["load_change"])


def _bars(axes: Axes, rows: Sequence[tuple[str, Row]]) -> None:
    places = range(len(rows))
    changes = [100 * one["load_change"] for _, one in rows]
    doubts = [100 * (one["doubt"] or 0.0) for _, one in rows]
    axes.barh(places, changes, xerr=doubts, color=PALETTE[0], ecolor=INK, capsize=3, height=0.6)
    axes.set_yticks(places, [MORE_OF.get(name, name.replace("_", " ")) for name, _ in rows])
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("Change of the load that holds the SLO (%)")


def knee(sizes: Sequence[Row], by: str, at_bytes: float | None, file: BinaryIO, form: str) -> None:
    """Draw what a unit carries (``by``: ``load``), or how long it lets wait, over sizes of DRAM; mark the knee."""
    loaded = by == "load"
    values = [row["load"] if loaded else row["ttft_mean"] for row in sizes]
    with figure("", file, form, SMALL) as axes:
        axes.plot(range(len(sizes)), values, color=PALETTE[0], marker="o")
        for k, row in enumerate(sizes):
            if row["dram_bytes"] == at_bytes:
                axes.axvline(k, color=FAINT, linestyle=(0, (1, 2)))
                axes.annotate("knee", (k, 0.04), xycoords=("data", "axes fraction"), xytext=(4, 0),
                              textcoords="offset points", color=INK)  # fmt: skip
        axes.set_xticks(range(len(sizes)), [short(row["dram_bytes"], "size") if row["dram_bytes"] else "none"
                                            for row in sizes])  # fmt: skip
        axes.set_ylim(0, 1.1 * max(values) or 1.0)
        axes.set_xlabel("DRAM of a host (each size twice the one before)")
        axes.set_ylabel("Load of a unit (times the scenario's)" if loaded else "Mean TTFT")
        if not loaded:
            axes.yaxis.set_major_formatter(lambda value, _: tick_time(value))
