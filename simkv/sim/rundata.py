"""What one simulated run leaves behind: columns and counters, no interpretation."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simkv.sim.active.measured import Measured
from simkv.sim.record.recording import Recording

REQUEST_COLUMNS: dict[str, str] = {
    # name: numpy dtype. One row a request that ended (finished or rejected), in the order they ended.
    "id": "i8",
    "session": "i8",
    "turn": "i4",
    "cls": "i2",  # index into RunData.class_names
    "replica": "i2",  # -1: rejected before routing
    "rejected": "?",
    "arrival_s": "f8",
    "scheduled_s": "f8",  # start of the first step that computes something of it; nan if rejected
    "first_token_s": "f8",
    "finish_s": "f8",
    "prompt_tokens": "i4",
    "output_tokens": "i4",
    "hit_vram_tokens": "i4",  # prompt tokens found at the first admission, by the tier that served them
    "hit_dram_tokens": "i4",
    "hit_ssd_tokens": "i4",
    "recomputed_tokens": "i4",  # tokens computed again after a preemption
    "preemptions": "i4",
    # where the time from arrival to finish went; these sum to finish_s - arrival_s
    "queue_time_s": "f8",
    "load_dram_time_s": "f8",
    "load_ssd_time_s": "f8",
    "prefill_time_s": "f8",
    "decode_time_s": "f8",
    "recompute_time_s": "f8",
    "preempted_time_s": "f8",
    "ceiling_tokens": "i4",  # prompt tokens an infinite cache would have hit (arrivals in order)
}

STEP_COLUMNS: dict[str, str] = {
    # one row a macro-step: `count` steps starting at start_s, lasting first_s, first_s+growth_s, ...
    # each giving one inter-token interval to `decodes` sequences
    "start_s": "f8",
    "first_s": "f8",
    "growth_s": "f8",
    "count": "i4",
    "decodes": "i4",
}

TIMESERIES_COLUMNS: tuple[str, ...] = (
    # one row a sample, f8; sums over replicas; *_busy_s are cumulative busy seconds
    "t_s", "waiting", "running", "held", "vram_blocks", "vram_cached_blocks", "dram_blocks", "ssd_blocks",
    "gpu_busy_s", "h2d_busy_s", "d2h_busy_s", "ssd_read_busy_s", "ssd_write_busy_s",
    "dram_bytes", "h2d_bytes", "d2h_bytes", "ssd_read_bytes", "ssd_write_bytes", "finished",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Warmed:
    """What passed through the tiers untimed before a run began."""

    requests: int
    time_s: float
    """Of the workload's own time."""
    settled: bool | None
    """Whether longer would have changed nothing relevant; None where nobody asked for that."""
    written_blocks: dict[str, int]
    """Blocks written into each tier by that."""


@dataclass(slots=True)
class RunData:
    """Raw outcome of one run. Times are seconds of simulated time."""

    class_names: tuple[str, ...]
    requests: dict[str, NDArray[np.generic]]
    steps: dict[str, NDArray[np.generic]]
    gaps: dict[str, NDArray[np.float64]]
    """Inter-token gaps that span a preemption: columns ``end_s``, ``gap_s``."""
    timeseries: dict[str, NDArray[np.float64]]
    arrived: int
    finished: int
    rejected: int
    live: int
    end_s: float
    """When the last request ended (or the run was interrupted)."""
    interrupted: bool
    busy_s: dict[str, float]
    """Busy seconds by resource, summed over its instances: gpu, h2d, d2h, dram, ssd_read, ssd_write;
    where GPUs share uplinks, uplink_h2d and uplink_d2h."""
    instances: dict[str, int]
    """How many instances of each resource there are (utilization = busy / (instances * makespan))."""
    bytes: dict[str, int]
    """Bytes moved by resource: h2d, d2h, dram, ssd_read, ssd_write."""
    tier_capacity_blocks: dict[str, int]
    """Total capacity in blocks: vram, dram, ssd (all replicas and hosts together)."""
    tier_written_blocks: dict[str, int]
    """Blocks ever written into each tier."""
    tier_mean_used: dict[str, float]
    """Time-average of used share of capacity: vram (in use by requests or cached), dram, ssd."""
    preemptions: int
    recomputed_tokens: int
    refused_stores: int
    """Store batches that a full DRAM refused."""
    running_time_s: float
    """Integral over time of the number of running requests (all replicas)."""
    running_max: int
    load_held_s: float
    """Total time that some request of a replica was held for a load, and of that the GPU worked for others."""
    load_hidden_s: float
    load_waits: int
    steps_total: int
    macro_steps: int
    events: int
    fixed_until_s: float = 0.0
    """When the last request arrived whose time the run had no part in: later turns of a log are such, answers'
    followers aren't."""
    prefetch: dict[str, float] = field(default_factory=dict)
    """Queue prefetcher: loaded_bytes, used_bytes, wasted_bytes (0 where there is none)."""
    active: Measured | None = None
    """Active offload: sums over the steps that only decode; None without it."""
    swap: dict[str, int] = field(default_factory=dict)
    """Preemption by swap: requests, refused, out_blocks, in_blocks (empty where preempted requests compute again)."""
    warmed: Warmed | None = None
    """What passed untimed before the run; None where tiers were cold."""
    wall_s: float = 0.0
    recordings: tuple[Recording, ...] = ()
    """What was asked to be recorded, in the order asked."""
