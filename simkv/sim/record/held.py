"""Where the blocks of one running sequence are, as columns by block, and as the rows say so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simkv.kvcache.residency.units import ABSENT, RESIDENT
from simkv.sim.active.earned import EarnedShare
from simkv.sim.active.homes import DRAM, SSD
from simkv.sim.active.reuse import SharedHomes

if TYPE_CHECKING:
    from simkv.sim.active.pinned import PinnedShare
    from simkv.sim.active.sequence import Sequence

AWAY, COMES, IS_HERE = range(3)
States = NDArray[np.int8]


class Held:
    """What rows have said of one sequence, by tier and block; and which transfers bring what."""

    def __init__(self, label: int, blocks: int) -> None:
        self.label = label
        self.tiers: list[States] = [np.zeros(blocks, np.int8) for _ in range(3)]
        self.writing = np.zeros(blocks, np.int32)
        """Writes under way, by block."""
        self.brought: list[NDArray[np.int64]] = [np.zeros(blocks, np.int64) for _ in range(3)]
        """By tier and block: the transfer that brings it, 0: none in particular."""


def states(seq: Sequence, residency: EarnedShare | PinnedShare, writing: NDArray[Any]) -> list[States]:
    """Return by tier where the blocks of ``seq`` are now.

    Under sparse access a block is in VRAM where all of its layer groups are, and coming where the last ones are.
    What others can find of it is not told here: it is the index's.
    """
    homes = seq.homes
    vram = np.zeros(len(homes.at), np.int8)
    if isinstance(residency, EarnedShare) and seq.base >= 0:
        units = residency.set.states(seq.base).reshape(-1, residency.groups)
        vram[: len(units)] = (units != ABSENT).all(1).astype(np.int8) + (units == RESIDENT).all(1)
    elif seq.here:
        vram[seq.blocks - seq.resident : seq.blocks] = IS_HERE
    settled = np.where(writing > 0, COMES, IS_HERE).astype(np.int8)
    below = [np.where(homes.at == tier, settled, AWAY).astype(np.int8) for tier in (DRAM, SSD)]
    if isinstance(homes, SharedHomes):
        for tier in below:
            tier[: homes.shared] = AWAY
    return [vram, *below]


def used_before(seq: Sequence, residency: EarnedShare | PinnedShare) -> NDArray[np.int64]:
    """Return by block how often it was used, as the policy counts it; 0 where that fades or isn't counted."""
    blocks = len(seq.homes.at)
    if not isinstance(residency, EarnedShare) or seq.base < 0 or residency.set.fades:
        return np.zeros(blocks, np.int64)
    counts: NDArray[np.int64] = residency.set.uses(seq.base).reshape(-1, residency.groups).max(1).astype(np.int64)
    return counts
