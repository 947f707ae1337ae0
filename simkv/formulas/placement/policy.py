"""Where weights, KV and activations lie, and how a batch is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Expands = Literal["never", "repeated", "always"]
"""When KV is written out: where several heads of queries share one of KV, or whatever the model."""


@dataclass(frozen=True, slots=True)
class Share:
    """Parts of one, on GPU and CPU; the rest is on disk."""

    gpu: float
    cpu: float

    @property
    def disk(self) -> float:
        """What neither GPU nor CPU holds."""
        rest = 1.0 - self.gpu - self.cpu
        return rest if rest > 1e-9 else 0.0

    @property
    def below(self) -> float:
        """What the GPU doesn't hold."""
        return self.cpu + self.disk

    def split(self, amount: int) -> tuple[int, int, int]:
        """Return how much of ``amount`` lies on GPU, CPU and disk: whole numbers that sum to it."""
        gpu, disk = round(amount * self.gpu), round(amount * self.disk)
        if not self.cpu:
            return (amount - disk, 0, disk) if self.gpu else (0, 0, amount)
        return gpu, amount - gpu - disk, disk


def by_matrices(share: Share, parts: Sequence[Sequence[int]]) -> Share:
    """Return what the tiers get of ``parts`` when each matrix goes whole to one of them.

    Within each part of a layer matrices go to disk, CPU and GPU in order, each by where its middle lies.
    Source: FlexGen, flex_opt.py (``init_weight_list``, ``get_choice``).
    """
    held = {"disk": 0, "cpu": 0, "gpu": 0}
    for sizes in parts:
        before, total = 0, sum(sizes)
        for size in sizes:
            middle = (before + size / 2) / total
            held[_home(middle, share)] += size
            before += size
    total = sum(held.values())
    return Share(held["gpu"] / total, held["cpu"] / total)


def _home(middle: float, share: Share) -> str:
    if middle < share.disk:
        return "disk"
    return "cpu" if middle < share.disk + share.cpu else "gpu"


@dataclass(frozen=True, slots=True)
class Placement:
    """The six percentages of FlexGen, as shares."""

    weights: Share
    kv: Share
    activations: Share


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How a batch is served: a block is one layer for ``num_gpu_batches`` GPU batches, between two loads of weights."""

    placement: Placement
    gpu_batch_size: int
    num_gpu_batches: int = 1
    overlap: bool = True
    """False: loads, computation and stores of a block follow one another."""
    cpu_attention: bool = False
    """Decoding attends to KV below the GPU where it lies; only queries and results travel."""
    loads_first: bool = True
    """While decoding, what goes onto the GPU goes before everything else of its block (FlexGen's cost model)."""
    reads_first: bool = False
    """With ``loads_first``: so does what SSD reads, which is for this block then."""
    stages_weights: bool = False
    """Weights in DRAM aren't pinned: the thread that launches everything copies each to pinned memory first."""
    stages_kv: bool = False
    """The same of KV on its way up."""
    expands_kv: Expands = "never"
    """Before attention on the CPU, KV is written out in 32 bits, once for each head of the queries."""

    @property
    def sequences(self) -> int:
        """Sequences that are served together."""
        return self.gpu_batch_size * self.num_gpu_batches

    def gpu_batches(self, sequences: int) -> list[int]:
        """Return how many sequences each GPU batch of ``sequences`` has: the last perhaps fewer."""
        whole, rest = divmod(sequences, self.gpu_batch_size)
        return [self.gpu_batch_size] * whole + ([rest] if rest else [])
