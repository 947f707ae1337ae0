"""What serving a load costs the simulator: decisions, of what each takes, and bytes.

Costs are those of one core of an AMD EPYC (2 cores at 2.6 GHz), as measured on the shipped scenarios; another machine
takes half or twice as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from simkv.estimate.load import Load
from simkv.sim.active.config import ActiveConfig
from simkv.sim.batchmode.config import BatchConfig
from simkv.sim.config import SystemConfig

DECISION_S = 25e-6
"""An arrival, a chunk of a prompt, an end; with nothing below VRAM."""
TIERED_S = 60e-6
"""The same with transfers, stores and evictions of lower tiers."""
EVENT_S = 10e-6
"""Of active offload, layer by layer."""
SPARSE_STEP_S = 400e-6
UNIT_S = 40e-9
"""A step of sparse attention, and each block of each group in it."""
JOB_S = 50e-6
"""Loads, stores and computation of one GPU batch in one layer."""
AUDIT = 3.0
"""So much longer does checking all laws take."""
RECORD_BYTES = 250
"""Of a request that has ended."""
LIVE_BYTES = 1300
"""Of one that waits or runs."""
UNIT_BYTES = 40
"""Of a block of a running sequence, under sparse attention."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one simulation does."""

    decisions: float
    time_s: float
    memory_bytes: float


def work_of(config: SystemConfig, load: Load) -> Work:
    """Return the work of simulating ``load`` on one system."""
    if config.batch is not None:
        decisions, time_s, extra = _batches(config, config.batch, load)
    elif config.active is not None:
        decisions, time_s, extra = _active(config, config.active, load)
    else:
        decisions, time_s, extra = _ordinary(config, load)
    if config.audited:
        time_s *= AUDIT
    return Work(decisions, time_s, RECORD_BYTES * load.requests + LIVE_BYTES * _live(config, load) + extra)


def _ordinary(config: SystemConfig, load: Load) -> tuple[float, float, float]:
    decisions = load.requests * (2 + _chunks(config, load))
    if config.step_exact:
        decisions += load.requests * load.output_tokens / _width(config, load, 1.0)
    tiered = config.dram.capacity_bytes >= config.engine.block_bytes
    return decisions, decisions * (TIERED_S if tiered else DECISION_S), 0.0


def _active(config: SystemConfig, active: ActiveConfig, load: Load) -> tuple[float, float, float]:
    """Every step is a decision: its layers where all is read, blocks and groups where some are."""
    width = _width(config, load, max(active.residency, 1e-3))
    chunks = _chunks(config, load) if active.prefill == "here" else 1
    steps = load.requests * (load.output_tokens / width + chunks)
    if not active.sparse:
        return steps, steps * EVENT_S * (5 + 2 * active.layers), 0.0
    units = width * active.groups * _tokens(load) / config.engine.block_tokens
    return steps, steps * (SPARSE_STEP_S + UNIT_S * units), UNIT_BYTES * units * config.replicas


def _batches(config: SystemConfig, batch: BatchConfig, load: Load) -> tuple[float, float, float]:
    rounds = ceil(load.requests / (batch.policy.sequences * config.replicas))
    steps = rounds * config.replicas * load.output_tokens
    return steps, steps * JOB_S * batch.layer.layers * batch.policy.num_gpu_batches, 0.0


def _chunks(config: SystemConfig, load: Load) -> float:
    """Return in how many steps a prompt is computed: half of what caches might know is taken to be known."""
    tokens = load.prompt_tokens
    if config.engine.prefix_caching:
        tokens = (tokens + load.computed_tokens) / 2
    return max(1, ceil(tokens / config.engine.max_num_batched_tokens))


def _width(config: SystemConfig, load: Load, share: float) -> float:
    """Return about how many sequences one replica decodes together, of each of which ``share`` is in VRAM."""
    engine = config.engine
    room = engine.num_gpu_blocks * engine.block_tokens / (share * _tokens(load))
    return max(1.0, min(engine.max_num_seqs, load.together / config.replicas, room))


def _live(config: SystemConfig, load: Load) -> float:
    """Return how many requests wait or run at once: all, where more come than can be served."""
    seats = config.engine.max_num_seqs * config.replicas
    over = max(0.0, 1 - seats / load.together) if load.together > seats else 0.0
    return min(load.requests, load.together + load.requests * over)


def _tokens(load: Load) -> float:
    return max(1.0, load.prompt_tokens + load.output_tokens)
