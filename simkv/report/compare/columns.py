"""A run's requests as arrays, those of its latency window first to last by arrival."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simkv.report.folders import RunFolder
from simkv.report.run.window import Rows, window_rows

Floats = NDArray[np.float64]

SAME = ("session", "turn", "prompt_tokens", "output_tokens")
"""What a request is, whatever became of it."""


@dataclass(frozen=True)
class Columns:
    """``requests.parquet`` of one run."""

    folder: RunFolder

    def column(self, name: str) -> Floats:
        """Return a column as numbers, nan where there is none."""
        return self.folder.requests[name].to_numpy(dtype=np.float64, na_value=np.nan)

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """Numbers of all requests that ended."""
        return self.folder.requests["id"].to_numpy(dtype=np.int64)

    @cached_property
    def window(self) -> Rows:
        """Rows of the finished requests that arrived after the warm-up, by arrival."""
        return window_rows(self.folder)


def pairs(one: Columns, other: Columns) -> tuple[Rows, Rows] | None:
    """Return the rows of the requests in both windows, by arrival in ``one``; None where they aren't the same ones.

    They are where both runs began from the same seed and what they share by number is alike in length and place.
    """
    if one.folder.summary.get("seed") != other.folder.summary.get("seed"):
        return None
    order = np.argsort(other.ids[other.window], kind="stable")
    theirs = other.window[order]
    if not len(theirs) or not len(one.window):
        return None
    known = other.ids[theirs]
    place = np.minimum(np.searchsorted(known, one.ids[one.window]), len(known) - 1)
    both = known[place] == one.ids[one.window]
    ours, theirs = one.window[both], theirs[place[both]]
    if not len(ours) or not all(np.array_equal(one.column(name)[ours], other.column(name)[theirs]) for name in SAME):
        return None
    return ours, theirs
