"""All cases asked, on processes, and judged."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from simkv.jobs.execute import Done, execute
from simkv.jobs.job import Job
from simkv.jobs.workers import Workers
from simkv.validation.asks import answer
from simkv.validation.expected import expected_si
from simkv.validation.groups import BY_NAME
from simkv.validation.question import Question, key_of, questions
from simkv.validation.read import Read
from simkv.validation.schema import Case, Observation


@dataclass(frozen=True, slots=True)
class Judged:
    """One observation beside its prediction; ``error`` is None where there is none."""

    case: Case
    observation: Observation
    id: str
    expected: float
    predicted: float | None
    error: float | None
    why: str = ""
    """Where nothing is predicted: why."""


def ask(question: Question) -> dict[str, Any]:
    """Answer one question, in a worker."""
    return dict(answer(question))


def study(
    cases: Sequence[Read], data: str | None, workers: Workers, report: Callable[[float, str], None] | None = None
) -> list[Judged]:
    """Return every observation of ``cases`` with its prediction, in order.

    ``data`` is the folder of the traces that some cases need: one without its file is skipped.
    """
    asked: dict[str, dict[str, Question]] = {}
    missing: dict[str, str] = {}
    for read in cases:
        files = tuple((key, os.path.abspath(os.path.join(data or "", name))) for key, name in read.case.data.items())
        absent = next((path for _, path in files if data is None or not os.path.exists(path)), None)
        if absent is not None:
            missing[read.case.id] = f"skipped: its data is missing ({next(iter(read.case.data.values()))}); give --data"
            continue
        asked[read.case.id] = questions(read.case, files, read.folder)
    jobs = {(case, key): _job(one) for case, ones in asked.items() for key, one in ones.items()}

    def told(done: Done) -> None:
        if report is not None:
            report(done.finished / max(1, len(jobs)), done.outcome.job.label)

    found = {outcome.job.key: outcome for outcome in execute(list(jobs.values()), workers, None, told)}
    rows = []
    for read in cases:
        for seen in read.case.observations:
            outcomes = {
                key: found[jobs[read.case.id, key].key]
                for key in (key_of(seen.set), key_of(seen.relative_to.set) if seen.relative_to else None)
                if key is not None and read.case.id not in missing
            }
            why = missing.get(read.case.id, "")
            why = why or next((f"{o.failure.message}" for o in outcomes.values() if o.failure is not None), "")
            values = {key: o.answer for key, o in outcomes.items() if o.answer is not None}
            rows.append(_judged(read.case, seen, values, why))
    return rows


def _job(question: Question) -> Job:
    key = hashlib.sha256(pickle.dumps(question)).hexdigest()
    return Job(key, ask, (question,), question.case)


def _judged(case: Case, seen: Observation, answers: dict[str, Any], why: str) -> Judged:
    label = seen.label or " ".join([seen.metric, *(f"{key}={value}" for key, value in seen.set.items())])
    expected = expected_si(seen.expected)
    if why:
        return Judged(case, seen, f"{case.id}: {label}", expected, None, None, why)
    predicted = answers[key_of(seen.set)][seen.metric]
    if seen.relative_to is not None:
        predicted /= answers[key_of(seen.relative_to.set)][seen.relative_to.metric or seen.metric]
        predicted -= seen.relative_to.change
    error = predicted - expected if BY_NAME[case.group].difference else predicted / expected - 1
    return Judged(case, seen, f"{case.id}: {label}", expected, predicted, error)
