"""Access patterns: which blocks attention reads at each decode step; start with ``base.py``."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from simkv.kvcache.access.base import AccessPattern, SequenceAccess, Units
from simkv.kvcache.access.dense import DensePattern
from simkv.kvcache.access.recall import RecallPattern
from simkv.kvcache.access.replayed import ReplayAccess, ReplayPattern
from simkv.kvcache.access.spec import AccessSpec, Dense, Recall, Replay, TopK, Window, check
from simkv.kvcache.access.topk import TopKPattern
from simkv.kvcache.access.units import Numbering
from simkv.kvcache.access.window import WindowPattern
from simkv.workload.accesslog import AccessLog, read_access_log

__all__ = [
    "PATTERNS",
    "AccessPattern",
    "AccessSpec",
    "Dense",
    "Recall",
    "Replay",
    "ReplayAccess",
    "SequenceAccess",
    "TopK",
    "Units",
    "Window",
    "make_pattern",
]

PATTERNS: dict[str, type[AccessSpec]] = {
    "dense": Dense,
    "window": Window,
    "topk": TopK,
    "recall": Recall,
    "replay": Replay,
}
"""The spec of every pattern, by the name that a scenario gives it."""

_MAKERS: dict[type[AccessSpec], Callable[[Any, Numbering, int], AccessPattern]] = {
    Dense: lambda spec, numbering, seed: DensePattern(numbering),
    Window: lambda spec, numbering, seed: WindowPattern(spec, numbering),
    TopK: TopKPattern,
    Recall: RecallPattern,
    Replay: lambda spec, numbering, seed: ReplayPattern(_log_of(spec.path), numbering),
}


def _log_of(path: Path) -> AccessLog:
    """Return the log in ``path``, read once for all replicas, baselines and closed forms of a run."""
    try:
        now = path.stat()
    except OSError:
        return read_access_log(path)  # which says what is wrong
    return _read_once(path, now.st_ino, now.st_size, now.st_mtime_ns)


@lru_cache(maxsize=1)
def _read_once(path: Path, *version: int) -> AccessLog:
    return read_access_log(path)


def make_pattern(spec: AccessSpec, block_tokens: int, groups: int, seed: int) -> AccessPattern:
    """Return the pattern of ``spec`` for blocks of ``block_tokens`` tokens in ``groups`` layer groups.

    Raises InputError for parameters out of range, and for a log that can't be read.
    """
    check(spec)
    return _MAKERS[type(spec)](spec, Numbering(block_tokens, groups), seed)
