"""What a search works with: workers, what keeps their answers, a seed, and who is told how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simkv.jobs.store import Store
from simkv.jobs.workers import Workers

Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Means:
    """The same for all parts of one search."""

    workers: Workers
    store: Store | None
    report: Report | None
    seed: int

    def tell(self, doing: str, done: int, todo: int) -> None:
        """Say how far ``doing`` is."""
        if self.report is not None:
            self.report(doing, done, todo)
