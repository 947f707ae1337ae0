"""Active offload in a scenario: what it means, what doesn't go together, and what the simulator is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simkv.errors import InputError, Problem
from simkv.formulas.step import attention_bytes_per_s
from simkv.kvcache.access import AccessSpec, Dense, Recall, Replay, TopK, Window
from simkv.scenario import schema
from simkv.scenario.active_idle import keeps_prefixes
from simkv.scenario.offload_schema import (
    ACTIVE_PREFETCH,
    DenseAccess,
    Offload,
    RecallAccess,
    ReplayAccess,
    TopkAccess,
    WindowAccess,
)
from simkv.scenario.resolve import Resolved
from simkv.scenario.schema import InlineHardware, Scenario
from simkv.sim.active.config import ActiveConfig, Contention, LaneFactors, PrefetchConfig


def access_spec(offload: Offload) -> AccessSpec:
    """Return what attention reads in a step."""
    access = offload.access
    if isinstance(access, WindowAccess):
        return Window(int(access.window), int(access.sinks))
    if isinstance(access, TopkAccess):
        return TopK(int(access.budget), int(access.recent), int(access.sinks), access.skew, access.stickiness)
    if isinstance(access, RecallAccess):
        return Recall(int(access.window), access.every, access.skew)
    return Replay(Path(access.path.path)) if isinstance(access, ReplayAccess) else Dense()


def active_config(resolved: Resolved, block_bytes: int, layers: int, seed: int) -> ActiveConfig | None:
    """Return what the simulator is told of active offload; None without it."""
    scenario = resolved.scenario
    offload = scenario.offload
    if not scenario.active:
        return None
    write: Any = offload.write
    return ActiveConfig(
        residency=offload.residency,
        budget_blocks=budget_blocks(resolved, block_bytes),
        access=access_spec(offload),
        layers=layers,
        seed=seed,
        groups=offload.layer_groups,
        staging_layers=offload.staging_layers,
        write=write,
        exclusive=scenario.tiers.relation == "exclusive",
        prefill=scenario.engine.prefill,
        swap=scenario.engine.preemption == "swap" or scenario.engine.prefill != "here",
        reuse=scenario.engine.prefix_caching and keeps_prefixes(scenario),
        prefetch=prefetch_config(offload),
        eviction_count=offload.eviction.count or "in_cache",
        eviction_half_life=offload.eviction.half_life,
        incoming=offload.eviction.incoming or "protected",
        host_s_per_block=offload.host_cost_per_block,
        host_s_per_step=offload.host_cost_per_step,
        contention=contention_config(scenario.contention),
        read_s=read_s(resolved, block_bytes / layers),
    )


def contention_config(given: schema.Contention | None) -> Contention:
    """Return how much computation and copies slow each other."""
    if given is None:
        return Contention()
    during, slowed = (LaneFactors(**dict(factors)) for factors in (given.compute_during, given.during_compute))
    return Contention(during, slowed, given.after_wait)


def prefetch_config(offload: Offload) -> PrefetchConfig:
    """Return how the next reads are brought back."""
    prefetch = offload.prefetch
    policy: Any = prefetch.policy if prefetch.policy in ACTIVE_PREFETCH else "none"
    guesses = policy == "next_step" and prefetch.accuracy is None
    return PrefetchConfig(
        policy=policy,
        predictor=(prefetch.predictor or "last_step") if guesses else None,
        accuracy=prefetch.accuracy,
        lead=prefetch.lead or 1,
        beta=prefetch.beta or 0.0,
        overlaps_demand=prefetch.demand == "overlaps",
    )


def budget_blocks(resolved: Resolved, block_bytes: int) -> int | None:
    """Return how many blocks of VRAM the resident KV of all sequences may take; None where each has its share."""
    offload, scenario = resolved.scenario.offload, resolved.scenario
    if offload.vram_budget is None:
        return None
    if isinstance(scenario.hardware, InlineHardware):
        return max(1, int(scenario.hardware.kv_tokens * offload.vram_budget) // scenario.engine.block_tokens)
    assert resolved.gpu is not None
    vram_bytes = resolved.gpu.vram_bytes * scenario.replicas.tensor_parallel
    blocks, pool = max(1, int(vram_bytes * offload.vram_budget) // block_bytes), scenario.engine.num_gpu_blocks
    if pool is not None and blocks > pool:
        what = f"keeps {blocks:,} blocks of KV resident, and VRAM has {pool:,} beside weights and activations"
        mend = f"write {pool * block_bytes / vram_bytes - 0.005:.2f} or less, which leaves room for staging buffers too"
        raise InputError(
            Problem(what, mend, resolved.layers.file, None, "offload.vram_budget", f"{offload.vram_budget:g}")
        )
    return blocks


def read_s(resolved: Resolved, piece_bytes: float) -> float:
    """Return T_vram, the time to read one (block, layer) from VRAM; 0 on inline hardware, which has no memory."""
    if resolved.gpu is None:
        return 0.0
    return piece_bytes / (attention_bytes_per_s(resolved.gpu) * resolved.scenario.replicas.tensor_parallel)


def active_notes(scenario: Scenario) -> tuple[str, ...]:
    """Return what the model of active offload leaves out, or finds without meaning, in this scenario."""
    offload = scenario.offload
    if not scenario.active:
        idle = offload.prefetch.policy in ACTIVE_PREFETCH
        text = f"Running sequences keep all of their KV in VRAM: prefetch {offload.prefetch.policy} does nothing."
        return (text,) if idle else ()
    found = []
    if isinstance(offload.access, DenseAccess):
        found.append(
            "Under dense access every block is read in every step: a pinned share stays in VRAM, and eviction "
            "(policy, λ) decides nothing there."
        )
    else:
        found.append(
            f"Quality not modelled: reading only some blocks (access pattern {offload.access.pattern}) approximates "
            "attention that was trained dense. Moving KV changes no result."
        )
        if offload.prefetch.policy == "layer" and offload.layer_groups > 1 and offload.access.pattern != "window":
            found.append("Prefetch layer knows what layers pick apart from one another; an engine has to guess it.")
    if scenario.engine.prefix_caching and scenario.engine.prefill == "here" and not keeps_prefixes(scenario):
        found.append("Finished sequences leave nothing to be found: prefixes are computed anew each time.")
    return tuple(found)
