"""What a search works with: workers, what keeps their answers, a seed, and who is told how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from simkv.jobs.execute import execute
from simkv.jobs.job import Job, Outcome
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
    seed: int = 0
    """Of the search; what confirms has those after it."""

    def do(self, jobs: Sequence[Job], doing: str, further: int = 0) -> Iterator[Outcome]:
        """Yield what becomes of ``jobs``, in whatever order, and say how far ``doing`` is.

        ``further``: how many jobs come after these.
        """
        done = 0

        def tell() -> None:
            if self.report is not None:
                self.report(doing, done, len(jobs) + further)

        for outcome in execute(jobs, self.workers, self.store, waiting=tell):
            done += 1
            tell()
            yield outcome
