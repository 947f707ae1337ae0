"""Which axes can't matter at a point, and why: told before anything runs, from what the simulator does with a value.

A reason here is a promise: along the axis nothing changes in the summary at that point but names, hash and warnings.
What is merely likely to do nothing isn't named; :mod:`simkv.sweeps.felt` finds it afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from simkv.scenario.active_idle import keeps_prefixes
from simkv.scenario.checks import idle_paths
from simkv.scenario.offload_schema import DenseAccess, ReplayAccess, WindowAccess
from simkv.scenario.resolve import Resolved
from simkv.scenario.schema import Scenario
from simkv.scenario.workload_schema import AllAtOnceArrival, BatchWorkload, ConstantArrival, PlainWorkload
from simkv.sweeps.axes import Axis


class Rule(NamedTuple):
    """When some paths can't matter."""

    paths: tuple[str, ...]
    """And everything below them."""
    holds: Callable[[Scenario], bool]
    reason: str


_SCHEDULES = tuple(f"offload.prefetch.{key}" for key in ("beta", "predictor", "accuracy", "lead", "demand"))
_OF_ACTIVE = (*_SCHEDULES, "offload.staging_layers")
_EVICTION = tuple(f"offload.eviction.{key}" for key in ("lambda", "policy", "count", "half_life"))
_SSD_RATES = tuple(f"tiers.ssd.{key}" for key in ("read", "write", "latency", "request_latency", "queue_depth"))
_MOVES = (
    "link", "tiers.dram.bandwidth", "tiers.dram.shared", "offload.when_full", "offload.write_back_blocks",
    "offload.prefetch.window",
)  # fmt: skip


def inert(resolved: Resolved, axes: Sequence[Axis]) -> dict[str, str]:
    """Return by name the axes that can't matter where the scenario is ``resolved``, each with the reason."""
    scenario = resolved.scenario
    found: dict[str, str] = {}
    for axis in axes:
        reason = _reason(scenario, axis.path)
        if reason:
            found[axis.name] = reason
    return found


def effective(point: Mapping[str, str], axes: Sequence[Axis], off: Mapping[str, str]) -> dict[str, str]:
    """Return the point that stands for ``point``: every axis that can't matter there (``off``) at its first value.

    So points that differ in nothing else are one, and an axis still brings along what it does.
    """
    return {axis.name: (_first(axis) if axis.name in off else point[axis.name]) for axis in axes if axis.name in point}


def _first(axis: Axis) -> str:
    return axis.span.at(0.0, False) if axis.span is not None else axis.values[0]


def _reason(scenario: Scenario, path: str) -> str:
    for rule in RULES:
        if any(path == one or path.startswith(f"{one}.") for one in rule.paths) and rule.holds(scenario):
            return rule.reason
    if any(tuple(path.split("."))[: len(idle)] == idle for idle in idle_paths(scenario)):
        return "it means nothing in this scenario"
    return ""


# ---- when -------------------------------------------------------------------------------------


def _in_batches(s: Scenario) -> bool:
    return s.engine.placement is not None


def _keeps_all(s: Scenario) -> bool:
    """Running sequences keep all of their KV in VRAM, and no prompt brings any from below."""
    whole = s.offload.residency >= 1 and s.offload.vram_budget is None
    return whole and s.engine.prefill in ("here", "vram") and not _in_batches(s) and not (s.active and _reuses(s))


def _reuses(s: Scenario) -> bool:
    """Finished sequences may leave something that others find."""
    return s.engine.prefix_caching and (not s.active or keeps_prefixes(s))


def _chooses_nothing(s: Scenario) -> bool:
    """Under active offload nobody is evicted by a policy: all is resident, or a pinned share is."""
    pinned = isinstance(s.offload.access, DenseAccess)
    return s.active and not _in_batches(s) and not _reuses(s) and (pinned or _keeps_all(s))


def _keeps_nothing(s: Scenario) -> bool:
    return not s.active and not _in_batches(s) and not s.engine.prefix_caching


def _nothing_below(s: Scenario) -> bool:
    return not s.active and not _in_batches(s) and not s.tiers.dram.capacity


def _no_way_to_ssd(s: Scenario) -> bool:
    return not _in_batches(s) and not (s.tiers.dram.capacity and s.tiers.dram.bandwidth)


def _no_ssd(s: Scenario) -> bool:
    return not _in_batches(s) and not s.tiers.ssd.capacity


def _unpaid(s: Scenario) -> bool:
    return s.cost is None or not s.cost.ssd_tib_hour


def _one_replica(s: Scenario) -> bool:
    return s.replicas.count == 1


def _nothing_random(s: Scenario) -> bool:
    load, access = s.workload, s.offload.access
    if not isinstance(load, BatchWorkload | PlainWorkload) or not isinstance(
        access, DenseAccess | WindowAccess | ReplayAccess
    ):
        return False
    if isinstance(load, PlainWorkload) and not isinstance(load.arrival, ConstantArrival | AllAtOnceArrival):
        return False
    if s.replicas.router == "scored" and not _one_replica(s):
        return False
    lengths = isinstance(load.prompt_tokens, int) and isinstance(load.output_tokens, int)
    stated = s.offload.prefetch.accuracy is not None
    return lengths and load.system_prompt is None and load.mix is None and not stated


_ALL_HERE = "running sequences keep all of their KV in VRAM"
RULES: tuple[Rule, ...] = (
    Rule(_OF_ACTIVE, _keeps_all, _ALL_HERE),
    Rule(_EVICTION, lambda s: _chooses_nothing(s) and _keeps_all(s), _ALL_HERE),
    Rule(_EVICTION, _chooses_nothing, "dense access: a pinned share stays and the rest streams, no eviction decides"),
    Rule(_EVICTION, _keeps_nothing, "no prefix caching: nothing is kept that could be evicted"),
    Rule(_MOVES, _nothing_below, "there is no tier below VRAM"),
    Rule(("tiers.ssd.capacity",), lambda s: _no_way_to_ssd(s) and _unpaid(s), "SSD is reached through DRAM alone"),
    Rule(_SSD_RATES, _no_way_to_ssd, "SSD is reached through DRAM alone"),
    Rule(_SSD_RATES, _no_ssd, "there is no SSD"),
    Rule(("replicas.router", "replicas.scorers"), _one_replica, "there is one replica"),
    Rule(("run.seed",), _nothing_random, "nothing is drawn at random"),
)
"""The first that holds is told."""
