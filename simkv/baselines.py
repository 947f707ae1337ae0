"""What a run is compared with: the same system and random numbers with one thing changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from simkv.sim.active.config import ActiveConfig, PrefetchConfig
from simkv.sim.config import SystemConfig


class Baseline(NamedTuple):
    """One comparison."""

    differs: Callable[[SystemConfig], bool]
    """Whether the change makes a difference to a system."""
    change: Callable[[SystemConfig], SystemConfig]


def offloads(config: SystemConfig) -> bool:
    """Whether any KV can be below VRAM; in batch mode its placement is the question, and nothing runs without one."""
    below = config.active is not None or config.dram.capacity_bytes >= config.engine.block_bytes
    return below and config.batch is None


def without_offload(config: SystemConfig) -> SystemConfig:
    """Return the same system with all KV in VRAM and nothing below."""
    return replace(
        config,
        engine=replace(
            config.engine,
            preemption="recompute",
            prefix_caching=config.engine.prefix_caching and config.engine.keeps_vram,
            keeps_vram=True,
        ),
        dram=replace(config.dram, capacity_bytes=0.0),
        ssd=replace(config.ssd, capacity_bytes=0.0),
        offload=replace(config.offload, write="never", prefetch="none"),
        active=_whole(config.active),
    )


def _whole(active: ActiveConfig | None) -> ActiveConfig | None:
    """Return what is left of active offload with p = 1: what attention reads, and prompts that are there already."""
    if active is None or (not active.sparse and active.keeps_prompts):
        return None
    return replace(
        active,
        residency=1.0,
        budget_blocks=None,
        write="never",
        incoming="protected",
        exclusive=False,
        swap=False,
        reuse=False,
        prefetch=PrefetchConfig(),
    )


def prefetches(config: SystemConfig) -> bool:
    """Whether active offload brings anything back before it is needed."""
    return config.active is not None and config.active.prefetch.policy != "none"


def without_prefetch(config: SystemConfig) -> SystemConfig:
    """Return the same active offload with everything loaded on demand."""
    active = config.active
    return config if active is None else replace(config, active=replace(active, prefetch=PrefetchConfig()))


BASELINES: dict[str, Baseline] = {
    "no_offload": Baseline(offloads, without_offload),
    "no_prefetch": Baseline(prefetches, without_prefetch),
}
"""By the name that ``run.baselines`` gives them."""
