"""The KV blocks of a batch, spread over the tiers for as long as it runs."""

from __future__ import annotations

from collections.abc import Sequence

from simkv.errors import InfeasibleError
from simkv.formulas.placement import Share
from simkv.kvcache.pool import KVPool
from simkv.sim.live import Live
from simkv.sim.tiers import ReplicaTiers

_MEND = "place less KV there, or lower engine.gpu_batch_size or engine.num_gpu_batches"


class BatchHoldings:
    """Takes a batch's blocks in VRAM, DRAM and SSD at its start, as engines of static batches allocate them."""

    def __init__(self, tiers: ReplicaTiers, share: Share) -> None:
        self._pools: dict[str, KVPool | None] = {"VRAM": tiers.vram, "DRAM": tiers.dram, "SSD": tiers.ssd}
        self._share = share
        self._below: dict[str, int] = {}

    def take(self, lives: Sequence[Live], blocks: int) -> None:
        """Take ``blocks`` blocks for each request; raises :class:`InfeasibleError` where a tier has too few."""
        placed = self._share.split(blocks * len(lives))
        for (name, pool), wanted in zip(self._pools.items(), placed, strict=True):
            free = pool.available_blocks if pool is not None else 0
            if wanted > free:
                raise InfeasibleError(
                    f"{wanted} KV blocks don't fit the {free} of {name}: {wanted - free} too many; {_MEND}"
                )
            if pool is not None:
                pool.take(wanted)
        self._below = {"DRAM": placed[1], "SSD": placed[2]}
        for number, live in enumerate(lives):
            live.blocks_held = placed[0] * (number + 1) // len(lives) - placed[0] * number // len(lives)

    def give(self, lives: Sequence[Live]) -> None:
        """Give everything back."""
        held = {"VRAM": sum(live.blocks_held for live in lives), **self._below}
        for name, pool in self._pools.items():
            if pool is not None:
                pool.give(held[name])
        for live in lives:
            live.blocks_held = 0
        self._below = {}
