"""What a run does between two transfers: it computes, so that lanes, drive and caches were idle or busy otherwise."""

from __future__ import annotations

from collections.abc import Callable

from simkv.calibrate.measure.linear import stretch
from simkv.calibrate.model import decoder
from simkv.calibrate.task import Bench

_SEQUENCES = 4


def between(bench: Bench) -> Callable[[], object]:
    """Return one layer's computing of a decode step; on a GPU nothing, whose copies don't share its caches' state."""
    if bench.backend.kind == "cuda":
        return lambda: None
    return stretch(decoder(bench.backend, bench.model), _SEQUENCES, 1)
