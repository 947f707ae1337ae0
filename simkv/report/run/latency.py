"""Latencies of a run: distributions up to the slowest in a thousand, and a table with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkv.plots.quantiles import Curve, Limit, Point, quantiles, tail
from simkv.plots.style import PALETTE, RUN, WITHOUT
from simkv.report.document import Block, Cell, Data, Figure, Table, Text
from simkv.report.folders import RunFolder
from simkv.report.run.settings import settings
from simkv.report.run.shown import QUANTILES, capital, cell, half_width_s, interval_text, time
from simkv.report.run.window import window
from simkv.results.quantity import MISSING, change, count, seconds, share
from simkv.results.words import LATENCIES, Summary

Floats = NDArray[np.float64]

_FIGURES = {
    "ttft_s": ("ttft", "95 % of requests have their first token within {p95}"),
    "itl_s": ("itl", "95 % of tokens follow the one before within {p95}"),
    "tpot_s": ("tpot", "95 % of requests take {p95} a token or less"),
    "e2e_s": ("e2e", "95 % of requests are through within {p95}"),
    "queue_s": ("queue", "95 % of requests wait {p95} or less for admission"),
}
"""Name of the figure, and what is seen."""
_COLUMNS = ("p50", "p90", "p95", "p99", "max")
_POINTS = 72
_FASTEST = 0.01
_FEWEST = 5
"""Requests of which a distribution is drawn."""
_CLASSES_DRAWN = 6


def blocks(folder: RunFolder) -> list[Block]:
    """Return tables and figures of what a run's requests waited for, by class too."""
    summary = folder.summary
    if all(summary[key] is None for _, key in LATENCIES):
        return []
    found: list[Block] = [_table(summary), *_against(summary), Text(_over_what(summary))]
    found += _figures(folder)
    found += _classes(folder)
    return found


def _over_what(summary: Summary) -> str:
    text = "Latencies are over the finished requests"
    warmed = summary.get("warm_tiers")
    if summary["warm_up_s"]:
        text += f" that arrived after the warm-up, the first {seconds(summary['warm_up_s'])} of arrivals"
    if warmed:
        passed = f"{count(warmed['requests'])} requests ({seconds(warmed['time_s'])} of the workload)"
        text += f"; before, the tiers were warmed by {passed} that passed untimed"
    return f"{text}. Intervals are of the mean, 95 %, by batch means; none where there are too few values."


def _table(summary: Summary) -> Table:
    """Return the latencies with intervals."""
    heads = ["Latency", "mean", "± (95 %)", *_COLUMNS]
    rows = [_cells(label, summary[key]) for label, key in LATENCIES if summary[key] is not None]
    return Table(heads, rows, name="latencies", right=frozenset(range(1, len(heads))))


def _cells(label: str, values: Mapping[str, Any]) -> list[Cell]:
    return [Cell(label), time(values["mean"]), time(half_width_s(values)), *(time(values[one]) for one in _COLUMNS)]


def _against(summary: Summary) -> Iterator[Table]:
    """Yield a table a baseline: its latencies, and by how much this run's differ over the same requests."""
    heads = ("mean", "p95", "this run's mean less it", "95 % interval", "relative", "over requests")
    for name, other in summary["baselines"].items():
        rows = [
            [Cell(label), time(other[key]["mean"]), time(other[key]["p95"]), *_difference(other["difference"].get(key))]
            for label, key in LATENCIES
            if other[key] is not None
        ]
        if rows:
            what = name.replace("_", " ")
            heads_here = (capital(what), *heads)
            yield Table(heads_here, rows, name=f"against-{what.replace(' ', '-')}", right=frozenset(range(1, 7)))


def _difference(one: Mapping[str, Any] | None) -> list[Cell]:
    """Return the cells of this run minus a baseline; ITL has no pairs of requests."""
    if one is None:
        return [Cell(MISSING)] * 4
    relative = Cell(MISSING) if one["relative"] is None else Cell(change(one["relative"]), one["relative"])
    return [time(one["mean"]), Cell(interval_text(one["ci95"]) or MISSING), relative, cell(one["pairs"], "{:,}".format)]


def _figures(folder: RunFolder) -> Iterator[Figure]:
    frame, summary = window(folder), folder.summary
    if len(frame) < _FEWEST:
        return
    between = "itl_s" if summary["itl_s"] else "tpot_s"
    held = {key.partition("_")[0] for key in (summary["slo_attainment"] or {"targets": {}})["targets"]}
    wanted = ["ttft_s", between, *(["tpot_s"] if "tpot" in held and between != "tpot_s" else []), "e2e_s", "queue_s"]
    for key in (key for key in wanted if summary[key] is not None):
        values = None if key == "itl_s" else _values(frame, key)
        one = _figure(key, values, summary)
        if one is not None:
            yield one


def _values(frame: Any, key: str) -> Floats:
    column: Floats = frame["queue_time_s" if key == "queue_s" else key].to_numpy(dtype=np.float64)
    return column[np.isfinite(column)]


def _figure(key: str, values: Floats | None, summary: Summary) -> Figure | None:
    """Draw one latency with its baseline and its targets; None where all requests had the same."""
    label = next(label for label, name in LATENCIES if name == key)
    plain = summary["baselines"].get("no_offload")
    mine = _known(summary[key]) if values is None else distribution_points(values)
    theirs = _known(plain[key]) if plain and plain[key] else []
    if not any(s > 0 for _, s in mine) or (not theirs and mine[0][1] == mine[-1][1]):
        return None
    curves = [Curve("this run", mine, RUN, sparse=values is None, named=True)]
    if any(s > 0 for _, s in theirs):
        curves.append(Curve("no offload", theirs, WITHOUT, sparse=True))
    limits = _limits(key, summary)
    name, finding = _FIGURES[key]
    finding = _finding(finding, summary[key], plain[key] if plain else None, limits)
    return Figure(
        name=f"latency-{name}",
        finding=finding,
        draw=partial(quantiles, curves, limits, capital(label)),
        data=Data(("series", "share that is faster", f"{name} (s)"), _rows(curves)),
        alt=_alt(label, summary[key], plain[key] if plain else None, limits),
    )


def distribution_points(values: Floats) -> list[Point]:
    """Return quantiles from nearly the fastest to nearly the slowest, p50 to p99 exactly among them."""
    last = tail(1 - 1 / len(values)) if len(values) > 1 else 0.0
    shares = {1 - 10.0**-x for x in np.linspace(min(tail(_FASTEST), last), last, _POINTS)} | {
        q for q in QUANTILES.values() if tail(q) <= last
    }
    ordered = sorted(shares)
    return list(zip(ordered, (float(v) for v in np.quantile(values, ordered)), strict=True))


def _known(values: Mapping[str, Any]) -> list[Point]:
    return [(q, values[name]) for name, q in QUANTILES.items()]


def _limits(key: str, summary: Summary) -> list[Limit]:
    attained = summary["slo_attainment"] or {"targets": {}}
    found = []
    for name, target in attained["targets"].items():
        metric, _, statistic = name.partition("_")
        if f"{metric}_s" == key:
            found.append(Limit(f"SLO {statistic}", target["limit"], QUANTILES.get(statistic)))
    return found


def _finding(text: str, values: Mapping[str, Any], plain: Mapping[str, Any] | None, limits: Sequence[Limit]) -> str:
    found = text.format(p95=seconds(values["p95"]))
    if plain:
        found += f"; without offload it is {seconds(plain['p95'])}"
    p95 = [one.limit_s for one in limits if one.share == QUANTILES["p95"]]
    return f"{found} (SLO {seconds(p95[0])})" if p95 else found


def _alt(label: str, values: Mapping[str, Any], plain: Mapping[str, Any] | None, limits: Sequence[Limit]) -> str:
    def said(one: Mapping[str, Any]) -> str:
        return ", ".join(f"{name} {seconds(one[name])}" for name in ("p50", "p95", "p99", "max"))

    text = f"{label} by the share of requests that are faster, up to the slowest. This run: {said(values)}."
    if plain:
        text += f" Without offload: {said(plain)}."
    return text + "".join(f" {one.label}: {seconds(one.limit_s)}." for one in limits)


def _rows(curves: Sequence[Curve]) -> list[tuple[str, float, float]]:
    return [(curve.label, q, s) for curve in curves for q, s in curve.points]


def _classes(folder: RunFolder) -> Iterator[Block]:
    """Yield the latencies of each request class: the blend above hides who waits."""
    classes = folder.summary["classes"] or {}
    told = {name: row for name, row in classes.items() if row["ttft_s"] is not None}
    if len(told) < 2:
        return
    yield from _class_figure(folder, told)
    heads = ["Class", "Latency", "mean", "± (95 %)", *_COLUMNS]
    rows = [
        [Cell(name), *_cells(label, row[key])]
        for name, row in told.items()
        for label, key in LATENCIES
        if row.get(key) is not None
    ]
    attained = (folder.summary["slo_attainment"] or {"classes": {}})["classes"]
    caption = "; ".join(f"{share(value)} of {name} meet their SLO" for name, value in attained.items())
    yield Table(heads, rows, name="latencies-by-class", caption=caption, right=frozenset(range(2, len(heads))))


def _class_figure(folder: RunFolder, told: Mapping[str, Any]) -> Iterator[Figure]:
    frame = window(folder)
    classes = frame["class"].astype(str).replace("", "default")
    names = list(told)[:_CLASSES_DRAWN]
    curves = []
    for k, name in enumerate(names):
        values = _values(frame[classes == name], "ttft_s")
        if len(values) >= _FEWEST and values.max() > 0:
            curves.append(Curve(_short(name), distribution_points(values), PALETTE[k], named=k == 0))
    if len(curves) < 2:
        return
    given = settings(folder)
    limits = [
        Limit(f"SLO {_short(name)}", limit_s)
        for name in names
        if (limit_s := given.amount(f"classes.{name}.slo.ttft", "time"))
    ]
    said = [f"{_short(name)} {seconds(told[name]['ttft_s']['p95'])}" for name in names]
    yield Figure(
        name="latency-ttft-by-class",
        finding=f"95 % of a class's requests have their first token within: {', '.join(said)}",
        draw=partial(quantiles, curves, limits, "TTFT"),
        data=Data(("class", "share that is faster", "ttft (s)"), _rows(curves)),
        alt=f"TTFT of each request class by the share of its requests that are faster. p95: {', '.join(said)}."
        + "".join(f" {one.label}: {seconds(one.limit_s)}." for one in limits),
    )


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:15]}…"
