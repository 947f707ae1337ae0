"""All curves of one scenario: which have a meaning, what they ask, what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from simkv import __version__
from simkv.curves import words
from simkv.curves.ask import Answers, Ask, Runs
from simkv.curves.concurrency import CONCURRENCY
from simkv.curves.house import House
from simkv.curves.kind import Curve, Ground, Kind
from simkv.curves.score import LAMBDA
from simkv.curves.setting import Setting
from simkv.curves.speedup import SPEEDUP
from simkv.curves.t_avg import T_AVG
from simkv.errors import InputError, Problem, SimkvError, unknown
from simkv.jobs.execute import Done, execute
from simkv.jobs.job import Job, Outcome
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from simkv.sweeps.simulate import job_of

SCHEMA_VERSION = 1
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (T_AVG, SPEEDUP, CONCURRENCY, LAMBDA)}
NAMES = tuple(KINDS)

Report = Callable[[float, str], None]
"""Called with the share of the runs that is done, and in words."""


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the curves that are asked for, in their own order; raises InputError for others, and for none."""
    for name in names:
        if name not in KINDS:
            raise unknown("curve", name, NAMES, "--only")
    if not names:
        raise InputError(Problem("names no curve", f"valid: {', '.join(NAMES)}", path="--only"))
    return tuple(name for name in NAMES if name in names)


def check_any(setting: Setting, names: Sequence[str]) -> None:
    """Raise InputError where none of the curves ``names`` has a meaning in the scenario."""
    reasons = {name: KINDS[name].why_not(setting) for name in names}
    if all(reasons.values()):
        raise _none(setting, {name: reason or "" for name, reason in reasons.items()})


def _none(setting: Setting, reasons: Mapping[str, str]) -> InputError:
    return InputError(
        [Problem(f"has no curve {name}: {reason}", "", setting.written.file) for name, reason in reasons.items()]
    )


def study(
    setting: Setting,
    names: Sequence[str],
    workers: Workers,
    store: Store | None = None,
    report: Report | None = None,
) -> dict[str, Any]:
    """Return the curves ``names`` of a scenario as plain data, ``curves.json``.

    Answers that ``store`` has aren't computed again; each new one is in it at once. A curve without a meaning in
    the scenario is left out, with the reason. Raises InputError where that leaves none.
    """
    asked = _Asked(setting, names)
    answers = _Simulator(workers, store, report, asked.expected)
    first = asked.answered(answers, lambda kind, _: kind.first(asked.ground))
    both = asked.answered(answers, lambda kind, before: kind.then(asked.ground, before), first)
    curves = dict(asked.drawn(both))
    if not curves:
        raise _none(setting, asked.left_out)
    return {
        "schema_version": SCHEMA_VERSION,
        "simkv_version": __version__,
        "scenario": setting.scenario.name,
        "scenario_hash": setting.resolved.scenario_hash,
        "seeds": list(setting.seeds),
        "about": [*words.quality(setting), *([] if asked.ground.house is None else words.assumed(asked.ground.house))],
        "curves": {name: curve.as_dict() for name, curve in curves.items()},
        "left_out": dict(asked.left_out),
    }


class _Asked:
    """The curves that are left to draw, each a step further at a time; whatever one can't do leaves it out."""

    def __init__(self, setting: Setting, names: Sequence[str]) -> None:
        self.left_out: dict[str, str] = {}
        self.kinds: list[Kind] = []
        for name in names:
            reason = KINDS[name].why_not(setting)
            if reason is None:
                self.kinds.append(KINDS[name])
            else:
                self.left_out[name] = reason
        self.ground = Ground(setting, self._house(setting))

    def _house(self, setting: Setting) -> House | None:
        needing = [kind for kind in self.kinds if kind.needs_house]
        if not needing:
            return None
        try:
            return House(setting)
        except SimkvError as error:
            for kind in needing:
                self._leave_out(kind, error)
            return None

    def _leave_out(self, kind: Kind, error: SimkvError) -> None:
        self.left_out[kind.name] = f"its sequences can't be simulated: {error}"
        self.kinds.remove(kind)

    @property
    def expected(self) -> int:
        """Return about how many runs are asked for once the first are answered."""
        return sum(kind.later(self.ground) for kind in self.kinds)

    def answered(
        self,
        simulate: Callable[[Mapping[str, Sequence[Ask]]], dict[str, dict[str, Runs]]],
        ask: Callable[[Kind, Answers], Sequence[Ask]],
        before: Mapping[str, Answers] | None = None,
    ) -> dict[str, dict[str, Runs]]:
        """Return what is known of each curve with the answers to what ``ask`` has it ask."""
        known = before or {}
        asks: dict[str, Sequence[Ask]] = {}
        for kind in list(self.kinds):
            try:
                asks[kind.name] = ask(kind, known.get(kind.name, {}))
            except SimkvError as error:
                self._leave_out(kind, error)
        found = simulate(asks)
        return {name: {**known.get(name, {}), **found[name]} for name in asks}

    def drawn(self, answers: Mapping[str, Answers]) -> Iterator[tuple[str, Curve]]:
        """Yield the curves that can be drawn."""
        for kind in list(self.kinds):
            try:
                yield kind.name, kind.draw(self.ground, answers[kind.name])
            except SimkvError as error:
                self._leave_out(kind, error)


class _Simulator:
    """Runs what curves ask."""

    def __init__(self, workers: Workers, store: Store | None, report: Report | None, later: int) -> None:
        self._workers = workers
        self._store = store
        self._report = report
        self._later = later
        self._ended = self._own = 0

    def __call__(self, asks: Mapping[str, Sequence[Ask]]) -> dict[str, dict[str, Runs]]:
        """Return the runs of each question by curve and name."""
        jobs: dict[tuple[str, str], list[Job]] = {}
        unfit: dict[tuple[str, str], str] = {}
        for curve, questions in asks.items():
            for question in questions:
                try:
                    jobs[curve, question.name] = _jobs(curve, question)
                except SimkvError as error:
                    unfit[curve, question.name] = str(error)
        ended = self._execute([job for each in jobs.values() for job in each])
        return {
            curve: {
                question.name: (
                    Runs(failure=unfit[curve, question.name])
                    if (curve, question.name) in unfit
                    else _runs([ended[job.key] for job in jobs[curve, question.name]])
                )
                for question in questions
            }
            for curve, questions in asks.items()
        }

    def _execute(self, jobs: Sequence[Job]) -> dict[str, Outcome]:
        jobs = list({job.key: job for job in jobs}.values())
        before, later = self._own, self._later
        self._later = 0

        finished = 0

        def tell() -> None:
            left = len(jobs) - finished + later
            if self._report is not None:
                self._report(self._own / max(1, self._own + left), f"{finished:,}/{len(jobs) + later:,} runs")

        def ended(done: Done) -> None:
            nonlocal finished
            finished, self._own = done.finished, before + done.finished - done.kept
            tell()

        return {one.job.key: one for one in execute(jobs, self._workers, self._store, ended, tell)}


def _jobs(curve: str, ask: Ask) -> list[Job]:
    resolved = ask.case.resolve()
    return [job_of(ask.case, seed, f"{curve} {ask.name}", resolved) for seed in ask.seeds]


def _runs(outcomes: Sequence[Outcome]) -> Runs:
    failures = [outcome.failure.message for outcome in outcomes if outcome.failure is not None]
    if failures:
        return Runs(failure=failures[0])
    return Runs(tuple(outcome.answer for outcome in outcomes if outcome.answer is not None))
