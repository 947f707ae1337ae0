"""The rows of ``simkv catalog engines`` and of ``catalog show`` of one: what each does, and what it lets one choose."""

from __future__ import annotations

from math import inf
from typing import Any

from simkv import units
from simkv.cli.machines import Rows
from simkv.scenario import presets

_DETAILS = ("choices", "source")
"""Keys that a table has no room for."""


def engine_rows() -> Rows:
    """Return one row a preset and version."""
    loaded = [(name, version) for name in presets.NAMES for version in presets.load(name).versions]
    return [_row(presets.load(name, version)) for name, version in loaded]


def short_rows(rows: Rows) -> Rows:
    """Return what a table shows of :func:`engine_rows`."""
    return [{key: value for key, value in row.items() if key not in _DETAILS} for row in rows]


def engine_facts(preset: presets.Preset) -> Rows:
    """Return every value of a preset and what it can be."""
    choices = {**preset.has, "engine.version": preset.versions}
    values = dict(_paths(preset.values, ()))
    rows = []
    for path in [*values, *(path for path in choices if path not in values)]:
        allowed = choices.get(path)
        can_be = [_plain(one) for one in allowed] if allowed is not None else "anything"
        rows.append({"path": path, "default": _plain(values.get(path)), "can_be": can_be})
    return [*rows, {"path": "source", "default": preset.source, "can_be": ""}]


def _row(preset: presets.Preset) -> dict[str, Any]:
    engine, tiers, offload = (preset.values.get(key, {}) for key in ("engine", "tiers", "offload"))
    unit = offload.get("unit_tokens", engine["block_tokens"])
    if not engine["prefix_caching"]:  # nothing is left for others: KV goes where it is placed, layer by layer
        moves = {"unit": "layer", "store": "as placed", "load": "as placed", "full_tier": "refuse"}
    else:
        full = offload.get("when_full", "refuse")
        tokens = f"{unit} token{'s' * (unit > 1)}"
        moves = {"unit": tokens, "store": offload["write"], "load": engine["load"], "full_tier": full}
    return {
        "name": preset.key,
        "engine": preset.name,
        "version": preset.version,
        **moves,
        "relation": tiers["relation"],
        "dram": _dram(tiers.get("dram", {})),
        "p_below_1": preset.has.get("offload.residency") != (1.0,) or "placement" in engine,
        "choices": {path: [_plain(one) for one in allowed] for path, allowed in preset.has.items()},
        "source": preset.source,
    }


def _dram(dram: dict[str, Any]) -> str:
    """Return how large DRAM is unless the scenario says so."""
    if dram.get("ratio"):
        return f"{dram['ratio']:g} x VRAM pool"
    if dram.get("per_gpu"):
        return f"{units.short(units.parse(dram['per_gpu'], 'size'), 'size')} a GPU"
    return str(dram.get("capacity", "none"))


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; null is where a key may only be left out."""
    if value == inf:
        return "unlimited"
    return list(value) if isinstance(value, tuple) else value


def _paths(values: Any, path: tuple[str, ...]) -> list[tuple[str, Any]]:
    if not isinstance(values, dict):
        return [(".".join(path), values)]
    return [leaf for key, below in values.items() for leaf in _paths(below, (*path, key))]
