"""Fits a machine to a measured run: simulates the run, and changes one or two figures until it comes out as measured.

1. The run is simulated with the catalogue's figures, and with more of each parameter.
2. From that it is chosen what to fit (:mod:`simkv.planner.observed.choice`).
3. Least squares of relative errors within bounds (:mod:`simkv.planner.observed.surface`), with the same requests in
   every run.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkv import __version__
from simkv.errors import InfeasibleError, InputError, Problem
from simkv.jobs.job import Job, Outcome
from simkv.planner.observed.choice import choose
from simkv.planner.observed.notes import notes_of, unexplained
from simkv.planner.observed.parameters import Parameter, measured_at, parameters
from simkv.planner.observed.replay import replay, resolve
from simkv.planner.observed.surface import Box, Vector, least
from simkv.planner.observed.types import FIGURES, Observed
from simkv.scenario.as_measured import Measured, as_measured
from simkv.scenario.resolve import Resolved
from simkv.sweeps.simulate import Written

Evaluate = Callable[[Sequence[Job]], Iterable[Outcome]]
"""Does jobs, in whatever order: ``lambda jobs: execute(jobs, workers)``."""
COMPARED = ("ttft_s.mean", "ttft_s.p50", "ttft_s.p95", "tpot_s.mean", "tpot_s.p50", "tpot_s.p95", "itl_s.mean",
            "e2e_s.mean", "e2e_s.p50", "e2e_s.p95", "output_tokens_per_s")  # fmt: skip
"""What is fitted to, as far as it was measured."""
SHOWING = 0.2
"""How much of each parameter shows what it does: enough that waves of admission don't hide it."""
STEPS: Mapping[str, float] = {"overhead": 0.05, "bandwidth": 0.08, "compute": 0.08}
"""How far apart each parameter is tried."""
TREMBLE = 1.5
"""Times the least squares that were met: below it the point that all runs speak for is taken, not the luckiest run."""


@dataclass(frozen=True, slots=True)
class Residual:
    """One measured figure, and what is predicted of it before and after the fit."""

    figure: str
    observed: float
    before: float
    after: float
    fitted: bool
    """Whether it was fitted to; else it is merely compared."""

    @property
    def error_before(self) -> float:
        """Relative."""
        return self.before / self.observed - 1

    @property
    def error_after(self) -> float:
        """Relative."""
        return self.after / self.observed - 1


@dataclass(frozen=True, slots=True)
class Value:
    """One figure of the GPU that was fitted."""

    figure: str
    unit: str
    value: float
    catalogue: float


@dataclass(frozen=True)
class Fitted:
    """The machine as the measured run showed it."""

    observed: Observed
    measured: Measured
    """For ``Case.measured``: all that is planned is planned on it."""
    values: tuple[Value, ...]
    residuals: tuple[Residual, ...]
    runs: int
    notes: tuple[str, ...]

    @cached_property
    def error_before(self) -> float:
        """Root mean square of the relative errors that were fitted, before."""
        return _rms([r.error_before for r in self.residuals if r.fitted])

    @cached_property
    def error_after(self) -> float:
        """The same after."""
        return _rms([r.error_after for r in self.residuals if r.fitted])

    def apply(self, resolved: Resolved) -> Resolved:
        """Return ``resolved`` on the machine as measured; an efficiency of another GPU changes by the same factor."""
        return as_measured(resolved, self.measured)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {
            "file": self.observed.file, "tool": self.observed.tool, "requests": self.observed.requests,
            "fitted": [asdict(value) for value in self.values],
            "error": {"before": self.error_before, "after": self.error_after},
            "residuals": [
                asdict(r) | {"error_before": r.error_before, "error_after": r.error_after} for r in self.residuals
            ],
            "runs": self.runs, "notes": list(self.notes),
        }  # fmt: skip


def in_turn(jobs: Sequence[Job]) -> Iterable[Outcome]:
    """Do jobs one after the other, here."""
    for job in jobs:
        yield Outcome(job, "done", job.work(*job.args))


def fit(observed: Observed, written: Written, evaluate: Evaluate = in_turn) -> Fitted:
    """Return the machine of ``written``, which says what was measured, fitted to ``observed``.

    Raises InputError for a machine without figures to fit, or a run without any figure to fit to; InfeasibleError
    where the scenario's configuration can't serve the run.
    """
    resolved = as_measured(resolve(written), Measured())
    names = tuple(name for name in COMPARED if observed.figures.get(name))
    if not names:
        what, mend = "has no figure to fit to", f"give a run with any of {', '.join(COMPARED)}"
        raise InputError(Problem(what, mend, observed.file))
    return _Fit(observed, written, resolved, names, evaluate).fitted()


class _Fit:
    def __init__(
        self, observed: Observed, written: Written, resolved: Resolved, names: tuple[str, ...], evaluate: Evaluate
    ) -> None:
        assert resolved.gpu is not None, "as_measured refuses"
        token_s = observed.figures.get("tpot_s.mean") or observed.figures.get("itl_s.mean")
        self.observed, self.written, self.resolved = observed, written, resolved
        self.gpu = resolved.gpu
        self.names = names
        self.evaluate = evaluate
        self.parameters = parameters(self.gpu, token_s or observed.duration_s * 1e-3)
        self.source = os.path.basename(observed.file)
        self.runs = 0
        self._base = json.dumps([resolved.scenario_hash, __version__, asdict(observed)], sort_keys=True)
        self._known: dict[tuple[tuple[str, float], ...], Mapping[str, Any]] = {}

    def fitted(self) -> Fitted:
        """Choose what is fitted, fit it, and compare."""
        before = self._answers([{}])[0]
        chosen, notes = self._chosen()
        values = self._least_squares(chosen)
        after = self._answers([values])[0]
        residuals = tuple(self._residuals(before["figures"], after["figures"]))
        left = _rms([residual.error_after for residual in residuals if residual.fitted])
        shown = [self.parameters[name].shown(self.gpu, x) for name, x in values.items()]
        return Fitted(
            self.observed,
            measured_at(values, self.parameters, self.source),
            tuple(Value(figure, self.gpu.figure(figure).unit, value, was) for figure, value, was in shown),
            residuals,
            self.runs,
            (
                *unexplained(left),
                *self.observed.notes,
                *notes,
                *notes_of(self.observed, self.resolved, after, self._at_bounds(values)),
            ),
        )

    def _chosen(self) -> tuple[list[str], list[str]]:
        """Return the names of the parameters to fit, and why not more."""
        moves = {name: SHOWING if name == "overhead" else -SHOWING for name in STEPS}
        base, *moved = self._errors([{}, *({name: move} for name, move in moves.items())])
        slopes = {n: (errors - base) / move for (n, move), errors in zip(moves.items(), moved, strict=True)}
        chosen, note = choose(base, slopes, self.parameters)
        if not chosen:
            what = "nothing that was measured depends on the machine's speed"
            raise InputError(Problem(what, "give a run at a higher load, or with latencies", self.observed.file))
        return chosen, [note] if note else []

    def _least_squares(self, chosen: Sequence[str]) -> dict[str, float]:
        """Return the values of ``chosen`` at which the squares are least; the catalogue's where none are better."""
        of = [self.parameters[name] for name in chosen]
        box = Box(np.array([p.low for p in of]), np.array([p.high for p in of]), np.array([STEPS[n] for n in chosen]))

        def values(x: Vector) -> dict[str, float]:
            return dict(zip(chosen, map(float, x), strict=True))

        found = values(least(lambda points: self._errors([values(x) for x in points]), np.zeros(len(of)), box))
        squares = float(np.sum(self._errors([found])[0] ** 2))
        best, tried = min(self._tried(chosen), key=lambda one: one[0])
        return found if squares <= TREMBLE * best else tried

    def _tried(self, chosen: Sequence[str]) -> Iterable[tuple[float, dict[str, float]]]:
        """Yield the sum of squares of every run that changed nothing but ``chosen``, and its values."""
        for key, answer in self._known.items():
            values = dict(key)
            if values.keys() <= set(chosen):
                yield float(np.sum(self._relative(answer) ** 2)), {name: values.get(name, 0.0) for name in chosen}

    def _errors(self, asked: Sequence[Mapping[str, float]]) -> list[NDArray[np.float64]]:
        return [self._relative(answer) for answer in self._answers(asked)]

    def _relative(self, answer: Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the relative errors; a figure that came out without a value counts as missed whole."""
        figures = answer["figures"]
        return np.array([figures.get(name, 0.0) / self.observed.figures[name] - 1 for name in self.names])

    def _answers(self, asked: Sequence[Mapping[str, float]]) -> list[Mapping[str, Any]]:
        """Simulate what isn't known yet, side by side."""
        keys = [tuple(sorted((name, x) for name, x in values.items() if x)) for values in asked]
        jobs: dict[str, tuple[tuple[str, float], ...]] = {}
        todo = []
        for key in dict.fromkeys(keys):
            if key not in self._known:
                job = self._job(dict(key))
                jobs[job.key] = key
                todo.append(job)
        for outcome in self.evaluate(todo) if todo else ():
            if outcome.answer is None:
                failure = outcome.failure
                reason = failure.message if failure is not None else "a run failed"
                raise InfeasibleError(f"the measured run can't be simulated: {reason}")
            self._known[jobs[outcome.job.key]] = outcome.answer
        self.runs += len(todo)
        return [self._known[key] for key in keys]

    def _job(self, values: Mapping[str, float]) -> Job:
        measured = measured_at(values, self.parameters, self.source)
        parts = [self._base, asdict(measured)]
        key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        return Job(key, replay, (self.observed, self.written, measured), "measured run")

    def _at_bounds(self, values: Mapping[str, float]) -> list[Parameter]:
        known = [(self.parameters[name], x) for name, x in values.items()]
        return [
            p for p, x in known if x >= p.high - 1e-3 or (p.name != "overhead" and x <= p.low + 1e-3)
        ]  # no seconds on top are an answer, not a bound

    def _residuals(self, before: Mapping[str, float], after: Mapping[str, float]) -> Iterable[Residual]:
        for name in FIGURES:
            value = self.observed.figures.get(name)
            if value and name in before and name in after:
                yield Residual(name, value, before[name], after[name], name in self.names)


def _rms(errors: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))
