"""The random streams of a workload, each by its purpose."""

from __future__ import annotations

import numpy as np

from simkv import rng


class Streams:
    """Fresh generators by purpose: ``streams("prompt_tokens")`` starts over at each call.

    Two purposes never share draws, so a workload that needs one more leaves all others as they were.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, purpose: str) -> np.random.Generator:
        """Return a new generator at the start of the stream for ``purpose``."""
        return rng.stream(self._seed, f"workload.{purpose}")
