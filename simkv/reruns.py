"""Runs that several scenarios have in common, simulated once: a grid's baselines are mostly the same run."""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import fields
from threading import Lock

import numpy as np

from simkv.sim.config import SystemConfig
from simkv.sim.rundata import RunData

MOST_RUNS = 16
MOST_BYTES = 256 << 20


class Reruns:
    """What runs left behind, by what decided them; the oldest go first where there is no room."""

    def __init__(self, most_runs: int = MOST_RUNS, most_bytes: int = MOST_BYTES) -> None:
        self.hits = 0
        self._lock = Lock()  # the threads of a cluster's worker share what is kept
        self._kept: OrderedDict[bytes, RunData] = OrderedDict()
        self._most_runs = most_runs
        self._most_bytes = most_bytes

    def run(self, config: SystemConfig, workload: str | None, seed: int, simulate: Callable[[], RunData]) -> RunData:
        """Return what ``simulate`` gives, from memory where the same system met the same requests.

        ``workload`` says which requests arrive (None: nobody can tell). Nobody may change what is returned.
        """
        key = _key(config, workload, seed) if workload is not None else None
        if key is None:
            return simulate()
        with self._lock:
            if key in self._kept:
                self.hits += 1
                self._kept.move_to_end(key)
                return self._kept[key]
        data = simulate()
        if not data.interrupted:
            with self._lock:
                self._keep(key, data)
        return data

    def _keep(self, key: bytes, data: RunData) -> None:
        self._kept[key] = data
        while len(self._kept) > self._most_runs or sum(map(_bytes, self._kept.values())) > self._most_bytes:
            self._kept.popitem(last=False)


def _key(config: SystemConfig, workload: str, seed: int) -> bytes | None:
    """Return the hash of a system and its requests; None for a system that can't be written down."""
    try:
        return hashlib.sha256(pickle.dumps((config, workload, seed))).digest()
    except (pickle.PicklingError, TypeError, AttributeError):
        return None


def _bytes(data: RunData) -> int:
    return sum(array.nbytes for array in _arrays(data))


def _arrays(data: RunData) -> Iterator[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    for each in fields(data):
        columns = getattr(data, each.name)
        if isinstance(columns, dict):
            yield from (column for column in columns.values() if isinstance(column, np.ndarray))
