"""One sweep: its points laid out, the runs that answer them done, the answers put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from shutil import rmtree

from simkv.jobs.execute import execute
from simkv.jobs.job import Job, Outcome
from simkv.jobs.local import Local
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from simkv.sweeps.axes import Axis
from simkv.sweeps.felt import Seen, unfelt
from simkv.sweeps.layout import Layout, lay_out
from simkv.sweeps.point import Ended, Point
from simkv.sweeps.read import Command, keep_notes, keep_points
from simkv.sweeps.result import SweepResult
from simkv.sweeps.simulate import Written

_COMPARED = 5_000
"""Points whose every figure is held against those beside them."""


@dataclass(slots=True)
class Tally:
    """How far a sweep is."""

    points: int
    runs: int
    unfit: int = 0
    """Points that no run can answer."""
    done: int = 0
    """Runs that are done, those kept from before among them."""
    failed: int = 0
    kept: int = 0
    """Runs whose answer was there already."""
    wall_s: float = 0.0
    """Time of the runs that were done now, all processes together."""

    @property
    def shared(self) -> int:
        """Points that the run of another one answers."""
        return self.points - self.unfit - self.runs

    @property
    def own(self) -> int:
        """Runs that have ended and were not there before."""
        return self.done + self.failed - self.kept

    @property
    def left(self) -> int:
        """Runs that are still to be done."""
        return self.runs - self.done - self.failed

    def count(self, outcome: Outcome) -> None:
        """Note that a run has ended."""
        self.done += outcome.status == "done"
        self.failed += outcome.status == "failed"
        self.kept += outcome.kept
        self.wall_s += 0.0 if outcome.kept else outcome.wall_s


def sweep(
    written: Written,
    axes: Sequence[Axis],
    *,
    sample: int | None = None,
    replications: int = 1,
    workers: Workers,
    store: Store | None = None,
    report: Callable[[Tally], None] | None = None,
) -> SweepResult:
    """Simulate ``written`` at every point of ``axes`` (``sample``: at so many) under as many seeds as asked.

    Answers that ``store`` has are not computed again; each new one is in it at once. ``report`` is
    told after each run how far the work is. A point that can't be simulated is a failed one. Raises
    InputError for a scenario or axes that are wrong as a whole, and where the store can't be written.
    """
    return carry_out(lay_out(written, axes, sample=sample, replications=replications), workers, store, report)


def carry_out(
    layout: Layout, workers: Workers, store: Store | None = None, report: Callable[[Tally], None] | None = None
) -> SweepResult:
    """Do the runs of ``layout``; as :func:`sweep`."""
    values = layout.values
    command = Command(layout.scenario, values, len(layout.points), layout.notes)
    if store is not None:
        keep_points(store, command, layout.points)
    tally = Tally(len(layout.points), len(layout.jobs), layout.unfit)
    outcomes: dict[str, Outcome] = {}
    with _sharing(layout.jobs, store, isinstance(workers.place, Local)) as jobs:
        for outcome in execute(jobs, workers, store):
            outcomes[outcome.job.key] = outcome
            tally.count(outcome)
            if report is not None:
                report(tally)
    ended = tuple(_ended(point, outcomes.get(point.key)) for point in layout.points)
    notes = (*layout.notes, *_unfelt(layout, ended))
    elsewhere = 0
    if store is not None:
        keep_notes(store, notes)
        elsewhere = len(store.finished() - outcomes.keys())
    return SweepResult(layout.scenario, values, ended, 0, elsewhere, notes)


@contextmanager
def _sharing(jobs: Sequence[Job], store: Store | None, local: bool) -> Iterator[Sequence[Job]]:
    """Yield ``jobs`` with a folder beside the store through which processes of this machine share baselines.

    It is gone at the end; what a killed sweep left there is of use to the one that goes on.
    """
    if store is None or not local:
        yield jobs
        return
    folder = store.path.absolute().with_name(".baselines")
    try:
        yield [replace(job, args=(*job.args, folder)) for job in jobs]
    finally:
        rmtree(folder, ignore_errors=True)


def _unfelt(layout: Layout, ended: Sequence[Ended]) -> list[str]:
    """Return what is said of axes that changed nothing; of very many points, nothing is."""
    if len(ended) > _COMPARED:
        return []
    return unfelt(layout.axes, [Seen(one.point.params, one.point.off, one.summary, one.point.seed) for one in ended])


def _ended(point: Point, outcome: Outcome | None) -> Ended:
    """Return what became of ``point``; without a run it has failed."""
    if outcome is None:
        return Ended(point, "failed", 1, None, point.failure)
    return Ended(point, outcome.status, outcome.attempts, outcome.answer, outcome.failure, outcome.wall_s)
