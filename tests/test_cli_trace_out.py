"""``simkv run --trace-out --trace-window``: what is written where, what is said of it, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.cli.interrupt import Interrupt
from simkv.sim.record import recording
from tests.test_cli_run import SMALL
from tests.trace_format import read


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIMKV_DEBUG", raising=False)
    (tmp_path / "small.yaml").write_text(SMALL)
    return tmp_path


def simkv(*args: str) -> Any:
    return CliRunner().invoke(app, [*args])


def run_s(folder: Path) -> float:
    """Return how long the run of the folder's trace was."""
    found: float = read(folder / "trace.json")["otherData"]["run_end_s"]
    return found


def test_trace_of_the_whole_run_is_written_and_told(folder: Path) -> None:
    result = simkv("run", "small.yaml", "--trace-out", "trace.json")
    assert result.exit_code == 0, result.stderr
    found = read(folder / "trace.json")
    assert found["otherData"]["whole_run"] and found["otherData"]["seed"] == 0
    assert found["otherData"]["scenario"] == "small" and len(found["otherData"]["scenario_hash"]) >= 12
    line = result.stdout.splitlines()[-1]
    assert line.startswith(f"Trace        trace.json (whole run, {len(found['traceEvents']):,} events, ")
    assert line.endswith("B; open it in ui.perfetto.dev or chrome://tracing)")


def test_trace_inside_the_result_folder_survives_its_swap(folder: Path) -> None:
    for _ in range(2):
        result = simkv("run", "small.yaml", "--out", "here", "--trace-out", "here/trace.json")
        assert result.exit_code == 0, result.stderr
        assert read(folder / "here" / "trace.json") and (folder / "here" / "summary.json").is_file()


def test_summary_is_the_same_with_and_without_a_trace(folder: Path) -> None:
    plain, traced = simkv("run", "small.yaml", "--json"), simkv("run", "small.yaml", "--json", "--trace-out", "t.json")
    assert plain.stdout == traced.stdout
    assert plain.stderr == "" and traced.stderr.startswith("Trace        t.json (whole run")
    assert json.loads(traced.stdout)["requests"]["finished"] == 20


def test_trace_window_picks_a_part(folder: Path) -> None:
    result = simkv("run", "small.yaml", "--trace-out", "trace.json", "--trace-window", "1s:2500ms")
    assert result.exit_code == 0, result.stderr
    other = read(folder / "trace.json")["otherData"]
    assert (other["window_begin_s"], other["window_end_s"], other["whole_run"]) == (1.0, 2.5, False)
    assert "(1 s to 2.5 s of " in result.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("window", "begin_s", "end_s"), [("2s:", 2.0, None), (":2s", None, 2.0), ("0s:1h", None, None)]
)
def test_trace_window_may_be_open(folder: Path, window: str, begin_s: float | None, end_s: float | None) -> None:
    assert simkv("run", "small.yaml", "--trace-out", "trace.json", "--trace-window", window).exit_code == 0
    other = read(folder / "trace.json")["otherData"]
    assert begin_s is None or other["window_begin_s"] == begin_s
    assert other["window_end_s"] == (other["run_end_s"] if end_s is None else end_s)
    assert other["whole_run"] == (begin_s is None and end_s is None)


def test_trace_with_too_many_rows_says_where_it_ends_and_how_to_go_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "TRACE_ROWS", 30)
    line = simkv("run", "small.yaml", "--trace-out", "trace.json").stdout.splitlines()[-1]
    assert "s: 30 rows is the most, --trace-window picks another part; " in line
    other = read(folder / "trace.json")["otherData"]
    assert other["window_ended_because"] == "it had as many events as it may have"


@pytest.mark.parametrize(
    ("window", "told"),
    [
        ("5s:1s", "ends before it begins; write the earlier time first"),
        ("5:10s", 'has no unit; write "5s"'),
        ("5s", "not two times; write it like 100s:130s"),
        ("1s:2s:3s", "not two times"),
        ("1GB:2s", 'not a time; write "1s"'),
        ("1000h:1001h", "begins when the run is over, which ended at "),
    ],
)
def test_wrong_window_is_refused_with_the_mend(folder: Path, window: str, told: str) -> None:
    result = simkv("run", "small.yaml", "--trace-out", "trace.json", "--trace-window", window)
    assert result.exit_code == 2
    assert "--trace-window" in result.stderr and told in result.stderr
    assert not (folder / "trace.json").exists()


def test_window_without_a_trace_is_refused(folder: Path) -> None:
    result = simkv("run", "small.yaml", "--trace-window", "1s:2s")
    assert result.exit_code == 2 and "add --trace-out FILE" in result.stderr


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("nowhere/trace.json", "its folder doesn't exist; make nowhere"),
        ("reports/small/deeper/trace.json", "its folder doesn't exist"),
        (".", "a folder is there"),
        ("reports/small/summary.json", "the result has a file of that name"),
        ("small.yaml", "something that is no trace of simkv is there"),
        ("x" * 300, "can't write there"),
    ],
)
def test_trace_that_cannot_be_written_is_refused_before_the_run(folder: Path, file: str, told: str) -> None:
    result = simkv("run", "small.yaml", "--trace-out", file)
    assert result.exit_code == 2
    assert "--trace-out" in result.stderr and told in result.stderr
    assert not (folder / "reports").exists()
    assert (folder / "small.yaml").read_text() == SMALL


def test_trace_in_a_folder_without_permission_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "locked").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked")  # root may write anywhere
    result = simkv("run", "small.yaml", "--trace-out", "locked/trace.json")
    assert result.exit_code == 2 and "nothing can be written into its folder" in result.stderr


def test_interrupted_run_leaves_the_trace_of_what_was_recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = iter(range(60))

    def interrupt(self: Interrupt) -> None:
        if next(checks, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(Interrupt, "check", interrupt)
    monkeypatch.setattr("simkv.sim.system.STRETCH_EVENTS", 1)  # between two checks
    result = simkv("run", "small.yaml", "--trace-out", "trace.json")
    assert result.exit_code == 130
    found = read(folder / "trace.json")
    assert any(event["ph"] == "X" for event in found["traceEvents"])
    assert found["otherData"]["run_end_s"] < 5.0
