"""A resolved scenario with more or less of a resource than its machine has.

It asks what the resource is worth, so that what a machine can have is no limit here. Everything else stays as it was
resolved: a tier that isn't there, or has no end, stays so, and of a link the latencies stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any, NoReturn

from simkv.errors import InfeasibleError, InputError, Problem, unknown
from simkv.formulas.memory import override_blocks
from simkv.formulas.pages import NULL_PAGES
from simkv.hardware import Figure, Gpu
from simkv.scenario import calibrated, paging, placing
from simkv.scenario.resolve import OF_BUDGET, Resolved, replaced
from simkv.scenario.schema import InlineHardware

RESOURCES = ("vram", "compute", "memory_bandwidth", "link", "dram", "dram_bandwidth", "ssd", "ssd_bandwidth")
"""What can be scaled: capacities (vram, dram, ssd) and rates."""
REMOVABLE = ("dram", "ssd")
"""What can be scaled to nothing: the tier isn't there."""
_PATHS: Mapping[str, tuple[str, ...]] = {
    "link": ("link.h2d", "link.d2h", "link.duplex"),
    "dram": ("tiers.dram.capacity",),
    "dram_bandwidth": ("tiers.dram.bandwidth",),
    "ssd": ("tiers.ssd.capacity",),
    "ssd_bandwidth": ("tiers.ssd.read", "tiers.ssd.write"),
}
"""Resources that are values of the scenario."""


def scaled(resolved: Resolved, factors: Mapping[str, float]) -> Resolved:
    """Return ``resolved`` with each resource of ``factors`` times its factor; 1 changes nothing, 0 takes a tier away.

    Raises InputError for an unknown resource, for a factor that isn't above zero and finite, and for one that the
    machine doesn't tell from others (an abstract machine's memory bandwidth, compute in measured step times);
    InfeasibleError where less VRAM doesn't hold the longest sequence.
    """
    for name, factor in factors.items():
        if name not in RESOURCES:
            raise unknown("resource", name, RESOURCES, "scale")
        if not isfinite(factor) or factor < 0 or (factor == 0 and name not in REMOVABLE):
            mend = "write a number above zero, such as 1.1"
            raise InputError(Problem("is no factor", mend, path=f"scale.{name}", value=f"{factor:g}"))
        if factor != 1:
            resolved = _one(resolved, name, float(factor))
    return resolved


def _one(resolved: Resolved, name: str, factor: float) -> Resolved:
    for path in _PATHS.get(name, ()):
        resolved = _value(resolved, path, factor)
    if name == "link" and resolved.scenario.link.uplink is not None:
        resolved = _value(resolved, "link.uplink.bandwidth", factor)
    change = _OF_CARDS.get(name)
    return change(resolved, factor) if change is not None else resolved


def _value(resolved: Resolved, path: str, factor: float) -> Resolved:
    """Return the scenario with one value times ``factor``; whole numbers stay whole."""
    names = path.split(".")
    value: Any = resolved.scenario
    for name in names:
        value = getattr(value, name)
    return _put(resolved, path, _times(value, factor), f"x {factor:g}")


def _times(value: float, factor: float) -> float:
    if not factor:
        return 0
    return round(value * factor) if isinstance(value, int) else value * factor


def _put(resolved: Resolved, path: str, value: float, change: str) -> Resolved:
    """Return the scenario with another value; it is from where it was, and what was done to it."""
    key = tuple(path.split("."))
    computed = {**resolved.computed, key: f"{resolved.origin(key)}, {change}"}
    return replace(resolved, scenario=replaced(resolved.scenario, key, value), computed=computed)


def _compute(resolved: Resolved, factor: float) -> Resolved:
    """Scale FLOP/s of every dtype; an abstract machine's step is over as much sooner."""
    if isinstance(resolved.scenario.hardware, InlineHardware):
        return _value(resolved, "hardware.step_time", 1 / factor)
    _check_step_times(resolved, "compute")
    card = _card(resolved)
    rates = [name for name in card.figures if name.startswith("flops_") and name.endswith("_per_s")]
    return replace(resolved, gpu=_faster(card, rates, factor))


def _memory_bandwidth(resolved: Resolved, factor: float) -> Resolved:
    if isinstance(resolved.scenario.hardware, InlineHardware):
        _refuse("memory_bandwidth", "an abstract machine has none: its steps take what hardware.step_time says")
    _check_step_times(resolved, "memory_bandwidth")
    return replace(resolved, gpu=_faster(_card(resolved), ["hbm_bytes_per_s"], factor))


def _vram(resolved: Resolved, factor: float) -> Resolved:
    """Scale the card's memory: all that is more of it goes to KV, as weights and activations stay what they are."""
    if isinstance(resolved.scenario.hardware, InlineHardware):
        return _value(resolved, "hardware.kv_tokens", factor)
    card = _card(resolved)
    larger = _faster(card, ["vram_bytes", "usable_bytes"], factor)
    more = replace(resolved, gpu=larger)
    if placing.in_batches(resolved.scenario):
        assert resolved.model is not None
        return _pool(more, placing.gpu_blocks(resolved.scenario, resolved.model, larger), factor)
    if resolved.origin(("engine", "num_gpu_blocks")).startswith(OF_BUDGET):
        return _estimated(more, larger, factor)
    return _given(more, card, larger, factor)


def _estimated(resolved: Resolved, larger: Gpu, factor: float) -> Resolved:
    assert resolved.model is not None
    scenario = resolved.scenario
    budget = paging.budget(scenario, resolved.model, larger, None if scenario.active else scenario.engine.max_model_len)
    return _pool(replace(resolved, budget=budget), budget.num_gpu_blocks, factor)


def _given(resolved: Resolved, card: Gpu, larger: Gpu, factor: float) -> Resolved:
    """Add to the engine's own figure what the engine's share of the added memory holds."""
    scenario, model, budget = resolved.scenario, resolved.model, resolved.budget
    given = scenario.engine.num_gpu_blocks
    assert model is not None and given is not None and scenario.engine.max_model_len is not None, "resolved"
    share = scenario.engine.gpu_memory_utilization
    layout = paging.layout_of(scenario, model)
    added_bytes = int(larger.usable_bytes * share) - int(card.usable_bytes * share)
    added = layout.pages(abs(added_bytes))
    blocks = given + (added if added_bytes > 0 else -added)
    longest = scenario.engine.max_model_len
    fits = scenario.active or paging.longest_in(scenario, layout, max(0, blocks), longest) >= longest
    if blocks <= NULL_PAGES or not fits:
        what = f"x {factor:g} leaves {max(0, blocks):,} of {given:,} KV blocks"
        raise InfeasibleError(f"scale.vram: {what}, in which a sequence of {longest} tokens doesn't fit")
    if budget is not None:
        resolved = replace(resolved, budget=override_blocks(budget, blocks, f"as given, VRAM x {factor:g}"))
    return _pool(resolved, blocks, factor)


def _pool(resolved: Resolved, blocks: int, factor: float) -> Resolved:
    return _put(resolved, "engine.num_gpu_blocks", blocks, f"VRAM x {factor:g}")


def _card(resolved: Resolved) -> Gpu:
    assert resolved.gpu is not None, "not an abstract machine"
    return resolved.gpu


def _faster(card: Gpu, names: list[str], factor: float) -> Gpu:
    """Return the card with some figures times ``factor``; integer ones stay so."""
    changed: dict[str, Figure] = {}
    for name in names:
        figure = card.figure(name)
        source = f"{figure.source}, x {factor:g}"
        changed[name] = replace(figure, value=_times(figure.value, factor), source=source, standing="assumed")
    return card.with_figures(**changed)


def _check_step_times(resolved: Resolved, resource: str) -> None:
    """Raise InputError where steps take what was measured, in which compute and memory aren't told apart."""
    profile, engine = resolved.profile, resolved.scenario.engine
    if calibrated.step_times(profile, resolved.scenario, resolved.model):
        assert profile is not None
        _refuse(resource, f"step times are those measured in {profile.name}: compute and memory are one in them")
    if engine.constants == "flexgen-t4":
        _refuse(resource, "batch mode's constants flexgen-t4 are fitted to one card: write engine.constants hardware")


def _refuse(resource: str, why: str) -> NoReturn:
    raise InputError(Problem(f"can't be scaled: {why}", path=f"scale.{resource}"))


_OF_CARDS: Mapping[str, Callable[[Resolved, float], Resolved]] = {
    "vram": _vram,
    "compute": _compute,
    "memory_bandwidth": _memory_bandwidth,
}
"""Resources of the card."""
