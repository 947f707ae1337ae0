"""What a scenario has that no flag of an engine says: a sentence each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from simkv.planner.emit.hub import UNKNOWN, model_name
from simkv.planner.emit.part import Part, endless
from simkv.scenario import presets
from simkv.scenario.presets import Preset
from simkv.scenario.resolve import not_realisable

_BELOW = (
    "engine.load", "tiers.dram.shared", "tiers.relation", "offload.unit_tokens", "offload.write", "offload.when_full",
    "offload.write_back_blocks", "offload.prefetch.policy",
)  # fmt: skip
"""Means nothing where nothing is kept below VRAM."""


def preset_of(part: Part, key: str) -> Preset:
    """Return what the engine can be told: of the scenario's version where that is of it, else of the newest."""
    own = part.resolved.layers.preset
    return own if own.key == key else presets.load(key)


def beyond(part: Part, preset: Preset) -> list[str]:
    """Return a sentence for each thing that stays unsaid, whichever flags the engine has."""
    resolved = part.resolved
    notes = not_realisable(resolved.scenario, replace(resolved.layers, preset=preset))
    said = [sentence for _, sentence in notes if part.offloads or sentence.split(" = ")[0] not in _BELOW]
    return said + [sentence for one in _CHECKS for sentence in one(part)]


def _name(part: Part) -> Iterator[str]:
    if model_name(part.model)[0] == UNKNOWN:
        yield f"model = {part.model.name}: its name on the hub isn't known; write it in the place of {UNKNOWN}"


def _router(part: Part) -> Iterator[str]:
    replicas = part.resolved.scenario.replicas
    if replicas.count > 1 and replicas.router != "round_robin":
        yield f"replicas.router = {replicas.router}: of the proxy in front of the {replicas.count} engines, no flag"


def _tiers(part: Part) -> Iterator[str]:
    scenario = part.resolved.scenario
    if endless(part):
        yield "tiers.dram.capacity = inf: an engine needs a size; give one"
    for key in ("dram", "ssd"):
        if getattr(scenario.tiers, key).capacity and not part.offloads:
            yield f"tiers.{key}.capacity: left out, nothing is ever kept there ({_idle(part)})"


def _idle(part: Part) -> str:
    scenario = part.resolved.scenario
    if scenario.offload.write == "never":
        return "offload.write: never"
    return "engine.prefix_caching: false" if not scenario.engine.prefix_caching else "no tiers.dram above it"


def _classes(part: Part) -> Iterator[str]:
    scenario = part.resolved.scenario
    for name, one in scenario.classes.items():
        for key in ("vram_share", "dram_share"):
            if getattr(one, key) is not None:
                yield f"classes.{name}.{key}: engines share their tiers between all requests"
        if one.retention is not None:
            yield f"classes.{name}.retention = {one.retention}: said with each request, not by a flag"
        if one.priority and scenario.engine.scheduling == "priority":
            yield f"classes.{name}.priority = {one.priority}: said with each request (priority), not by a flag"
        elif one.priority:
            yield f"classes.{name}.priority = {one.priority}: engines don't order transfers by it"


def _batches(part: Part) -> Iterator[str]:
    if part.resolved.scenario.engine.placement is not None:
        yield "engine.placement: static batches with weights and KV by percentage; these flags are of a server"


_CHECKS: tuple[Callable[[Part], Iterator[str]], ...] = (_name, _router, _tiers, _classes, _batches)
