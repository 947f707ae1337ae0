"""Counting hits: one replay a policy and capacity, spread over processes where that is worth it."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simkv.kvcache.eviction import CountMode, make_policy
from simkv.kvcache.replay import belady, replay

BELADY = "belady"
_WORTH_IT = 1_000_000
"""References to be replayed, over all jobs, from which processes are worth their start."""


class Job(NamedTuple):
    """One replay."""

    policy: str
    capacity_blocks: int


@dataclass(frozen=True)
class Rules:
    """What policies go by: λ of score, and how score and lfu count uses."""

    lam: float | None = None
    count: CountMode = "in_cache"
    half_life_uses: float | None = None

    def hits(self, references: Sequence[int], job: Job) -> int:
        """Return the hits of one replay, by a policy or by Belady's bound."""
        if job.policy == BELADY:
            return belady(references, job.capacity_blocks)
        return replay(references, job.capacity_blocks, make_policy(
            job.policy, self.lam, capacity_blocks=job.capacity_blocks, count=self.count,
            half_life_uses=self.half_life_uses,
        ))  # fmt: skip


def counted(
    blocks: NDArray[np.int64], jobs: Sequence[Job], rules: Rules, done: Callable[[float], None], processes: int | None
) -> dict[Job, int]:
    """Return the hits of every job; ``done`` hears which share of them is through.

    ``processes``: at most so many, None: one a core. The answer doesn't depend on it.
    """
    most = min(processes or os.cpu_count() or 1, len(jobs))
    run = _here if most < 2 or len(jobs) * blocks.size < _WORTH_IT else _spread
    found: dict[Job, int] = {}
    with run(blocks.tolist(), jobs, rules, most) as hits:
        for job, number in zip(jobs, hits, strict=True):
            found[job] = number
            done(len(found) / len(jobs))
    return found


@contextmanager
def _here(references: list[int], jobs: Sequence[Job], rules: Rules, _: int) -> Iterator[Iterator[int]]:
    yield (rules.hits(references, job) for job in jobs)


@contextmanager
def _spread(references: list[int], jobs: Sequence[Job], rules: Rules, most: int) -> Iterator[Iterator[int]]:
    pool = ProcessPoolExecutor(most, initializer=_begin, initargs=(references, rules))
    try:
        yield pool.map(_work, jobs)
    finally:
        pool.shutdown(cancel_futures=True)


_given: tuple[list[int], Rules] = ([], Rules())
"""In a worker process: what all its jobs have in common."""


def _begin(references: list[int], rules: Rules) -> None:
    global _given
    _given = (references, rules)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    gc.disable()  # replays make no circles


def _work(job: Job) -> int:
    references, rules = _given
    return rules.hits(references, job)
