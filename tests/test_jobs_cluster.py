"""Jobs on a Dask cluster: a real scheduler and workers as processes, some of them killed on the way."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from simkv.errors import InputError
from simkv.jobs.execute import LOST, execute
from simkv.jobs.job import Job
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from tests.jobs_work import dying, job, names, wrong

ROOT = Path(__file__).parents[1]
QUICK = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "2",
    "PYTHONPATH": str(ROOT),
}
DASK = {
    "scheduler": ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--no-dashboard"],
    "worker": ["distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"],
}
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return what starts a Dask process with more arguments; they all end with the test."""
    started = []

    def begin(what: str, *args: str, **more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", *DASK[what], *args, "--local-directory", str(tmp_path)]
        if what == "scheduler":
            command = command[:-2]
        process = subprocess.Popen(
            command, env={**os.environ, **QUICK, **more}, cwd=tmp_path, stderr=subprocess.DEVNULL
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Scheduler(NamedTuple):
    address: str
    process: subprocess.Popen[bytes]


@pytest.fixture
def address(scheduler: Scheduler) -> str:
    return scheduler.address


@pytest.fixture
def scheduler(start: Start) -> Scheduler:
    port = free_port()
    process = start("scheduler", "--port", str(port))
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return Scheduler(f"tcp://127.0.0.1:{port}", process)
        time.sleep(0.05)
    raise AssertionError("the scheduler did not start")


@pytest.mark.slow
def test_cluster_worker_killed_halfway_each_job_is_done_once_in_the_answer(
    address: str, start: Start, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    first, _ = start("worker", address), start("worker", address)
    jobs = [job(log, str(n), 0.05) for n in range(60)]
    jobs.insert(3, Job("w", wrong, (log, "w")))
    found = []
    with Store(tmp_path / "s.sqlite") as store:
        with Workers(None, address) as workers:
            for outcome in execute(jobs, workers, store):
                found.append(outcome)
                if len(found) == 20:
                    first.kill()
        assert Counter(o.job.key for o in found) == Counter([*map(str, range(60)), "w"])
        assert {o.job.key for o in found if o.status == "failed"} == {"w"}
        assert store.finished() == {str(n) for n in range(60)}
        assert [o.attempts for o in found] == [1] * 61
        pids = {o.answer["pid"] for o in found if o.answer is not None}
        assert os.getpid() not in pids
        assert len(pids) == 2
        with Workers(None, address) as workers:
            assert all(o.kept for o in execute(jobs, workers, store) if o.job.key != "w")
    done = Counter(names(log))
    assert len(done) == 61
    assert sum(done.values()) <= 61 + 1 + 2  # "w" again; what the killed one was at, and had
    with Workers(2) as local:
        here = {o.job.key: o.answer["third"] for o in execute(jobs, local) if o.answer is not None}
    assert here == {o.job.key: o.answer["third"] for o in found if o.answer is not None}


@pytest.mark.slow
def test_cluster_job_that_kills_worker_after_worker_fails_alone(address: str, start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for _ in range(4):
        start("worker", address)
    with Workers(None, address) as workers:
        while workers.place.size < 4:
            time.sleep(0.5)
            assert workers.place.room
        jobs = [Job("deadly", dying, (log, "deadly", 99)), *(job(log, str(n), 0.01) for n in range(10))]
        found = {o.job.key: o for o in execute(jobs, workers)}
    failure = found.pop("deadly").failure
    assert failure is not None
    assert failure.kind == LOST
    assert {o.status for o in found.values()} == {"done"}
    assert names(log).count("deadly") == 3


@pytest.mark.slow
def test_cluster_scheduler_gone_ends_with_what_was_finished_kept(
    scheduler: Scheduler, start: Start, tmp_path: Path
) -> None:
    start("worker", scheduler.address)
    code = GOING.format(root=str(ROOT), folder=str(tmp_path))
    command = [sys.executable, "-c", code, scheduler.address]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdout=pipe, stderr=pipe, cwd=tmp_path) as process:
        assert process.stdout is not None
        for _ in range(5):
            assert process.stdout.readline().strip().isdigit()
        scheduler.process.kill()
        out, err = process.communicate(timeout=30)
    assert out.splitlines()[-1] == (
        f"--cluster = {scheduler.address}: the scheduler went away; "
        "start it and run this again: what was finished is kept"
    )
    assert err == ""
    with Store.read(tmp_path / "s.sqlite") as store:
        assert 5 <= len(store.finished()) < 100


GOING = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from simkv.errors import InputError
from simkv.jobs.execute import execute
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from tests.jobs_work import job
folder = Path({folder!r})
jobs = [job(folder / "log", str(n), 0.05) for n in range(100)]
try:
    with Store(folder / "s.sqlite") as store, Workers(None, sys.argv[1]) as workers:
        for outcome in execute(jobs, workers, store):
            print(outcome.job.key, flush=True)
except InputError as error:
    print(error)
"""
CLUSTERED = """
import sys
from simkv.errors import InputError
from simkv.jobs.workers import Workers
try:
    with Workers(None, sys.argv[1]):
        print("in")
except InputError as error:
    print(error)
"""


def tried(address: str, code: str = CLUSTERED) -> str:
    """Return what a process says that would use the cluster; nothing else is printed, no log, no traceback."""
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", code, address]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
    assert ended.stderr == ""
    return ended.stdout.strip()


@pytest.mark.slow
def test_cluster_nobody_answers_names_the_address_within_seconds() -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    begun_s = time.monotonic()
    assert tried(address).startswith(f"--cluster = {address}: no scheduler answers there: ")
    assert time.monotonic() - begun_s < 15.0


@pytest.mark.parametrize("address", ["nowhere", "", "tcp://host", "tcp://host:99999", "http://host:80", "tcp://a b:1"])
def test_cluster_no_address_is_refused_with_how_to_write_it(address: str) -> None:
    with pytest.raises(InputError, match="it is no address of a scheduler; write it as tcp://HOST:8786"):
        Workers(None, address)


def test_cluster_dask_absent_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=re.escape("pip install 'simkv[cluster]'")):
        Workers(None, "tcp://127.0.0.1:8786")


@pytest.mark.slow
def test_cluster_without_workers_says_how_to_start_some(address: str) -> None:
    hasty = "import simkv.jobs.cluster as c; c.WORKER_PATIENCE_S = 1.0\n" + CLUSTERED
    mend = f"start some with `dask worker {address}`"
    assert tried(address, hasty) == f"--cluster = {address}: no worker came within 1 s; {mend}"


@pytest.mark.slow
def test_cluster_other_version_or_none_on_a_worker_is_refused(address: str, start: Start, tmp_path: Path) -> None:
    other = tmp_path / "other" / "simkv"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text('__version__ = "0.0.7"\n')
    start("worker", address, PYTHONPATH=str(other.parent))
    said = tried(address)
    assert "1 of 1 workers have another simkv (worker tcp://" in said
    assert ": 0.0.7, here: " in said
