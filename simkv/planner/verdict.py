"""Is offloading worth it in this plan: the same unit with and without its lower tiers, and where it breaks even."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isinf
from typing import Any

from simkv.errors import SimkvError
from simkv.planner import knee
from simkv.planner.break_even import break_even
from simkv.planner.compare import Comparison, Gain, Measured, gain, statistic
from simkv.planner.prices import unit_price
from simkv.planner.types import Unit
from simkv.planner.wear import wear
from simkv.results.quantity import digits, seconds, share
from simkv.scenario.resolve import Resolved
from simkv.sweeps.simulate import Case

WITH, WITHOUT = "with offload", "without offload"
NO_TIERS = (("dram", 0.0), ("ssd", 0.0))
_SUPPOSED = "The unit has no tier below VRAM, and is held against itself with all the DRAM of its host."
_ALL_RESIDENT = ("offload.residency=1", "offload.vram_budget=null")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is measured for a verdict, by name."""

    resolved: Resolved
    offers: Mapping[str, Case]
    """With and without lower tiers."""
    why_not: str
    """Why there are no offers."""
    ssd: Mapping[str, Case]
    no_ssd: str
    sizes: Mapping[str, Case]
    """Of DRAM."""

    @property
    def cases(self) -> dict[str, Case]:
        """Return all of them."""
        return {**self.offers, **self.ssd, **self.sizes}


def ask(case: Case) -> Asked:
    """Return what a verdict on ``case`` needs; raises InputError, InfeasibleError where it doesn't resolve."""
    resolved = case.resolve()
    offers, why_not = sides(case, resolved)
    ssd, no_ssd = knee.ssd_cases(case, resolved)
    return Asked(resolved, offers, why_not, ssd, no_ssd, knee.dram_cases(case, resolved))


def verdict(asked: Asked, unit: Unit, found: Comparison) -> dict[str, Any]:
    """Return whether offloading pays in one ``unit``, and what belongs to that, from what was measured of ``asked``.

    ``offload_helps``, ``because``, ``cost_change``, and ``with`` and ``without``: what the unit carries, its TTFT p95
    at the planned load, its price (:func:`judge`); ``break_even``: bandwidth and reuse; ``dram_knee``; ``ssd``;
    ``wear``.
    """
    answer = judge(found, _prices(asked.offers, unit), asked.why_not)
    if not asked.resolved.scenario.tiers.dram.capacity and asked.offers:
        answer["because"] = f"{_SUPPOSED} {answer['because']}"
    ours = found.measured.get(WITH)
    planned = ours.planned if ours is not None else None
    resolved = ours.case.resolve() if ours is not None else asked.resolved
    return {
        **answer,
        "break_even": break_even(resolved, planned, answer),
        "dram_knee": knee.dram_knee(_only(found, asked.sizes)),
        "ssd": knee.ssd_worth(_only(found, asked.ssd), asked.no_ssd),
        "wear": wear(resolved, planned) if planned is not None else None,
    }


def _only(found: Comparison, named: Mapping[str, Case]) -> Comparison:
    return Comparison(
        {name: found.measured[name] for name in named if name in found.measured},
        {name: found.failed[name] for name in named if name in found.failed},
    )


def sides(case: Case, resolved: Resolved) -> tuple[dict[str, Case], str]:
    """Return the unit with and without lower tiers, or why one of them can't be.

    A unit that has none is held against itself with all the DRAM of its host.
    """
    if resolved.scenario.active and resolved.scenario.offload.access.pattern != "dense":
        return {}, "attention reads only some blocks here, whatever is offloaded"
    if resolved.scenario.tiers.dram.capacity:
        settings = _ALL_RESIDENT if resolved.scenario.active else ()
        bare = replace(case, scale=(*case.scale, *NO_TIERS), assignments=(*case.assignments, *settings))
        return {WITH: case, WITHOUT: bare}, ""
    most = knee.most_dram_bytes(resolved)
    if not most:
        return {}, "there is no tier below VRAM, and nothing says how much DRAM a host has"
    return {WITH: knee.with_dram(case, resolved, most), WITHOUT: case}, ""


def _prices(offers: Mapping[str, Case], unit: Unit) -> dict[str, float | None]:
    """Return what an hour of the unit costs with and without lower tiers; None: nobody says."""
    found: dict[str, float | None] = {}
    for name, case in offers.items():
        try:
            price = unit_price(case.resolve(), unit.name, unit.gpus)
        except SimkvError:
            price = unit.price
        found[name] = price.hour if price is not None else None
    return found


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two, as it is judged."""

    load: float
    uncertainty: float
    ttft_p95_s: float | None
    price_hour: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return what goes into the answer."""
        doubt = None if isinf(self.uncertainty) else self.uncertainty
        price = self.price_hour
        return {"load": self.load, "doubt": doubt, "ttft_p95_s": self.ttft_p95_s, "price_per_hour": price}


def judge(found: Comparison, prices: Mapping[str, float | None], why_not: str = "") -> dict[str, Any]:
    """Return ``offload_helps``, ``because``, ``cost_change``, ``with`` and ``without``.

    It helps where a million tokens cost less by more than can be told apart, or, without prices, where a unit carries
    more; None where one of the two wasn't measured.
    """
    missing = why_not or found.failed.get(WITH) or found.failed.get(WITHOUT)
    if missing or WITH not in found.measured or WITHOUT not in found.measured:
        why = missing or "nothing was measured"
        return {"offload_helps": None, "because": f"It can't be said: {why}.", "cost_change": None,
                "with": None, "without": None}  # fmt: skip
    ours, theirs = found.measured[WITH], found.measured[WITHOUT]
    more = gain(ours.carries, theirs.carries)
    one, other = _side(ours, prices.get(WITH)), _side(theirs, prices.get(WITHOUT))
    dearer = _dearer(one, other)
    cheaper = _cheaper(more, dearer)
    helps = cheaper > 0
    return {
        "offload_helps": helps,
        "because": _because(cheaper, more, dearer, one, other),
        "cost_change": None if more.relative is None else dearer / (1 + more.relative) - 1,
        "with": one.as_dict(),
        "without": other.as_dict(),
    }


def _side(one: Measured, price: float | None) -> Side:
    return Side(one.carries.load, one.carries.uncertainty, statistic(one.planned, "ttft"), price)


def _dearer(one: Side, other: Side) -> float:
    """Return the price with over the price without; 1 where nobody says."""
    return one.price_hour / other.price_hour if one.price_hour is not None and other.price_hour else 1.0


def _cheaper(more: Gain, dearer: float) -> int:
    """Return 1, -1 where a million tokens cost less or more with offload beyond the doubt, 0 where neither."""
    if more.relative is None or more.doubt is None:
        return more.sign
    saved = (1 + more.relative) / dearer - 1
    return (saved > more.doubt) - (saved < -more.doubt)


def _because(cheaper: int, more: Gain, dearer: float, one: Side, other: Side) -> str:
    opening = {
        1: "Offloading is worth it",
        0: "Offloading makes no difference that pays",
        -1: "Offloading costs more than it brings",
    }[cheaper]
    loads = (
        f"a unit carries {digits(one.load)} times the scenario's load with lower tiers and {digits(other.load)} without"
    )
    parts = [f"{opening}: {loads} ({more.text})"]
    if one.ttft_p95_s is not None and other.ttft_p95_s is not None:
        parts.append(
            f"TTFT p95 at the planned load is {seconds(one.ttft_p95_s)} with and {seconds(other.ttft_p95_s)} without"
        )
    parts.append(_money(more, dearer, one.price_hour is not None))
    return f"{'; '.join(part for part in parts if part)}."


def _money(more: Gain, dearer: float, priced: bool) -> str:
    if more.relative is None:
        return ""
    saved = dearer / (1 + more.relative) - 1
    amount = f"{share(abs(saved))} {'less' if saved < 0 else 'more'}"
    if not priced:
        return f"if both cost the same, a million tokens cost {amount}"
    of_unit = (
        "at the same price" if dearer == 1 else f"at {share(abs(dearer - 1))} {'more' if dearer > 1 else 'less'} a unit"
    )
    return f"{of_unit} a million tokens cost {amount}"
