"""Jobs done by workers: each key once, answers kept at once, failures and lost workers told apart."""

from __future__ import annotations

import contextlib
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue

import orjson

from simkv.errors import InputError, Problem, SimkvError
from simkv.jobs.job import Failure, Job, Outcome
from simkv.jobs.store import Kept, Store, json_of
from simkv.jobs.workers import Workers

LOST = "WorkerLost"
"""Kind of the failure of a job whose process died, every time."""
_LOOK_S = 1.0
"""How often the workers are looked at while none ends a job."""


@dataclass(frozen=True, slots=True)
class Done:
    """How far the work is, after an outcome."""

    outcome: Outcome
    finished: int
    """Jobs with an outcome so far, this one among them."""
    failed: int
    kept: int
    """Of ``finished``, those whose answer was there from a run before."""
    total: int | None
    """All jobs; None: nobody knows, they are made on the way."""


@dataclass(frozen=True, slots=True)
class Returned:
    """What comes back from a worker."""

    answer: bytes
    """JSON; empty: failed."""
    failure: Failure | None
    wall_s: float


def execute(
    jobs: Iterable[Job],
    workers: Workers,
    store: Store | None = None,
    report: Callable[[Done], None] | None = None,
    waiting: Callable[[], None] | None = None,
) -> Iterator[Outcome]:
    """Yield the outcome of each job, as they come; ``report`` is called after each, ``waiting`` while none ends.

    Answers that ``store`` has are taken from it (first, where ``jobs`` is a sequence); every new one is committed to
    it before it is yielded, and a job that failed in a run before is tried again. Jobs with equal keys are done
    once. ``jobs`` may be made lazily: one is drawn when the one before it has a worker. Left early, by Ctrl-C or by
    the one who iterates, it kills the workers at their jobs. Raises InputError where the store can't be written,
    or a cluster goes away.
    """
    total = len(jobs) if isinstance(jobs, Sequence) else None
    if store is not None and isinstance(jobs, Sequence):
        finished = store.finished()
        jobs = sorted(jobs, key=lambda job: job.key not in finished)
    failed = kept = 0
    for ended, outcome in enumerate(_Execution(workers, store, waiting).outcomes(jobs), start=1):
        failed += outcome.status == "failed"
        kept += outcome.kept
        if report is not None:
            report(Done(outcome, ended, failed, kept, total))
        yield outcome


def carry_out(packet: bytes) -> Returned:
    """Do a pickled (work, arguments), in a worker; whatever it raises is a failure."""
    begun_s = time.perf_counter()
    try:
        work, args = pickle.loads(packet)
        answer = json_of(work(*args))
    except Exception as error:
        return Returned(b"", failure_of(error), time.perf_counter() - begun_s)
    return Returned(answer, None, time.perf_counter() - begun_s)


def failure_of(error: BaseException) -> Failure:
    """Return what the command line would say of ``error``."""
    kind = type(error).__name__
    if isinstance(error, SimkvError):
        return Failure(kind, str(error))
    text = " ".join(str(error).split())[:300]
    return Failure(kind, f"{kind}: {text}" if text else kind)


@dataclass(slots=True)
class _Task:
    """A key that is to be done, and every job that waits for it."""

    jobs: list[Job]
    submitted: int = 0


class _Execution:
    """One call of :func:`execute`."""

    def __init__(self, workers: Workers, store: Store | None, waiting: Callable[[], None] | None) -> None:
        self._place = workers.place
        self._store = store
        self._waiting = waiting
        self._tasks: dict[str, _Task] = {}
        self._ready: deque[_Task] = deque()
        self._running: dict[Future[Returned], _Task] = {}
        self._ended: SimpleQueue[Future[Returned]] = SimpleQueue()
        self._back: deque[tuple[Future[Returned], _Task]] = deque()
        """What ended and is not kept yet."""
        self._finished: dict[str, Outcome] = {}
        """Of this run; without the answer, where the store has it."""

    def outcomes(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        try:
            for job in jobs:
                yield from self._draw(job)
                self._fill()
                while self._ready:
                    yield from self._collect()
            while self._running or self._ready:
                yield from self._collect()
        except (KeyboardInterrupt, InputError):
            with contextlib.suppress(InputError):
                self._take_ended()
                self._settle()
            raise
        finally:
            if self._running:
                self._place.abandon()

    def _draw(self, job: Job) -> Iterator[Outcome]:
        """Make ``job`` ready, or yield its outcome where it is known; beside an equal one it waits for that."""
        if job.key in self._tasks:
            self._tasks[job.key].jobs.append(job)
        elif (known := self._known(job)) is not None:
            yield known
        else:
            self._tasks[job.key] = _Task([job])
            self._ready.append(self._tasks[job.key])

    def _known(self, job: Job) -> Outcome | None:
        here = self._finished.get(job.key)
        if self._store is None or (here is not None and here.status == "failed"):
            return replace(here, job=job) if here is not None else None
        kept = self._store.get(job.key)
        return _from_store(job, kept, here is None) if kept is not None and kept.status == "done" else None

    def _fill(self) -> None:
        """Submit what is ready while there is room."""
        while self._ready and len(self._running) < self._place.room:
            task = self._ready.popleft()
            job = task.jobs[0]
            future = self._submit(job)
            self._running[future] = task
            task.submitted += 1
            if self._store is not None:
                self._store.begin(job.key, job.label)
            future.add_done_callback(self._ended.put)

    def _submit(self, job: Job) -> Future[Returned]:
        try:
            packet = pickle.dumps((job.work, job.args))
        except Exception as error:  # what can't be sent fails as what can't be done
            failed: Future[Returned] = Future()
            failed.set_exception(error)
            return failed
        return self._place.submit(carry_out, packet)

    def _collect(self) -> list[Outcome]:
        """Wait until jobs end, keep what came of them and only then give their workers the next: what a kill can
        lose is what workers are at, one job each."""
        self._await_ended()
        outcomes = self._settle()
        self._fill()
        return outcomes

    def _await_ended(self) -> None:
        while not self._back:
            try:
                future = self._ended.get(timeout=_LOOK_S)
            except Empty:
                self._place.check()
                if self._waiting is not None:
                    self._waiting()
            else:
                self._back.append((future, self._running.pop(future)))
        self._take_ended()

    def _take_ended(self) -> None:
        for _ in range(self._ended.qsize()):
            future = self._ended.get_nowait()
            self._back.append((future, self._running.pop(future)))

    def _settle(self) -> list[Outcome]:
        """Keep what came of jobs, all of it, and return the outcomes; a job whose worker died may be ready again."""
        outcomes: list[Outcome] = []
        while self._back:
            returned = self._returned(*self._back[0])
            task = self._back[0][1]
            if returned is None:
                self._ready.appendleft(task)
            else:
                outcomes += self._keep(task, returned)
            self._back.popleft()
        return outcomes

    def _returned(self, future: Future[Returned], task: _Task) -> Returned | None:
        """Return what came back; None: the worker died, and another may try."""
        if future.cancelled():
            self._place.check()
            raise InputError(Problem("the workers dropped a job", "run it again: what was finished is kept"))
        error = future.exception()
        if error is None:
            return future.result()
        if not isinstance(error, self._place.lost):
            return Returned(b"", failure_of(error), 0.0)
        if task.submitted < self._place.tries:
            return None
        times = f"{task.submitted} times" if task.submitted > 1 else "again and again"
        return Returned(b"", Failure(LOST, f"the process that did it died {times}: out of memory, or killed"), 0.0)

    def _keep(self, task: _Task, returned: Returned) -> list[Outcome]:
        job, attempts = task.jobs[0], task.submitted
        if self._store is not None:
            if returned.failure is None:
                self._store.done(job.key, returned.answer, returned.wall_s)
            else:
                self._store.failed(job.key, returned.failure, returned.wall_s)
            attempts = self._store.attempts(job.key)
        if returned.failure is None:
            outcome = Outcome(job, "done", orjson.loads(returned.answer), None, attempts, returned.wall_s)
        else:
            outcome = Outcome(job, "failed", None, returned.failure, attempts, returned.wall_s)
        self._finished[job.key] = outcome if self._store is None else replace(outcome, answer=None)
        self._tasks.pop(job.key, None)
        return [replace(outcome, job=each) for each in task.jobs]


def _from_store(job: Job, kept: Kept, before: bool) -> Outcome:
    return Outcome(job, "done", kept.answer, None, kept.attempts, kept.wall_s, kept=before)
