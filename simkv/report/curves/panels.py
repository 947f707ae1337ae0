"""What each panel of a curve shows, as data and in words: its finding, the figures behind it, and how it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from simkv.curves.words import percent, time, times
from simkv.plots.curves import draw_panel, panel_names
from simkv.report.document import Data, Figure
from simkv.report.telling import Show, dots, line
from simkv.results.quantity import count, digits

Curve: TypeAlias = Mapping[str, Any]
"""As ``curves.json`` has it."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is drawn of one series: its name in the picture, and the column that is its height."""

    name: str
    series: str
    y: str
    is_line: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel."""

    x: str
    across: str
    """What the horizontal axis is."""
    up: str
    show_x: Show
    show_y: Show
    drawn: Sequence[Drawn]
    heads: Mapping[str, str]
    """Head of a column of the data, by its name in a row of the curve."""
    finding: Callable[[Curve], str]
    apart: Callable[[Curve], Sequence[str]] = lambda curve: ()
    """What else is in the picture, in sentences."""


def figures(name: str, curve: Curve) -> Iterator[Figure]:
    """Yield the panels of the curve ``name``, that with its finding first."""
    for key in panel_names(name, curve):
        panel = _PANELS[name][key]
        yield Figure(
            name=f"curve-{name}-{key}".replace("_", "-"),
            finding=panel.finding(curve),
            draw=partial(draw_panel, name, key, curve),
            data=_data(panel, curve),
            alt=_alt(panel, curve),
        )


def _data(panel: Panel, curve: Curve) -> Data:
    """Return the rows of every series in the panel, exact."""
    series = dict.fromkeys(one.series for one in panel.drawn)
    rows = [row for row in curve["rows"] if row["series"] in series]
    keys = [key for key in panel.heads if any(row.get(key) is not None for row in rows)]
    return Data([panel.heads[key] for key in keys], [[row.get(key) for key in keys] for row in rows])


def _alt(panel: Panel, curve: Curve) -> str:
    said = [f"{panel.up} over {panel.across}."]
    for one in panel.drawn:
        rows = [row for row in curve["rows"] if row["series"] == one.series and row.get(one.y) is not None]
        if rows and all(row.get(panel.x) is None for row in rows):
            said.append(f"{one.name}: {panel.show_y(rows[0][one.y])} throughout.")
            continue
        points = [(row[panel.x], row[one.y]) for row in rows if row.get(panel.x) is not None]
        said.append((line if one.is_line else dots)(one.name, points, panel.show_x, panel.show_y))
    return " ".join(text for text in (*said, *panel.apart(curve)) if text)


def _title(curve: Curve) -> str:
    return str(curve["title"])


def _of_access(curve: Curve) -> str:
    marks = curve["marks"]
    miss, hit, mean = marks["t_mem_s"], marks["t_vram_s"], time(marks["t_avg_s"])
    if not hit:
        return f"A miss takes {time(miss)}; at 90 % hits a read takes {mean} on average"
    return (
        f"A miss takes {digits(miss / hit)} times as long as a hit ({time(miss)} and {time(hit)}): at 90 % hits a "
        f"read takes {mean} on average"
    )


def _of_near(curve: Curve) -> str:
    marks = curve["marks"]
    return (
        f"One step can hide at most β = {digits(marks['beta_feasible'], 2)} of what it moves, and be "
        f"{times(marks['speedup_most'])} times as fast"
    )


def _of_sequences(curve: Curve) -> str:
    points = [row for row in curve["rows"] if row["series"] == "simulated"]
    least, most = points[0], points[-1]
    return (
        f"{count(least['running_max'])} sequences run at once at p = {least['residency']:g}, "
        f"{count(most['running_max'])} at p = {most['residency']:g}"
    )


def _of_latency(curve: Curve) -> str:
    marks = curve["marks"]
    fastest, limit_s, within = marks["fastest"], marks["itl_p95_slo_s"], marks["within_slo"]
    text = f"Inter-token latency p95 is shortest at p = {fastest['residency']:g}, {time(fastest['itl_p95_s'])}"
    if limit_s is None:
        return text
    if within is None:
        return f"{text}; no p holds slo.itl_p95, {time(limit_s)}, with a full house"
    return f"{text}; slo.itl_p95, {time(limit_s)}, holds with up to {count(within['running_max'])} sequences at once"


def _feasible(curve: Curve) -> Sequence[str]:
    best, texts = curve["marks"]["beta_feasible"], []
    texts.append(f"β up to {digits(best)} is feasible; beyond that the line is a what-if.")
    schedules = [row for row in curve["rows"] if row["series"] == "schedule"]
    texts += [f"{row['name']}: {times(row['speedup'])} at β = {digits(row['beta'])}." for row in schedules]
    return texts


def _seats(curve: Curve) -> Sequence[str]:
    return (f"The engine has seats for {curve['marks']['seats']} (max_num_seqs).",)


def _slo(curve: Curve) -> Sequence[str]:
    limit_s = curve["marks"]["itl_p95_slo_s"]
    return () if limit_s is None else (f"slo.itl_p95 is {time(limit_s)}.",)


def _of_article(curve: Curve) -> Sequence[str]:
    return ("The article's 0.5 to 0.8 is shaded.",)


def _plain(value: float) -> str:
    return f"{value:g}"


def _beta(value: float) -> str:
    return f"β = {digits(value)}"


def _p(value: float) -> str:
    return f"p = {value:g}"


def _lambda(value: float) -> str:
    return f"λ = {value:g}"


def _as_times(value: float) -> str:
    return f"{digits(value)} times"


def _rate(value: float) -> str:
    return f"{digits(value)} tokens/s"


def _bounds(key: str, head: str) -> dict[str, str]:
    """Return the columns of a figure with its interval."""
    return {key: head, f"{key}_low": f"{head}, 95 % from", f"{key}_high": f"{head}, 95 % to"}


_HIT_HEADS = {"series": "series", "residency": "p", **_bounds("p_hit", "p_hit")}
_P_HEADS = {"series": "series", "residency": "p"}
_ACROSS_HITS = "hit rate p_hit, the share of reads in VRAM as a step begins; 90 % is marked"
_ACROSS_P = "p, the share of each sequence's KV in VRAM"
_ACROSS_BETA = "β, the share of the transfer that computing hides"
_SPEEDUPS = (
    Drawn("S(β), closed form", "closed form", "speedup", is_line=True),
    Drawn("Simulated, β given", "given β", "speedup"),
)
_SPEEDUP_HEADS = {
    "series": "series", "name": "name", "asked": "β asked for", **_bounds("beta", "β"),
    **_bounds("speedup", "speedup"), "closed": "speedup, closed form", "feasible": "feasible",
    "t_step_s": "step (s)", "t_transfer_s": "transfer (s)",
}  # fmt: skip

_PANELS: Mapping[str, Mapping[str, Panel]] = {
    "t_avg": {
        "step": Panel(
            "p_hit", _ACROSS_HITS, "Decode step, in times of all-resident", percent, _as_times,
            (
                Drawn("T_c + T_t, on demand, closed form", "closed form", "step_on_demand", is_line=True),
                Drawn("max(T_c, T_t), perfect overlap, closed form", "closed form", "step_overlapped", is_line=True),
                Drawn("Simulated, on demand", "on demand", "step_ratio"),
                Drawn("Simulated, with prefetch", "prefetch", "step_ratio"),
            ),
            {**_HIT_HEADS, "step_on_demand": "T_c + T_t (times all-resident)",
             "step_overlapped": "max(T_c, T_t) (times all-resident)",
             **_bounds("step_ratio", "simulated step (times all-resident)"), "t_step_s": "simulated step (s)",
             "t_compute_s": "computing in it (s)"},
            _title,
        ),
        "access": Panel(
            "p_hit", _ACROSS_HITS, "Time of a read, logarithmic", percent, time,
            (
                Drawn("T_avg, closed form", "closed form", "closed_t_avg_s", is_line=True),
                Drawn("Simulated, by itself", "on demand", "t_avg_s"),
                Drawn("Simulated, what the GPU waits for it", "on demand", "exposed_s"),
            ),
            {**_HIT_HEADS, "closed_t_avg_s": "T_avg, closed form (s)",
             **_bounds("t_avg_s", "simulated, by itself (s)"), "queued_s": "in queues (s)",
             "exposed_s": "the GPU waits (s)"},
            _of_access,
        ),
    },
    "speedup": {
        "whole": Panel("beta", _ACROSS_BETA, "Speedup, in times of no prefetch", _beta, times, _SPEEDUPS,
                       _SPEEDUP_HEADS, _title, _feasible),
        "near": Panel("beta", f"{_ACROSS_BETA}, as far as one step can hide it", "Speedup, in times of no prefetch",
                      _beta, times, _SPEEDUPS, _SPEEDUP_HEADS, _of_near, _feasible),
    },
    "concurrency": {
        "throughput": Panel(
            "residency", _ACROSS_P, "Throughput", _p, _rate,
            (
                Drawn("What fits over T_step, closed form", "simulated", "closed_tokens_per_s", is_line=True),
                Drawn("Simulated", "simulated", "output_tokens_per_s"),
            ),
            {**_P_HEADS, **_bounds("output_tokens_per_s", "output tokens/s, simulated"),
             "closed_tokens_per_s": "output tokens/s, closed form"},
            _title,
        ),
        "sequences": Panel(
            "residency", _ACROSS_P, "Sequences at once", _p, _plain,
            (
                Drawn("C_max, closed form", "closed form", "c_max", is_line=True),
                Drawn("What fits with staging and seats, closed form", "closed form", "staged", is_line=True),
                Drawn("Simulated, at most", "simulated", "running_max"),
                Drawn("Simulated, mean", "simulated", "running_mean"),
            ),
            {**_P_HEADS, "c_max": "C_max", "staged": "fits with staging and seats", "running_max": "simulated, at most",
             **_bounds("running_mean", "simulated, mean")},
            _of_sequences, _seats,
        ),
        "latency": Panel(
            "residency", _ACROSS_P, "Inter-token latency", _p, time,
            (
                Drawn("T_step, closed form", "simulated", "closed_step_s", is_line=True),
                Drawn("Simulated, p95", "simulated", "itl_p95_s"),
                Drawn("Simulated, mean", "simulated", "itl_mean_s"),
            ),
            {**_P_HEADS, **_bounds("itl_p95_s", "ITL p95 (s)"), "itl_mean_s": "ITL mean (s)",
             "closed_step_s": "T_step, closed form (s)"},
            _of_latency, _slo,
        ),
    },
    "lambda": {
        "hits": Panel(
            "lambda", "λ, from frequency alone (0) to recency alone (1)", "Hit rate", _lambda, percent,
            (
                Drawn("score(λ), simulated", "score", "hit_rate"),
                Drawn("LRU", "lru", "hit_rate"),
                Drawn("LFU", "lfu", "hit_rate"),
                Drawn("A cache without limit", "ceiling", "hit_rate"),
            ),
            {"series": "series", "lambda": "λ", **_bounds("hit_rate", "hit rate")},
            _title, _of_article,
        ),
    },
}  # fmt: skip
