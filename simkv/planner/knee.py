"""How much DRAM is worth having, and whether an SSD below it is: what is carried over sizes of a tier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isinf
from typing import Any, NamedTuple

from simkv import units
from simkv.planner.compare import Comparison, gain, statistic
from simkv.results.quantity import change, share
from simkv.scenario.resolve import Resolved
from simkv.sweeps.simulate import Case

ENOUGH = 0.95
"""Share of the whole gain that the knee has."""
HALVINGS = 4
"""Sizes go from the most down by so many halves."""
MATTERS = 0.02
"""A change of latency below this is no gain."""
_DRAM = "dram"


class Point(NamedTuple):
    """One size of a tier, and what is gained there."""

    size_bytes: float
    value: float


def knee(points: Sequence[Point]) -> Point | None:
    """Return the smallest size that has :data:`ENOUGH` of what the best has over the smallest; None: nothing is gained.

    More is better. Of a curve that isn't monotone the best is the best anywhere.
    """
    ordered = sorted(points)
    if not ordered:
        return None
    least, most = ordered[0].value, max(one.value for one in ordered)
    if most <= least:
        return None
    return next(one for one in ordered if one.value - least >= ENOUGH * (most - least))


def sizes(most_bytes: float) -> list[int]:
    """Return the sizes that are tried, geometric, with none at all first."""
    return [0, *(int(most_bytes) >> halves for halves in range(HALVINGS, -1, -1))]


def with_dram(case: Case, resolved: Resolved, size_bytes: float) -> Case:
    """Return ``case`` with so much DRAM on each host (``resolved``: what it resolves to), whatever the host has."""
    now = resolved.scenario.tiers.dram.capacity
    if now:
        return replace(case, scale=(*case.scale, (_DRAM, size_bytes / now)))
    given = (f"tiers.dram.capacity={units.exact(int(size_bytes), 'size')}",)
    return replace(case, assignments=(*case.assignments, *given))


def most_dram_bytes(resolved: Resolved) -> float:
    """Return the most DRAM that is asked about: the host's, else twice what there is; 0 where neither is known."""
    if resolved.instance is not None:
        return float(resolved.instance.dram_bytes)
    now = resolved.scenario.tiers.dram.capacity
    return 0.0 if isinf(now) else 2.0 * now


def dram_cases(case: Case, resolved: Resolved) -> dict[str, Case]:
    """Return ``case`` with each size of DRAM, by its bytes as text; empty where no size is known."""
    most = most_dram_bytes(resolved)
    return {str(size): with_dram(case, resolved, size) for size in sizes(most)} if most else {}


def dram_knee(found: Comparison) -> dict[str, Any]:
    """Return the DRAM size at the knee: ``bytes`` (null: no gain at any size), ``by``, ``sizes``, ``because``.

    ``found``: what was measured of :func:`dram_cases`. ``by`` says what was gained: ``load``, or ``ttft_mean`` at the
    planned load where the largest load stays the same.
    """
    rows = [_row(name, found) for name in sorted(found.measured, key=int)]
    if len(rows) < 2 or rows[0]["dram_bytes"] != 0:
        why = next(iter(found.failed.values()), "nothing says how much DRAM a host has: name an instance")
        return {"bytes": None, "by": None, "sizes": rows, "because": f"No sizes to compare: {why}."}
    best = max(found.measured, key=lambda name: _load(found, name))
    most, least = found.measured[best].carries, found.measured["0"].carries
    more = gain(most, least)
    if more.sign > 0:
        at = knee([Point(row["dram_bytes"], row["load"]) for row in rows])
        text = f"a unit carries {more.text} load" if more.relative is not None else "without DRAM nothing is carried"
        return _answer(at, "load", rows, text)
    timed = [Point(row["dram_bytes"], -row["ttft_mean"]) for row in rows if row["ttft_mean"] is not None]
    fallen = _fallen(timed)
    if fallen < -MATTERS:
        text = f"the largest load stays the same, and mean TTFT at the planned load falls by {share(-fallen)}"
        return _answer(knee(timed), "ttft_mean", rows, text)
    because = (
        "DRAM of no size gains what could be told apart: neither in the largest load nor in TTFT at the planned load."
    )
    return {"bytes": None, "by": None, "sizes": rows, "because": because}


def _load(found: Comparison, name: str) -> float:
    return found.measured[name].carries.load


def _row(name: str, found: Comparison) -> dict[str, Any]:
    one = found.measured[name]
    rates = one.planned.get("hit_rate") or {}
    return {
        "dram_bytes": int(name),
        "load": _load(found, name),
        "ttft_mean": statistic(one.planned, "ttft", "mean"),
        "hit_rate": 1 - rates["miss"] if "miss" in rates else None,
    }


def _fallen(points: Sequence[Point]) -> float:
    """Return the relative change from the smallest size to the best; points are negative latencies."""
    if len(points) < 2 or not points[0].value:
        return 0.0
    return max(one.value for one in points) / points[0].value - 1


def _answer(at: Point | None, by: str, rows: list[dict[str, Any]], text: str) -> dict[str, Any]:
    assert at is not None, "something is gained"
    size = int(at.size_bytes)
    because = f"{units.short(size, 'size')} a host has {share(ENOUGH)} of what DRAM can gain ({text})."
    if at.size_bytes == rows[-1]["dram_bytes"]:
        because += " The gain has not levelled off there."
    return {"bytes": size, "by": by, "sizes": rows, "because": because}


WITH, WITHOUT = "with SSD", "without SSD"
_SSD_KEYS = ("worth", "load_change", "doubt", "ttft_p95_with_s", "ttft_p95_without_s")


def ssd_cases(case: Case, resolved: Resolved) -> tuple[dict[str, Case], str]:
    """Return ``case`` with and without an SSD below its DRAM, or why there is nothing to compare."""
    scenario, preset = resolved.scenario, resolved.layers.preset
    if not scenario.tiers.dram.capacity:
        return {}, "SSD is reached through DRAM, and there is none"
    if scenario.tiers.ssd.capacity:
        return {WITH: case, WITHOUT: replace(case, scale=(*case.scale, ("ssd", 0.0)))}, ""
    if resolved.gpu is not None and tuple(preset.has.get("tiers.ssd.capacity", (1,))) == (0,):
        return {}, f"{preset.name} has no SSD tier of its own"
    if resolved.instance is None or not resolved.instance.ssd_bytes:
        return {}, "the host has no local SSD" if resolved.instance is not None else "no instance is named"
    given = f"tiers.ssd.capacity={units.exact(resolved.instance.ssd_bytes, 'size')}"
    return {WITH: replace(case, assignments=(*case.assignments, given)), WITHOUT: case}, ""


def ssd_worth(found: Comparison, why_not: str = "") -> dict[str, Any]:
    """Return whether an SSD below the DRAM is worth it: ``worth`` (null: nothing to compare), ``because``, figures."""
    if why_not or found.failed or not {WITH, WITHOUT} <= set(found.measured):
        why = why_not or next(iter(found.failed.values()), "nothing was measured")
        return {**dict.fromkeys(_SSD_KEYS), "because": f"With and without an SSD can't be compared: {why}."}
    one, other = found.measured[WITH], found.measured[WITHOUT]
    more = gain(one.carries, other.carries)
    latency = {name: statistic(of.planned, "ttft") for name, of in ((WITH, one), (WITHOUT, other))}
    moved = _moved(latency)
    what = f"a unit carries {more.text} load" if more.sign else f"the largest load stays the same ({more.text})"
    values = (more.sign > 0, more.relative, more.doubt, latency[WITH], latency[WITHOUT])
    because = f"With an SSD below the DRAM {what}{moved}."
    return {**dict(zip(_SSD_KEYS, values, strict=True)), "because": because}


def _moved(latency: Mapping[str, float | None]) -> str:
    after, before = latency[WITH], latency[WITHOUT]
    return f"; TTFT p95 at the planned load {change(after / before - 1)}" if after is not None and before else ""
