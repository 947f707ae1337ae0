"""The closed forms of one scenario as functions of what the sliders move.

``assets/sliders/forms.js`` computes the same from :func:`as_data`; the tests hold the two to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from simkv.formulas.concurrency import max_concurrency
from simkv.formulas.latency import average_latency
from simkv.formulas.step import FOREVER
from simkv.formulas.transfer import transfer_s
from simkv.sim.config import EngineConfig, StepCost

Knots = Sequence[tuple[float, float]]
"""(p, p_hit), rising; the first is (0, 0), the last (1, 1)."""


@dataclass(frozen=True)
class Piece:
    """One block in one layer: what T_avg is of."""

    size_bytes: float
    vram_s: float
    """T_vram."""
    start_s: float
    """Descriptor and set-up of bringing it up alone."""
    ssd_s: float
    """What misses spend on SSD, in the mean over all of them."""

    @property
    def ssd_s_per_byte(self) -> float:
        """The same for each byte."""
        return self.ssd_s / self.size_bytes


@dataclass(frozen=True)
class Reads:
    """How much of its KV a decode step reads of one sequence."""

    most_blocks: float | None
    """None: all of it."""
    most_tokens: int | None
    always_bytes: float | None = None
    """Of a log of reads: as much as the run's transfers say, whatever the context."""


@dataclass(frozen=True)
class Forms:
    """Closed forms of one replica; bandwidths in bytes/s, times in seconds."""

    engine: EngineConfig
    cost: StepCost
    piece: Piece
    reads: Reads
    knots: Knots | None
    """None: dense access, p_hit is p."""

    @property
    def free_bytes(self) -> int:
        """M_VRAM - M_model: the room for KV."""
        return self.engine.num_gpu_blocks * self.engine.block_bytes

    def p_hit(self, p: float) -> float:
        """Return the share of reads in VRAM at ``p``: p itself, or between what was simulated."""
        if self.knots is None:
            return p
        for (left, low), (right, high) in pairwise(self.knots):
            if left <= p <= right:
                return low + (high - low) * (p - left) / (right - left)
        return 1.0

    def memory_s(self, bytes_per_s: float) -> float:
        """Return T_mem: a miss is brought up and read."""
        up_s = transfer_s(self.piece.size_bytes, bytes_per_s, 1, 0.0, self.piece.start_s)
        return self.piece.vram_s + up_s + self.piece.ssd_s

    def access_s(self, p_hit: float, bytes_per_s: float) -> float:
        """Return T_avg."""
        return average_latency(p_hit, self.piece.vram_s, self.memory_s(bytes_per_s))

    def blocks(self, tokens: int) -> int:
        """Return the blocks of a whole sequence, with what its windows and states hold."""
        side = self.engine.side
        return -(-tokens // self.engine.block_tokens) + (side.decoding(tokens) if side is not None else 0)

    def sequence_bytes(self, tokens: int) -> int:
        """Return S_seq."""
        return self.blocks(tokens) * self.engine.block_bytes

    def read_bytes(self, tokens: int) -> float:
        """Return what a step reads of one sequence."""
        if self.reads.always_bytes is not None:
            return self.reads.always_bytes
        most = self.reads.most_blocks
        return self.engine.block_bytes * (self.blocks(tokens) if most is None else min(self.blocks(tokens), most))

    def compute_s(self, sequences: int, tokens: int) -> float:
        """Return T_c of a decode step."""
        most = self.reads.most_tokens
        return self.cost.decode(sequences, sequences * (tokens if most is None else min(tokens, most)))[0]

    def transfer_s(self, sequences: int, p_hit: float, tokens: int, bytes_per_s: float) -> float:
        """Return T_t: bytes that aren't in VRAM over bandwidth, and on SSD before that; without descriptors."""
        return (1 - p_hit) * sequences * self.read_bytes(tokens) * (1 / bytes_per_s + self.piece.ssd_s_per_byte)

    def c_max(self, p: float, tokens: int) -> int:
        """Return the article's C_max."""
        return max_concurrency(self.free_bytes, self.sequence_bytes(tokens), p)

    def as_data(self, sequences: Sequence[int], most_tokens: int) -> dict[str, Any]:
        """Return it as plain data, T_c for the numbers of ``sequences`` and contexts up to ``most_tokens``."""
        side, most = self.engine.side, self.reads.most_tokens
        last = most_tokens if most is None else min(most_tokens, most)
        return {
            "free_bytes": self.free_bytes,
            "seats": self.engine.max_num_seqs,
            "block_bytes": self.engine.block_bytes,
            "block_tokens": self.engine.block_tokens,
            "side": None if side is None else {
                "windows": [[one.block_tokens, one.decoding] for one in side.windows],
                "state_pages": side.state_pages,
                "pages_per_block": side.pages_per_block,
            },
            "piece_bytes": self.piece.size_bytes,
            "t_vram_s": self.piece.vram_s,
            "start_s": self.piece.start_s,
            "ssd_s": self.piece.ssd_s,
            "ssd_s_per_byte": self.piece.ssd_s_per_byte,
            "most_blocks": self.reads.most_blocks,
            "most_tokens": most,
            "always_bytes": self.reads.always_bytes,
            "knots": None if self.knots is None else [list(knot) for knot in self.knots],
            "steps": {str(n): segments(self.cost, n, last) for n in sorted(set(sequences))},
        }  # fmt: skip


def segments(cost: StepCost, sequences: int, most_tokens: int) -> list[list[float]]:
    """Return T_c over the tokens read of each sequence: from where on, seconds there, seconds a further token.

    A step's time is linear between the knots that ``cost`` knows (``StepCost.decode``).
    """
    found, tokens = [], 1
    while tokens <= most_tokens:
        first_s, growth_s, steps = cost.decode(sequences, sequences * tokens)
        found.append([tokens, first_s, growth_s])
        if steps >= FOREVER:
            break
        tokens += steps
    return found
