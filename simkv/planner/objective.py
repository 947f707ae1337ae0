"""How many units a load takes, what they cost, and which candidate is better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor, inf
from typing import Any

from simkv.planner.offered import Offered
from simkv.planner.space import Choice
from simkv.scenario.plan_schema import Plan

HOUR_S = 3600.0
MILLION = 1e6
MOST_UNITS = 1024
"""As many hosts as a scenario can have."""
_ROUNDING = 1e-9
FOR_LOAD = ("cost", "gpus")
"""Objectives that plan for the scenario's own load; the others for as much as there can be."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What the plan is judged by."""

    plan: Plan
    load_one: Offered

    @property
    def of_load(self) -> bool:
        """Whether the scenario's own load is what is planned for."""
        return self.plan.objective in FOR_LOAD

    def usable(self, load: float) -> float:
        """Return the share of the scenario's load that is put on a unit which carries ``load``."""
        return (1 - self.plan.headroom) * load

    def wanted(self, choice: Choice, load: float) -> float:
        """Return how many units that carry ``load`` each are wanted, whatever they cost; ``inf``: none will do."""
        if choice.units is not None:
            enough = not self.of_load or self.usable(load) * choice.units >= 1 - _ROUNDING
            return choice.units if load > 0 and enough else inf
        if load <= 0:
            return inf
        return max(1, ceil(1 / self.usable(load) - _ROUNDING)) if self.of_load else self._affordable(choice)

    def units(self, choice: Choice, load: float) -> int | None:
        """Return how many units there are to be, within budget and limit; None: it can't be done with any number."""
        number = self.wanted(choice, load)
        return int(number) if 1 <= number <= self.most_units(choice) else None

    def most_units(self, choice: Choice) -> float:
        """Return how many units budget, limit and scenarios allow."""
        price = choice.candidate.unit.price
        by_budget = inf
        if self.plan.budget is not None and price is not None and price.hour > 0:
            by_budget = floor(self.plan.budget / price.hour + _ROUNDING)
        return min(by_budget, self.plan.units or inf, MOST_UNITS)

    def score(self, choice: Choice, load: float, summary: Mapping[str, Any] | None = None) -> float:
        """Return what is minimised, if a unit carries ``load``; ``inf``: nothing that is allowed does.

        ``summary``: of a run at capacity; without it everything that is served counts.
        """
        number = self.units(choice, load)
        if number is None:
            return inf
        return self.score_with(number, choice, load, summary)

    def score_with(self, units: int, choice: Choice, load: float, summary: Mapping[str, Any] | None = None) -> float:
        """Return what is minimised with so many units that carry ``load`` each, allowed or not."""
        return _SCORES[self.plan.objective](self, choice, units, load, summary)

    @property
    def bounded(self) -> bool:
        """Whether a score by a bound on load alone, without a run, is optimistic."""
        return self.of_load or (self.plan.objective == "goodput" and self.load_one.requests_per_s is not None)

    def hour(self, choice: Choice, units: float) -> float | None:
        """Return what an hour of so many units costs; None: nobody says."""
        price = choice.candidate.unit.price
        return None if price is None else price.hour * units

    def per_million(self, choice: Choice, units: int, load: float, summary: Mapping[str, Any]) -> float | None:
        """Return the cost of a million output tokens at the planned load."""
        hour, rate = self.hour(choice, units), self.output_tokens_per_s(units, load, summary)
        return None if hour is None or rate <= 0 else hour / (rate * HOUR_S) * MILLION

    def output_tokens_per_s(self, units: int, load: float, summary: Mapping[str, Any]) -> float:
        """Return the tokens that come out at the planned load: the scenario's own, or all that the units carry."""
        share = units * self.planned(units, load)
        if self.load_one.output_tokens_per_s is not None:
            return self.load_one.output_tokens_per_s * share
        return float(summary.get("output_tokens_per_s") or 0.0) * share / load

    def planned(self, units: int, load: float) -> float:
        """Return the load of one unit in the plan, as a factor of the scenario's own."""
        return 1 / units if self.of_load else self.usable(load)

    def _affordable(self, choice: Choice) -> float:
        """Return as many units as budget and limit allow; 1 where there is neither."""
        if self.plan.budget is None and self.plan.units is None:
            return 1
        return self.most_units(choice)


def _cost(aim: Aim, choice: Choice, units: int, load: float, summary: Mapping[str, Any] | None) -> float:
    hour = aim.hour(choice, units)
    return inf if hour is None else hour


def _gpus(aim: Aim, choice: Choice, units: int, load: float, summary: Mapping[str, Any] | None) -> float:
    return float(units * choice.candidate.unit.gpus)


def _goodput(aim: Aim, choice: Choice, units: int, load: float, summary: Mapping[str, Any] | None) -> float:
    """Requests a second that meet their limits: of those that come, the share that does."""
    all_s, good_s = (summary or {}).get("requests_per_s"), (summary or {}).get("goodput_requests_per_s")
    share = good_s / all_s if all_s and good_s is not None else 1.0
    one_s = aim.load_one.requests_per_s
    per_s = one_s * aim.usable(load) if one_s is not None else (all_s or 0.0) * (1 - aim.plan.headroom)
    return -per_s * share * units


def _users(aim: Aim, choice: Choice, units: int, load: float, summary: Mapping[str, Any] | None) -> float:
    """Users of a closed loop, else people in a session at once, whether they wait for an answer or think."""
    one, usable = aim.load_one, aim.usable(load)
    if one.requests_per_s is None:
        return -(one.users or 0) * usable * units
    e2e_s = ((summary or {}).get("e2e_s") or {}).get("mean") or 0.0
    return -one.requests_per_s * usable * (one.pauses_s / one.turns + e2e_s) * units


_SCORES = {"cost": _cost, "gpus": _gpus, "goodput": _goodput, "users": _users}
