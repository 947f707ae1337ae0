"""CPU time of managing blocks in one step: a constant, and so much a block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simkv.calibrate.fit.points import points_of, residual_of
from simkv.calibrate.fit.robust import nonnegative_fit
from simkv.profile.schema import Host, Sample


def fit_host(samples: Sequence[Sample]) -> tuple[Host | None, list[str]]:
    """Return the line through ``host_step`` samples, None without any, and remarks."""
    points = points_of(samples, "host_step")
    if not points:
        return None, []
    blocks = np.array([point.number("blocks", 0.0) for point in points])
    seconds = np.array([point.seconds for point in points])
    if len(set(blocks.tolist())) == 1:
        fitted = np.full_like(seconds, np.median(seconds))
        note = f"the host's time was measured for {blocks[0]:g} blocks alone: taken to be the same for any number"
        return Host(step_s=float(fitted[0]), block_s=0.0, residual=residual_of(fitted, seconds)), [note]
    terms = np.column_stack([np.ones_like(blocks), blocks])
    step_s, block_s = nonnegative_fit(terms, seconds)
    return Host(step_s=step_s, block_s=block_s, residual=residual_of(step_s + block_s * blocks, seconds)), []
