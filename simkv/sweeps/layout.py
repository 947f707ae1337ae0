"""What a sweep will do: its points in order, and the runs that answer them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simkv import __version__
from simkv.errors import InputError, Problem, SimkvError
from simkv.jobs.execute import failure_of
from simkv.jobs.job import Job
from simkv.scenario.load import load_text
from simkv.scenario.resolve import Resolved
from simkv.scenario.schema import Scenario
from simkv.sweeps.axes import Axis, assignments
from simkv.sweeps.check import check, some
from simkv.sweeps.felt import Seen, summary_of_inert
from simkv.sweeps.grid import MOST, Values, grid
from simkv.sweeps.grid import sample as spread
from simkv.sweeps.inert import effective, inert
from simkv.sweeps.point import Point
from simkv.sweeps.simulate import Case, Written, job_of

Progress = Callable[[float], None]
"""Called with the share of the points that is laid out."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a sweep will do."""

    scenario: str
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    """In the order of the grid; the seeds of each in turn."""
    jobs: tuple[Job, ...]
    """One a run; points that differ in what can't matter share one."""
    notes: tuple[str, ...] = ()
    """What was left out of a sample, and where an axis can't matter, in sentences."""

    @property
    def values(self) -> dict[str, list[str]]:
        """Every value that a point has, by axis."""
        return {axis.name: list(dict.fromkeys(p.params[axis.name] for p in self.points)) for axis in self.axes}

    @property
    def unfit(self) -> int:
        """Points that no run can answer."""
        return sum(point.failure is not None for point in self.points)


def lay_out(
    written: Written,
    axes: Sequence[Axis],
    *,
    sample: int | None = None,
    replications: int = 1,
    report: Progress | None = None,
) -> Layout:
    """Return the points of ``axes`` over ``written``, each with the run that answers it.

    Seeds are run.seed, run.seed + 1, ... at every point, so that points are compared under the same
    random numbers. A point that doesn't resolve has failed already. Raises InputError for a scenario or axes
    that are wrong as a whole.
    """
    axes = check(written, axes)
    base = loaded(written, axes)
    values, notes = _values(axes, sample, base.run.seed)
    if len(values) * replications > MOST:
        what = f"{len(values):,} points of {replications:,} seeds each are {len(values) * replications:,} runs"
        raise InputError(Problem(what, f"the most is {MOST:,}: take fewer of either", path="--replications"))
    drawer = _Drawer(written, axes, base.run.seed)
    points: list[Point] = []
    for number, params in enumerate(values, start=1):
        points += drawer.points(params, replications)
        if report is not None:
            report(number / len(values))
    notes = (*notes, *summary_of_inert(axes, [Seen(point.params, point.off, None, point.seed) for point in points]))
    return Layout(base.name, tuple(axes), tuple(points), tuple(drawer.jobs.values()), notes)


def loaded(written: Written, axes: Sequence[Axis]) -> Scenario:
    """Return the scenario as written, or, where only the axes make it whole, at one end of them.

    Raises InputError where it isn't valid at either.
    """
    wrong: InputError | None = None
    for end in (None, 0, -1):
        point = {} if end is None else {axis.name: some(axis, 2)[end] for axis in axes}
        given = (*written.assignments, *assignments(axes, point))
        try:
            return load_text(written.text, written.file, given).scenario
        except InputError as error:
            wrong = wrong or error
    assert wrong is not None
    raise wrong


def _values(axes: Sequence[Axis], sample: int | None, seed: int) -> tuple[list[Values], tuple[str, ...]]:
    if sample is None:
        return list(grid(axes)), ()
    found = spread(axes, sample, seed)
    return list(found.points), found.notes


class _Drawer:
    """Makes points, and a job for each run that isn't there yet."""

    def __init__(self, written: Written, axes: Sequence[Axis], seed: int) -> None:
        self.jobs: dict[str, Job] = {}
        self._written = written
        self._axes = axes
        self._seed = seed

    def points(self, params: Values, replications: int) -> list[Point]:
        """Return the point at ``params`` under each seed."""
        case = self._case(params)
        try:
            resolved = case.resolve()
        except SimkvError as error:
            seeds = range(self._seed, self._seed + replications)
            return [self._failed(params, seed, error) for seed in seeds]
        first = resolved.scenario.run.seed
        off = inert(resolved, self._axes)
        if off:
            case, resolved = self._standing_for(case, resolved, effective(params, self._axes, off))
        jobs = [job_of(case, seed, _label(params), resolved) for seed in range(first, first + replications)]
        for job in jobs:
            self.jobs.setdefault(job.key, job)
        return [Point(params, seed, job.key, None, off) for seed, job in enumerate(jobs, start=first)]

    def _case(self, params: Values) -> Case:
        return Case(self._written, assignments(self._axes, params))

    def _standing_for(self, case: Case, resolved: Resolved, params: Values) -> tuple[Case, Resolved]:
        """Return the case at ``params``, which answers for ``case`` too; where it doesn't resolve, ``case`` itself."""
        other = self._case(params)
        try:
            return other, other.resolve()
        except SimkvError:
            return case, resolved

    def _failed(self, params: Values, seed: int, error: SimkvError) -> Point:
        given = [self._written.text, *self._written.assignments, *assignments(self._axes, params)]
        key = hashlib.sha256(json.dumps([given, seed, __version__]).encode()).hexdigest()
        return Point(params, seed, key, failure_of(error))


def _label(params: Values) -> str:
    return ", ".join(f"{name} {value}" for name, value in params.items())
