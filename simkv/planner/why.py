"""Why the winner of a plan wins, and what binds it, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from simkv.planner.found import Confirmed, Found
from simkv.planner.slo import SERVED, STATIONARY
from simkv.planner.types import Capacity, Unit
from simkv.results.bottleneck import NAMES
from simkv.results.quantity import change, digits, seconds, share
from simkv.results.slo import split_key

SAME = 0.01
"""Figures closer than this, relative, are called the same."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A candidate as it would serve the planned load."""

    name: str
    unit: Unit
    units: int
    capacity: Capacity
    cost_per_million: float | None
    """Of a million output tokens; None: nobody says what a unit costs."""
    latencies: Mapping[str, float] = field(default_factory=dict)
    """By target of the SLO, at the planned load."""

    @property
    def gpus(self) -> int:
        """GPUs of all units."""
        return self.units * self.unit.gpus

    @property
    def price_hour(self) -> float | None:
        """What an hour of all units costs."""
        return self.unit.price.hour * self.units if self.unit.price is not None else None

    @property
    def currency(self) -> str:
        """Of its price; empty: it has none."""
        return self.unit.price.currency if self.unit.price is not None else ""


def why(found: Found) -> list[str]:
    """Return why the winner of a search is ahead of its runner-up, and what binds it, in sentences; none: no winner."""
    if found.winner is None:
        return []
    runner_up = found.runners_up[0] if found.runners_up else None
    told = against(contender(found, found.winner), contender(found, runner_up) if runner_up is not None else None)
    return [told["because"], told["binds"]["because"]]


def contender(found: Found, one: Confirmed) -> Contender:
    """Return a confirmed candidate as it is held against another."""
    capacity = one.rated.capacity
    cost = found.aim.per_million(one.rated.choice, one.units, capacity.load, capacity.summary)
    latencies = {key: one.targets[key].mean for key in found.slo.limits if key in one.targets}
    return Contender(one.rated.candidate.name, one.rated.candidate.unit, one.units, capacity, cost, latencies)


def against(winner: Contender, other: Contender | None) -> dict[str, Any]:
    """Return why ``winner`` is ahead of ``other`` (the runner-up; None: there is none), and what binds it.

    Keys: ``because``, a sentence or two; ``against``, the runner-up's name; ``differences``, relative, winner over
    runner-up - 1: ``cost``, ``price_per_hour``, ``unit_price``, ``capacity``, ``gpus`` and each latency (null where one
    of the two has none); ``binds``: see :func:`binds`.
    """
    because = f"{winner.name} is the only candidate that will do."
    found: dict[str, float | None] = {}
    if other is not None:
        found = differences(winner, other)
        because = _because(winner, other, found)
    name = other.name if other is not None else None
    return {"because": because, "against": name, "differences": found, "binds": binds(winner.capacity)}


def differences(winner: Contender, other: Contender) -> dict[str, float | None]:
    """Return by how much each figure of ``winner`` differs from that of ``other``, relative; None: one has none."""
    pairs: dict[str, tuple[float | None, float | None]] = {
        "cost": (winner.cost_per_million, other.cost_per_million),
        "price_per_hour": (winner.price_hour, other.price_hour),
        "unit_price": (_hour(winner.unit), _hour(other.unit)),
        "capacity": (winner.capacity.load, other.capacity.load),
        "gpus": (float(winner.gpus), float(other.gpus)),
    }
    both = [name for name in winner.latencies if name in other.latencies]
    pairs |= {name: (winner.latencies[name], other.latencies[name]) for name in both}
    return {name: one / two - 1 if one is not None and two else None for name, (one, two) in pairs.items()}


def _hour(unit: Unit) -> float | None:
    return unit.price.hour if unit.price is not None else None


def _because(winner: Contender, other: Contender, found: Mapping[str, float | None]) -> str:
    leading = "cost" if _differs(found["cost"]) else "price_per_hour" if _differs(found["price_per_hour"]) else ""
    text = _opening(winner, other, leading)
    reasons = list(_reasons(winner, other, found))
    if not leading and not reasons:
        return f"{winner.name} and {other.name} are alike in price, capacity and latency."
    return f"{text}: {'; '.join(reasons)}." if reasons else f"{text}."


def _opening(winner: Contender, other: Contender, leading: str) -> str:
    if leading == "cost" and winner.cost_per_million is not None and other.cost_per_million is not None:
        pair, what = (winner.cost_per_million, other.cost_per_million), "a million output tokens"
    elif leading and winner.price_hour is not None and other.price_hour is not None:
        pair, what = (winner.price_hour, other.price_hour), "an hour"
    else:
        return f"{winner.name} is ahead of {other.name}"
    one, two = pair
    than = f"{share(abs(one / two - 1))} {'less' if one < two else 'more'} than {other.name} ({digits(two)})"
    return f"{winner.name} costs {digits(one)} {winner.currency} {what}, {than}"


def _reasons(winner: Contender, other: Contender, found: Mapping[str, float | None]) -> Iterator[str]:
    """Yield what differs, each with its figures."""
    unit_price, capacity, gpus = found["unit_price"], found["capacity"], found["gpus"]
    if unit_price is not None and _differs(unit_price):
        yield f"a unit of it costs {_amount(unit_price)} an hour"
    if capacity is not None and _differs(capacity):
        loads = f"{digits(winner.capacity.load)} times the scenario's load, the other {digits(other.capacity.load)}"
        yield f"a unit carries {_amount(capacity)} ({loads})"
    if winner.units != other.units:
        yield f"it takes {_units(winner.units)} instead of {other.units}"
    if gpus is not None and _differs(gpus):
        yield f"{winner.gpus} GPU{'s' * (winner.gpus != 1)} instead of {other.gpus}"
    for name in winner.latencies:
        latency = found.get(name)
        if latency is not None and _differs(latency):
            one, two = seconds(winner.latencies[name]), seconds(other.latencies[name])
            yield f"{spoken(name)} at the planned load is {one} instead of {two} ({change(latency)})"


def _units(number: int) -> str:
    return f"{number} unit{'s' * (number != 1)}"


def _amount(relative: float) -> str:
    return f"{share(abs(relative))} {'more' if relative > 0 else 'less'}"


def _differs(relative: float | None) -> bool:
    return relative is not None and abs(relative) > SAME


def binds(capacity: Capacity) -> dict[str, Any]:
    """Return what keeps a unit from carrying more.

    ``target``: what fails first above the largest load (null: nothing did), ``load`` and ``over``: the largest load
    that is carried, and the smallest that isn't (null: none was found); ``value`` and ``limit`` there; ``bottleneck``
    of the run at ``load``; ``because``.
    """
    over = None if capacity.over == inf else capacity.over
    missed = next((one.misses for one in capacity.trials if one.load == over), {})
    value, limit = missed.get(capacity.binds, (None, None))
    bottleneck = capacity.summary.get("bottleneck")
    return {
        "target": capacity.binds or None,
        "load": capacity.load,
        "over": over,
        "value": value,
        "limit": limit,
        "bottleneck": bottleneck,
        "because": f"{_first(capacity, over, value, limit)} {_resource(capacity, bottleneck)}",
    }


def _first(capacity: Capacity, over: float | None, value: float | None, limit: float | None) -> str:
    """Say what fails first."""
    carried = f"A unit carries {digits(capacity.load)} times the scenario's load"
    if not capacity.load:
        carried = "A unit carries nothing within the SLO"
    if over is None:
        return f"{carried}, and no load tried was too much."
    at = f"at {digits(over)} times"
    if capacity.binds == STATIONARY:
        return f"{carried}; {at} the queue grows without bound."
    if capacity.binds == SERVED:
        return f"{carried}; {at} {share(value)} of the requests are turned away."
    return f"{carried}; {at} {spoken(capacity.binds)} is {seconds(value)}, and the limit is {seconds(limit)}."


def _resource(capacity: Capacity, bottleneck: str | None) -> str:
    because = capacity.summary.get("bottleneck_because")
    where = "there" if capacity.load else "at the least load tried"
    if not because:
        return "What it waits for can't be said."
    if bottleneck is None:
        return f"No resource is near its limit {where}: {because}."
    return f"The bottleneck {where} is {NAMES.get(bottleneck, bottleneck)}: {because}."


def spoken(target: str) -> str:
    """``chat.ttft_p95`` to ``TTFT p95 of class chat``."""
    name, _, key = target.rpartition(".")
    metric, statistic = split_key(key)
    text = f"{metric.upper()} {statistic}".strip()
    return f"{text} of class {name}" if name else text
