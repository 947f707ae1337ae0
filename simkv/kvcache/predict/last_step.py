"""The next step reads what the last one did.

The baseline of sparse attention, whose selections overlap from step to step: ShadowKV (Sun et al., 2024,
arXiv 2410.21465) keeps the last step's chunks and saves about 60 % of the fetches with that.
"""

from __future__ import annotations

import numpy as np

from simkv.kvcache.predict.base import NOTHING, AnyUnits, Units


class LastStep:
    """The units of the last step, in the order in which they were read."""

    def __init__(self) -> None:
        self._last: dict[int, Units] = {}

    def seen(self, sequence: int, step: int, units: AnyUnits) -> None:
        """Keep ``units`` in place of the step before."""
        self._last[sequence] = np.array(units, np.int32)

    def predict(self, sequence: int, step: int, most_units: int) -> Units:
        """Return them."""
        return self._last.get(sequence, NOTHING)[: max(0, most_units)].copy()

    def forget(self, sequence: int) -> None:
        """Drop the last step."""
        self._last.pop(sequence, None)
