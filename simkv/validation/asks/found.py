"""What came of a question: its metrics, why some have no value, and what to know of the run behind them."""

from __future__ import annotations

from dataclasses import dataclass, field

from simkv.errors import SimkvError


class NothingError(SimkvError):
    """A metric is of nothing in this run: nobody of whom it would be was served, or nothing went over the lane."""


@dataclass(slots=True)
class Found:
    """The answer to one question."""

    metrics: dict[str, float] = field(default_factory=dict)
    """In SI."""
    nothing: dict[str, str] = field(default_factory=dict)
    """Why, by the metrics without a value."""
    warnings: dict[str, None] = field(default_factory=dict)
    """Sentences about the runs, each once, in order."""
