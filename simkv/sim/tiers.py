"""Where one replica's KV can be: its VRAM, the DRAM pool it may use, its host's SSD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simkv.errors import InfeasibleError
from simkv.kvcache.node import Match
from simkv.kvcache.pool import UNBOUNDED_BLOCKS, KVPool
from simkv.sim.active.promises import Promises
from simkv.sim.clock import Clock
from simkv.sim.config import ClassConfig, LinkConfig, SystemConfig
from simkv.sim.fabric import Fabric, Lane
from simkv.workload.request import Spans

_NO_SHARE = 1e-9
"""What is left where shares sum to 1 but for rounding."""


class LowerHit(NamedTuple):
    """What lies below VRAM, contiguous from the VRAM hit on: to ``dram_end`` in DRAM, to ``ssd_end`` on SSD.

    Ends are in blocks of VRAM, matches in units of the lower tiers.
    """

    dram: Match | None
    dram_end: int
    ssd: Match | None
    ssd_end: int
    pending: int
    """A transfer that is bringing in what comes next in DRAM, or 0."""


class Owner(NamedTuple):
    """For whom something is moved: a class's rank on the lanes, and the part of DRAM that it has."""

    rank: int
    dram: KVPool | None
    retention: int | None = None
    """What its blocks are worth to the eviction policy; None: nothing in particular."""


class Host:
    """One machine: its fabric, its SSD, its DRAM pools, a link for each of its replicas."""

    def __init__(self, clock: Clock, config: SystemConfig, replicas: int, classes: Sequence[ClassConfig] = ()) -> None:
        unit_bytes = config.engine.block_bytes * config.offload.unit_blocks
        dram, ssd = config.dram, config.ssd
        self.classes = classes
        self.ranks = ranks(config, classes)
        self.fabric = Fabric(clock, dram.bandwidth_bytes_per_s, max(self.ranks, default=0) + 1)
        parts = 1 if dram.shared else replicas
        part_bytes = dram.capacity_bytes / parts if dram.bandwidth_bytes_per_s > 0 else 0.0
        self._parts = [self._dram_part(config, part_bytes, classes) for _ in range(parts)]
        self.dram = [pool for part in self._parts for pool in dict.fromkeys(part) if pool is not None]
        ssd_units = blocks_of(ssd.capacity_bytes, unit_bytes) if self.dram else 0
        self.ssd = make_pool(config, ssd_units, config.offload.unit_blocks) if ssd_units else None
        self.promises = Promises(self.dram, self.ssd)
        bound = ssd.latency_s > 0 and not ssd.request_latency_s  # else what requests take at that depth is known
        queue_rate = ssd.queue_depth * unit_bytes / ssd.latency_s if bound else float("inf")
        costs = ssd.request_latency_s, config.link.chunk_bytes, ssd.latency_s
        self.ssd_read = Lane(self.fabric, "ssd_read", min(ssd.read_bytes_per_s, queue_rate), *costs)
        self.ssd_write = Lane(self.fabric, "ssd_write", min(ssd.write_bytes_per_s, queue_rate), *costs)
        self.fabric.add_ssd(self.ssd_read, self.ssd_write)
        self.links = [self._add_link(config.link) for _ in range(replicas)]
        self._add_uplinks(config.link)

    def _dram_part(
        self, config: SystemConfig, nbytes: float, classes: Sequence[ClassConfig]
    ) -> tuple[KVPool | None, ...]:
        """Cut one replica's DRAM; return the pool of each class, and last the one of those without a share."""
        unit = config.offload.unit_blocks
        unit_bytes = config.engine.block_bytes * unit
        if not blocks_of(nbytes, unit_bytes):
            return (None,) * (len(classes) + 1)
        rest = 1.0 - sum(one.dram_share or 0.0 for one in classes)
        common = make_pool(config, blocks_of(nbytes * rest, unit_bytes) if rest > _NO_SHARE else 0, unit)
        parts: list[KVPool | None] = []
        for one in classes:
            units = blocks_of(nbytes * one.dram_share, unit_bytes) if one.dram_share else 0
            if one.dram_share is not None and not units:
                raise InfeasibleError(f"classes.{one.name}.dram_share leaves the class no block of DRAM: raise it")
            parts.append(make_pool(config, units, unit) if units else common)
        return (*parts, common)

    def owners(self, local_replica: int) -> list[Owner]:
        """Return for whom the host's n-th replica works: each class, and last nobody in particular."""
        part = self._parts[local_replica % len(self._parts)]
        worth = (*(one.retention for one in self.classes), None)
        return [Owner(*each) for each in zip((*self.ranks, 0), part, worth, strict=True)]

    def _add_link(self, link: LinkConfig) -> tuple[Lane, Lane]:
        costs = link.latency_s, link.chunk_bytes, link.setup_s
        h2d = Lane(self.fabric, "h2d", link.h2d_bytes_per_s, *costs)
        d2h = Lane(self.fabric, "d2h", link.d2h_bytes_per_s, *costs)
        self.fabric.add_link(h2d, d2h, link.duplex_bytes_per_s)
        return h2d, d2h

    def _add_uplinks(self, link: LinkConfig) -> None:
        if link.uplink_bytes_per_s == float("inf"):
            return
        for first in range(0, len(self.links), link.uplink_replicas):
            for lanes in zip(*self.links[first : first + link.uplink_replicas], strict=True):
                self.fabric.add_uplink(lanes, link.uplink_bytes_per_s)


class ReplicaTiers:
    """One replica's view: pools by tier and the link between them."""

    def __init__(self, config: SystemConfig, host: Host, local_replica: int) -> None:
        self.host = host
        self.block_bytes = config.engine.block_bytes
        self.unit_blocks = config.offload.unit_blocks
        self._unit_tokens = config.engine.block_tokens * config.offload.unit_blocks
        self.descriptors_per_block = config.link.descriptors_per_block
        self.vram = make_pool(config, config.engine.num_gpu_blocks)
        self.classes = host.classes
        self.owners = host.owners(local_replica)
        """By class, and last one for what is nobody's in particular."""
        self.dram = self.owners[-1].dram
        self.dram_number = host.dram.index(self.dram) if self.dram is not None else 0
        """Which of the host's DRAM pools it is."""
        self.ssd = host.ssd if self.dram is not None else None
        self.h2d, self.d2h = host.links[local_replica]
        self.can_load = self.dram is not None and self.h2d.usable
        self.can_store = self.dram is not None and self.d2h.usable
        self.can_promote = self.can_load and self.ssd is not None and host.ssd_read.usable
        self.can_cascade = self.ssd is not None and host.ssd_write.usable

    def lookup(self, spans: Spans, tokens: int, limit: int, vram_end: int, dram: KVPool | None) -> LowerHit:
        """Return what ``dram`` and the SSD hold of blocks ``vram_end .. limit-1``, without a gap; mutates nothing.

        Only whole units of the first ``tokens`` tokens are looked for.
        """
        unit = self.unit_blocks
        units = min(self.units_over(limit), tokens // self._unit_tokens)
        if not self.can_load or vram_end >= min(limit, units * unit):
            return LowerHit(None, vram_end, None, vram_end, 0)
        assert dram is not None
        found = dram.index.match(spans, units, vram_end // unit)
        dram_end = max(min(found.end * unit, limit), vram_end)
        if found.pending and dram_end < limit:
            return LowerHit(found, dram_end, None, dram_end, found.pending)
        if not self.can_promote or dram_end >= min(limit, units * unit):
            return LowerHit(found, dram_end, None, dram_end, 0)
        assert self.ssd is not None
        deep = self.ssd.index.match(spans, units, dram_end // unit)
        return LowerHit(found, dram_end, deep, max(min(deep.end * unit, limit), dram_end), 0)

    def leading(self, spans: Spans, lower: LowerHit, blocks: int) -> LowerHit:
        """Return ``lower`` with no more of the SSD's part than its first ``blocks`` blocks, in whole units."""
        assert self.ssd is not None
        first = lower.dram_end // self.unit_blocks
        units = first + max(1, blocks // self.unit_blocks)
        if lower.ssd is None or lower.ssd.end <= units:
            return lower
        return lower._replace(ssd=self.ssd.index.match(spans, units, first), ssd_end=units * self.unit_blocks)

    def units_over(self, blocks: int) -> int:
        """Return the units of a lower tier that ``blocks`` leading blocks lie in, the last perhaps in part."""
        return -(-blocks // self.unit_blocks)


def ranks(config: SystemConfig, classes: Sequence[ClassConfig]) -> tuple[int, ...]:
    """Return each class's rank on the lanes, 0 the most urgent; first come first served knows no ranks."""
    if config.engine.scheduling == "fcfs":
        return (0,) * len(classes)
    order = sorted({one.priority for one in classes})
    return tuple(order.index(one.priority) for one in classes)


def make_pool(config: SystemConfig, units: int, unit_blocks: int = 1) -> KVPool:
    """Return a pool of ``units`` units of ``unit_blocks`` blocks each, under the configured eviction policy."""
    offload = config.offload
    merge = offload.write != "write_through_selective"
    unit_tokens = config.engine.block_tokens * unit_blocks
    return KVPool(
        units, unit_tokens, offload.eviction, offload.eviction_lambda, merge, offload.whole_nodes,
        offload.eviction_count, offload.eviction_half_life_uses,
    )  # fmt: skip


def blocks_of(capacity_bytes: float, block_bytes: int) -> int:
    """Return how many whole blocks fit; an unbounded tier has a very large number."""
    if capacity_bytes == float("inf"):
        return UNBOUNDED_BLOCKS
    return int(capacity_bytes // block_bytes)
