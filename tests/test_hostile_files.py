"""Damaged traces, profiles, logs and results: what reads them returns, or raises an error of ours that says where."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import simkv
from simkv.errors import InputError, SimkvError
from simkv.jobs.store import Store
from simkv.profile.load import read_profile
from simkv.report.compose import _read
from simkv.report.document import Data, Details, Figure, Section
from simkv.report.folders import RunFolder, read_folder
from simkv.results.recorded import from_json, to_json
from simkv.results.write import check_out
from simkv.sweeps.point import Point
from simkv.sweeps.read import Command, keep_points
from simkv.sweeps.read import read as read_sweep
from simkv.workload.accesslog import read_access_log
from simkv.workload.course import Course
from simkv.workload.readers import open_trace
from tests.fuzz.base import REPOSITORY
from tests.fuzz.damage import BYTES, broken, bytes_damaged, dumps
from tests.fuzz.traces import agent_session, trace
from tests.report_factory import small_run

SEEDS = st.integers(0, 10**9)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def said_well(read: Callable[[], object], file: Path | str) -> None:
    """Hold that ``read`` returns, or says what is wrong with ``file`` and what to do."""
    try:
        read()
    except InputError as error:
        for problem in error.problems:
            assert str(file) in problem.file and problem.what and len(str(problem)) < 4000, str(error)
    except SimkvError as error:
        assert str(error)


def replayed(path: Path) -> int:
    course = Course(open_trace(path), lambda request: 1.0)
    return sum(course.step()[2] for _ in islice(iter(lambda: course.next_s < float("inf"), False), 1000))


@QUICK
@given(SEEDS)
def test_traces_are_replayed_or_refused_with_their_place(tmp_path_factory: Any, seed: int) -> None:
    name, data = trace(Random(seed), [])
    path = tmp_path_factory.mktemp("t") / name
    path.write_bytes(data)
    said_well(lambda: replayed(path), path)


@QUICK
@given(SEEDS)
def test_sessions_of_agents_are_replayed_or_refused_with_their_place(tmp_path_factory: Any, seed: int) -> None:
    path = tmp_path_factory.mktemp("t") / "session.json"
    path.write_bytes(agent_session(Random(seed), []))
    said_well(lambda: replayed(path), path)


@pytest.mark.parametrize("kind", BYTES)
def test_access_logs_and_profiles_of_damaged_bytes_are_refused_or_read(kind: str, tmp_path: Path) -> None:
    whole = (REPOSITORY / "scenarios" / "article-toy.access.jsonl").read_bytes()
    path = tmp_path / "damaged.json"
    path.write_bytes(BYTES[kind](Random(1), whole))
    said_well(lambda: read_access_log(path), path)
    said_well(lambda: read_profile(path), path)


PROFILE = orjson.loads((REPOSITORY / "calibration" / "amd-epyc-2-cores.json").read_bytes())


@settings(QUICK, max_examples=25)
@given(SEEDS)
def test_profiles_are_read_or_refused_with_their_place(tmp_path_factory: Any, seed: int) -> None:
    path = tmp_path_factory.mktemp("p") / "p.json"
    path.write_text(dumps(broken(Random(seed), PROFILE, [])), "utf-8", "surrogatepass")
    said_well(lambda: read_profile(path), path)


@cache
def recording() -> bytes:
    """Return what a short run recorded."""
    with TemporaryDirectory() as folder:
        simkv.run(str(REPOSITORY / "scenarios" / "article-toy.yaml"), {"run.baselines": []}).save(f"{folder}/r")
        return Path(folder, "r", "recording.json").read_bytes()


@QUICK
@given(SEEDS)
def test_recordings_are_read_whole_or_refused(seed: int) -> None:
    rng = Random(seed)
    content = recording()
    if rng.random() < 0.5:
        content = dumps(broken(rng, orjson.loads(content), [])).encode("utf-8", "surrogatepass")
    else:
        content = bytes_damaged(rng, content, [])
    said_well(lambda: to_json(from_json(content, "recording.json")), "recording.json")


@settings(QUICK, max_examples=25)
@given(SEEDS)
def test_summaries_are_read_or_refused_with_their_place(tmp_path_factory: Any, seed: int) -> None:
    folder = tmp_path_factory.mktemp("r")
    tree = orjson.loads((small_run() / "summary.json").read_bytes())
    (folder / "summary.json").write_text(dumps(broken(Random(seed), tree, [])), "utf-8", "surrogatepass")
    said_well(lambda: read_folder(folder), folder)


@pytest.mark.parametrize("text", ["[" * 3000 + "]" * 3000, "a: &a [x]\nb: *a\n", "a: ["])
def test_a_resolved_scenario_that_would_grow_or_break_the_reader_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_bytes((small_run() / "summary.json").read_bytes())
    (tmp_path / "scenario.resolved.yaml").write_text(text)
    folder = read_folder(tmp_path)
    assert isinstance(folder, RunFolder)
    with pytest.raises(InputError, match=r"scenario\.resolved\.yaml:\d+: isn't the scenario of a run"):
        _ = folder.resolved


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE results SET answer = '5'", "UPDATE results SET wall_s = 'x'", "UPDATE points SET position = 'x'",
        "UPDATE points SET params = CAST(x'ff' AS TEXT)", "UPDATE results SET answer = NULL",
        "UPDATE meta SET value = '5'",
    ],
)  # fmt: skip
def test_a_sweep_whose_file_was_changed_by_hand_is_refused_by_name(change: str, tmp_path: Path) -> None:
    with Store(tmp_path / "sweep.sqlite") as store:
        keep_points(store, Command("s", {"p": ["0.3"]}, 1, ()), [Point({"p": "0.3"}, 0, "k")])
        store.done("k", {"ttft_s": {"mean": 1.0}}, 1.0)
    assert len(read_sweep(tmp_path).ended) == 1
    with closing(sqlite3.connect(tmp_path / "sweep.sqlite")) as file, file:
        file.execute(change)
    with pytest.raises(InputError, match=r"sweep\.sqlite: it is damaged; move it away and run it again"):
        read_sweep(tmp_path)


def test_a_pipe_in_the_place_of_a_summary_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "summary.json")
    with pytest.raises(InputError, match="something that is no result"):
        check_out(tmp_path, "s")


def test_a_figure_that_cannot_be_drawn_names_its_file(tmp_path: Path) -> None:
    def draw(file: Any, form: str) -> None:
        raise KeyError("p_hit")

    figure = Figure("f", "finding", draw, Data((), ()), "alt")
    (section,) = _read(lambda: [Section("s", "S", [Details("more", [figure])])], tmp_path / "curves.json")
    (details,) = section.blocks
    assert isinstance(details, Details)
    (guarded,) = details.blocks
    assert isinstance(guarded, Figure)
    with pytest.raises(InputError, match=r"curves\.json: it is damaged, or of another version of simkv \(KeyError"):
        guarded.draw(BytesIO(), "svg")
