"""The pictures of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from simkv.plots.comparison import Multiple, cumulative, distributions, multiples, stacks
from simkv.report.compare.columns import Columns, Floats
from simkv.report.compare.metrics import Comparison, Row
from simkv.report.document import Data, Figure
from simkv.results.quantity import seconds, share
from simkv.sweeps.leaves import leaf

SHOWN = ("ttft_s.mean", "ttft_s.p95", "ttft_s.p99", "tpot_s.mean", "tpot_s.p95", "e2e_s.mean", "e2e_s.p95",
         "queue_s.mean", "t_step_s", "hit_rate.miss", "utilization.gpu", "utilization.h2d",
         "output_tokens_per_s", "cost_per_million_output_tokens")  # fmt: skip
CURVES = {"ttft_s": "TTFT", "e2e_s": "E2E"}
HITS = {"vram": "VRAM", "dram": "DRAM", "ssd": "SSD", "miss": "computed"}
PARTS = {"queue": "queue", "load_ssd": "load SSD", "load_dram": "load DRAM", "prefill": "prefill",
         "recompute": "recompute", "preempted": "preempted", "decode": "decode"}  # fmt: skip


def figures(named: Mapping[str, Columns], comparisons: Sequence[Comparison]) -> Iterator[Figure]:
    """Yield the pictures that have something to show; ``named``: the runs by what they are called, in order."""
    names = list(named)
    yield from _multiples(names, comparisons)
    for column, label in CURVES.items():
        values = {name: run.column(column)[run.window] for name, run in named.items()}
        if any(np.isfinite(each).any() and (each > 0).any() for each in values.values()):
            yield _distributions(column, label, values)
    yield from _hits(named)
    yield from _parts(named)


def _multiples(names: Sequence[str], comparisons: Sequence[Comparison]) -> Iterator[Figure]:
    rows: dict[str, list[Multiple | None]] = {}
    found: dict[str, list[Row | None]] = {}
    for key in SHOWN:
        each = [next((row for row in comparison.rows if row.key == key), None) for comparison in comparisons]
        marks = [_multiple(row) for row in each]
        label = next((row.label for row in each if row is not None), key)
        if any(mark is not None for mark in marks):
            rows[label], found[label] = marks, each
    if not rows:
        return
    heads = [
        "figure",
        *(f"{name}: {what}" for name in names[1:] for what in ("times the first", "low", "high", "noise")),
    ]
    data = [
        [label, *(value for mark in marks for value in (
            (mark.ratio, mark.low, mark.high, mark.noise) if mark is not None else (None, None, None, None)))]
        for label, marks in rows.items()
    ]  # fmt: skip
    noise = [label for label, marks in rows.items() if all(mark is None or mark.noise for mark in marks)]
    text = f"{len(rows) - len(noise)} of {len(rows)} figures differ from {names[0]} by more than noise"
    alt = "; ".join(
        f"{label}: " + ", ".join(
            f"{name} {mark.ratio:.3g} times{' (noise)' if mark.noise else ''}"
            for name, mark in zip(names[1:], marks, strict=True) if mark is not None)
        for label, marks in rows.items()
    )  # fmt: skip
    yield Figure("differences", text, partial(multiples, rows, names[1:]), Data(heads, data),
                 f"Each figure over that of {names[0]}, with its 95 % interval. {alt}.",
                 "Hollow: noise. Without a line through it: a figure of the whole run.", wide=True)  # fmt: skip


def _multiple(row: Row | None) -> Multiple | None:
    if row is None or row.difference.one <= 0 or row.difference.other <= 0:
        return None
    one, other, half = row.difference.one, row.difference.other, row.difference.half
    low, high = (None, None) if half is None else ((other - half) / one, (other + half) / one)
    return Multiple(other / one, low, high, bool(row.difference.noise))


def _distributions(column: str, label: str, values: Mapping[str, Floats]) -> Figure:
    curves = {name: cumulative(each) for name, each in values.items()}
    known = {name: each[np.isfinite(each)] for name, each in values.items()}
    medians = {name: float(np.median(each)) for name, each in known.items() if len(each)}
    tails = {name: float(np.quantile(each, 0.95)) for name, each in known.items() if len(each)}
    finding = f"{label}: p95 {' · '.join(f'{name} {seconds(value)}' for name, value in tails.items())}"
    alt = f"Share of requests by {label}. " + "; ".join(
        f"{name}: half below {seconds(medians[name])}, 95 % below {seconds(tails[name])}" for name in medians
    )
    rows = [[name, x, y] for name, (xs, ys) in curves.items() for x, y in zip(xs, ys, strict=True)]
    return Figure(f"{column.removesuffix('_s')}-side-by-side", finding, partial(distributions, values, label),
                  Data(["run", f"{column}", "share at or below"], rows), alt + ".")  # fmt: skip


def _hits(named: Mapping[str, Columns]) -> Iterator[Figure]:
    rates = {name: _shares(run, "hit_rate", HITS) for name, run in named.items()}
    if not any(sum(each.values()) for each in rates.values()):
        return
    finding = "Prompt tokens from cache: " + " · ".join(
        f"{name} {share(sum(each.values()) - each['computed'])}" for name, each in rates.items()
    )
    percent = {name: {part: 100 * value for part, value in each.items()} for name, each in rates.items()}
    yield Figure("hits-side-by-side", finding, partial(stacks, percent, "Prompt tokens (%)"), _table(rates, "share"),
                 _spoken(rates, share))  # fmt: skip


def _parts(named: Mapping[str, Columns]) -> Iterator[Figure]:
    parts = {name: _shares(run, "time_breakdown_s", PARTS) for name, run in named.items()}
    if not any(sum(each.values()) for each in parts.values()):
        return
    finding = "A request's mean time: " + " · ".join(
        f"{name} {seconds(sum(each.values()))}" for name, each in parts.items()
    )
    most = max(sum(each.values()) for each in parts.values())
    scale, unit = (1.0, "s") if most >= 1 else (1e3, "ms")
    scaled = {name: {part: scale * value for part, value in each.items()} for name, each in parts.items()}
    decimals = 0 if scale * most >= 30 else 1
    draw = partial(stacks, scaled, f"Mean time of a request ({unit})", decimals=decimals)
    yield Figure("time-side-by-side", finding, draw, _table(parts, "s"), _spoken(parts, seconds))


def _shares(run: Columns, key: str, names: Mapping[str, str]) -> dict[str, float]:
    found = {label: leaf(run.folder.summary, f"{key}.{name}") for name, label in names.items()}
    return {label: float(value) if isinstance(value, int | float) else 0.0 for label, value in found.items()}


def _table(parts: Mapping[str, Mapping[str, float]], unit: str) -> Data:
    heads = list(next(iter(parts.values())))
    return Data(["run", *(f"{head} ({unit})" for head in heads)],
                [[name, *each.values()] for name, each in parts.items()])  # fmt: skip


def _spoken(parts: Mapping[str, Mapping[str, float]], show: Callable[[float], str]) -> str:
    return "; ".join(
        f"{name}: " + ", ".join(f"{part} {show(value)}" for part, value in each.items() if value)
        for name, each in parts.items()
    ) + "."  # fmt: skip
