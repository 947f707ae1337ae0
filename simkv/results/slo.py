"""Service-level objectives: limits on each request, and targets on a run's percentiles."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from simkv.results.context import SummaryContext
from simkv.results.window import Rows, Window, column, e2e_s, finished, makespan_s, tpot_s, ttft_s
from simkv.sim.rundata import RunData

Booleans = NDArray[np.bool_]

# A request has no percentile of intervals worth the name: its own mean stands for it.
_REQUEST_METRIC = {"ttft": ttft_s, "tpot": tpot_s, "itl": tpot_s, "e2e": e2e_s}


def attainment(data: RunData, ctx: SummaryContext, window: Window) -> dict[str, object] | None:
    """Return shares of requests in the window that met their limits; None without any SLO."""
    if not _has_slo(ctx):
        return None
    late = column(data, "arrival_s") >= window.from_s
    rejected = np.flatnonzero(data.requests["rejected"].astype(bool) & late)
    met = met_limits(data, ctx, window.rows)
    classes = np.concatenate([data.requests["cls"][window.rows], data.requests["cls"][rejected]])
    met = np.concatenate([met, np.zeros(len(rejected), dtype=bool)])
    return {
        "overall": float(met.mean()) if len(met) else None,
        "classes": {
            name: float(met[classes == index].mean()) if (classes == index).any() else None
            for index, name in enumerate(data.class_names)
            if ctx.classes.get(name)
        },
    }


def goodput_per_s(data: RunData, ctx: SummaryContext) -> float | None:
    """Return finished requests that met their limits a second of makespan; None without any SLO."""
    makespan = makespan_s(data)
    if not _has_slo(ctx) or makespan <= 0:
        return None
    return float(met_limits(data, ctx, finished(data)).sum()) / makespan


def met_limits(data: RunData, ctx: SummaryContext, rows: Rows) -> Booleans:
    """Return for each row whether the request met its class's limits, or the general ones."""
    met = np.ones(len(rows), dtype=bool)
    if not any(ctx.classes.get(name) for name in data.class_names):
        return _met(data, rows, request_limits(ctx.slo))
    classes = data.requests["cls"][rows]
    for index, name in enumerate(data.class_names):
        of_class = classes == index
        limits = request_limits(ctx.slo) | request_limits(ctx.classes.get(name, {}))
        met[of_class] = _met(data, rows[of_class], limits)
    return met


def request_limits(slo: Mapping[str, float]) -> dict[str, float]:
    """Return the limit that each request is held to: the strictest that names the metric.

    ``ttft: 1`` and ``ttft_p95: 1`` both hold a request to one second.
    """
    limits: dict[str, float] = {}
    for key, limit in slo.items():
        metric = split_key(key)[0]
        metric = "tpot" if metric == "itl" else metric
        if metric in _REQUEST_METRIC:
            limits[metric] = min(float(limit), limits.get(metric, float("inf")))
    return limits


def targets(slo: Mapping[str, float], summary: Mapping[str, object]) -> dict[str, object]:
    """Return each limit on a statistic of the run with its value and whether it holds."""
    found: dict[str, object] = {}
    for key, limit in slo.items():
        metric, statistic = split_key(key)
        distribution = summary.get(f"{metric}_s")
        if not statistic or not isinstance(distribution, dict):
            continue
        value = distribution.get(statistic)
        found[key] = {"limit": float(limit), "value": value, "met": None if value is None else value <= limit}
    return found


def split_key(key: str) -> tuple[str, str]:
    """``ttft_p95`` to ``("ttft", "p95")``, ``ttft_s`` and ``ttft`` to ``("ttft", "")``."""
    metric, _, statistic = key.removesuffix("_s").partition("_")
    return metric, statistic


def _met(data: RunData, rows: Rows, limits: Mapping[str, float]) -> Booleans:
    met = np.ones(len(rows), dtype=bool)
    for metric, limit in limits.items():
        met &= ~(_REQUEST_METRIC[metric](data, rows) > limit)  # a single token has no TPOT and meets any
    return met


def _has_slo(ctx: SummaryContext) -> bool:
    return bool(ctx.slo) or any(ctx.classes.values())
