"""One run's columns to the figures of ``summary.json``, in the order of ``metrics.METRICS``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simkv.results import active, bottleneck, slo
from simkv.results.context import SummaryContext
from simkv.results.intervals import itl
from simkv.results.metrics import METRICS, SCHEMA_VERSION
from simkv.results.paired import Difference, differences
from simkv.results.stats import distribution, finite
from simkv.results.verdict import verdict
from simkv.results.warnings import find_warnings
from simkv.results.window import LATENCIES, Rows, Window, column, finished, makespan_s, open_window, same_window
from simkv.sim.rundata import RunData

Summary = dict[str, object]

PARTS = ("queue", "load_dram", "load_ssd", "prefill", "decode", "recompute", "preempted")
TIERS = ("vram", "dram", "ssd")

_BASELINE_KEYS = (
    "requests", "prompt_tokens", "output_tokens", "makespan_s", "warm_up_s", "ttft_s", "itl_s", "tpot_s", "e2e_s",
    "queue_s", "time_breakdown_s", "requests_per_s", "output_tokens_per_s", "goodput_requests_per_s",
    "slo_attainment", "cost_per_million_output_tokens", "hit_rate", "preemptions", "recomputed_tokens",
    "concurrency", "kv_usage", "bytes", "utilization", "bottleneck", "bottleneck_because", "p_hit", "p_resident",
    "t_avg_s", "t_wait_s", "t_step_s", "t_compute_s", "t_transfer_s", "beta",
)  # fmt: skip


def summarize(data: RunData, ctx: SummaryContext, baselines: Mapping[str, RunData] | None = None) -> Summary:
    """Return the summary of ``data``, beside its ``baselines`` (by name: ``no_offload``, ...)."""
    window = open_window(data, ctx.warm_up)
    figures = _figures(data, ctx, window)
    compared = {name: differences(data, other, window) for name, other in (baselines or {}).items()}
    others = {
        name: _baseline(other, ctx.for_baseline(name), same_window(other, data, window), compared[name])
        for name, other in (baselines or {}).items()
    }
    against = compared.get("no_offload")
    without = (baselines or {}).get("no_prefetch")
    gained = active.speedup(data.active, ctx.closed_form, without.active if without else None)
    figures["speedup"] = gained | {"vs_no_offload": _speedup(against)}
    figures["baselines"] = others
    figures["warnings"] = find_warnings(data, figures, ctx, window, against)
    figures["verdict"] = verdict(figures, ctx, against)
    return {name: figures.get(name) for name in METRICS}


def _figures(data: RunData, ctx: SummaryContext, window: Window) -> Summary:
    """Return everything that needs no baseline."""
    figures: Summary = _identity(ctx) | _counts(data) | _latencies(data, window) | _loads(data, window)
    figures |= _rates(data, ctx) | _resources(data, ctx)
    figures["hit_rate"] = hit_rate(data)
    figures["slo_attainment"] = _slo(data, ctx, window, figures)
    figures["classes"] = _classes(data, window)
    figures["prefetch"] = _prefetch(data)
    figures["warm_tiers"] = _warmed(data)
    figures["swap"] = _swap(data, ctx)
    figures |= active.figures(data.active, ctx.closed_form)
    figures["notes"] = [*ctx.notes, *active.why(data.active, ctx.closed_form)]
    parts = figures["time_breakdown_s"]
    found = bottleneck.find(data, ctx, parts if isinstance(parts, dict) else None)
    figures["bottleneck"] = found.name if found else None
    figures["bottleneck_because"] = found.because if found else None
    return figures


def _identity(ctx: SummaryContext) -> Summary:
    return {
        "schema_version": SCHEMA_VERSION,
        "simkv_version": ctx.version,
        "scenario": ctx.scenario,
        "question": ctx.question or None,
        "scenario_hash": ctx.scenario_hash,
        "seed": ctx.seed,
        "closed_form": dict(ctx.closed_form),
        "notes": list(ctx.notes),
    }


def _counts(data: RunData) -> Summary:
    rows = finished(data)
    return {
        "requests": {
            "arrived": int(data.arrived),
            "finished": int(data.finished),
            "rejected": int(data.rejected),
            "live": int(data.live),
        },
        "prompt_tokens": _total(data, "prompt_tokens", rows),
        "output_tokens": _total(data, "output_tokens", rows),
        "makespan_s": makespan_s(data),
        "preemptions": int(data.preemptions),
        "recomputed_tokens": int(data.recomputed_tokens),
    }


def _total(data: RunData, name: str, rows: Rows) -> int:
    return int(data.requests[name][rows].sum(dtype="i8"))


def _latencies(data: RunData, window: Window) -> Summary:
    found: Summary = {"warm_up_s": window.warm_up_s, "itl_s": itl(data, window.from_s)}
    for name, latency in LATENCIES.items():
        values = latency(data, window.rows)
        found[name] = distribution(values[np.isfinite(values)])
    found["time_breakdown_s"] = _breakdown(data, window)
    return found


def _breakdown(data: RunData, window: Window) -> dict[str, float] | None:
    if not len(window.rows):
        return None
    return {part: float(column(data, f"{part}_time_s", window.rows).mean()) for part in PARTS}


def _loads(data: RunData, window: Window) -> Summary:
    waits = column(data, "load_dram_time_s", window.rows) + column(data, "load_ssd_time_s", window.rows)
    waits = waits[waits > 0]
    return {
        "load_wait_s": finite(waits.mean()) if len(waits) else None,
        "load_hidden": finite(data.load_hidden_s / data.load_held_s) if data.load_held_s > 0 else None,
    }


def _rates(data: RunData, ctx: SummaryContext) -> Summary:
    makespan = makespan_s(data)
    if makespan <= 0:
        return {}
    tokens_per_s = _total(data, "output_tokens", finished(data)) / makespan
    return {
        "requests_per_s": data.finished / makespan,
        "output_tokens_per_s": tokens_per_s,
        "goodput_requests_per_s": slo.goodput_per_s(data, ctx),
    } | _cost(ctx, tokens_per_s)


def _cost(ctx: SummaryContext, tokens_per_s: float) -> Summary:
    if ctx.cost is None:
        return {}
    units = (("gpu_hour", ctx.gpus), ("dram_gib_hour", ctx.dram_gib), ("ssd_tib_hour", ctx.ssd_tib))
    priced = [(float(ctx.cost[name]), number) for name, number in units if number and ctx.cost.get(name)]
    per_hour = finite(sum(price * number for price, number in priced))  # null where something priced is unbounded
    million = None if per_hour is None or tokens_per_s <= 0 else finite(per_hour / (3600 * tokens_per_s) * 1e6)
    named = {key: ctx.cost.get(key) for key in ("currency", "source")}
    return {"cost_per_million_output_tokens": million, "cost": {"per_hour": per_hour, **named}}


def hit_rate(data: RunData) -> dict[str, float] | None:
    """Return the share of the finished requests' prompt tokens by the tier that served them."""
    rows = finished(data)
    prompt = _total(data, "prompt_tokens", rows)
    if not prompt:
        return None
    hits = {tier: _total(data, f"hit_{tier}_tokens", rows) for tier in TIERS}
    rates = {tier: tokens / prompt for tier, tokens in hits.items()}
    rates["miss"] = (prompt - sum(hits.values())) / prompt
    rates["ceiling"] = _total(data, "ceiling_tokens", rows) / prompt
    return rates


def _resources(data: RunData, ctx: SummaryContext) -> Summary:
    makespan = makespan_s(data)
    present = {name for name in bottleneck.RESOURCES if ctx.has(name) and data.instances.get(name)}
    return {
        "concurrency": {
            "formula": ctx.concurrency_formula,
            "mean": finite(data.running_time_s / makespan) if makespan > 0 else None,
            "max": int(data.running_max),
        },
        "kv_usage": {tier: _usage(data, tier) if tier in ctx.tiers else None for tier in TIERS},
        "bytes": {
            name: int(data.bytes.get(name, 0)) if name in present else None
            for name in bottleneck.RESOURCES
            if name != "gpu"
        },
        "utilization": {
            name: finite(bottleneck.utilization(data, name)) if name in present else None
            for name in bottleneck.RESOURCES
        },
    }


def _usage(data: RunData, tier: str) -> dict[str, float | None] | None:
    capacity = data.tier_capacity_blocks.get(tier, 0)
    if not capacity:
        return None
    mean = finite(data.tier_mean_used.get(tier))
    samples = data.timeseries.get(f"{tier}_blocks")
    if samples is None or not len(samples):
        return {"mean": mean, "max": None}
    if tier == "vram":
        samples = samples + data.timeseries["vram_cached_blocks"]
    return {"mean": mean, "max": min(1.0, float(samples.max()) / capacity)}


def _slo(data: RunData, ctx: SummaryContext, window: Window, figures: Summary) -> Summary | None:
    met = slo.attainment(data, ctx, window)
    return None if met is None else met | {"targets": slo.targets(ctx.slo, figures)}


def _classes(data: RunData, window: Window) -> Summary | None:
    if len(data.class_names) < 2:
        return None
    cls = data.requests["cls"][window.rows]
    found: Summary = {}
    for index, name in enumerate(data.class_names):
        rows = window.rows[cls == index]
        row: Summary = {"requests": len(rows)}
        for metric, latency in LATENCIES.items():
            values = latency(data, rows)
            row[metric] = distribution(values[np.isfinite(values)])
        found[name or "default"] = row
    return found


def _prefetch(data: RunData) -> Summary | None:
    loaded = data.prefetch.get("loaded_bytes", 0)
    if not loaded:
        return None
    return {
        "accuracy": finite(data.prefetch.get("used_bytes", 0) / loaded),
        "coverage": None,
        "timeliness": None,
        "loaded_bytes": int(loaded),
        "wasted_bytes": int(data.prefetch.get("wasted_bytes", 0)),
    }


def _warmed(data: RunData) -> Summary | None:
    warmed = data.warmed
    if warmed is None:
        return None
    capacity = data.tier_capacity_blocks
    times = {tier: warmed.written_blocks[tier] / capacity[tier] if capacity[tier] else None for tier in TIERS}
    return {"requests": warmed.requests, "time_s": warmed.time_s, "settled": warmed.settled, "written": times}


def _swap(data: RunData, ctx: SummaryContext) -> Summary | None:
    if not data.swap:
        return None
    moved = {f"{way}_bytes": data.swap[f"{way}_blocks"] * ctx.block_bytes for way in ("out", "in")}
    return {"requests": data.swap["requests"], "refused": data.swap["refused"], **moved}


def _baseline(data: RunData, ctx: SummaryContext, window: Window, compared: Mapping[str, Difference]) -> Summary:
    figures = _figures(data, ctx, window)
    kept = {key: figures.get(key) for key in _BASELINE_KEYS}
    codes = [warning["code"] for warning in find_warnings(data, figures, ctx, window, None)]
    return kept | {"difference": {name: one.as_dict() for name, one in compared.items()}, "warnings": codes}


def _speedup(against: Mapping[str, Difference] | None) -> float | None:
    e2e = (against or {}).get("e2e_s")
    return finite(e2e.baseline_s / e2e.run_s) if e2e and e2e.run_s > 0 else None
