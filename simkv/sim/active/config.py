"""What active offload needs to know, resolved: plain frozen data in SI units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simkv.kvcache.access.spec import AccessSpec, Dense

ActivePrefetch = Literal["none", "layer", "next_step", "oracle", "fixed_overlap"]
Prefill = Literal["here", "vram", "dram", "ssd"]


@dataclass(frozen=True, slots=True)
class PrefetchConfig:
    """How what a step will read is brought back before it is needed."""

    policy: ActivePrefetch = "none"
    predictor: str | None = None
    """``next_step``: what guesses; None with a stated ``accuracy``."""
    accuracy: float | None = None
    lead: int = 1
    beta: float = 0.0
    overlaps_demand: bool = False
    """A step's own demand loads run beside its compute too, and it waits for everything that it began to load."""


@dataclass(frozen=True, slots=True)
class LaneFactors:
    """A factor, 1 or more, for each lane of a replica and its host."""

    h2d: float = 1.0
    d2h: float = 1.0
    ssd_read: float = 1.0
    ssd_write: float = 1.0


@dataclass(frozen=True, slots=True)
class Contention:
    """How much computation and copies slow each other."""

    compute_during: LaneFactors = LaneFactors()
    """How many times longer computation takes while the lane carries something."""
    during_compute: LaneFactors = LaneFactors()
    """How many times longer the lane's transfers take while the GPU computes."""
    after_wait: float = 1.0
    """How many times longer a layer takes that the GPU has waited for pieces before: caches cool down meanwhile."""


@dataclass(frozen=True, slots=True)
class ActiveConfig:
    """One replica's active offload."""

    residency: float
    """Share of a sequence's blocks that stays in VRAM; ignored with ``budget_blocks``."""
    budget_blocks: int | None
    """Blocks of VRAM for resident KV of all sequences together."""
    access: AccessSpec
    layers: int
    seed: int
    groups: int = 1
    """Groups of layers that choose their blocks apart."""
    staging_layers: int = 2
    write: Literal["write_through", "write_back", "rewrite", "never"] = "write_through"
    """``never``: everything fits (p = 1)."""
    exclusive: bool = False
    prefill: Prefill = "here"
    swap: bool = False
    """Preempted sequences keep their KV below VRAM instead of computing it again."""
    reuse: bool = False
    """What is written through to DRAM can be found there by requests that begin alike."""
    prefetch: PrefetchConfig = PrefetchConfig()
    eviction_count: str = "in_cache"
    eviction_half_life: float | None = None
    incoming: Literal["protected", "candidate"] = "protected"
    host_s_per_block: float = 0.0
    """CPU time of managing one block."""
    host_s_per_step: float = 0.0
    """CPU time of managing a step's blocks, however many, on top."""
    contention: Contention = Contention()
    read_s: float = 0.0
    """T_vram: reading one (block, layer) from VRAM."""

    @property
    def sparse(self) -> bool:
        """Whether a step reads some of the blocks only, so that residency is earned."""
        return not isinstance(self.access, Dense)

    @property
    def keeps_prompts(self) -> bool:
        """Whether prompts are computed here."""
        return self.prefill == "here"
