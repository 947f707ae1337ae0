"""A session of measurements: what is kept when it ends early, what is taken over, what a failure costs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from simkv.calibrate.partial import Partial
from simkv.calibrate.session import Measured, Stage, left_s, measure
from simkv.calibrate.task import Task
from simkv.errors import InputError
from simkv.profile.schema import Sample

AS = {"device": "cpu", "model": "tiny", "quick": True, "simkv": "0"}


def sample(nbytes: int) -> Sample:
    return Sample(kind="h2d", at={"bytes": nbytes, "pieces": 1, "memory": "pinned"}, seconds=(0.1, 0.3, 0.2))


class Bench:
    """Fake tasks that count their calls; those named in ``faults`` do something else."""

    def __init__(self, count: int = 5, faults: dict[str, Callable[[], None]] | None = None) -> None:
        self.calls: list[str] = []
        self.faults = faults or {}
        self.tasks = [self._task(f"h2d/{k}", k) for k in range(count)]

    def _task(self, key: str, number: int) -> Task:
        def run() -> list[Sample]:
            self.calls.append(key)
            self.faults.get(key, lambda: None)()
            return [sample(number + 1)]

        return Task(key, 1.0, run)

    def measure(self, path: Path, as_: dict[str, object] | None = None, fresh: bool = False) -> Measured:
        return measure(self.tasks, Partial(path, as_ or AS, fresh), lambda stage: None)


def interrupted() -> None:
    raise KeyboardInterrupt


def refuse() -> None:
    raise OSError(28, "No space left on device")


def run_out() -> None:
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB\nGPU 0 has ...")


def test_interrupted_session_resumed_measures_only_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "partial.jsonl"
    with pytest.raises(KeyboardInterrupt):
        Bench(faults={"h2d/3": interrupted}).measure(path)
    again = Bench()
    measured = again.measure(path)
    assert again.calls == ["h2d/3", "h2d/4"]
    assert [one.at["bytes"] for one in measured.samples] == [1, 2, 3, 4, 5]
    assert measured.samples[0] == sample(1)


@pytest.mark.parametrize(
    "torn", [b'{"key": "h2d/3", "took_s": 0.1, "sam', b'{"key": "h2d/3"}\n', b"\x00\xff\n", b"7\n"]
)
def test_partial_whose_last_line_is_cut_off_loses_that_line_alone(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "partial.jsonl"
    with pytest.raises(KeyboardInterrupt):
        Bench(faults={"h2d/3": interrupted}).measure(path)
    with path.open("ab") as file:
        file.write(torn)
    again = Bench()
    again.measure(path)
    assert again.calls == ["h2d/3", "h2d/4"]
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


@pytest.mark.parametrize("changed", [{"model": "other"}, {"quick": False}, {"simkv": "1"}, {"gpu": "new"}])
def test_partial_of_other_settings_is_not_resumed_and_said_to_differ(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    path = tmp_path / "partial.jsonl"
    Bench().measure(path)
    partial = Partial(path, AS | changed)
    assert (partial.kept, partial.differs) == ({}, tuple(changed))
    assert len(path.read_text().splitlines()) == 1


def test_fresh_session_takes_nothing_over(tmp_path: Path) -> None:
    path = tmp_path / "partial.jsonl"
    Bench().measure(path)
    again = Bench()
    again.measure(path, fresh=True)
    assert len(again.calls) == 5


def test_file_that_is_no_partial_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "partial.jsonl"
    path.write_text('{"name": "something else"}\n')
    partial = Partial(path, AS)
    assert (partial.kept, partial.differs) == ({}, ())


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(refuse, "OSError: [Errno 28] No space left on device"), (run_out, "RuntimeError: CUDA out of memory. Tried")],
)
def test_failing_task_is_reported_and_the_others_are_measured(
    tmp_path: Path, fault: Callable[[], None], reason: str
) -> None:
    bench = Bench(faults={"h2d/1": fault})
    measured = bench.measure(tmp_path / "partial.jsonl")
    assert [one.at["bytes"] for one in measured.samples] == [1, 3, 4, 5]
    assert [failure.key for failure in measured.failures] == ["h2d/1"]
    assert measured.failures[0].reason.startswith(reason)
    assert "\n" not in measured.failures[0].reason


def test_failed_task_is_tried_again_by_the_next_session(tmp_path: Path) -> None:
    Bench(faults={"h2d/1": run_out}).measure(tmp_path / "partial.jsonl")
    again = Bench()
    assert again.measure(tmp_path / "partial.jsonl").failures == ()
    assert again.calls == ["h2d/1"]


def test_fault_of_the_program_ends_the_session_with_the_rest_kept(tmp_path: Path) -> None:
    def fault() -> None:
        raise TypeError("a mistake")

    with pytest.raises(TypeError):
        Bench(faults={"h2d/2": fault}).measure(tmp_path / "partial.jsonl")
    assert list(Partial(tmp_path / "partial.jsonl", AS).kept) == ["h2d/0", "h2d/1"]


def test_partial_that_cant_be_written_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"can't be written.*--out"):
        Partial(tmp_path / "file" / "partial.jsonl", AS)


def test_partial_in_a_folder_that_isnt_there_makes_it(tmp_path: Path) -> None:
    Partial(tmp_path / "new" / "partial.jsonl", AS)
    assert (tmp_path / "new" / "partial.jsonl").exists()


def test_stages_count_down_to_nothing(tmp_path: Path) -> None:
    stages: list[Stage] = []
    measure(Bench().tasks, Partial(tmp_path / "partial.jsonl", AS), stages.append)
    assert [(stage.done, stage.tasks) for stage in stages] == [(k, 5) for k in range(5)]
    left = [stage.left_s for stage in stages]
    assert left == sorted(left, reverse=True)
    assert left[0] == 5.0


def test_time_left_follows_how_long_tasks_really_take(tmp_path: Path) -> None:
    tasks = Bench(100).tasks
    partial = Partial(tmp_path / "partial.jsonl", AS)
    for task in tasks[:50]:
        partial.add(task.key, [sample(1)], 3.0)
    assert left_s(tasks, tasks, partial.kept) == pytest.approx(50 * 3.0, rel=0.1)


SLOW = """
import sys, time
from pathlib import Path
from simkv.calibrate.partial import Partial
from simkv.calibrate.session import measure
from simkv.calibrate.task import Task
from simkv.profile.schema import Sample

def run():
    time.sleep(0.05)
    return [Sample(kind="h2d", at={"bytes": 1}, seconds=(0.05,))]

measure([Task(f"h2d/{k}", 1.0, run) for k in range(1000)], Partial(Path(sys.argv[1]), {"a": 1}), lambda stage: None)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_killed_session_keeps_every_task_that_was_finished(tmp_path: Path) -> None:
    path = tmp_path / "partial.jsonl"
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(path)])
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and (not path.exists() or path.read_bytes().count(b"\n") < 4):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = Partial(path, {"a": 1}).kept
    assert 3 <= len(kept) < 1000
    assert list(kept) == [f"h2d/{k}" for k in range(len(kept))]
