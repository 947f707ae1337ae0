"""What a batch-mode engine is told: the layer, the policy, the rates and the room, resolved."""

from __future__ import annotations

from dataclasses import dataclass

from simkv.formulas.placement import BatchPolicy, LayerShape, Rates, Room


@dataclass(frozen=True, slots=True)
class BatchConfig:
    """One replica's batch mode."""

    layer: LayerShape
    policy: BatchPolicy
    rates: Rates
    """Of links and SSD the fabric's lanes decide, which are built from the same figures."""
    room: Room
