"""Prompts given token by token: what they share, in blocks of their content."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

BLOCK_TOKENS = 16
MOST = 2**32 - 1
"""The highest token id: no vocabulary has as many."""


class TokenBlocks:
    """Numbers full blocks of tokens by their content and all that is before it, in order of first appearance.

    Memory grows with the number of different blocks, some 300 bytes for each.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, bytes], int] = {}

    def number(self, tokens: Sequence[int]) -> list[int]:
        """Return the numbers of the full blocks of ``tokens``; two sequences share a number as far as they agree."""
        numbers, found, before = self._numbers, [], -1
        content = array("I", tokens)
        for start in range(0, len(content) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
            key = (before, content[start : start + BLOCK_TOKENS].tobytes())
            before = numbers.setdefault(key, len(numbers))
            found.append(before)
        return found
