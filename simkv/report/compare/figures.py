"""The pictures of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from simkv.plots.comparison import Multiple, cumulative, distributions, multiples
from simkv.plots.hits import hit_shares
from simkv.plots.waterfall import beside
from simkv.report.compare.columns import Columns, Floats
from simkv.report.compare.metrics import Comparison, Row
from simkv.report.document import Data, Figure
from simkv.report.run.parts import mean_parts
from simkv.results.quantity import seconds, share
from simkv.results.words import TIERS

SHOWN = ("ttft_s.mean", "ttft_s.p95", "ttft_s.p99", "tpot_s.mean", "tpot_s.p95", "e2e_s.mean", "e2e_s.p95",
         "queue_s.mean", "t_step_s", "hit_rate.miss", "utilization.gpu", "utilization.h2d",
         "output_tokens_per_s", "cost_per_million_output_tokens")  # fmt: skip
CURVES = {"ttft_s": "TTFT", "e2e_s": "E2E"}
_SOURCES = (*TIERS, ("computed", "miss"))


def figures(named: Mapping[str, Columns], comparisons: Sequence[Comparison]) -> Iterator[Figure]:
    """Yield the pictures that have something to show; ``named``: the runs by what they are called, in order."""
    names = list(named)
    yield from _multiples(names, comparisons)
    for column, label in CURVES.items():
        values = {name: run.column(column)[run.window] for name, run in named.items()}
        if any(np.isfinite(each).any() and (each > 0).any() for each in values.values()):
            yield _distributions(column, label, values, _windows(named))
    yield from _hits(named)
    yield from _parts(named)


def _multiples(names: Sequence[str], comparisons: Sequence[Comparison]) -> Iterator[Figure]:
    rows: dict[str, list[Multiple | None]] = {}
    for key in SHOWN:
        each = [next((row for row in comparison.rows if row.key == key), None) for comparison in comparisons]
        marks = [_multiple(row) for row in each]
        label = next((row.label for row in each if row is not None), key)
        if any(mark is not None for mark in marks):
            rows[label] = marks
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
    judged = [[mark for mark in marks if mark is not None and mark.low is not None] for marks in rows.values()]
    judged = [marks for marks in judged if marks]
    real = sum(not all(mark.noise for mark in marks) for marks in judged)
    what = f"{real} of {len(judged)} figures that have an interval"
    text = (
        f"{what} differ from {names[0]} by more than noise" if judged else f"What differs from {names[0]}: no intervals"
    )
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


def _windows(named: Mapping[str, Columns]) -> str:
    """Say that runs have windows of their own, where they have."""
    cuts = {name: run.folder.summary["warm_up_s"] for name, run in named.items()}
    if len(set(cuts.values())) < 2:
        return ""
    said = ", ".join(f"{name} {seconds(cut)}" for name, cut in cuts.items())
    return f"Each run after its own warm-up ({said}); differences are over the requests that both have after theirs."


def _distributions(column: str, label: str, values: Mapping[str, Floats], note: str) -> Figure:
    curves = {name: cumulative(each) for name, each in values.items()}
    known = {name: each[np.isfinite(each)] for name, each in values.items()}
    medians = {name: float(np.median(each)) for name, each in known.items() if len(each)}
    tails = {name: float(np.quantile(each, 0.95)) for name, each in known.items() if len(each)}
    finding = f"{label}: p95 {_beside({name: seconds(value) for name, value in tails.items()})}"
    alt = f"Share of requests by {label}. " + "; ".join(
        f"{name}: half below {seconds(medians[name])}, 95 % below {seconds(tails[name])}" for name in medians
    )
    rows = [[name, x, y] for name, (xs, ys) in curves.items() for x, y in zip(xs, ys, strict=True)]
    return Figure(f"{column.removesuffix('_s')}-side-by-side", finding, partial(distributions, values, label),
                  Data(["run", f"{column}", "share at or below"], rows), alt + ".", note)  # fmt: skip


def _hits(named: Mapping[str, Columns]) -> Iterator[Figure]:
    rates = {name: found for name, run in named.items() if (found := run.folder.summary["hit_rate"])}
    if not rates:
        return
    said = {name: share(1 - each["miss"]) for name, each in rates.items()}
    parts = {name: [(label, each[key]) for label, key in _SOURCES] for name, each in rates.items()}
    yield Figure(
        "hits-side-by-side",
        f"Prompt tokens from cache: {_beside(said)}",
        partial(hit_shares, list(rates.items())),
        Data(
            ["run", *(f"{label} (share)" for label, _ in _SOURCES), "ceiling, infinite cache (share)"],
            [[name, *(each[key] for _, key in _SOURCES), each["ceiling"]] for name, each in rates.items()],
        ),
        f"Prompt tokens by where they come from. {_spoken(parts, share)} "
        + " ".join(
            f"An infinite cache would reach {share(each['ceiling'])} in {name}." for name, each in rates.items()
        ),
    )


def _parts(named: Mapping[str, Columns]) -> Iterator[Figure]:
    wholes = {
        name: mean_parts(run.folder.summary) for name, run in named.items() if run.folder.summary["time_breakdown_s"]
    }
    wholes = {name: replace(whole, label=name) for name, whole in wholes.items() if whole.total_s > 0}
    if not wholes:
        return
    parts = {name: whole.parts for name, whole in wholes.items()}
    yield Figure(
        "time-side-by-side",
        f"A request's mean time: {_beside({name: seconds(whole.total_s) for name, whole in wholes.items()})}",
        partial(beside, list(wholes.values()), "Mean time of a request"),
        Data(["run", "part", "mean (s)"], [[name, *part] for name, each in parts.items() for part in each]),
        f"A request's mean time in parts. {_spoken(parts, seconds)}",
    )


def _beside(said: Mapping[str, str]) -> str:
    return " · ".join(f"{name} {text}" for name, text in said.items())


def _spoken(parts: Mapping[str, Sequence[tuple[str, float]]], show: Callable[[float | None], str]) -> str:
    return " ".join(
        f"{name}: {', '.join(f'{part} {show(value)}' for part, value in each if value)}."
        for name, each in parts.items()
    )
