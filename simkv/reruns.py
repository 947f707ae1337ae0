"""Runs that several scenarios have in common, simulated once: a grid's baselines are mostly the same run."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from threading import Lock, get_ident

import numpy as np

from simkv import __version__
from simkv.sim.config import SystemConfig
from simkv.sim.rundata import RunData

MOST_RUNS = 16
MOST_BYTES = 256 << 20


class Reruns:
    """What runs left behind, by what decided them; the oldest go first where there is no room.

    ``folder``: where the processes of one machine share theirs; None: in memory alone. At most ``most_runs`` runs and
    ``most_bytes`` bytes of columns are kept in memory, and ``most_bytes`` bytes of files in the folder.
    """

    def __init__(self, folder: Path | None = None, most_runs: int = MOST_RUNS, most_bytes: int = MOST_BYTES) -> None:
        self.hits = 0
        self._folder = folder
        self._lock = Lock()  # the threads of a cluster's worker share what is kept
        self._kept: OrderedDict[str, RunData] = OrderedDict()
        self._most_runs = most_runs
        self._most_bytes = most_bytes

    def run(self, config: SystemConfig, workload: str | None, seed: int, simulate: Callable[[], RunData]) -> RunData:
        """Return what ``simulate`` gives, from what is kept where the same system met the same requests.

        ``workload`` says which requests arrive and what they read (None: nobody can tell). An interrupted run is not
        kept. Nobody may change what is returned. Raises what ``simulate`` does.
        """
        key = _key(config, workload, seed) if workload is not None else None
        if key is None:
            return simulate()
        known = self._known(key)
        if known is not None:
            self.hits += 1
            return known
        data = simulate()
        if not data.interrupted:
            self._keep(key, data)
            if self._folder is not None:
                _write(self._folder, key, data, self._most_bytes)
        return data

    def _known(self, key: str) -> RunData | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        data = _read(self._folder, key) if self._folder is not None else None
        if data is not None:
            self._keep(key, data)
        return data

    def _keep(self, key: str, data: RunData) -> None:
        with self._lock:
            self._kept[key] = data
            while len(self._kept) > self._most_runs or sum(map(_bytes, self._kept.values())) > self._most_bytes:
                self._kept.popitem(last=False)


def _read(folder: Path, key: str) -> RunData | None:
    """Return a run that is kept in ``folder``; None where there is none, or none that is whole."""
    try:
        with (folder / key).open("rb") as file:
            data = pickle.load(file)
    except Exception:  # what isn't whole can raise anything
        return None
    return data if isinstance(data, RunData) else None


def _write(folder: Path, key: str, data: RunData, most_bytes: int) -> None:
    """Keep a run for other processes, whole or not at all; the oldest go where it has no room."""
    text = pickle.dumps(data, pickle.HIGHEST_PROTOCOL)
    if len(text) > most_bytes:
        return
    draft = folder / f".{key}.{os.getpid()}.{get_ident()}"
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
        sizes = sorted((at.stat().st_mtime, at.stat().st_size, at) for at in folder.iterdir())
        room = most_bytes - len(text) - sum(size for _, size, _ in sizes)
        for _, size, oldest in sizes:
            if room >= 0:
                break
            oldest.unlink(missing_ok=True)
            room += size
        draft.write_bytes(text)
        draft.replace(folder / key)
    with suppress(OSError):
        draft.unlink(missing_ok=True)


def _key(config: SystemConfig, workload: str, seed: int) -> str | None:
    """Return the hash of a system and its requests; None for a system that can't be written down."""
    try:
        return hashlib.sha256(pickle.dumps((config, workload, seed, __version__))).hexdigest()
    except (pickle.PicklingError, TypeError, AttributeError):
        return None


def _bytes(data: RunData) -> int:
    return sum(array.nbytes for array in _arrays(data))


def _arrays(data: RunData) -> Iterator[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    for each in fields(data):
        columns = getattr(data, each.name)
        if isinstance(columns, dict):
            yield from (column for column in columns.values() if isinstance(column, np.ndarray))
