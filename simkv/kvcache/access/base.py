"""What an access pattern is asked: which units of its KV a sequence reads at each decode step.

Residency is counted in *units*: a block of one layer group. Layers are folded into ``groups``
groups that choose apart from one another; ``unit = block * groups + group``. Decode step k, from
0, computes one token, whose own block it reads too: its context is prompt + k + 1 tokens.

What a step reads follows from seed, request and step alone. Whatever else a run does (batch,
residency, prefetch, looking ahead) changes nothing, so compared runs see the same reads.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Units = NDArray[np.int32]
"""Unit numbers, each once, in order of access; not to be written to."""


class SequenceAccess(Protocol):
    """The reads of one sequence."""

    def reads(self, step: int) -> Units:
        """Return the units that attention reads at decode step ``step``.

        Ascending, unless a log says otherwise. Any step may be asked at any time; rising steps are
        quick, with those of the last ``forward.KEPT`` steps before the highest again.
        """


class AccessPattern(Protocol):
    """How the sequences of a run read their KV."""

    sparse: bool
    """False: every step reads every unit."""
    groups: int
    """Layer groups that choose apart."""
    approximate: bool
    """A model trained with dense attention gives other results: quality isn't modelled."""

    def open(self, request_id: int, prompt_tokens: int, output_tokens: int) -> SequenceAccess:
        """Return the reads of a request; InputError where a log doesn't fit it."""

    def most_units(self, tokens: int) -> int:
        """Return how many units a step reads at most in a context of ``tokens`` tokens or fewer."""
