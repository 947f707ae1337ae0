"""What the simulator needs to know, resolved: plain frozen data in SI units.

The scenario layer builds a :class:`SystemConfig`; nothing here parses text or holds a default
that a user would care about.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import inf
from typing import Literal, Protocol

from simkv.kvcache.eviction import CountMode
from simkv.sim.active.config import ActiveConfig
from simkv.sim.batchmode.config import BatchConfig

AUDIT_VARIABLE = "SIMKV_AUDIT"
"""Environment variable that has every run audited that isn't told otherwise."""
Write = Literal["write_through", "write_through_selective", "write_back", "never", "rewrite"]
"""``rewrite`` is of active offload alone."""
Prefetch = Literal["none", "queue", "arrival"]
"""Of prefix reuse; active offload has its own (:class:`simkv.sim.active.config.PrefetchConfig`)."""
Stop = Literal["wait_complete", "best_effort", "timeout"]
WhenFull = Literal["refuse", "retry", "part", "drop"]
Load = Literal["hold", "overlap", "block"]
Scheduling = Literal["fcfs", "priority"]
Preemption = Literal["recompute", "swap"]
RouterName = Literal["round_robin", "least_loaded", "prefix_aware", "scored"]
Relation = Literal["copy", "exclusive"]


class StepCost(Protocol):
    """Time of one forward step (design: overhead + linear + attention + communication)."""

    layers: int

    def decode(self, sequences: int, context_tokens: int) -> tuple[float, float, int]:
        """Pure decode of ``sequences`` whose KV read sums to ``context_tokens`` in the first step.

        Returns ``(first_s, growth_s, steps)``: the first step's time, by how much each following
        step is longer (each sequence is one token longer each step), and for how many steps that
        holds (``2**62`` where nothing bends).
        """

    def mixed(self, sequences: int, context_tokens: int, chunks: list[tuple[int, int]], sampled: int) -> float:
        """One step that also computes prefill ``chunks``, each ``(new_tokens, context_before)``.

        ``sequences``/``context_tokens`` are the decoding part, ``sampled`` the number of
        sequences that get an output token in this step (decodes and finished prefills).
        """


@dataclass(frozen=True, slots=True)
class WindowPages:
    """One group of layers that see no further than a window, and the pages that it takes at most."""

    block_tokens: int
    """Tokens of one page."""
    decoding: int
    prefilling: int
    """With what one step computes beside the window."""


@dataclass(frozen=True, slots=True)
class SideBlocks:
    """What a running sequence holds beyond the blocks of its tokens: windows and states, which stop growing.

    A sequence takes at admission what its prefill and its later decoding need at most, gives the rest of the
    prefill back when its prompt is complete, and everything at its end.
    """

    windows: tuple[WindowPages, ...]
    state_pages: int
    pages_per_block: int = 1

    def decoding(self, tokens: int) -> int:
        """Blocks beside a sequence that decodes up to ``tokens``."""
        return self._blocks(sum(min(-(-tokens // one.block_tokens), one.decoding) for one in self.windows))

    def admitted(self, prompt: int, tokens: int) -> int:
        """Blocks beside a sequence whose ``prompt`` is about to be computed and that will decode up to ``tokens``."""
        pages = sum(min(-(-prompt // one.block_tokens), one.prefilling) for one in self.windows)
        return max(self._blocks(pages), self.decoding(tokens))

    def _blocks(self, pages: int) -> int:
        return -(-(pages + self.state_pages) // self.pages_per_block)


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """One replica's engine, in vLLM's terms."""

    block_tokens: int
    block_bytes: int
    """Bytes of one block: all layers whose cache grows, all tensor-parallel ranks together."""
    num_gpu_blocks: int
    """Usable blocks (vLLM's null block already taken off)."""
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    scheduling: Scheduling = "fcfs"
    prefix_caching: bool = True
    keeps_vram: bool = True
    """False: VRAM forgets what nobody holds any more, and only lower tiers are found again."""
    reserve_full_prompt: bool = True
    load: Load = "hold"
    store_outputs: bool = False
    preemption: Preemption = "recompute"
    side: SideBlocks | None = None
    """None: every layer's cache grows."""
    async_scheduling: bool = False
    """A step is decided while the one before it runs (``sim/coming``)."""
    host_block_s: float = 0.0
    """CPU time between two steps for each block of a prompt that lower tiers are asked about."""
    host_load_s: float = 0.0
    """CPU time between two steps for each request that is held for its load, on top."""

    def blocks(self, tokens: int) -> int:
        """Return the blocks that hold ``tokens`` tokens, the last perhaps in part."""
        return -(-tokens // self.block_tokens)

    def most_hit_blocks(self, tokens: int) -> int:
        """Return how many leading blocks of ``tokens`` tokens a cache may give: one token is always computed."""
        return (tokens - 1) // self.block_tokens if self.prefix_caching else 0

    def side_admitted(self, prompt: int, tokens: int) -> int:
        """Return the blocks beside the tokens' own that a sequence takes at admission."""
        return self.side.admitted(prompt, tokens) if self.side is not None else 0

    def most_blocks(self, tokens: int) -> int:
        """Return the blocks that a sequence of ``tokens`` takes at its most, alone."""
        return self.blocks(tokens) + self.side_admitted(tokens, tokens)


@dataclass(frozen=True, slots=True)
class LinkConfig:
    """The PCIe link of one replica (all ranks together), both directions."""

    h2d_bytes_per_s: float
    d2h_bytes_per_s: float
    duplex_bytes_per_s: float
    """Cap on both directions together; ``inf`` for none."""
    latency_s: float
    """Cost of one descriptor (one contiguous piece)."""
    descriptors_per_block: int = 1
    chunk_bytes: int = 2 << 20
    """A transfer in service gives way to a more urgent one at multiples of this."""
    uplink_bytes_per_s: float = inf
    """Cap, each direction, on the replicas that share an uplink; ``inf`` for none."""
    uplink_replicas: int = 1
    """How many replicas share one, in order of their numbers on the host."""
    setup_s: float = 0.0
    """Cost of one transfer, however many descriptors it has."""


@dataclass(frozen=True, slots=True)
class DramConfig:
    """Host memory of one host."""

    capacity_bytes: float
    bandwidth_bytes_per_s: float
    shared: bool
    """True: one pool for all replicas of a host; False: split evenly between them."""


@dataclass(frozen=True, slots=True)
class SsdConfig:
    """Local SSDs of one host, as one device; always shared by its replicas."""

    capacity_bytes: float
    read_bytes_per_s: float
    write_bytes_per_s: float
    latency_s: float
    """Cost of one transfer, however many requests it is."""
    queue_depth: int
    request_latency_s: float = 0.0
    """Cost of each request on top, at the queue depth."""


@dataclass(frozen=True, slots=True)
class OffloadConfig:
    """Which policies decide; every tier uses the same eviction policy."""

    eviction: str = "lru"
    eviction_lambda: float | None = None
    eviction_count: CountMode = "in_cache"
    """How score and lfu count uses."""
    eviction_half_life_uses: float | None = None
    write: Write = "write_through"
    relation: Relation = "copy"
    prefetch: Prefetch = "none"
    prefetch_window: int = 8
    """How many waiting requests the look-ahead prefetcher considers."""
    prefetch_stop: Stop = "wait_complete"
    """What a request whose turn it is does about its own read from SSD that isn't through."""
    timeout_base_s: float = 1.0
    timeout_per_ki_token_s: float = 0.25
    timeout_most_s: float = inf
    prefetch_min_tokens: int = 0
    """``arrival``: fewer tokens on SSD aren't fetched."""
    prefetch_in_flight: float = 1.0
    """``arrival``: the share of DRAM that may be on its way before further requests fetch nothing."""
    prefetch_batch_blocks: int = 128
    """``arrival``: read one after the other in pieces of so many blocks; what is stopped ends with one."""
    unit_blocks: int = 1
    """Blocks of VRAM in one unit of the lower tiers, which store, find and evict whole units."""
    when_full: WhenFull = "refuse"
    """What becomes of a store that a lower tier has no room for."""
    whole_nodes: bool = False
    """What one insertion brought is evicted as a whole."""
    write_back_blocks: bool = False
    """``write_back``: the step that an eviction made room for waits until what was evicted is down."""


@dataclass(frozen=True, slots=True)
class ClassConfig:
    """A request class: a lower priority number goes first, in the queue and, within a kind of transfer, on links."""

    name: str
    priority: int = 0
    vram_share: float | None = None
    """The most of the KV blocks that its running requests hold when one more is admitted; None: all."""
    dram_share: float | None = None
    """Its own part of DRAM; None: what no class has for itself."""
    retention: int | None = None
    """What its blocks are worth under eviction policy ``priority``, 0 to 100; None: as all others."""


@dataclass(frozen=True, slots=True)
class RememberedPrefixes:
    """Blocks of prompts that a router remembers having sent to each replica, and what a match is worth."""

    weight: float
    block_tokens: int
    most_tokens: int
    """Of a prompt; what comes behind is not looked at."""
    capacity_blocks: int
    """Of each replica."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Weights of what the ``scored`` router looks at."""

    queue: float
    kv_usage: float
    in_flight: float
    """Of requests sent and not answered yet, which the router counts itself."""
    cold: float
    """Of giving prompts that no replica knows to the one that has gone longest without such."""
    prefixes: tuple[RememberedPrefixes, ...]
    poll_s: float
    """How old a replica's published figures are at most."""
    seed: int
    """Of ties."""


@dataclass(frozen=True, slots=True)
class SystemConfig:
    """One simulated serving system."""

    engine: EngineConfig
    cost: StepCost
    replicas: int
    hosts: int
    router: RouterName
    link: LinkConfig
    dram: DramConfig
    ssd: SsdConfig
    offload: OffloadConfig
    active: ActiveConfig | None = None
    """None: running sequences keep all of their KV in VRAM."""
    batch: BatchConfig | None = None
    """None: continuous batching; else static batches, one after the other."""
    classes: tuple[ClassConfig, ...] = ()
    scores: Scores | None = None
    """Of router ``scored``."""
    duration_s: float | None = None
    """Arrivals from this on are not taken in; what is in flight is finished."""
    step_exact: bool = False
    audit: bool | None = None
    """Whether the laws of INVARIANTS.md are checked on the way; None: where the environment asks for it."""
    sample_s: float | None = None
    """First sampling interval of the time series; doubles as the run grows. None: chosen."""

    @property
    def audited(self) -> bool:
        """Say whether this run is checked: as it was told, else as ``SIMKV_AUDIT`` says, which processes inherit."""
        return os.environ.get(AUDIT_VARIABLE, "") not in ("", "0") if self.audit is None else self.audit
