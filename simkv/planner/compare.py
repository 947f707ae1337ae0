"""What several configurations carry, and how they do at one load, fine enough to be held against each other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from simkv.errors import SimkvError
from simkv.jobs.job import Job, Outcome
from simkv.planner.crossing import Crossing, Near, crossing_job, of_answer
from simkv.planner.load import at_load
from simkv.planner.types import Effort, Slo
from simkv.results.quantity import share
from simkv.sweeps.simulate import Case, job_of

Evaluate = Callable[[Sequence[Job]], Iterable[Outcome]]
"""Does jobs, in whatever order: ``lambda jobs: execute(jobs, workers)``."""

PRECISION = 0.01
"""Of each load that is compared, relative."""
REQUESTS = 2000
"""Judged in each run, at least: of fewer, a percentile near the limit is too rough to tell a few percent."""
ROUGH = 0.03
"""Precision where tens of percent are compared."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Under which conditions configurations are compared."""

    slo: Slo
    effort: Effort
    """At least :data:`PRECISION` and ``least_requests`` are taken."""
    begin: Near
    """Where the largest load is looked for."""
    load: float
    """The planned one, of one unit: times the scenario's own."""

    least_requests: int = REQUESTS
    """Judged in each run."""

    @property
    def fine(self) -> Effort:
        """How much work each comparison may be."""
        own = self.effort
        requests = max(own.requests, self.least_requests)
        return replace(own, requests=requests, precision=min(own.precision, PRECISION))


@dataclass(frozen=True, slots=True)
class Measured:
    """One configuration, measured."""

    case: Case
    carries: Crossing
    planned: Mapping[str, Any]
    """Summary of the run at the planned load."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of all configurations of a comparison."""

    measured: Mapping[str, Measured] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why there is nothing, by configuration."""


def measure(cases: Mapping[str, Case], bench: Bench, evaluate: Evaluate, *, rough: Collection[str] = ()) -> Comparison:
    """Return what each case carries and how it does at the planned load, all as one batch of jobs.

    Common random numbers: the same seed and requests in all. ``rough``: cases for which :data:`ROUGH` is precise
    enough. A case that can't be run is among the failed.
    """
    asked: dict[str, list[Job]] = {}
    failed: dict[str, str] = {}
    for name, case in cases.items():
        try:
            asked[name] = _jobs(name, case, bench, ROUGH if name in rough else bench.fine.precision)
        except SimkvError as error:
            failed[name] = str(error)
    unique: dict[str, Job] = {}
    for job in (job for jobs in asked.values() for job in jobs):
        unique.setdefault(job.key, job)
    outcomes = {outcome.job.key: outcome for outcome in evaluate(list(unique.values()))}
    measured: dict[str, Measured] = {}
    for name, jobs in asked.items():
        ended = [outcomes[job.key] for job in jobs]
        broken = next((one for one in ended if one.answer is None), None)
        if broken is not None:
            failed[name] = broken.failure.message if broken.failure is not None else "no answer"
            continue
        answers = [one.answer or {} for one in ended]
        measured[name] = Measured(cases[name], of_answer(answers[0]), answers[1])
    return Comparison(measured, failed)


def _jobs(name: str, case: Case, bench: Bench, precision: float) -> list[Job]:
    effort = replace(bench.fine, precision=precision)
    planned = at_load(case, case.resolve(), bench.load, effort.requests)
    return [
        crossing_job(case, bench.slo, effort, bench.begin, f"{name}: largest load"),
        job_of(planned, effort.seed, f"{name}: planned load"),
    ]


@dataclass(frozen=True, slots=True)
class Gain:
    """How much more one configuration carries than another."""

    relative: float | None
    """None: one of the two has no limit that was found, or carries nothing."""
    doubt: float | None
    """Of ``relative``: both uncertainties together."""
    sign: int
    """-1, 1: less, more, beyond the uncertainty; 0: nothing that can be measured."""

    @property
    def text(self) -> str:
        """``4.1 % ± 2.0 % more``."""
        word = "less" if self.sign < 0 or (self.relative or 0.0) < 0 else "more"
        if self.relative is None or self.doubt is None:
            return word if self.sign else "no difference"
        return f"{share(abs(self.relative))} ± {share(self.doubt)} {word}"


def gain(of: Crossing, over: Crossing) -> Gain:
    """Return how much more ``of`` carries than ``over``; measurable where it is beyond both uncertainties together."""
    if inf in (of.uncertainty, over.uncertainty) or not of.load or not over.load:
        return Gain(None, None, (of.low > over.high) - (over.low > of.high) or (of.load > 0) - (over.load > 0))
    relative, doubt = of.load / over.load - 1, of.uncertainty + over.uncertainty
    return Gain(relative, doubt, (relative > doubt) - (relative < -doubt))


def statistic(summary: Mapping[str, Any], metric: str, name: str = "p95") -> float | None:
    """Return a statistic of a run's ``ttft``, ``tpot``, ...; None where it has none."""
    found = (summary.get(f"{metric}_s") or {}).get(name)
    return None if found is None else float(found)
