"""The curves of a scenario: closed forms as lines, simulated points with their intervals on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from simkv.plots.style import FAINT, INK, MARKERS, PALETTE, SMALL, figure, label_below, label_side, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row: TypeAlias = Mapping[str, Any]
Curve: TypeAlias = Mapping[str, Any]
"""As ``curves.json`` has it: ``title rows marks ...``."""

_DEMAND, _AHEAD, _LINE, _SHADE = PALETTE[1], PALETTE[2], PALETTE[0], "#E8EEF4"
_TITLE_SIZE = 10.0
_TITLE_WIDTH = 90
_ZOOM_BELOW = 0.3
_OVER_P = "p (share of each sequence's KV in VRAM)"


def draw(name: str, curve: Curve, file: BinaryIO, form: str) -> None:
    """Draw the curve ``name`` into ``file`` as ``form`` (png or svg)."""
    _DRAWN[name](curve, file, form)


def panel_names(name: str, curve: Curve) -> tuple[str, ...]:
    """Return the panels that the curve ``name`` is made of, that with its finding first."""
    return tuple(panel for panel in _PANELS[name] if panel != "near" or _zoomed(curve))


def draw_panel(name: str, panel: str, curve: Curve, file: BinaryIO, form: str) -> None:
    """Draw one panel of the curve ``name`` alone, without a title."""
    with figure("", file, form, SMALL) as axes:
        _PANELS[name][panel](axes, curve)
        label_below(axes)


def _wrapped(title: str, width: int) -> str:
    """Return ``title`` in lines, none of which ends inside an equation or before its %."""
    return "\n".join(wrap(title.replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%"), width))


def _t_avg(curve: Curve, file: BinaryIO, form: str) -> None:
    with panels(_wrapped(curve["title"], _TITLE_WIDTH), file, form, 2) as (access, step):
        _access(access, curve)
        access.set_title("An access: one (block, layer) that attention reads", fontsize=_TITLE_SIZE)
        access.legend()
        _step(step, curve)
        felt = curve["marks"]["simulated_on_demand"] or curve["marks"]["closed_on_demand"]
        step.set_title(f"A decode step: at 90 % hits {felt:.3g} times all-resident on demand", fontsize=_TITLE_SIZE)
        step.legend()


def _access(axes: Axes, curve: Curve) -> None:
    """Draw what a read takes over p_hit."""
    lines = _of(curve, "closed form")
    axes.plot(_hits(lines), [1e6 * row["closed_t_avg_s"] for row in lines], color=_LINE, label="T_avg, closed form")
    _points(axes, _of(curve, "on demand"), "p_hit", "t_avg_s", _DEMAND, 0, "simulated: by itself", 100, 1e6)
    waits = [row for row in _of(curve, "on demand") if row["exposed_s"]]
    _plain(axes, waits, "p_hit", "exposed_s", INK, 4, "simulated: the GPU waits for it", 100, 1e6)
    _logarithmic(axes)
    axes.set_ylabel("Time of a read (µs, logarithmic)")
    _over_hits(axes, curve)


def _step(axes: Axes, curve: Curve) -> None:
    """Draw how long a decode step takes over p_hit."""
    lines, ahead = _of(curve, "closed form"), f"simulated, prefetch {curve['marks']['prefetch']}"
    hits = _hits(lines)
    axes.plot(hits, [row["step_on_demand"] for row in lines], color=_DEMAND, label="T_c + T_t, on demand")
    axes.plot(hits, [row["step_overlapped"] for row in lines], color=_AHEAD, linestyle="--",
              label="max(T_c, T_t), perfect overlap")  # fmt: skip
    _points(axes, _of(curve, "on demand"), "p_hit", "step_ratio", _DEMAND, 0, "simulated, on demand", 100)
    _points(axes, _of(curve, "prefetch"), "p_hit", "step_ratio", _AHEAD, 1, ahead, 100)
    axes.set_ylabel("Decode step (times all-resident)")
    axes.set_ylim(bottom=0)
    _over_hits(axes, curve)


def _hits(rows: Sequence[Row]) -> list[float]:
    return [100 * row["p_hit"] for row in rows]


def _over_hits(axes: Axes, curve: Curve) -> None:
    axes.axvline(100 * curve["marks"]["p_hit"], color=FAINT, linestyle=(0, (1, 2)))
    axes.set_xlabel("Hit rate p_hit (% of reads in VRAM as a step begins)")


def _speedup(curve: Curve, file: BinaryIO, form: str) -> None:
    if not _zoomed(curve):
        with figure(curve["title"], file, form) as axes:
            _speedup_panel(axes, curve, 1.0)
            label_side(axes)
        return
    with panels(_wrapped(curve["title"], _TITLE_WIDTH), file, form, 2) as (whole, near):
        _speedup_panel(whole, curve, 1.0)
        whole.set_title("The article's S(β), all of it", fontsize=_TITLE_SIZE)
        _near(near, curve)
        near.set_title("What one step can hide", fontsize=_TITLE_SIZE)
        label_side(near)


def _zoomed(curve: Curve) -> bool:
    """Say whether what one step can hide is too little to be seen on the whole curve."""
    return bool(curve["marks"]["beta_feasible"] < _ZOOM_BELOW)


def _near(axes: Axes, curve: Curve) -> None:
    _speedup_panel(axes, curve, 1.25 * curve["marks"]["beta_feasible"])


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
    with panels(_wrapped(curve["title"], int(1.4 * _TITLE_WIDTH)), file, form, 3) as three:
        for axes, draw_on in zip(three, (_fits, _rate, _wait), strict=True):
            draw_on(axes, curve)
            axes.legend()


def _fits(axes: Axes, curve: Curve) -> None:
    """Draw how many sequences run at once over p."""
    points, lines, seats = _of(curve, "simulated"), _of(curve, "closed form"), curve["marks"]["seats"]
    shares = [row["residency"] for row in lines]
    axes.step(shares, [row["c_max"] for row in lines], where="post", color=_LINE, label="C_max, closed form")
    axes.step(shares, [row["staged"] for row in lines], where="post", color=_AHEAD, linestyle="--",
              label="fits with staging and seats")  # fmt: skip
    _plain(axes, points, "residency", "running_max", _DEMAND, 0, "simulated, at most")
    _points(axes, points, "residency", "running_mean", INK, 4, "simulated, mean")
    if any(row["c_max"] > seats for row in points):
        axes.axhline(seats, color=FAINT, linestyle=(0, (1, 2)), label=f"max_num_seqs {seats}")
    _upward(axes, "Sequences at once", [row["c_max"] for row in lines])
    axes.set_xlabel(_OVER_P)


def _rate(axes: Axes, curve: Curve) -> None:
    """Draw the throughput over p."""
    points, closed, best = _of(curve, "simulated"), _closed(curve), curve["marks"]["best"]
    axes.plot([row["residency"] for row in closed], [row["closed_tokens_per_s"] for row in closed], color=_LINE,
              label="fits / T_step, closed form")  # fmt: skip
    _points(axes, points, "residency", "output_tokens_per_s", _DEMAND, 0, "simulated")
    axes.plot(best["residency"], best["output_tokens_per_s"], color=INK, marker="o", markersize=10,
              fillstyle="none", linestyle="", label=f"most: p = {best['residency']:g}")  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_ylabel("Throughput (output tokens/s)")
    axes.set_xlabel(_OVER_P)


def _wait(axes: Axes, curve: Curve) -> None:
    """Draw the inter-token latency over p."""
    points, closed, slo_s = _of(curve, "simulated"), _closed(curve), curve["marks"]["itl_p95_slo_s"]
    axes.plot([row["residency"] for row in closed], [1e3 * row["closed_step_s"] for row in closed], color=_LINE,
              label="T_step, closed form")  # fmt: skip
    _points(axes, points, "residency", "itl_p95_s", _DEMAND, 0, "simulated, p95", 1, 1e3)
    if slo_s is not None:
        axes.axhline(1e3 * slo_s, color=FAINT, linestyle=(0, (1, 2)), label="slo.itl_p95")
    _plain(axes, points, "residency", "itl_mean_s", INK, 4, "simulated, mean", 1, 1e3)
    _upward(axes, "Inter-token latency (ms)", [row["itl_p95_s"] for row in points])
    axes.set_xlabel(_OVER_P)


def _closed(curve: Curve) -> list[Row]:
    return [row for row in _of(curve, "simulated") if row["closed_step_s"]]


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
        _weighed(axes, curve)
        label_side(axes)


def _weighed(axes: Axes, curve: Curve) -> None:
    """Draw the hit rate over λ."""
    axes.axvspan(0.5, 0.8, color=_SHADE, label="the article's 0.5 to 0.8")
    for series, colour, style in (("lru", _LINE, "-"), ("lfu", _AHEAD, "--"), ("ceiling", FAINT, (0, (1, 2)))):
        for row in _of(curve, series):
            label = series.upper() if series != "ceiling" else "ceiling (no limit)"
            axes.axhline(100 * row["hit_rate"], color=colour, linestyle=style, label=label)
    _points(axes, _of(curve, "score"), "lambda", "hit_rate", _DEMAND, 0, "score(λ), simulated", 1, 100)
    axes.set_xlabel("λ (1: recency alone, 0: frequency alone)")
    axes.set_ylabel(f"Hit rate (% of {curve['marks']['unit']})")
    axes.ticklabel_format(axis="y", useOffset=False)


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
_PANELS: Mapping[str, Mapping[str, Callable[[Axes, Curve], None]]] = {
    "t_avg": {"step": _step, "access": _access},
    "speedup": {"whole": lambda axes, curve: _speedup_panel(axes, curve, 1.0), "near": _near},
    "concurrency": {"throughput": _rate, "sequences": _fits, "latency": _wait},
    "lambda": {"hits": _weighed},
}
