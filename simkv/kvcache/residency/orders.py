"""Policy names of the resident set: ranked ones over columns, the others one by one."""

from __future__ import annotations

from simkv.errors import InputError, Problem
from simkv.kvcache.eviction import COUNTING, EvictionPolicy, make_policy
from simkv.kvcache.residency.one_by_one import OneByOne, UnitEntry
from simkv.kvcache.residency.order import Order
from simkv.kvcache.residency.ranked import RANKED, make_ranked
from simkv.kvcache.residency.units import Units


def make_order(policy: str, units: Units, lam: float | None, one_by_one: bool) -> Order:
    """Return the order of ``policy``; InputError for an unknown name, or a λ that ``score`` can't use."""
    if policy in RANKED and not one_by_one:
        return make_ranked(policy, units, lam)
    chooser: EvictionPolicy[UnitEntry] = make_policy(policy, lam)
    return OneByOne(units, chooser)


def check_count(policy: str, count: str, ranked: bool) -> None:
    """InputError where ``policy`` doesn't go by the chosen count."""
    if count == "in_cache" or (policy in COUNTING and ranked):
        return
    mend = f"leave the count out, or choose {' or '.join(COUNTING)}"
    raise InputError(Problem(f"policy {policy} doesn't go by a count", mend, path="count", value=count))
