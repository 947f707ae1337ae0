"""Where ``run.warm_tiers`` has a meaning: a workload with a beginning, and tiers that keep something of it."""

from __future__ import annotations

from collections.abc import Iterator

from simkv.scenario.active_idle import keeps_prefixes
from simkv.scenario.batch_schema import BATCH_PRESETS
from simkv.scenario.faults import Fault, Given
from simkv.scenario.schema import Scenario
from simkv.scenario.workload_schema import AllAtOnceArrival, BatchWorkload, ReadyQueueArrival, StagesArrival
from simkv.workload.passing import MOST_ASKED

PLACE = ("run", "warm_tiers")
_CERTAINLY = 1.5
"""Times the most that may pass: chance doesn't bring that much down below it."""


def warm_faults(s: Scenario, given: Given) -> Iterator[Fault]:
    """Yield why the tiers of a scenario that asks for it can't be warmed."""
    why = cannot_warm(s)
    if s.run.warm_tiers and why is not None:
        yield Fault(PLACE, *why)
    elif isinstance(s.run.warm_tiers, float) and s.run.warm_tiers * _least_rate(s) > _CERTAINLY * MOST_ASKED:
        yield Fault(PLACE, f"more than {MOST_ASKED:,} requests would pass untimed", "shorten it, or write auto")


def _least_rate(s: Scenario) -> float:
    """Return how many requests a second the workload has at least, on average, where that can be seen; else 0."""
    load = s.workload
    if isinstance(load, BatchWorkload):
        return load.size / load.interval if load.interval is not None else 0.0
    return float(getattr(getattr(load, "arrival", None), "rate", 0.0))


def cannot_warm(s: Scenario) -> tuple[str, str] | None:
    """Return why the tiers of ``s`` can't be warmed, and the mend; None where they can."""
    load = s.workload
    if s.engine.preset in BATCH_PRESETS:
        return "batch mode keeps nothing of a batch for the next one", "leave it out"
    if isinstance(getattr(load, "arrival", None), AllAtOnceArrival):
        return "everything arrives at once, so nothing comes before it", "give arrivals a rate, or leave it out"
    if isinstance(getattr(load, "arrival", None), StagesArrival):
        return "stages warm the tiers for each other", "leave it out"
    if isinstance(getattr(load, "arrival", None), ReadyQueueArrival):
        return "its sessions all begin at once, so nothing comes before them", "leave it out"
    if getattr(load, "stored", None):
        return "workload.stored says what tiers hold beforehand", "leave one of the two out"
    if isinstance(load, BatchWorkload) and load.interval is None:
        return "there is one batch, and nothing comes before it", "give workload.interval, or leave it out"
    if s.active and not (s.engine.prefix_caching and keeps_prefixes(s)):
        mend = "write offload.write: write_through with engine.prefix_caching, or leave it out"
        return "under this active offload nothing of a sequence stays for others", mend
    return None
