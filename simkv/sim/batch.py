"""The decoding batch as aggregates: no loop over its sequences, ever.

A sequence that starts decoding in step ``step0`` with ``tokens`` in VRAM has
``tokens + k - step0`` at the beginning of step ``k``; it needs a new block in the steps that are
congruent to ``step0 - tokens`` modulo the block size, and is over at a step known in advance.
"""

from __future__ import annotations

from heapq import heappop, heappush

from simkv.sim.live import Live


class DecodeBatch:
    """Sequences, their summed context, when each ends, and when each needs a block."""

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.size = 0
        self.phases = [0] * block_tokens
        """How many sequences need a new block in the steps congruent to the index."""
        self._base = 0
        """Sum over sequences of ``tokens - step0``: their context at step k is ``_base + size * k``."""
        self._ends: list[tuple[int, int, int, Live]] = []

    def context_tokens(self, step: int) -> int:
        """KV read by attention in ``step``: every sequence's context and its new token."""
        return self._base + self.size * (step + 1)

    def add(self, live: Live, step: int, remaining: int) -> None:
        """Let ``live`` decode from ``step`` on, ``remaining`` tokens (at least 1)."""
        live.step0 = step
        self.size += 1
        self._base += live.tokens - step
        self.phases[(step - live.tokens) % self.block_tokens] += 1
        heappush(self._ends, (step + remaining, live.request.id, live.epoch, live))

    def remove(self, live: Live) -> None:
        """Take ``live`` out; its heap entry becomes void."""
        self.size -= 1
        self._base -= live.tokens - live.step0
        self.phases[(live.step0 - live.tokens) % self.block_tokens] -= 1
        live.epoch += 1

    def next_end(self) -> int:
        """The first step before which some sequence is over; the batch must not be empty."""
        ends = self._ends
        while ends[0][2] != ends[0][3].epoch:
            heappop(ends)
        return ends[0][0]

    def pop_ended(self, step: int) -> list[Live]:
        """Remove and return the sequences that are over before ``step``, in a fixed order."""
        out: list[Live] = []
        ends = self._ends
        while ends and (ends[0][0] <= step or ends[0][2] != ends[0][3].epoch):
            _, _, epoch, live = heappop(ends)
            if epoch == live.epoch:
                out.append(live)
                self.remove(live)
        return out

    def blocks_needed(self, step: int, steps: int) -> int:
        """New blocks that ``steps`` steps from ``step`` on take."""
        block_tokens = self.block_tokens
        cycles, rest = divmod(steps, block_tokens)
        first = step % block_tokens
        last = first + rest
        phases = self.phases
        if last <= block_tokens:
            return cycles * self.size + sum(phases[first:last])
        return cycles * self.size + sum(phases[first:]) + sum(phases[: last - block_tokens])

    def steps_within(self, step: int, blocks: int, most: int) -> int:
        """Return how many steps from ``step`` on, at most ``most``, need no more than ``blocks`` new blocks."""
        size = self.size
        if size == 0 or (most // self.block_tokens + 1) * size <= blocks:
            return most
        cycles, left = divmod(blocks, size)
        steps = cycles * self.block_tokens
        while steps < most:
            left -= self.phases[(step + steps) % self.block_tokens]
            if left < 0:
                break
            steps += 1
        return min(steps, most)
