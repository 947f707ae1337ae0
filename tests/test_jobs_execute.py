"""Jobs on local processes: each key once, failures apart, lost workers replaced, kills and Ctrl-C survived."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from simkv.errors import InputError
from simkv.jobs.execute import LOST, Done, execute
from simkv.jobs.job import Failure, Job, Outcome
from simkv.jobs.local import usable_cores
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from tests.jobs_work import broken, dying, job, names, noted, odd, surroundings, wrong

ROOT = Path(__file__).parents[1]
TRIES = 3


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture(scope="module")
def two() -> Iterator[Workers]:
    with Workers(2) as workers:
        yield workers


def test_execute_jobs_each_has_its_outcome_done_once(log: Path, two: Workers) -> None:
    jobs = [job(log, str(n)) for n in range(30)]
    outcomes = list(execute(jobs, two))
    assert Counter(names(log)) == Counter(str(n) for n in range(30))
    assert {o.job.key: o.answer["name"] for o in outcomes if o.answer} == {str(n): str(n) for n in range(30)}
    assert {(o.status, o.attempts, o.kept) for o in outcomes} == {("done", 1, False)}
    assert all(o.job in jobs for o in outcomes)


def test_execute_no_jobs_starts_nothing() -> None:
    with Workers(2) as workers:
        assert list(execute([], workers)) == []


def test_execute_one_and_two_workers_give_the_same_answers(log: Path, two: Workers) -> None:
    jobs = [job(log, str(n)) for n in range(6)]
    with Workers(1) as one:
        alone = {o.job.key: o for o in execute(jobs, one)}
    both = {o.job.key: o for o in execute(jobs, two)}
    for key, outcome in alone.items():
        mine, theirs = dict(outcome.answer or {}), dict(both[key].answer or {})
        assert mine.pop("pid") != os.getpid() != theirs.pop("pid")
        assert mine == theirs


def test_execute_equal_keys_are_done_once_and_each_job_told(log: Path, two: Workers, tmp_path: Path) -> None:
    jobs = [Job(f"{n % 3}", noted, (log, f"{n % 3}", 0.01), f"label {n}") for n in range(12)]
    with Store(tmp_path / "s.sqlite") as store:
        for kept_in in (None, store):
            log.unlink(missing_ok=True)
            outcomes = list(execute(iter(jobs), two, kept_in))
            assert sorted(names(log)) == ["0", "1", "2"]
            assert sorted(o.job.label for o in outcomes) == sorted(j.label for j in jobs)
            assert all(o.answer is not None and o.answer["name"] == o.job.key and not o.kept for o in outcomes)


def test_execute_failing_jobs_are_told_and_others_go_on(log: Path, two: Workers, tmp_path: Path) -> None:
    jobs = [
        Job("w", wrong, (log, "w"), "wrong"),
        Job("b", broken, ("two\n  lines " + "x" * 400,), "broken"),
        Job("e", odd, ("exit",)),
        Job("n", odd, ("not json",)),
        Job("l", lambda: odd("nan")),
        job(log, "fine"),
    ]
    with Store(tmp_path / "s.sqlite") as store:
        found = {o.job.key: o for o in execute(jobs, two, store)}
        kept = store.get("w")
    assert {key: o.failure.kind for key, o in found.items() if o.failure is not None} == {
        "w": "InputError",
        "b": "ValueError",
        "e": "SystemExit",
        "n": "TypeError",
        "l": "AttributeError",
    }
    assert found["w"].failure == Failure("InputError", "a.b = w: is wrong; right it")
    assert found["b"].failure == Failure("ValueError", "ValueError: two lines " + "x" * 290)
    assert found["fine"].status == "done"
    assert kept is not None
    assert (kept.status, kept.failure, kept.answer, kept.label) == ("failed", found["w"].failure, None, "wrong")


def test_execute_not_a_number_is_null_with_and_without_a_store(two: Workers, tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        assert [o.answer for kept in (None, store) for o in execute([Job("a", odd, ("nan",))], two, kept)] == [
            {"x": None}
        ] * 2


def test_execute_again_repeats_nothing_and_has_the_kept_first(log: Path, two: Workers, tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        first = {o.job.key: o for o in execute([job(log, str(n)) for n in range(0, 10, 2)], two, store)}
        outcomes = list(execute([job(log, str(n)) for n in range(10)], two, store))
    assert Counter(names(log)) == Counter(str(n) for n in range(10))
    assert [o.kept for o in outcomes] == [True] * 5 + [False] * 5
    assert {o.job.key: (o.answer, o.wall_s, o.attempts) for o in outcomes if o.kept} == {
        key: (o.answer, o.wall_s, 1) for key, o in first.items()
    }


def test_execute_failed_before_is_tried_again(log: Path, two: Workers, tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        (failed,) = execute([Job("a", wrong, (log, "a"))], two, store)
        (done,) = execute([Job("a", noted, (log, "a"))], two, store)
        kept = store.get("a")
    assert (failed.status, failed.attempts, done.status, done.attempts, done.kept) == ("failed", 1, "done", 2, False)
    assert kept is not None
    assert (kept.status, kept.failure) == ("done", None)
    assert names(log) == ["a", "a"]


def test_execute_report_counts_after_each_outcome(log: Path, two: Workers, tmp_path: Path) -> None:
    jobs = [job(log, "a"), Job("b", broken, ("no",)), job(log, "c")]
    seen: list[Done] = []
    with Store(tmp_path / "s.sqlite") as store:
        list(execute(jobs[:1], two, store))
        outcomes = list(execute(jobs, two, store, seen.append))
        list(execute(iter(jobs), two, store, seen.append))
    assert [done.outcome for done in seen[:3]] == outcomes
    assert [done.finished for done in seen] == [1, 2, 3, 1, 2, 3]
    assert [(done.failed, done.kept) for done in (seen[2], seen[5])] == [(1, 1), (1, 2)]
    assert [done.total for done in seen] == [3] * 3 + [None] * 3


def test_execute_says_that_it_waits_while_no_job_ends(two: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simkv.jobs.execute._LOOK_S", 0.02)
    waited: list[int] = []
    outcomes = execute([Job("a", time.sleep, (0.3,))], two, waiting=lambda: waited.append(1))
    assert [one.status for one in outcomes] == ["done"] and len(waited) >= 3


def test_execute_lazy_jobs_are_drawn_one_ahead(log: Path, two: Workers) -> None:
    drawn = 0

    def jobs() -> Iterator[Job]:
        nonlocal drawn
        for n in range(40):
            drawn += 1
            yield job(log, str(n))

    for ended, _ in enumerate(execute(jobs(), two), start=1):
        assert drawn <= ended + two.size + 2


def test_execute_left_early_stops_the_jobs_and_the_workers_serve_again(log: Path, two: Workers) -> None:
    outcomes = execute([job(log, "quick"), job(log, "slow", 60.0), job(log, "never", 60.0)], two)
    assert next(outcomes).job.key == "quick"
    begun_s = time.monotonic()
    outcomes.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begun_s < 5.0
    assert [o.status for o in execute([job(log, "after")], two)] == ["done"]


def test_execute_worker_killed_once_is_replaced_and_the_job_done(log: Path, two: Workers, tmp_path: Path) -> None:
    jobs = [job(log, str(n), 0.02) for n in range(8)]
    jobs.insert(2, Job("dying", dying, (log, "dying", 1)))
    with Store(tmp_path / "s.sqlite") as store:
        found = {o.job.key: o for o in execute(jobs, two, store)}
    assert {o.status for o in found.values()} == {"done"}
    assert {key: o.attempts for key, o in found.items() if o.attempts != 1} == {"dying": 2}
    assert Counter(names(log)) == Counter({**{str(n): 1 for n in range(8)}, "dying": 2})


def test_execute_job_that_kills_each_worker_fails_alone(log: Path, two: Workers) -> None:
    jobs = [job(log, str(n), 0.02) for n in range(8)]
    jobs.insert(2, Job("deadly", dying, (log, "deadly", 99)))
    found = {o.job.key: o for o in execute(jobs, two)}
    failure = found.pop("deadly").failure
    assert failure == Failure(LOST, f"the process that did it died {TRIES} times: out of memory, or killed")
    assert {(o.status, o.attempts) for o in found.values()} == {("done", 1)}
    assert Counter(names(log))["deadly"] == TRIES


def test_execute_idle_worker_killed_is_replaced(log: Path) -> None:
    with Workers(1) as one:
        (first,) = execute([job(log, "a")], one)
        assert first.answer is not None
        os.kill(first.answer["pid"], signal.SIGKILL)
        time.sleep(0.2)
        (second,) = execute([job(log, "b")], one)
    assert (second.status, second.attempts) == ("done", 1)


def test_workers_processes_ignore_interrupts_and_have_one_thread(two: Workers) -> None:
    (outcome,) = execute([Job("s", surroundings)], two)
    assert outcome.answer is not None
    assert outcome.answer["frozen"] > 0
    assert {name: outcome.answer[name] for name in ("threads", "ignores", "gc")} == {
        "threads": "1",
        "ignores": True,
        "gc": [100_000, 20, 20],
    }
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def test_workers_size_is_that_of_usable_cores_unless_told() -> None:
    assert Workers().size == usable_cores() >= 1
    assert Workers(3).size == 3


@pytest.mark.parametrize(
    ("jobs", "cluster", "said"),
    [(0, None, "--jobs = 0"), (-2, None, "--jobs = -2"), (2, "tcp://h:1", "leave out --jobs")],
)
def test_workers_impossible_number_is_refused(jobs: int, cluster: str | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Workers(jobs, cluster)


SWEEP = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.jobs_work import job
from simkv.jobs.execute import execute
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers

if __name__ == "__main__":
    folder = Path(sys.argv[2])
    with Store(folder / "s.sqlite") as store, Workers(2) as workers:
        for outcome in execute([job(folder / "log", str(n), 0.08) for n in range(40)], workers, store):
            print(outcome.answer["pid"], flush=True)
"""


def sweep(tmp_path: Path) -> subprocess.Popen[str]:
    script = tmp_path / "sweep.py"
    script.write_text(SWEEP)
    command = [sys.executable, str(script), str(ROOT), str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, start_new_session=True, cwd=ROOT, **pipes)  # type: ignore[call-overload, no-any-return]


def ended(tmp_path: Path) -> set[str]:
    with Store.read(tmp_path / "s.sqlite") as store:
        return set(store.finished())


def after(process: subprocess.Popen[str], outcomes: int) -> int:
    """Wait for outcomes, and return the worker that had the last."""
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(outcomes)][-1]


def gone(session: int) -> bool:
    """Say whether no process of the session is left, within seconds."""
    for _ in range(100):
        listed = subprocess.run(["ps", "-o", "stat=", "-s", str(session)], capture_output=True, text=True, check=False)
        if all(state.startswith("Z") for state in listed.stdout.split()):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("whom", ["group", "parent", "interrupted", "parent interrupted"])
def test_execute_killed_or_interrupted_sweep_goes_on_where_it_was(tmp_path: Path, whom: str) -> None:
    process = sweep(tmp_path)
    after(process, 6)
    number = signal.SIGINT if "interrupted" in whom else signal.SIGKILL
    if "parent" in whom:
        process.send_signal(number)
    else:
        os.killpg(process.pid, number)
    _, err = process.communicate(timeout=20)
    assert gone(process.pid)
    before = ended(tmp_path)
    assert 6 <= len(before) < 40
    if "interrupted" in whom:
        assert err.strip().endswith("KeyboardInterrupt")
        assert err.count("Traceback") == 1  # ours alone, none of a worker's
    with Store(tmp_path / "s.sqlite") as store, Workers(2) as workers:
        outcomes = list(execute([job(tmp_path / "log", str(n)) for n in range(40)], workers, store))
    assert sorted(int(o.job.key) for o in outcomes) == list(range(40))
    assert {o.job.key for o in outcomes if o.kept} == before
    done = Counter(names(tmp_path / "log"))
    assert {done[key] for key in before} == {1}
    assert set(done) == {str(n) for n in range(40)}
    again = [key for key, times in done.items() if times > 1]
    assert len(again) <= 2  # what the two workers were at
    assert {o.attempts for o in outcomes if o.kept} == {1}
    assert max(o.attempts for o in outcomes) <= 2


def test_execute_worker_of_a_sweep_killed_loses_and_repeats_nothing_else(tmp_path: Path) -> None:
    process = sweep(tmp_path)
    os.kill(after(process, 4), signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert ended(tmp_path) == {str(n) for n in range(40)}
    assert sum(Counter(names(tmp_path / "log")).values()) <= 41


def test_outcome_of_a_sweep_is_plain(two: Workers, log: Path) -> None:
    (outcome,) = execute([job(log, "a")], two)
    assert isinstance(outcome, Outcome)
    assert json.loads(json.dumps(outcome.answer)) == outcome.answer


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no server starts the processes")
def test_execute_server_of_processes_killed_another_one_starts(log: Path) -> None:
    from multiprocessing import forkserver

    jobs = [job(log, str(n)) for n in range(6)]
    killed = False
    with Workers(2) as workers:
        statuses = []
        for outcome in execute(jobs, workers):
            statuses.append(outcome.status)
            if not killed:
                os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)
                killed = True
    assert statuses == ["done"] * 6
