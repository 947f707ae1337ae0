"""All cases asked, on processes, each observation with its prediction."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from simkv.errors import InputError, Problem, SimkvError
from simkv.estimate import spoken
from simkv.jobs.execute import execute
from simkv.jobs.job import Job, Outcome
from simkv.jobs.workers import Workers
from simkv.validation.asks import answer, check, check_keys
from simkv.validation.groups import BY_NAME
from simkv.validation.question import Question, asked_for, key_of, questions
from simkv.validation.read import Read
from simkv.validation.schema import Case, Observation
from simkv.validation.told import told

Status = Literal["judged", "skipped", "failed"]
LONG_S = 300.0
"""Who waits longer is told so before."""
_SHORT_S = 0.05
"""What a run counts as progress at least."""
Answers = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Judged:
    """One observation beside its prediction; ``predicted`` and ``error`` are None where ``why`` says why."""

    case: Case
    observation: Observation
    id: str
    expected: float | None
    """None: the answer would have said."""
    predicted: float | None
    error: float | None
    status: Status = "judged"
    why: str = ""
    tolerance: float | None = None
    """Its own: the case's, or else what the answer brings."""
    warnings: tuple[str, ...] = ()
    """What whoever reads the prediction must know of the run behind it, in sentences."""


@dataclass(slots=True)
class _Asked:
    """A case, its questions by their settings, and what came of them."""

    read: Read
    questions: dict[str, Question] = field(default_factory=dict)
    answers: dict[str, Answers] = field(default_factory=dict)
    skipped: str = ""
    failed: dict[str, str] = field(default_factory=dict)
    """Why, by the settings that failed."""
    nothing: dict[str, dict[str, str]] = field(default_factory=dict)
    """Why a metric has no value, by settings and metric."""
    warnings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of the runs, by their settings."""


@dataclass(slots=True)
class _Run:
    """What is done once, however many cases ask it."""

    question: Question
    """With all metrics that are wanted of it."""
    time_s: float = 0.0
    askers: list[tuple[_Asked, str]] = field(default_factory=list)
    """Each with the settings that it asks under."""

    def ask(self, asked: _Asked, key: str, time_s: float) -> None:
        """Note who asks, and about how long it takes."""
        wanted = dict.fromkeys((*self.question.metrics, *asked.questions[key].metrics))
        self.question = replace(self.question, metrics=tuple(wanted))
        self.time_s = max(self.time_s, time_s)
        self.askers.append((asked, key))

    def job(self) -> Job:
        """Return it as work for a process."""
        key = hashlib.sha256(self.question.work.encode()).hexdigest()
        return Job(key, ask, (self.question,), self.question.case)


def study(
    cases: Sequence[Read],
    data: str | None,
    workers: Workers,
    report: Callable[[float, str], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> list[Judged]:
    """Return every observation of ``cases`` with its prediction, in order.

    ``data`` is the folder of the traces that some cases need: one without its file is skipped; what can't work is
    failed. ``report`` is told how far it is, ``say`` how long it will take where that is long. Raises InputError, with
    its place in the case file, for what a case asks that can't be asked.
    """
    if data is not None and not os.path.isdir(data):
        raise InputError(Problem("is no folder", "name the folder that traces are in", path="--data", value=data))
    asked = [_asked(read, data) for read in cases]
    runs = _runs(asked)
    told_s = sum(run.time_s for run in runs.values()) / workers.size
    if say is not None and told_s > LONG_S:
        say(f"this takes about {spoken(told_s)}")
    all_s, done_s = sum(max(run.time_s, _SHORT_S) for run in runs.values()), 0.0
    for outcome in execute([run.job() for run in runs.values()], workers):
        run = runs[outcome.job.key]
        _keep(run, outcome)
        done_s += max(run.time_s, _SHORT_S)
        if report is not None:
            report(done_s / all_s, outcome.job.label)
    return [_judged(one, seen) for one in asked for seen in one.read.case.observations]


def ask(question: Question) -> dict[str, Any]:
    """Answer one question, in a worker; what is wrong with it comes back as plain data."""
    try:
        found = answer(question)
        return {"metrics": found.metrics, "nothing": found.nothing, "warnings": list(found.warnings)}
    except InputError as error:
        return {"problems": [asdict(found) for found in error.problems]}
    except SimkvError as error:
        return {"failed": str(error)}


def _asked(read: Read, data: str | None) -> _Asked:
    names = read.case.data
    files = tuple((key, os.path.abspath(os.path.join(data or "", name))) for key, name in names.items())
    absent = [name for (_, path), name in zip(files, names.values(), strict=True) if not os.path.exists(path)]
    if names and (data is None or absent):
        here = f"{data} hasn't got" if data is not None else "give --data DIR, the folder that has"
        skipped = f"{here} {', '.join(absent or names.values())}"
        return _Asked(read, questions(read.case, files, read.folder), skipped=skipped)
    return _Asked(read, questions(read.case, files, read.folder))


def _runs(asked: Sequence[_Asked]) -> dict[str, _Run]:
    """Return what is to be done by the keys of its jobs, the longest first, so that all workers end together.

    Raises InputError with everything that is wrong with the questions, as far as that is seen at once.
    """
    problems: list[Problem] = []
    found: dict[str, _Run] = {}
    for one in asked:
        for key, question in one.questions.items():
            try:
                if one.skipped:
                    check_keys(question)
                else:
                    found.setdefault(question.work, _Run(question)).ask(one, key, check(question))
            except InputError as error:
                problems += told(error.problems, one.read, question)
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return {run.job().key: run for run in sorted(found.values(), key=lambda run: -run.time_s)}


def _keep(run: _Run, outcome: Outcome) -> None:
    """Put what became of a run to those who asked for it; raises InputError for what can't be asked."""
    found = outcome.answer or {}
    if "problems" in found:
        raise InputError(list(_told(run, [Problem(**each) for each in found["problems"]])))
    for asked, key in run.askers:
        if "metrics" in found:
            asked.answers[key], asked.nothing[key] = found["metrics"], found["nothing"]
            asked.warnings[key] = tuple(found["warnings"])
        else:
            asked.failed[key] = found["failed"] if outcome.failure is None else outcome.failure.message


def _told(run: _Run, problems: Sequence[Problem]) -> Iterator[Problem]:
    """Yield each problem as the first says it who asked for the metric that it is about, if it is about one."""
    for found in problems:
        wanted = (who for who in run.askers if found.value in who[0].questions[who[1]].metrics)
        asked, key = next(wanted, run.askers[0]) if found.path == "metric" else run.askers[0]
        yield from told([found], asked.read, asked.questions[key])


def _judged(asked: _Asked, seen: Observation) -> Judged:
    case = asked.read.case
    given = seen.figure.value if seen.figure is not None else None
    row = Judged(case, seen, f"{case.id}: {seen.name}", given, None, None)
    why = asked.skipped or _no_answer(asked, seen)
    if why:
        return replace(row, status="skipped" if asked.skipped else "failed", why=why, warnings=_warnings(asked, seen))
    found, *base = (asked.answers[key] for key, _ in _asked_for(seen))
    predicted = _predicted(seen, found, *base)
    expected = given if given is not None else found.get(f"{seen.metric}.expected")
    tolerance = seen.tolerance if seen.tolerance is not None else found.get(f"{seen.metric}.tolerance")
    row = replace(row, expected=expected, warnings=_warnings(asked, seen))
    if predicted is None or expected is None:
        which = "expected" if expected is None else "predicted"
        return replace(row, status="failed", why=f"what is {which} is no finite number")
    difference = BY_NAME[case.group].difference
    if not (expected or difference):
        return replace(row, status="failed", why="what is expected is zero, and errors relative")
    error = predicted - expected if difference else predicted / expected - 1
    return replace(row, predicted=predicted, error=error, tolerance=tolerance)


def _asked_for(seen: Observation) -> list[tuple[str, str]]:
    """Return what an observation is made of, as answers are kept: by the key of its settings, and the metric."""
    return [(key_of(settings), metric) for settings, metric in asked_for(seen)]


def _no_answer(asked: _Asked, seen: Observation) -> str:
    """Return why there is no prediction; empty where there is one."""
    found = (asked.failed.get(key) or asked.nothing[key].get(metric, "") for key, metric in _asked_for(seen))
    return next(filter(None, found), "")


def _warnings(asked: _Asked, seen: Observation) -> tuple[str, ...]:
    """Return what is to be known of the runs behind a prediction, each once."""
    return tuple(dict.fromkeys(one for key, _ in _asked_for(seen) for one in asked.warnings.get(key, ())))


def _predicted(seen: Observation, found: Answers, base: Answers | None = None) -> float | None:
    value = found.get(seen.metric)
    if seen.relative_to is None or base is None:
        return value
    unit = base.get(seen.relative_to.metric or seen.metric)
    return value / unit - seen.relative_to.change if value is not None and unit else None
