"""How much VRAM a running sequence takes when only part of its KV stays there."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from simkv.sim.active.sequence import Sequence


class ResidentShare:
    """Blocks of VRAM by a sequence's length: its resident share, and its part of the staging buffer.

    A sequence of n blocks keeps ``ceil(p * n)`` of them, at least the one that new KV is written to. What a step
    reads beyond that streams through buffers for ``staging_layers`` of the ``layers`` layers:
    ``ceil(streamed * staging_layers / layers)`` blocks. So the most sequences that fit are fewer than the
    article's floor(M / (p * S)).
    """

    def __init__(
        self, residency: float, block_tokens: int, layers: int, staging_layers: int, most_read: Callable[[int], int]
    ) -> None:
        """``most_read``: the most blocks that one step reads of a sequence of that many blocks."""
        self.block_tokens = block_tokens
        self._share, self._of = Fraction(repr(float(residency))).as_integer_ratio()
        self._staged_layers, self._layers = min(staging_layers, layers), layers
        self._most_read = most_read

    def total(self, tokens: int) -> int:
        """Return the blocks that hold ``tokens`` tokens, wherever they are."""
        return -(-tokens // self.block_tokens)

    def resident(self, blocks: int) -> int:
        """Return how many of a sequence's blocks stay in VRAM."""
        return min(blocks, max(1, -(-self._share * blocks // self._of)))

    def staging(self, blocks: int) -> int:
        """Return the blocks of staging buffer that a sequence of ``blocks`` blocks needs."""
        streamed = max(0, self._most_read(blocks) - self.resident(blocks))
        return -(-streamed * self._staged_layers // self._layers)

    def taken(self, blocks: int) -> int:
        """Return the blocks of VRAM that a sequence of ``blocks`` blocks takes in all."""
        return self.resident(blocks) + self.staging(blocks)


class SharedBudget(ResidentShare):
    """A fixed number of blocks for the resident KV of all sequences together, whoever earns them.

    A sequence alone takes no more than staging; the budget itself is taken as long as anybody runs.
    """

    def __init__(
        self, budget_blocks: int, block_tokens: int, layers: int, staging_layers: int, most_read: Callable[[int], int]
    ) -> None:
        super().__init__(0.0, block_tokens, layers, staging_layers, most_read)
        self.budget_blocks = budget_blocks

    def taken(self, blocks: int) -> int:
        """Return the staging buffer alone: residency is shared."""
        return self.staging(blocks)

    def length(self, seq: Sequence) -> int:
        """Return the blocks that a sequence has, or will have when its prompt is computed."""
        return seq.blocks if seq.decoding else max(seq.blocks, self.total(seq.live.target))

    def parts(self, lengths: list[int]) -> list[int]:
        """Divide the budget by length between sequences, of which there are no more than blocks: at least one each."""
        spread, total = self.budget_blocks - len(lengths), sum(lengths)
        return [min(length, 1 + spread * length // total) for length in lengths]
