"""Keys of prefix reuse that mean nothing to running sequences under active offload, and what there is instead."""

from __future__ import annotations

from simkv.scenario.schema import Scenario
from simkv.scenario.text import Path

ACTIVE_IDLE: dict[Path, str] = {
    ("engine", "load"): "prompts stream what is below VRAM layer by layer",
    ("engine", "reserve_full_prompt"): "a sequence takes its share for the whole prompt at once",
    ("engine", "async_scheduling"): "a step is decided when the one before it has ended",
    ("engine", "store_outputs"): "offload.write says what is written below VRAM",
    ("engine", "host_cost_per_block"): "offload.host_cost_per_block is of running sequences' blocks",
    ("engine", "host_cost_per_load"): "offload.host_cost_per_step is of running sequences' steps",
    ("offload", "when_full"): "sequences are admitted where all that must leave VRAM has room below it",
    ("offload", "eviction", "unit"): "what is evicted is a piece of a block",
    ("link", "descriptors_per_block"): "a (block, layer) piece is one descriptor, a streamed layer one a sequence",
}


BROUGHT: tuple[Path, ...] = (
    ("contention",), ("offload", "host_cost_per_step"), ("offload", "host_cost_per_block"),
)  # fmt: skip
"""Keys of active offload that a calibrated machine brings whether or not it is used."""


def active_idle_paths(s: Scenario) -> tuple[Path, ...]:
    """Return the keys that mean nothing in this scenario: of prefix reuse, and without active offload of that."""
    if not s.active:
        return BROUGHT
    moot = s.engine.prefix_caching and not keeps_prefixes(s)
    return (*ACTIVE_IDLE, ("engine", "prefix_caching")) if moot else tuple(ACTIVE_IDLE)


def keeps_prefixes(s: Scenario) -> bool:
    """Say whether every full block of a sequence is written to where others can find it."""
    return s.offload.write == "write_through" and s.tiers.relation == "copy" and s.engine.prefill == "here"
