"""What ten percent more of each resource would buy: load, money and latency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isinf
from typing import Any

from simkv.planner.compare import Comparison, Gain, Measured, gain, statistic
from simkv.results.quantity import change
from simkv.results.words import MORE_OF
from simkv.scenario.resolve import Resolved
from simkv.scenario.scaled import RESOURCES
from simkv.scenario.schema import InlineHardware
from simkv.sweeps.simulate import Case

MORE = 1.1
BASE = "base"
_LATENCIES = ("ttft", "tpot")
_KEYS = ("load_change", "doubt", "measurable", "cost_change", *(f"{metric}_p95_change" for metric in _LATENCIES))


def cases(case: Case, resolved: Resolved) -> tuple[dict[str, Case], dict[str, str]]:
    """Return the case itself and with more of each resource that it has; and why others are left out."""
    left_out = {name: why for name in RESOURCES if (why := absent(resolved, name))}
    asked = {name: replace(case, scale=(*case.scale, (name, MORE))) for name in RESOURCES if name not in left_out}
    return {BASE: case, **asked}, left_out


def absent(resolved: Resolved, resource: str) -> str:
    """Return why more of ``resource`` means nothing; empty where it does."""
    scenario = resolved.scenario
    dram, ssd, link = scenario.tiers.dram, scenario.tiers.ssd, scenario.link
    below = bool(dram.capacity)
    if resource == "memory_bandwidth" and isinstance(scenario.hardware, InlineHardware):
        return "an abstract machine has none"
    if resource in ("link", "dram", "dram_bandwidth") and not below:
        return "there is no tier below VRAM"
    if resource in ("ssd", "ssd_bandwidth") and not (below and ssd.capacity):
        return "there is no SSD tier"
    endless = {
        "link": min(link.h2d, link.d2h, link.duplex),
        "dram": dram.capacity,
        "dram_bandwidth": dram.bandwidth,
        "ssd": ssd.capacity,
        "ssd_bandwidth": min(ssd.read, ssd.write),
    }
    return "it is unlimited already" if isinf(endless.get(resource, 0.0)) else ""


def sensitivity(found: Comparison, left_out: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return what 10 % more of each resource buys, the best first, and why the rest wasn't measured.

    By resource: ``load_change`` of the largest load (relative, with its ``doubt``; ``measurable``: beyond that),
    ``cost_change`` (of a million tokens on units at their largest load, at an unchanged price), ``ttft_p95_change`` and
    ``tpot_p95_change`` (relative, at the planned load), ``because``. All but the last are null for resources that
    there is nothing more of, or that can't be told from others.
    """
    reasons = {**left_out, **{name: why for name, why in found.failed.items() if name in RESOURCES}}
    base = found.measured.get(BASE)
    if base is None:
        reasons = dict.fromkeys(RESOURCES, found.failed[BASE])
    rows = {
        name: _row(name, one, base) for name, one in found.measured.items() if base is not None and name in RESOURCES
    }
    ordered = sorted(rows, key=lambda name: (-(rows[name]["load_change"] or 0.0), RESOURCES.index(name)))
    return {name: rows[name] for name in ordered} | {name: _nothing(why) for name, why in reasons.items()}


def _nothing(why: str) -> dict[str, Any]:
    return {**dict.fromkeys(_KEYS), "because": f"Left out: {why}."}


def _row(name: str, one: Measured, base: Measured) -> dict[str, Any]:
    more = gain(one.carries, base.carries)
    latencies = {metric: _relative(one, base, metric) for metric in _LATENCIES}
    cost = None if more.relative is None else 1 / (1 + more.relative) - 1
    values = (more.relative, more.doubt, more.sign != 0, cost, *latencies.values())
    return {**dict(zip(_KEYS, values, strict=True)), "because": _because(name, more, latencies)}


def _relative(one: Measured, base: Measured, metric: str) -> float | None:
    after, before = statistic(one.planned, metric), statistic(base.planned, metric)
    return after / before - 1 if after is not None and before else None


def _because(name: str, more: Gain, latencies: Mapping[str, float | None]) -> str:
    head = f"10 % more {MORE_OF[name]}"
    what = f"carries {more.text} load" if more.sign else f"changes the largest load by nothing measurable ({more.text})"
    moved = [f"{metric.upper()} p95 {change(value)}" for metric, value in latencies.items() if value is not None]
    return f"{head} {what}" + (f"; at the planned load {', '.join(moved)}." if moved else ".")
