"""A running sequence under active offload: what it takes in VRAM, and where the rest of it lies."""

from __future__ import annotations

from simkv.kvcache.access import SequenceAccess
from simkv.sim.active.homes import Homes
from simkv.sim.live import Live


class Sequence:
    """What active offload keeps of one request while it runs, or waits with its KV below VRAM."""

    __slots__ = (
        "access",
        "base",
        "blocks",
        "cold_dram",
        "cold_ssd",
        "decoding",
        "here",
        "homes",
        "live",
        "part",
        "promised",
        "resident",
        "taken",
        "written",
    )

    def __init__(self, live: Live, homes: Homes) -> None:
        self.live = live
        self.homes = homes
        self.access: SequenceAccess | None = None
        self.base = -1
        """Of its region in the resident set (sparse access)."""
        self.decoding = False
        self.here = False
        """It holds VRAM."""
        self.blocks = 0
        """Blocks of KV that it has, the last perhaps in part."""
        self.resident = 0
        """Dense access: how many of its newest blocks are in VRAM."""
        self.cold_dram = self.cold_ssd = 0
        """Dense access: blocks that stream from there in every step."""
        self.part = 1
        """With a budget for all: how many of its blocks may stay in VRAM."""
        self.taken = 0
        """Blocks of VRAM that it holds, staging included."""
        self.promised = 0
        """Blocks below VRAM that are kept free for it."""
        self.written = 0
        """How many of its first blocks were written down, or are on their way."""

    @property
    def cold(self) -> int:
        """Dense access: how many of its first blocks aren't resident."""
        return self.blocks - self.resident

    def step(self, computed_here: bool) -> int:
        """Return the number of its next decode step, from 0."""
        return self.live.generated - (1 if computed_here else 0)
