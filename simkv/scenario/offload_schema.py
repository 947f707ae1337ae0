"""The ``offload`` section: what stays in VRAM, what attention reads, who goes, what is fetched ahead.

Below ``residency`` 1, with a ``vram_budget``, or with a sparse ``access`` pattern this is *active offload*: running
sequences keep part of their KV below VRAM. Without it tiers hold what finished requests leave (prefix reuse).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool

from simkv.scenario.base import Discriminated, FilePath, Section
from simkv.scenario.quantity import FractionAboveZero, Quantity, Time, TokensAboveZero

Tokens = Annotated[int, Quantity("tokens", least=0, most=16 << 20)]
Skew = Annotated[float, Quantity("number", most=10)]
LayerGroups = Annotated[
    int,
    Quantity("count", least=1, most=1024),
    Field(description="Groups of layers that choose their blocks apart; 1: all layers read the same blocks of a step"),
]

EvictionPolicy = Literal["lru", "lfu", "fifo", "slru", "arc", "s3fifo", "priority", "score"]


ACTIVE_PREFETCH = ("layer", "next_step", "oracle", "fixed_overlap")
"""Prefetch policies of active offload; the others are of prefix reuse."""


class Eviction(Section):
    policy: EvictionPolicy
    lambda_: Annotated[float | None, Quantity("fraction")] = Field(
        default=None, alias="lambda", description="score: weight of recency against frequency, 1 is LRU and 0 is LFU"
    )
    count: Literal["in_cache", "lifetime", "decayed"] | None = Field(
        default=None,
        description="score, lfu: uses since a block came in (absent: this), in all, or halved every half_life uses",
    )
    half_life: Annotated[float | None, Quantity("number", least=1)] = Field(
        default=None, description="count decayed: uses of anything after which an old use counts half"
    )
    incoming: Literal["protected", "candidate"] | None = Field(
        default=None,
        description="candidate: blocks come in one at a time, and one that comes in competes with its old recency "
        "(lru under a replay; the article's program); absent: protected",
    )

    unit: Literal["block", "node"] = Field(
        default="block", description="node: what one computation brought below what was cached goes as a whole (SGLang)"
    )


class DenseAccess(Section):
    """Attention reads every block: what isn't resident streams through VRAM in every step."""

    pattern: Literal["dense"] = "dense"


class WindowAccess(Section):
    """A sliding window and the first tokens (attention sinks)."""

    pattern: Literal["window"]
    window: TokensAboveZero = 1020
    sinks: Tokens = 4
    layer_groups: LayerGroups = 1


class TopkAccess(Section):
    """A budget of blocks a step: the newest, the sinks, and what scores highest of the rest."""

    pattern: Literal["topk"]
    budget: TokensAboveZero = 2048
    recent: TokensAboveZero = 256
    sinks: Tokens = 4
    skew: Annotated[Skew, Field(description="Zipf exponent of the far blocks' popularity; 0: all alike")] = 1.0
    stickiness: Annotated[
        float, Quantity("fraction"), Field(description="Share of a step's far blocks that the next step reads again")
    ] = 0.5
    layer_groups: LayerGroups = 1


class RecallAccess(Section):
    """The newest tokens, and one far block every few steps."""

    pattern: Literal["recall"]
    window: TokensAboveZero = 4096
    every: Annotated[int, Quantity("count", least=1, most=1_000_000)] = 4
    skew: Skew = 0.0
    layer_groups: LayerGroups = 1


class ReplayAccess(Section):
    """What a log says was read: JSONL of step, sequence, block ids."""

    pattern: Literal["replay"]
    path: FilePath


Access = Annotated[DenseAccess | WindowAccess | TopkAccess | RecallAccess | ReplayAccess, Discriminated("pattern")]


class Prefetch(Section):
    policy: Literal["none", "layer", "next_step", "queue", "arrival", "oracle", "fixed_overlap"] = Field(
        description="queue: SSD to DRAM to VRAM for the first few that wait; arrival: SSD to DRAM for each that "
        "arrives, and SSD is read in no other way (SGLang)"
    )
    window: Annotated[int | None, Quantity("count", least=1, most=100_000)] = Field(
        default=None, description="queue: how many waiting requests are looked at"
    )
    predictor: Literal["last_step", "stride", "heavy_hitters", "replay"] | None = Field(
        default=None, description="next_step: what guesses the blocks; absent: last_step"
    )
    accuracy: Annotated[float | None, Quantity("fraction")] = Field(
        default=None, description="next_step: instead of a predictor, this share of the guesses is right"
    )
    lead: Annotated[int | None, Quantity("count", least=1, most=8)] = Field(
        default=None, description="next_step, oracle: how many steps ahead; absent: 1"
    )
    beta: Annotated[float | None, Quantity("fraction")] = Field(
        default=None, description="fixed_overlap: share of the transfers that computing hides"
    )
    demand: Literal["stalls", "overlaps"] | None = Field(
        default=None,
        description="overlaps: a step's own demand loads and prefetches all run beside its compute, and it lasts "
        "until both are over (the article's program); absent: stalls",
    )

    stop: Literal["wait_complete", "best_effort", "timeout"] | None = Field(
        default=None,
        description="queue, arrival: a request whose turn it is waits for its own read from SSD (absent: this), goes "
        "on with what is here, or waits for so long",
    )
    timeout_base: Time | None = Field(default=None, description="timeout, from the read's begin; absent: 1 s")
    timeout_per_ki_token: Time | None = Field(
        default=None, description="timeout: more for every 1024 tokens of the read; absent: 0.25 s"
    )
    timeout_most: Time | None = Field(default=None, description="timeout: no longer than this; absent: no bound")
    min_tokens: Tokens | None = Field(default=None, description="arrival: no read of fewer; absent: 0")
    in_flight: Annotated[float | None, Quantity("fraction")] = Field(
        default=None,
        description="arrival: requests that arrive while this share of DRAM is on its way read nothing; absent: 1",
    )
    batch: Annotated[int | None, Quantity("count", least=1, most=1_000_000)] = Field(
        default=None, description="arrival: blocks of one of the reads that follow one another; absent: 128"
    )


class Offload(Section):
    residency: Annotated[
        float, Quantity("fraction"), Field(description="Share of a running sequence's KV that stays in VRAM")
    ] = 1.0
    vram_budget: FractionAboveZero | None = Field(
        default=None, description="Share of the card's memory for resident KV, instead of residency"
    )
    access: Access = DenseAccess()
    eviction: Eviction
    write: Literal["write_through", "write_through_selective", "write_back", "never", "rewrite"] = Field(
        description="rewrite: what was streamed in goes back whole after each layer (Hugging Face's offloaded cache)"
    )
    prefetch: Prefetch
    unit_tokens: Annotated[int, Quantity("tokens", least=1, most=1 << 20)] | None = Field(
        default=None,
        description="Lower tiers store, find and evict whole units of so many tokens, a multiple of a block; "
        "absent: a block",
    )
    when_full: Literal["refuse", "retry", "part", "drop"] = Field(
        default="refuse",
        description="A store that DRAM has no room for is refused whole and offered again with the request's next "
        "chunk and at its end (refuse), at the next step after a transfer ended (retry) or not at all (drop), or "
        "cut to what fits (part)",
    )
    write_back_blocks: Annotated[
        StrictBool,
        Field(description="write_back: the step that an eviction made room for waits until what was evicted is down"),
    ] = False
    staging_layers: Annotated[
        int,
        Quantity("count", least=1, most=64),
        Field(description="Active offload: layers whose streamed KV has a buffer in VRAM at once"),
    ] = 2
    host_cost_per_block: Annotated[
        Time, Field(description="Active offload: CPU time to look up, score, or move one block; added to each step")
    ] = 0.0
    host_cost_per_step: Annotated[
        Time, Field(description="Active offload: CPU time of each step's blocks on top, however many they are")
    ] = 0.0

    @property
    def layer_groups(self) -> int:
        """Groups of layers that read apart: all read alike under dense access, and what a log has."""
        return 1 if isinstance(self.access, DenseAccess | ReplayAccess) else self.access.layer_groups

    @property
    def active(self) -> bool:
        """Whether running sequences keep part of their KV below VRAM."""
        return self.residency < 1 or self.vram_budget is not None or not isinstance(self.access, DenseAccess)
