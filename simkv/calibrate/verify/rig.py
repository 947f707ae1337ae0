"""What a real run works with, and what it shows."""

from __future__ import annotations

from dataclasses import dataclass, field

from simkv.calibrate.backend import Backend
from simkv.calibrate.copies import CopyEngine
from simkv.calibrate.model import Decoder
from simkv.calibrate.verify.pool import ColdStore, HotPool


@dataclass
class Rig:
    """What a run works with: the device, the model, the pool, what lies below it, the lanes between them."""

    backend: Backend
    model: Decoder
    hot: HotPool
    cold: ColdStore
    copies: CopyEngine


@dataclass
class Observed:
    """What a real run showed, by the wall clock."""

    steps_s: list[float] = field(default_factory=list)
    waited_s: list[float] = field(default_factory=list)
    """By step, how long the computation waited for pieces."""
    reads: int = 0
    hits: int = 0
    """Reads of (block, layer) pieces, and those that were in the pool when attention needed them."""
    transfer_s: float = 0.0
    """How long what was needed was under way: demand loads from the asking, and prefetches that were read on lanes."""
    hidden_s: float = 0.0
    """Of it, what had arrived before attention came to it."""
    digest: str = ""
    """SHA-256 of attention's outputs, step by step and layer by layer."""

    @property
    def computed_s(self) -> list[float]:
        """Return by step what it took beside waiting for pieces."""
        return [step - waited for step, waited in zip(self.steps_s, self.waited_s, strict=True)]

    @property
    def beta(self) -> float:
        """Return how much of the time in which needed transfers were under way was hidden, 0 to 1."""
        under_way_s = self.hidden_s + sum(self.waited_s)
        return self.hidden_s / under_way_s if under_way_s else 1.0
