"""Puts the parts of one replica's active offload together."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from simkv.kvcache.access import AccessPattern, make_pattern
from simkv.kvcache.residency import ResidentSet
from simkv.sim.active.ahead import NextStep
from simkv.sim.active.config import ActiveConfig
from simkv.sim.active.earned import EarnedShare
from simkv.sim.active.in_turn import InTurnShare
from simkv.sim.active.measured import Measured
from simkv.sim.active.pipeline import LayerPipeline, StepRunner
from simkv.sim.active.share import ResidentShare, SharedBudget
from simkv.sim.active.store import ActiveStore
from simkv.sim.active.traffic import Traffic
from simkv.sim.active.whole import Beside, BlockByBlock, FixedOverlap
from simkv.sim.clock import Clock
from simkv.sim.config import SystemConfig
from simkv.sim.gauge import Gauge
from simkv.sim.ledger import Ledger
from simkv.sim.tiers import ReplicaTiers

MakeTraffic = Callable[[Clock, ReplicaTiers, int, Measured], Traffic]
"""(clock, a replica's tiers, bytes of a piece, where steps are booked) to what moves its pieces."""
MakeRunner = Callable[[Traffic, ActiveConfig, Gauge], StepRunner]
"""(what moves pieces, configuration, gauge) to what runs the steps."""


class Parts(NamedTuple):
    """What an active engine works with."""

    steps: Measured
    """Booked in steps that only decode."""
    prefills: Measured
    """Booked in steps that also compute prompts."""
    store: ActiveStore
    runner: StepRunner


def assemble(
    clock: Clock,
    config: SystemConfig,
    tiers: ReplicaTiers,
    gauge: Gauge,
    ledger: Ledger,
    make_traffic: MakeTraffic = Traffic,
    make_runner: MakeRunner | None = None,
) -> Parts:
    """Return the parts of one replica.

    ``make_traffic`` and ``make_runner`` put other parts in the place of the simulated ones, such as a real executor's;
    ``make_runner`` None: as the configuration says.
    """
    active = config.active
    assert active is not None
    steps, prefills = Measured(), Measured()
    piece_bytes = config.engine.block_bytes // active.layers
    traffic = make_traffic(clock, tiers, piece_bytes, steps)
    pattern = make_pattern(active.access, config.engine.block_tokens, active.groups, active.seed)
    store = ActiveStore(active, tiers, make_share(config, pattern), pattern, traffic, ledger)
    if active.sparse:
        store.residency = _earned(config, active, store, pattern, traffic)
    runner = (make_runner or runner_type(active))(traffic, active, gauge)
    return Parts(steps, prefills, store, runner)


def make_share(config: SystemConfig, pattern: AccessPattern) -> ResidentShare:
    """Return how much VRAM sequences take."""
    active, block_tokens = config.active, config.engine.block_tokens
    assert active is not None

    def most_read(blocks: int) -> int:
        return -(-pattern.most_units(blocks * block_tokens) // pattern.groups) if active.sparse else blocks

    if active.budget_blocks is not None:
        return SharedBudget(active.budget_blocks, block_tokens, active.layers, active.staging_layers, most_read)
    return ResidentShare(active.residency, block_tokens, active.layers, active.staging_layers, most_read)


def _earned(
    config: SystemConfig, active: ActiveConfig, store: ActiveStore, pattern: AccessPattern, traffic: Traffic
) -> EarnedShare:
    offload, prefetch = config.offload, active.prefetch
    in_turn = active.incoming == "candidate"
    resident = ResidentSet(
        offload.eviction, offload.eviction_lambda, active.eviction_count, active.eviction_half_life, active.incoming
    )
    kind = InTurnShare if in_turn else EarnedShare
    share = kind(
        store.share,
        pattern,
        resident,
        active.layers,
        active.keeps_prompts,
        active.exclusive,
        store.keep,
        store.write_evicted,
    )
    if isinstance(share, InTurnShare):
        share.prefetches = prefetch.policy == "next_step"
    elif prefetch.policy in ("next_step", "oracle"):
        share.ahead = NextStep(active, share, traffic)
    return share


def runner_type(active: ActiveConfig) -> type[StepRunner]:
    """Return how steps run."""
    if active.incoming == "candidate":
        return BlockByBlock
    if active.prefetch.policy == "fixed_overlap":
        return FixedOverlap
    return Beside if active.prefetch.overlaps_demand else LayerPipeline
