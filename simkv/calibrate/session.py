"""Takes measurements one after the other: each is kept at once, one that fails doesn't stop the others."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter

from simkv.calibrate.partial import Kept, Partial
from simkv.calibrate.task import Task
from simkv.errors import SimkvError
from simkv.profile.schema import Sample

_TRUST_S = 5.0
"""Seconds of estimates that count as much as what was seen: before, estimates are believed."""
FAILURES = (OSError, MemoryError, RuntimeError, SimkvError)
"""What a machine may not be able to do: torch raises RuntimeError where memory runs out."""


What = tuple[str, tuple[tuple[str, float | int | str | bool], ...]]
"""Kind and settings of a sample."""


@dataclass(frozen=True)
class Failure:
    """A task that couldn't be measured, and why."""

    key: str
    reason: str


@dataclass(frozen=True)
class Stage:
    """How far a session is, before the task ``key``."""

    key: str
    done: int
    tasks: int
    passed_s: float
    """Since measuring began."""
    left_s: float


@dataclass(frozen=True)
class Measured:
    """Everything that a session has, in the order of its tasks."""

    samples: tuple[Sample, ...]
    failures: tuple[Failure, ...]


def measure(tasks: Sequence[Task], partial: Partial, progress: Callable[[Stage], None]) -> Measured:
    """Return the samples of all ``tasks``; those that ``partial`` has aren't taken again.

    ``progress`` is called before each task, and may raise to end the session. A task that failed isn't kept: the next
    session tries it again. Mutates ``partial``.
    """
    begun = perf_counter()
    failures: list[Failure] = []
    for done, task in enumerate(tasks):
        progress(Stage(task.key, done, len(tasks), perf_counter() - begun, left_s(tasks[done:], tasks, partial.kept)))
        if task.key in partial.kept:
            continue
        started, taken = perf_counter(), _taken(task)
        if isinstance(taken, Failure):
            failures.append(taken)
            _make_room()
        else:
            partial.add(task.key, taken, perf_counter() - started)
    kept = [partial.kept[task.key] for task in tasks if task.key in partial.kept]
    return Measured(together(one for task in kept for one in task.samples), tuple(failures))


def what(sample: Sample) -> What:
    """Return what ``sample`` is of: two of the same are repeats of one measurement."""
    return sample.kind, tuple(sorted(sample.at.items()))


def together(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Return one sample for each thing that was measured, with the repeats of all its turns."""
    found: dict[What, Sample] = {}
    for sample in samples:
        key = what(sample)
        before = found.get(key)
        seconds = sample.seconds if before is None else before.seconds + sample.seconds
        found[key] = sample.model_copy(update={"seconds": seconds})
    return tuple(found.values())


def left_s(ahead: Sequence[Task], tasks: Sequence[Task], kept: dict[str, Kept]) -> float:
    """Return about how long ``ahead`` takes: their estimates, corrected by how wrong those of the kept ones were."""
    done = [task for task in tasks if task.key in kept]
    seen = sum(kept[task.key].took_s for task in done)
    thought = sum(task.estimate_s for task in done)
    pace = (seen + _TRUST_S) / (thought + _TRUST_S)
    return pace * sum(task.estimate_s for task in ahead if task.key not in kept)


def _taken(task: Task) -> tuple[Sample, ...] | Failure:
    try:
        return tuple(task.run())
    except FAILURES as error:
        return Failure(task.key, _reason(error))


def _reason(error: BaseException) -> str:
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}"[:300] if first else type(error).__name__


def _make_room() -> None:
    """Give back memory that a failed task held, also that which torch keeps."""
    import sys

    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
