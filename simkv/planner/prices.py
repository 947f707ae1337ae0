"""What an hour of a unit costs: the user's own price, the scenario's, else that of the instance."""

from __future__ import annotations

from collections.abc import Sequence

from simkv.catalog import load_machine
from simkv.errors import InputError, Problem
from simkv.planner.types import Candidate, Price
from simkv.scenario.plan_schema import PlanPrice
from simkv.scenario.resolve import Resolved

GIB = 1 << 30
TIB = 1 << 40


def unit_price(resolved: Resolved, name: str, gpus: int) -> Price | None:
    """Return what an hour of a unit called ``name`` with so many GPUs costs; None where nobody says.

    ``plan.prices`` come first, by the unit's name, then by its GPU's; then ``cost`` as written, with DRAM and SSD where
    it prices them; then the instance's own. An instance's price is that of the whole.
    """
    plan, gpu = resolved.scenario.plan, resolved.gpu
    prices = _by_full_name(plan.prices) if plan is not None else {}
    if name in prices:
        return _own(prices[name], 1)
    if gpu is not None and gpu.name in prices:
        return _own(prices[gpu.name], gpus)
    if resolved.layers.given(("cost", "gpu_hour")):
        return _written(resolved, gpus)
    instance = resolved.instance
    if instance is None or instance.price is None:
        return None
    price = instance.price
    return Price(price.figure.value, price.currency, f"{price.terms}: {price.figure.source}", price.date)


def check_names(resolved: Resolved, known: Sequence[str]) -> None:
    """Raise InputError for a price of something that is neither in ``known`` nor in the catalogue."""
    plan = resolved.scenario.plan
    for name in plan.prices if plan is not None else ():
        if name in known:
            continue
        try:
            load_machine(name)
        except InputError as error:
            found = error.problems[0]
            place = f"plan.prices.{name}"
            raise InputError(Problem(found.what, found.mend, resolved.layers.file, None, place)) from None


def one_currency(candidates: Sequence[Candidate], file: str) -> str:
    """Return the currency of all prices; empty: nothing has a price. Raises InputError where there are two."""
    first: dict[str, str] = {}
    for candidate in candidates:
        if candidate.unit.price is not None:
            first.setdefault(candidate.unit.price.currency, candidate.unit.name)
    if len(first) > 1:
        (one, of_one), (other, of_other), *_ = first.items()
        what = f"prices in two currencies: {of_one} in {one}, {of_other} in {other}"
        mend = f"give plan.prices.{of_other}: {{hour: ..., currency: {one}}}"
        raise InputError(Problem(what, mend, file, None, "plan.prices"))
    return next(iter(first), "")


def _by_full_name(prices: dict[str, PlanPrice]) -> dict[str, PlanPrice]:
    """Return prices by the names that the catalogue uses; aliases are as good."""
    found = {}
    for name, price in prices.items():
        try:
            found[load_machine(name).name] = price
        except InputError:
            found[name] = price
    return found


def _own(price: PlanPrice, times: int) -> Price:
    return Price(price.hour * times, price.currency, price.source or "plan.prices", price.date)


def _written(resolved: Resolved, gpus: int) -> Price:
    scenario = resolved.scenario
    cost, tiers = scenario.cost, scenario.tiers
    assert cost is not None
    hour = cost.gpu_hour * gpus
    for each, capacity_bytes, unit in (
        (cost.dram_gib_hour, tiers.dram.capacity, GIB),
        (cost.ssd_tib_hour, tiers.ssd.capacity, TIB),
    ):
        hour += each * capacity_bytes / unit if each and capacity_bytes else 0.0
    return Price(hour, cost.currency, cost.source or "the scenario's cost", cost.date)
