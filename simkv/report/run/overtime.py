"""A run over time: how full tiers are, how busy resources are with what binds marked, how many run and wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from simkv.plots.style import FAINT, INK, PALETTE, TIER_COLOURS
from simkv.plots.timeline import Line, timeline
from simkv.report.document import Block, Data, Figure, Text
from simkv.report.folders import RunFolder
from simkv.report.run.window import first_arrival_s
from simkv.report.telling import listed
from simkv.results.bottleneck import NAMES
from simkv.results.quantity import digits, seconds, share
from simkv.results.words import RESOURCES, TIERS, Summary

Floats = NDArray[np.float64]

_SPANS = 120
_SEEN = 0.01
"""Resources that are less busy aren't drawn, unless they bind."""
_FULL = 0.99
_LATE = 0.95
"""A tier that is full in this share of the time from then on, and until then, is full from then on."""
_FAR = 2.0
"""The closed form of how many fit isn't drawn where it is more than so many times as high as all else."""
_TINY = 0.02
"""Nor is a line that stays below this share of the highest."""
_COLOURS = {
    "gpu": PALETTE[0], "h2d": PALETTE[1], "d2h": PALETTE[3], "dram": PALETTE[2], "ssd_read": PALETTE[4],
    "ssd_write": PALETTE[7],
}  # fmt: skip


@dataclass(frozen=True)
class Series:
    """Means over spans of time between ``edges_s``, counted from the first arrival."""

    edges_s: list[float]
    values: dict[str, list[float]]


def blocks(folder: RunFolder) -> list[Block]:
    """Return the figures over time; nothing where no time passed."""
    if edges(folder) is None:
        return []
    summary = folder.summary
    found: list[Block] = [*_occupancy(folder), *_utilization(folder), *_requests(folder)]
    if found and summary["bottleneck_because"]:
        found.insert(0, Text(f"Bottleneck: {summary['bottleneck_because']}."))
    return found


def edges(folder: RunFolder) -> NDArray[np.intp] | None:
    """Return which samples bound the spans that are drawn; None where there is no span."""
    times = folder.timeseries["t_s"].to_numpy()
    _, last = np.unique(times[::-1], return_index=True)
    distinct = len(times) - 1 - last
    if len(distinct) < 2:
        return None
    picked = np.unique(np.linspace(0, len(distinct) - 1, min(_SPANS, len(distinct) - 1) + 1).round().astype(int))
    found: NDArray[np.intp] = distinct[picked].astype(np.intp)
    return found


def occupancy(folder: RunFolder) -> Series | None:
    """Return the share of each tier's capacity that is taken, as means of samples, over time.

    A capacity is what makes the mean of the samples the summary's mean.
    """
    usage, frame = folder.summary["kv_usage"], folder.timeseries
    found = {}
    for _, tier in TIERS:
        if usage[tier] is None or usage[tier]["mean"] is None:
            continue
        blocks = frame[f"{tier}_blocks"].to_numpy(dtype=np.float64)
        blocks = blocks + frame["vram_cached_blocks"].to_numpy(dtype=np.float64) if tier == "vram" else blocks
        mean = blocks.mean()
        found[tier] = blocks * (usage[tier]["mean"] / mean) if mean > 0 else blocks
    return _means(folder, found)


def utilization(folder: RunFolder) -> Series | None:
    """Return the busy share of each resource over time: differences of busy seconds over instances and time."""
    summary, frame, at = folder.summary, folder.timeseries, edges(folder)
    if at is None or summary["makespan_s"] <= 0:
        return None
    times = frame["t_s"].to_numpy()
    begin, makespan_s = first_arrival_s(folder), summary["makespan_s"]
    found = {}
    for _, name in RESOURCES:
        share_ = summary["utilization"][name]
        if share_ is None:
            continue
        if share_ == 0:  # also of what has no limit
            found[name] = [0.0] * (len(at) - 1)
            continue
        so_far = frame["dram_bytes" if name == "dram" else f"{name}_busy_s"].to_numpy(dtype=np.float64)
        whole = float(np.interp(begin + makespan_s, times, so_far)) / makespan_s
        instances = whole / share_ if whole > 0 else 1.0
        instances = instances if name == "dram" else max(1.0, round(instances))
        found[name] = [float(v) for v in np.diff(so_far[at]) / np.diff(times[at]) / instances]
    return Series([float(t - begin) for t in times[at]], found)


def _means(folder: RunFolder, columns: Mapping[str, Floats]) -> Series | None:
    """Return means of the samples in each span; the very last one, when all is over, is in none."""
    at = edges(folder)
    if at is None or not columns:
        return None
    times = folder.timeseries["t_s"].to_numpy()
    begin = first_arrival_s(folder)
    return Series(
        [float(t - begin) for t in times[at]],
        {name: _span_means(values, at) for name, values in columns.items()},
    )


def _span_means(values: Floats, at: NDArray[np.intp]) -> list[float]:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return [float(v) for v in np.diff(sums[at]) / np.diff(at)]


def _figure(
    name: str, series: Series, lines: Sequence[Line], axis: str, top: float | None, finding: str, alt: str,
    summary: Summary, note: str = "",
) -> Figure:  # fmt: skip
    rows = [
        (begin, end, *(values[k] for values in series.values.values()))
        for k, (begin, end) in enumerate(zip(series.edges_s[:-1], series.edges_s[1:], strict=True))
    ]
    return Figure(
        name=name,
        finding=finding,
        draw=partial(timeline, series.edges_s, lines, axis, top, summary["warm_up_s"]),
        data=Data(("from (s)", "to (s)", *series.values), rows),
        alt=alt,
        note=note,
    )


def _occupancy(folder: RunFolder) -> Iterator[Figure]:
    series, summary = occupancy(folder), folder.summary
    if series is None or not any(any(values) for values in series.values.values()):
        return
    names = {key: label for label, key in TIERS}
    series = Series(series.edges_s, {key: values for key, values in series.values.items() if any(values)})
    lines = [
        Line(
            _bound(names[key], key, summary), [100 * v for v in values], TIER_COLOURS[key], key == summary["bottleneck"]
        )
        for key, values in series.values.items()
    ]
    usage = summary["kv_usage"]
    told = [f"{names[key]} {share(usage[key]['mean'])}" for key in series.values]
    full = [text for key in series.values if key != "vram" and (text := _full_from(names[key], key, series))]
    finding = f"Room for KV taken on average: {listed(told)}" + (f"; {listed(full)}" if full else "")
    said = [f"{names[key]} {share(usage[key]['mean'])} on average, {share(usage[key]['max'])} at most"
            for key in series.values]  # fmt: skip
    alt = f"Share of each tier's capacity that is taken, over the time of the run: {'; '.join(said)}."
    cached = "vram" in series.values and folder.timeseries["vram_cached_blocks"].any()
    note = "VRAM counts what only the cache holds: it is room as soon as someone needs it." if cached else ""
    yield _figure("occupancy", series, lines, "Capacity taken (%)", 105, finding, alt, summary, note)


def _full_from(name: str, key: str, series: Series) -> str:
    """Say from when on a tier is full, where it stays so until nearly the end; nothing where it isn't ever."""
    full = [value >= _FULL for value in series.values[key]]
    if not any(full):
        return ""
    first, last = full.index(True), len(full) - 1 - full[::-1].index(True)
    if last + 1 < _LATE * len(full) or sum(full[first : last + 1]) < _LATE * (last + 1 - first):
        return f"{name} is full {share(sum(full) / len(full))} of the time"
    begin_s = series.edges_s[first]
    return f"{name} is full {f'from {seconds(begin_s)} on' if begin_s > 0 else 'from the start'}"


def _bound(label: str, key: str, summary: Summary) -> str:
    return f"{label}: binds" if key == summary["bottleneck"] else label


def _utilization(folder: RunFolder) -> Iterator[Figure]:
    series, summary = utilization(folder), folder.summary
    if series is None:
        return
    names, shares = {key: label for label, key in RESOURCES}, summary["utilization"]
    seen = [key for key in series.values if (shares[key] or 0.0) >= _SEEN or key == summary["bottleneck"]]
    if not seen:
        return
    lines = [
        Line(_bound(names[key], key, summary), [100 * v for v in series.values[key]], _COLOURS[key],
             key == summary["bottleneck"])
        for key in seen
    ]  # fmt: skip
    ordered = sorted(series.values, key=lambda key: -(shares[key] or 0.0))
    told = [f"{names[key]} {share(shares[key])}" for key in ordered]
    finding = f"Busy over the run: {listed(told[:3])}"
    if summary["bottleneck"] in names:
        finding += f"; {NAMES[summary['bottleneck']]} binds"
    alt = f"Busy share of each resource over the time of the run; over all of it: {', '.join(told)}."
    if summary["bottleneck_because"]:
        alt += f" Bottleneck: {summary['bottleneck_because']}."
    left = [names[key] for key in series.values if key not in seen]
    note = f"Not drawn, busy less than 1 %: {listed(left)}." if left else ""
    yield _figure("utilization", series, lines, "Busy (%)", 105, finding, alt, summary, note)


def _requests(folder: RunFolder) -> Iterator[Figure]:
    frame, summary = folder.timeseries, folder.summary
    columns = {name: frame[name].to_numpy(dtype=np.float64) for name in ("running", "waiting", "held")}
    series = _means(folder, {name: values for name, values in columns.items() if values.any()})
    if series is None:
        return
    colours = {"running": PALETTE[0], "waiting": FAINT, "held": PALETTE[2]}
    labels = {"held": "held for a load"}
    top = max(max(values) for values in series.values.values())
    lines = [
        Line(labels.get(name, name), values, colours[name])
        for name, values in series.values.items()
        if max(values) >= _TINY * top
    ]
    running = summary["concurrency"]
    most, note = running["max"], ""
    if running["formula"] is not None and most:
        if running["formula"] <= _FAR * top:
            lines.append(Line("closed form", [running["formula"]] * len(series.edges_s[1:]), INK, dashed=True))
        else:
            note = f"By closed form {running['formula']:,.0f} fit at once: far above what is drawn."
    waits = float(columns["waiting"].mean())
    finding = f"{digits(running['mean'] or 0.0)} requests run at once on average, {most} at most"
    finding += f"; {digits(waits)} wait on average" if waits >= 0.005 else "; hardly any wait"
    said = ", ".join(f"{labels.get(name, name)} {values.max():,.0f} at most" for name, values in columns.items())
    alt = f"Requests that run, wait and are held for loads over the time of the run, by samples: {said}."
    yield _figure("requests", series, lines, "Requests", None, finding, alt, summary, note)
