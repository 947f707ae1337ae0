"""What a curve asks of the simulator, and what came back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simkv.curves.estimate import Estimate, Figure, Summary, over
from simkv.sweeps.simulate import Case


@dataclass(frozen=True, slots=True)
class Ask:
    """One point: a case, run once with each seed."""

    name: str
    """Unique within the curve."""
    case: Case
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Runs:
    """What became of a point: the summary of each seed, or why there is none."""

    summaries: tuple[Summary, ...] = ()
    failure: str = ""

    def __bool__(self) -> bool:
        return bool(self.summaries)

    def over(self, figure: Figure) -> Estimate | None:
        """Return what ``figure`` is over the seeds."""
        return over(self.summaries, figure)

    def value(self, figure: Figure) -> float | None:
        """Return the mean of ``figure``."""
        found = self.over(figure)
        return None if found is None else found.mean


Answers = Mapping[str, Runs]
"""By the name of what was asked."""
Simulate = Callable[[Sequence[Ask]], Answers]
"""Runs points and waits for them."""


def at(*keys: str) -> Figure:
    """Return what takes the figure under ``keys`` out of a summary; None where something on the way is null."""

    def figure(summary: Summary) -> float | None:
        value: Any = summary
        for key in keys:
            if value is None:
                return None
            value = value.get(key)
        return None if value is None else float(value)

    return figure
