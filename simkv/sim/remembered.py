"""What a router believes replicas to have: blocks of the prompts that it sent there, the latest in full.

It never hears what a replica keeps or evicts. Prompts are cut into blocks of the router's own size, each known by all
that comes before it.
"""

from __future__ import annotations

from collections import OrderedDict

from simkv.sim.config import RememberedPrefixes
from simkv.workload.request import Request, Spans


class Remembered:
    """Blocks by replica, each replica's least recently sent forgotten first."""

    def __init__(self, config: RememberedPrefixes, replicas: int) -> None:
        self._config = config
        self._known: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(replicas)]

    def blocks(self, request: Request) -> list[int]:
        """Return the leading full blocks of the prompt, each as a number that stands for all up to its end."""
        config = self._config
        tokens = min(request.prompt_tokens, config.most_tokens)
        return chained(request.spans, config.block_tokens, tokens // config.block_tokens)

    def matched(self, blocks: list[int], replica: int) -> int:
        """Return how many of the leading ``blocks`` the replica is believed to have."""
        known = self._known[replica]
        for number, block in enumerate(blocks):
            if block not in known:
                return number
        return len(blocks)

    def sent(self, blocks: list[int], replica: int) -> None:
        """Note that a prompt of ``blocks`` goes to the replica."""
        known = self._known[replica]
        for block in blocks:
            known[block] = None
            known.move_to_end(block)
        while len(known) > self._config.capacity_blocks:
            known.popitem(last=False)


def chained(spans: Spans, block_tokens: int, blocks: int) -> list[int]:
    """Return ``blocks`` numbers, one a block of the content, equal where all content up to the block's end is."""
    found: list[int] = []
    number, content = 0, iter(spans)
    stream, start, left = next(content)
    for _ in range(blocks):
        if left >= block_tokens:
            number = hash((number, stream, start, block_tokens))
            start, left = start + block_tokens, left - block_tokens
        else:
            pieces: list[int] = [number]
            lacking = block_tokens
            while lacking:
                if not left:
                    stream, start, left = next(content)
                taken = min(left, lacking)
                pieces += (stream, start, taken)
                start, left, lacking = start + taken, left - taken, lacking - taken
            number = hash(tuple(pieces))
        found.append(number)
    return found
