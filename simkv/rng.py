"""Named random streams, so that a new consumer never shifts the draws of an old one."""

from __future__ import annotations

from zlib import crc32

import numpy as np


def stream(seed: int, name: str) -> np.random.Generator:
    """Return the generator called ``name`` of a run with ``seed``; equal arguments, equal draws."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(crc32(name.encode()),))))
