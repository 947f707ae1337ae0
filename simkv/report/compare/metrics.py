"""What is compared, as declared data: a label, how it is shown, which way is better, how its difference is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from simkv.report.compare.columns import Columns, Floats, pairs
from simkv.report.compare.estimate import Difference, of_means, of_quantiles, of_series, of_shares
from simkv.results.quantity import count, seconds, share
from simkv.results.stats import BATCHES
from simkv.results.words import TIERS
from simkv.sweeps.leaves import leaf

Better = Literal["less", "more", "neither"]

LATENCIES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "E2E", "queue_time_s": "Queue"}
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
BUSY = {"gpu": "GPU busy", "h2d": "H2D link busy", "d2h": "D2H link busy", "ssd_read": "SSD reading",
        "ssd_write": "SSD writing"}  # fmt: skip
SINGLE: Mapping[str, tuple[str, Callable[[float | None], str], Better]] = {
    "requests_per_s": ("Requests/s", count, "more"),
    "output_tokens_per_s": ("Output tokens/s", count, "more"),
    "goodput_requests_per_s": ("Goodput, requests/s", count, "more"),
    "slo_attainment.overall": ("SLO attainment", share, "more"),
    "itl_s.mean": ("ITL mean", seconds, "less"),
    "itl_s.p95": ("ITL p95", seconds, "less"),
    "t_step_s": ("T_step", seconds, "less"),
    "t_avg_s.service": ("T_avg, service", seconds, "less"),
    "p_hit": ("p_hit", share, "more"),
    "beta": ("β", share, "more"),
    "concurrency.mean": ("Concurrency, mean", count, "neither"),
    "preemptions": ("Preemptions", count, "less"),
    "makespan_s": ("Makespan", seconds, "less"),
    "cost_per_million_output_tokens": ("Cost of a million output tokens", count, "less"),
}
"""Figures of a whole run: one run has one of them, and no interval."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of two runs."""

    key: str
    label: str
    show: Callable[[float | None], str]
    better: Better
    difference: Difference
    single: bool = False
    """A figure of the whole run, of which there is no interval."""

    @property
    def improves(self) -> bool | None:
        """Whether the second is better; None where neither way is, or where it is noise."""
        if self.better == "neither" or self.difference.noise or not self.difference.value:
            return None
        return (self.difference.value < 0) == (self.better == "less")


@dataclass(frozen=True)
class Comparison:
    """Two runs: ``other`` against ``one``."""

    one: Columns
    other: Columns
    same_requests: int | None
    """How many requests are compared one by one; None: they aren't the same ones."""
    rows: tuple[Row, ...]


def compare(one: Columns, other: Columns) -> Comparison:
    """Return every figure that both runs have, with the difference between them."""
    both = pairs(one, other)
    rows = (*_requests(one, other, both), *_resources(one, other), *_single(one, other))
    return Comparison(one, other, len(both[0]) if both is not None else None, rows)


def _requests(one: Columns, other: Columns, both: Any) -> Iterator[Row]:
    ours, theirs = both if both is not None else (one.window, other.window)
    paired = both is not None
    for name, label in LATENCIES.items():
        first, second = one.column(name)[ours], other.column(name)[theirs]
        key = name.replace("queue_time_s", "queue_s")
        mean = of_means(first, second, paired)
        if mean is not None and (mean.one or mean.other):
            yield Row(f"{key}.mean", f"{label} mean", seconds, "less", mean)
        for quantile, q in QUANTILES.items():
            found = of_quantiles(first, second, q, paired)
            if found is not None and (found.one or found.other):
                yield Row(f"{key}.{quantile}", f"{label} {quantile}", seconds, "less", found)
    wholes = one.column("prompt_tokens")[ours], other.column("prompt_tokens")[theirs]
    for label, tier in TIERS:
        parts = one.column(f"hit_{tier}_tokens")[ours], other.column(f"hit_{tier}_tokens")[theirs]
        hits = of_shares((parts[0], wholes[0]), (parts[1], wholes[1]), paired)
        if hits is not None and (hits.one or hits.other):
            yield Row(f"hit_rate.{tier}", f"Prompt tokens from {label}", share, "neither", hits)
    served = [
        sum(run.column(f"hit_{tier}_tokens")[rows] for _, tier in TIERS) for run, rows in ((one, ours), (other, theirs))
    ]
    missed = of_shares((wholes[0] - served[0], wholes[0]), (wholes[1] - served[1], wholes[1]), paired)
    if missed is not None:
        yield Row("hit_rate.miss", "Prompt tokens computed", share, "less", missed)


def _resources(one: Columns, other: Columns) -> Iterator[Row]:
    """Yield busy shares over the time that both runs were under way, in windows of equal time."""
    until = min(_end_s(one), _end_s(other))
    for name, label in BUSY.items():
        if all(leaf(run.folder.summary, f"utilization.{name}") is None for run in (one, other)):
            continue
        found = of_series(_busy(one, name, until), _busy(other, name, until))
        if found is not None:
            yield Row(f"utilization.{name}", label, share, "neither", found)


def _end_s(run: Columns) -> float:
    """Return for how long the run was sampled."""
    times = run.folder.timeseries["t_s"].to_numpy(dtype=np.float64)
    return float(times[-1] - times[0]) if len(times) else 0.0


def _busy(run: Columns, name: str, until_s: float) -> Floats:
    """Return the busy share in each of 20 windows of equal time from the first arrival on, summed over instances."""
    frame = run.folder.timeseries
    times, busy = (frame[key].to_numpy(dtype=np.float64) for key in ("t_s", f"{name}_busy_s"))
    if len(times) < 2 or until_s <= 0:
        return np.full(BATCHES, np.nan)
    edges = np.linspace(0.0, until_s, BATCHES + 1)
    at_edges = np.interp(edges, times - times[0], busy)
    whole = leaf(run.folder.summary, f"utilization.{name}")
    spent, makespan = busy[-1] - busy[0], leaf(run.folder.summary, "makespan_s")
    if not isinstance(whole, int | float) or not isinstance(makespan, int | float) or not whole * makespan:
        return np.zeros(BATCHES)
    instances = max(1, round(float(spent / (whole * makespan))))
    shares: Floats = np.diff(at_edges) / np.diff(edges) / instances
    return shares


def _single(one: Columns, other: Columns) -> Iterator[Row]:
    for key, (label, show, better) in SINGLE.items():
        first, second = (leaf(run.folder.summary, key) for run in (one, other))
        if isinstance(first, int | float) and isinstance(second, int | float) and (first or second):
            yield Row(key, label, show, better, Difference(float(first), float(second), None), single=True)
