"""Numbers folded to runs: rows tell of runs of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def runs(blocks: NDArray[Any], *alike: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yield ``(first, end)`` of each run of ascending ``blocks`` in which ``alike``, columns by block, don't change."""
    if not len(blocks):
        return
    breaks = np.diff(blocks) != 1
    for column in alike:
        breaks |= np.diff(column[blocks]) != 0
    at = np.flatnonzero(breaks) + 1
    firsts = blocks[np.concatenate((np.zeros(1, np.int64), at))]
    lasts = blocks[np.concatenate((at - 1, np.array([len(blocks) - 1])))]
    yield from zip(firsts.tolist(), (lasts + 1).tolist(), strict=True)
