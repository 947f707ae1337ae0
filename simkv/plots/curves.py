"""The curves of a scenario: closed forms as lines, simulated points with their intervals on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from simkv.plots.style import FAINT, INK, MARKERS, PALETTE, figure, label_side, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row: TypeAlias = Mapping[str, Any]
Curve: TypeAlias = Mapping[str, Any]
"""As ``curves.json`` has it: ``title rows marks ...``."""

_DEMAND, _AHEAD, _LINE, _SHADE = PALETTE[1], PALETTE[2], PALETTE[0], "#E8EEF4"
_TITLE_SIZE = 10.0
_TITLE_WIDTH = 90
_ZOOM_BELOW = 0.3


def draw(name: str, curve: Curve, file: BinaryIO, form: str) -> None:
    """Draw the curve ``name`` into ``file`` as ``form`` (png or svg)."""
    _DRAWN[name](curve, file, form)


def _wrapped(title: str, width: int) -> str:
    """Return ``title`` in lines, none of which ends inside an equation or before its %."""
    return "\n".join(wrap(title.replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%"), width))


def _t_avg(curve: Curve, file: BinaryIO, form: str) -> None:
    marks, lines = curve["marks"], _of(curve, "closed form")
    title = _wrapped(curve["title"], _TITLE_WIDTH)
    with panels(title, file, form, 2) as (access, step):
        hits = [100 * row["p_hit"] for row in lines]
        access.plot(hits, [1e6 * row["closed_t_avg_s"] for row in lines], color=_LINE, label="T_avg, closed form")
        _points(access, _of(curve, "on demand"), "p_hit", "t_avg_s", _DEMAND, 0, "simulated: by itself", 100, 1e6)
        waits = [row for row in _of(curve, "on demand") if row["exposed_s"]]
        _plain(access, waits, "p_hit", "exposed_s", INK, 4, "simulated: the GPU waits for it", 100, 1e6)
        _logarithmic(access)
        access.set_ylabel("Time of a read (µs, logarithmic)")
        access.set_title("An access: one (block, layer) that attention reads", fontsize=_TITLE_SIZE)
        step.plot(hits, [row["step_on_demand"] for row in lines], color=_DEMAND, label="T_c + T_t, on demand")
        step.plot(hits, [row["step_overlapped"] for row in lines], color=_AHEAD, linestyle="--",
                  label="max(T_c, T_t), perfect overlap")  # fmt: skip
        _points(step, _of(curve, "on demand"), "p_hit", "step_ratio", _DEMAND, 0, "simulated, on demand", 100)
        _points(
            step,
            _of(curve, "prefetch"),
            "p_hit",
            "step_ratio",
            _AHEAD,
            1,
            f"simulated, prefetch {marks['prefetch']}",
            100,
        )
        step.set_ylabel("Decode step (times all-resident)")
        step.set_ylim(bottom=0)
        felt = marks["simulated_on_demand"] or marks["closed_on_demand"]
        step.set_title(f"A decode step: at 90 % hits {felt:.3g} times all-resident on demand", fontsize=_TITLE_SIZE)
        for axes in (access, step):
            axes.axvline(100 * marks["p_hit"], color=FAINT, linestyle=(0, (1, 2)))
            axes.set_xlabel("Hit rate p_hit (% of reads in VRAM as a step begins)")
            axes.legend()


def _speedup(curve: Curve, file: BinaryIO, form: str) -> None:
    feasible = curve["marks"]["beta_feasible"]
    title = _wrapped(curve["title"], _TITLE_WIDTH)
    if feasible >= _ZOOM_BELOW:
        with figure(curve["title"], file, form) as axes:
            _speedup_panel(axes, curve, 1.0)
            label_side(axes)
        return
    with panels(title, file, form, 2) as (whole, near):
        _speedup_panel(whole, curve, 1.0)
        whole.set_title("The article's S(β), all of it", fontsize=_TITLE_SIZE)
        _speedup_panel(near, curve, 1.25 * feasible)
        near.set_title("What one step can hide", fontsize=_TITLE_SIZE)
        label_side(near)


def _speedup_panel(axes: Axes, curve: Curve, until: float) -> None:
    marks = curve["marks"]
    lines = [row for row in _of(curve, "closed form") if row["beta"] <= until]
    within = [row for row in lines if row["feasible"]]
    beyond = [within[-1], *(row for row in lines if not row["feasible"])] if within else lines
    axes.axvspan(0, marks["beta_feasible"], color=_SHADE, label="feasible: β up to min(1, T_c / T_t)")
    for rows, style, label in ((within, "-", "S(β), closed form"), (beyond, "--", "S(β), a what-if")):
        if len(rows) > 1:
            axes.plot([row["beta"] for row in rows], [row["speedup"] for row in rows], color=_LINE, linestyle=style,
                      label=label)  # fmt: skip
    _points(axes, _of(curve, "given β"), "beta", "speedup", _DEMAND, 0, "simulated, β given")
    for k, row in enumerate(_of(curve, "schedule"), start=1):
        _points(axes, [row], "beta", "speedup", PALETTE[(k + 1) % len(PALETTE)], k, row["name"], size=8.0)
    axes.set_xlabel("β (share of the transfer that computing hides)")
    axes.set_ylabel("Speedup (times no prefetch)")
    axes.set_xlim(-0.03 * until, 1.03 * until)
    if until < 1:
        shown = [row["speedup"] for row in (*lines, *_of(curve, "given β"), *_of(curve, "schedule"))]
        room = 0.08 * (max(shown) - 1) + 1e-6
        axes.set_ylim(min(shown) - room, max(shown) + room)


def _concurrency(curve: Curve, file: BinaryIO, form: str) -> None:
    points, lines, marks = _of(curve, "simulated"), _of(curve, "closed form"), curve["marks"]
    title = _wrapped(curve["title"], int(1.4 * _TITLE_WIDTH))
    with panels(title, file, form, 3) as (fits, rate, wait):
        shares = [row["residency"] for row in lines]
        fits.step(shares, [row["c_max"] for row in lines], where="post", color=_LINE, label="C_max, closed form")
        fits.step(shares, [row["staged"] for row in lines], where="post", color=_AHEAD, linestyle="--",
                  label="fits with staging and seats")  # fmt: skip
        _plain(fits, points, "residency", "running_max", _DEMAND, 0, "simulated, at most")
        _points(fits, points, "residency", "running_mean", INK, 4, "simulated, mean")
        if any(row["c_max"] > marks["seats"] for row in points):
            fits.axhline(marks["seats"], color=FAINT, linestyle=(0, (1, 2)), label=f"max_num_seqs {marks['seats']}")
        _upward(fits, "Sequences at once", [row["c_max"] for row in lines])
        closed = [row for row in points if row["closed_step_s"]]
        shares = [row["residency"] for row in closed]
        rate.plot(
            shares, [row["closed_tokens_per_s"] for row in closed], color=_LINE, label="fits / T_step, closed form"
        )
        _points(rate, points, "residency", "output_tokens_per_s", _DEMAND, 0, "simulated")
        best = marks["best"]
        rate.plot(best["residency"], best["output_tokens_per_s"], color=INK, marker="o", markersize=10,
                  fillstyle="none", linestyle="", label=f"most: p = {best['residency']:g}")  # fmt: skip
        rate.set_ylim(bottom=0)
        rate.set_ylabel("Throughput (output tokens/s)")
        wait.plot(shares, [1e3 * row["closed_step_s"] for row in closed], color=_LINE, label="T_step, closed form")
        _points(wait, points, "residency", "itl_p95_s", _DEMAND, 0, "simulated, p95", 1, 1e3)
        if marks["itl_p95_slo_s"] is not None:
            wait.axhline(1e3 * marks["itl_p95_slo_s"], color=FAINT, linestyle=(0, (1, 2)), label="slo.itl_p95")
        _plain(wait, points, "residency", "itl_mean_s", INK, 4, "simulated, mean", 1, 1e3)
        _upward(wait, "Inter-token latency (ms)", [row["itl_p95_s"] for row in points])
        for axes in (fits, rate, wait):
            axes.set_xlabel("p (share of each sequence's KV in VRAM)")
            axes.legend()


def _upward(axes: Axes, label: str, values: Sequence[float]) -> None:
    """Label the upward axis; it is logarithmic where values span more than a decade, else it starts at 0."""
    if min(values) > 0 and max(values) > 10 * min(values):
        _logarithmic(axes)
        axes.set_ylabel(f"{label[:-1]}, logarithmic)" if label.endswith(")") else f"{label} (logarithmic)")
        return
    axes.set_ylim(bottom=0)
    axes.set_ylabel(label)


def _logarithmic(axes: Axes) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: "")


def _lambda(curve: Curve, file: BinaryIO, form: str) -> None:
    with figure(curve["title"], file, form) as axes:
        axes.axvspan(0.5, 0.8, color=_SHADE, label="the article's 0.5 to 0.8")
        for series, colour, style in (("lru", _LINE, "-"), ("lfu", _AHEAD, "--"), ("ceiling", FAINT, (0, (1, 2)))):
            for row in _of(curve, series):
                label = series.upper() if series != "ceiling" else "ceiling (no limit)"
                axes.axhline(100 * row["hit_rate"], color=colour, linestyle=style, label=label)
        _points(axes, _of(curve, "score"), "lambda", "hit_rate", _DEMAND, 0, "score(λ), simulated", 1, 100)
        axes.set_xlabel("λ (1: recency alone, 0: frequency alone)")
        axes.set_ylabel(f"Hit rate (% of {curve['marks']['unit']})")
        axes.ticklabel_format(axis="y", useOffset=False)
        label_side(axes)


def _of(curve: Curve, series: str) -> list[Row]:
    return [row for row in curve["rows"] if row["series"] == series]


def _points(
    axes: Axes, rows: Sequence[Row], x: str, y: str, colour: str, number: int, label: str, across: float = 1.0,
    up: float = 1.0, size: float = 6.0,
) -> None:  # fmt: skip
    """Draw means with their intervals, where there are any."""
    some = [row for row in rows if row.get(y) is not None]
    if not any(row[f"{y}_high"] > row[f"{y}_low"] for row in some):
        if some:
            axes.plot([across * row[x] for row in some], [up * row[y] for row in some], linestyle="", color=colour,
                      marker=MARKERS[number % len(MARKERS)], markersize=size, label=label)  # fmt: skip
        return
    middle = [up * row[y] for row in some]
    below = [max(0.0, m - up * row[f"{y}_low"]) for m, row in zip(middle, some, strict=True)]
    above = [max(0.0, up * row[f"{y}_high"] - m) for m, row in zip(middle, some, strict=True)]
    axes.errorbar(
        [across * row[x] for row in some], middle, yerr=[below, above], linestyle="", color=colour, ecolor=colour,
        marker=MARKERS[number % len(MARKERS)], markersize=size, elinewidth=1.2, capsize=3, label=label,
    )  # fmt: skip


def _plain(
    axes: Axes, rows: Sequence[Row], x: str, y: str, colour: str, number: int, label: str, across: float = 1.0,
    up: float = 1.0,
) -> None:  # fmt: skip
    """Draw values without intervals, as outlines."""
    if rows:
        axes.plot([across * row[x] for row in rows], [up * row[y] for row in rows], linestyle="", color=colour,
                  marker=MARKERS[number % len(MARKERS)], fillstyle="none", markersize=7.0, label=label)  # fmt: skip


_DRAWN: dict[str, Callable[[Curve, BinaryIO, str], None]] = {
    "t_avg": _t_avg,
    "speedup": _speedup,
    "concurrency": _concurrency,
    "lambda": _lambda,
}
