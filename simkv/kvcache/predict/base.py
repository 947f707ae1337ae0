"""What a predictor of the next reads is told, and what it answers."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Units = NDArray[np.int32]
"""Units of one sequence, from 0: block · groups + group."""
AnyUnits = NDArray[np.integer[Any]]
NOTHING: Units = np.empty(0, np.int32)


class Predictor(Protocol):
    """Guesses from the access history of each sequence alone. Deterministic: equal histories, equal guesses.

    A guess may name units that a sequence doesn't have (yet): the caller knows its length and drops them.
    """

    def seen(self, sequence: int, step: int, units: AnyUnits) -> None:
        """Note what ``sequence`` read in ``step``, each unit once; steps of a sequence ascend."""

    def predict(self, sequence: int, step: int, most_units: int) -> Units:
        """Return at most ``most_units`` units that step ``step`` + lead may read, best first; changes nothing.

        Nothing for a sequence of which nothing was seen.
        """

    def forget(self, sequence: int) -> None:
        """Drop the history of ``sequence``, if any."""
