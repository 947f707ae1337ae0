"""Random draws by the batch: numpy inside, plain Python numbers outside.

A numpy scalar in the simulator's inner loop is slow and leaks into results, so every draw is
converted here, a batch at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

BATCH = 4096

Sampler = Callable[[int], NDArray[Any]]
"""Takes how many values to draw, returns that many."""


def ints(draw: Sampler) -> Iterator[int]:
    """Yield draws without end as Python ints, drawing a batch when the last is used up."""
    return chain.from_iterable(draw(BATCH).tolist() for _ in repeat(None))


def floats(draw: Sampler) -> Iterator[float]:
    """Yield draws without end as Python floats, drawing a batch when the last is used up."""
    return chain.from_iterable(draw(BATCH).tolist() for _ in repeat(None))


def indices(weights: Sequence[float] | NDArray[Any], rng: np.random.Generator) -> Iterator[int]:
    """Yield indices into ``weights``, each as often as its weight says; one index needs no draws."""
    return repeat(0) if len(weights) == 1 else ints(picker(weights, rng))


def picker(weights: Sequence[float] | NDArray[Any], rng: np.random.Generator) -> Sampler:
    """Return the sampler of indices into ``weights``, which sum to more than zero."""
    edges = np.cumsum(np.asarray(weights, dtype=float))
    edges /= edges[-1]
    last = len(edges) - 1
    return lambda n: np.minimum(np.searchsorted(edges, rng.random(n), side="right"), last)
