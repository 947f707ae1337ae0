"""Numbers of units, and which blocks of a context hold its newest tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem
from simkv.kvcache.access.base import Units

MOST_UNITS = 2**30
"""Of one sequence; numbers are 32-bit."""


class Numbering:
    """``unit = block * groups + group``; runs of units are views of one array."""

    def __init__(self, block_tokens: int, groups: int) -> None:
        """Sizes are at least 1."""
        self.block_tokens = block_tokens
        self.groups = groups
        self._all = _frozen(np.arange(0, dtype=np.int32))

    def blocks(self, tokens: int) -> int:
        """Return how many blocks hold ``tokens`` tokens."""
        return -(-tokens // self.block_tokens)

    def blocks_of(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the same for many."""
        return -(-tokens // self.block_tokens)

    def first_of_newest(self, tokens: int, newest: int) -> int:
        """Return the first block that holds one of the ``newest`` last tokens of ``tokens``."""
        return max(0, tokens - newest) // self.block_tokens

    def most_newest(self, newest: int) -> int:
        """Return how many blocks at most hold ``newest`` (at least 1) tokens in a row."""
        return (newest + self.block_tokens - 2) // self.block_tokens + 1

    def run(self, first: int, end: int) -> Units:
        """Return the units of blocks ``first`` to ``end``, ``end`` left out."""
        if end * self.groups > len(self._all):
            self._all = _frozen(np.arange(end * self.groups * 5 // 4 + 1024, dtype=np.int32))
        return self._all[first * self.groups : end * self.groups]

    def check(self, request_id: int, tokens: int) -> None:
        """Raise InputError where a sequence of ``tokens`` tokens has more units than can be numbered."""
        units = self.blocks(tokens) * self.groups
        if units > MOST_UNITS:
            what = f"request {request_id} has {units:,} units of {self.block_tokens} tokens and a layer group"
            raise InputError(Problem(what, "take larger blocks, or fewer layer groups", path="offload.access"))


def _frozen(units: Units) -> Units:
    units.flags.writeable = False
    return units


def joined(parts: list[Units]) -> Units:
    """Return runs of units as one array; the same one where only one isn't empty."""
    parts = [part for part in parts if len(part)]
    return parts[0] if len(parts) == 1 else _frozen(np.concatenate(parts, dtype=np.int32))
