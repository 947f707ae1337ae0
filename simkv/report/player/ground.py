"""A recording's pools and rows in one unit: the smallest block of any tier, so that tiers with larger ones compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd, isfinite
from typing import NamedTuple

from simkv.kvcache.pool import UNBOUNDED_BLOCKS
from simkv.results.words import TIERS as NAMES
from simkv.sim.record.recording import BLOCKS, POOLS, WHATS, Recording

THERE, COMING, HERE, USED, GONE = range(len(WHATS))


class Row(NamedTuple):
    """One row of ``Recording.blocks``: ``first`` and ``end`` in the smallest blocks, ``pool`` its place among all."""

    t_s: float
    pool: int
    what: int
    label: int
    first: int
    end: int
    transfer: int


@dataclass(frozen=True, slots=True)
class Pool:
    """A shelf: one tier's memory of one replica, host or class."""

    tier: int
    number: int
    capacity_blocks: int | None
    """None: without bounds."""
    block_bytes: int
    block_tokens: int
    scale: int
    """How many of the smallest blocks one of its blocks is."""
    left_out_blocks: int
    """Were there as the window began, and no row says so."""

    def name(self, among: Sequence[Pool]) -> str:
        """Return what people call it: ``VRAM``, and its number where its tier has several."""
        several = sum(other.tier == self.tier for other in among) > 1
        return f"{NAMES[self.tier][0]} {self.number}" if several else NAMES[self.tier][0]


def pools(recording: Recording) -> list[Pool]:
    """Return every pool of the recording, VRAM first."""
    columns = [recording.pools[name] for name in POOLS]
    left_out = recording.left_out_blocks or [0] * len(columns[0])
    found = [tuple(int(value) for value in row) for row in zip(*columns, left_out, strict=True)]
    unit = reduce(gcd, (tokens for *_, tokens, _ in found), 0) or 1
    return [
        Pool(tier, number, None if room >= UNBOUNDED_BLOCKS else room, nbytes, tokens, tokens // unit, unseen)
        for tier, number, room, nbytes, tokens, unseen in sorted(found)
    ]


def rows(recording: Recording, shelves: list[Pool]) -> Iterator[Row]:
    """Yield the rows of ``recording.blocks`` in their order."""
    place = {(pool.tier, pool.number): index for index, pool in enumerate(shelves)}
    table = recording.blocks
    columns = (table[name] for name in BLOCKS)
    for t_s, tier, number, what, label, first, end, transfer in zip(*columns, strict=True):
        index = place[int(tier), int(number)]
        scale = shelves[index].scale
        yield Row(t_s, index, int(what), int(label), int(first) * scale, int(end) * scale, int(transfer))


def known(value: float) -> float | None:
    """Return ``value``, or None where it is nan or infinite: JSON has neither."""
    return value if isfinite(value) else None
