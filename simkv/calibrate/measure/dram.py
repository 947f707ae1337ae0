"""Bandwidth of host memory: copies by some threads, within a NUMA node and from another one.

The threads run on the CPUs of the node that is copied to, and each memory is first touched on the node that is to hold
it. numpy copies without the interpreter's lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from simkv.calibrate.backend import repeated, repeats_take, wall_s
from simkv.calibrate.measure.threads import on_all
from simkv.calibrate.measure.topology import beyond_caches_bytes, free_host_bytes, numa_nodes
from simkv.calibrate.task import Bench, Task
from simkv.profile.schema import Sample

_BYTES_PER_S, _SATURATED = 6e9, 8
"""For estimates of the time alone: of one thread that copies, and how many of them add up."""
_TOUCHED_PER_S = 1e9
_MOST_THREADS = 64
_LEAST_BYTES = 1 << 20
_BYTES_PER_THREAD = 32 << 20


def tasks(bench: Bench) -> Iterator[Task]:
    """Yield copies within the first node over threads, and from every other node by as many threads as it has CPUs."""
    nodes = numa_nodes()
    home = next(iter(nodes))
    counts = _thread_counts(len(nodes[home]), bench.quick)
    points = [(home, threads) for threads in counts] + [(node, counts[-1]) for node in nodes if node != home]
    for node, threads in points:
        key, nbytes = f"dram_copy/{node}to{home}/{threads}", _nbytes(threads)
        once_s = nbytes / _BYTES_PER_S / min(threads, _SATURATED)
        yield Task(
            key,
            repeats_take(once_s, bench.budget_s) + 2 * nbytes / _TOUCHED_PER_S,
            partial(_measured, bench, nbytes, threads, node, home),
        )


def _thread_counts(cpus: int, quick: bool) -> list[int]:
    """Return powers of two up to ``cpus`` (quick: the ends of them) and ``cpus`` itself, within bounds."""
    most = min(cpus, _MOST_THREADS)
    counts = sorted({1 << power for power in range(most.bit_length())} | {most})
    return sorted({counts[0], counts[-1]}) if quick else counts


def _nbytes(threads: int) -> int:
    """Return the size of a copy beyond caches that dwarfs waking ``threads``, within an eighth of free memory."""
    wanted = max(beyond_caches_bytes(), threads * _BYTES_PER_THREAD)
    return max(_LEAST_BYTES, min(wanted, free_host_bytes() // 8))


def _measured(bench: Bench, nbytes: int, threads: int, from_node: int, to_node: int) -> list[Sample]:
    source, target = np.empty(nbytes, np.uint8), np.empty(nbytes, np.uint8)
    shares = [slice(nbytes * one // threads, nbytes * (one + 1) // threads) for one in range(threads)]
    with _pinned_threads(threads, from_node) as there:
        on_all(there, shares, lambda share: source[share].fill(1))
    with _pinned_threads(threads, to_node) as here:
        on_all(here, shares, lambda share: target[share].fill(0))

        def call() -> None:
            on_all(here, shares, lambda share: np.copyto(target[share], source[share]))

        seconds = repeated(lambda: wall_s(call), bench.budget_s)
    return [
        Sample(
            kind="dram_copy",
            at={"bytes": nbytes, "threads": threads, "from_node": from_node, "to_node": to_node},
            seconds=seconds,
        )
    ]


def _pinned_threads(threads: int, node: int) -> ThreadPoolExecutor:
    """Return threads that run on the CPUs of ``node`` alone, where the system lets them be told so."""
    cpus = numa_nodes()[node]

    def stay() -> None:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cpus)  # of the calling thread

    return ThreadPoolExecutor(threads, "simkv-dram", stay)
