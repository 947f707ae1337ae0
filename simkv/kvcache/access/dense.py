"""``dense``: every step reads everything."""

from __future__ import annotations

from simkv.kvcache.access.base import Units
from simkv.kvcache.access.units import Numbering


class DensePattern:
    """Attention over the whole context."""

    sparse = False
    approximate = False

    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering
        self.groups = numbering.groups

    def open(self, request_id: int, prompt_tokens: int, output_tokens: int) -> DenseAccess:
        """Return the reads of a request."""
        self._numbering.check(request_id, prompt_tokens + output_tokens)
        return DenseAccess(self._numbering, prompt_tokens)

    def most_units(self, tokens: int) -> int:
        """Return how many units ``tokens`` tokens have."""
        return self._numbering.blocks(tokens) * self.groups


class DenseAccess:
    """The reads of one sequence."""

    def __init__(self, numbering: Numbering, prompt_tokens: int) -> None:
        self._numbering = numbering
        self._prompt_tokens = prompt_tokens

    def reads(self, step: int) -> Units:
        """Return all units that hold the context of ``step``."""
        return self._numbering.run(0, self._numbering.blocks(self._prompt_tokens + step + 1))
