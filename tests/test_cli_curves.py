"""``simkv curves``: files, output, wrong input, and going on after Ctrl-C."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.jobs.store import Store
from tests.test_curves import DENSE, REUSE, SPARSE

FILES = {f"{name}.{form}" for name in ("t_avg", "speedup", "concurrency") for form in ("csv", "png", "svg")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIMKV_DEBUG", raising=False)
    for name, text in (("dense", DENSE), ("reuse", REUSE), ("sparse", SPARSE)):
        (tmp_path / f"{name}.yaml").write_text(text, "utf-8")
    return tmp_path


def curves(*args: str) -> Any:
    return CliRunner().invoke(app, ["curves", *args, "--jobs", "1"])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith("runs.sqlite")}


def test_curves_writes_its_files_and_says_what_can_be_read_off(folder: Path) -> None:
    result = curves("dense.yaml", "--points", "2")
    assert result.exit_code == 0, result.stderr
    assert '"90 % hits can\'t be felt"' in " ".join(result.stdout.split())
    assert "No curve lambda: under dense access" in result.stdout
    made = folder / "reports" / "dense-curves"
    assert set(contents(made)) == FILES | {"curves.json"}
    with (made / "concurrency.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["series"] == "simulated"]
    assert [row["residency"] for row in rows] == ["0.5", "1.0"]
    assert b"<dc:date>" not in (made / "t_avg.svg").read_bytes()


def test_curves_twice_and_from_nothing_gives_the_same_bytes(folder: Path) -> None:
    args = ("dense.yaml", "--points", "2", "--only", "speedup")
    for out in ("a", "a", "b"):
        assert curves(*args, "--out", out).exit_code == 0
    assert contents(folder / "a") == contents(folder / "b")


def test_curves_json_prints_the_answer_and_nothing_else(folder: Path) -> None:
    result = curves("reuse.yaml", "--only", "lambda", "--points", "2", "--json", "--out", "out")
    assert result.stdout == (folder / "out" / "curves.json").read_text("utf-8")
    answer = json.loads(result.stdout)
    assert answer["scenario"] == "reuse"
    assert answer["seeds"] == [0, 1, 2]
    assert list(answer["curves"]) == ["lambda"]


def test_curves_seed_and_set_reach_the_runs(folder: Path) -> None:
    args = ("reuse.yaml", "--only", "lambda", "--points", "2", "--json", "--out", "out")
    first = json.loads(curves(*args).stdout)
    other = json.loads(curves(*args, "--seed", "7", "--set", "run.replications=4").stdout)
    assert other["seeds"] == [7, 8, 9, 10]
    assert other["curves"]["lambda"]["marks"]["lru"] != first["curves"]["lambda"]["marks"]["lru"]


def test_curves_only_some_takes_away_the_files_of_the_others(folder: Path) -> None:
    for only in ("t_avg,speedup", "t_avg"):
        assert curves("dense.yaml", "--points", "2", "--out", "out", "--only", only).exit_code == 0
    assert set(contents(folder / "out")) == {"t_avg.csv", "t_avg.png", "t_avg.svg", "curves.json"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["dense.yaml", "--only", "beta"], "--only = beta: no such curve; valid: t_avg, speedup, concurrency, lambda"),
        (["dense.yaml", "--only", ","], "names no curve"),
        (["dense.yaml", "--points", "1"], "Invalid value for '--points'"),
        (["dense.yaml", "--only", "lambda"], "has no curve lambda: under dense access"),
        (["nowhere.yaml"], "nowhere.yaml: can't be read"),
        (["dense.yaml", "--set", "link.h2d=25"], "link.h2d = 25: has no unit"),
    ],
)
def test_curves_bad_input_exits_2_with_a_message(args: list[str], message: str, folder: Path) -> None:
    result = curves(*args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_curves_into_a_folder_of_something_else_is_refused(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("42")
    assert curves("dense.yaml", "--out", "mine").exit_code == 2
    assert [path.name for path in (folder / "mine").iterdir()] == ["thesis.txt"]
    assert curves("dense.yaml", "--only", "t_avg", "--points", "2", "--out", "out").exit_code == 0
    refused = curves("sparse.yaml", "--only", "speedup", "--out", "out")
    assert refused.exit_code == 2
    assert "'dense'" in refused.stderr


@pytest.mark.slow
def test_curves_interrupted_keeps_its_runs_and_goes_on(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "simkv",
        "curves",
        "sparse.yaml",
        "--only",
        "lambda",
        "--out",
        "out",
        "--jobs",
        "1",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    kept = _wait_for_runs(folder / "out" / "runs.sqlite", process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "the same command goes on" in said
    assert not (folder / "out" / "curves.json").exists()
    with Store.read(folder / "out" / "runs.sqlite") as store:
        before = {key: store.attempts(key) for key in store.finished()}
    assert len(before) >= kept
    result = curves("sparse.yaml", "--only", "lambda", "--out", "out")
    assert result.exit_code == 0, result.stderr
    with Store.read(folder / "out" / "runs.sqlite") as store:
        assert {key: store.attempts(key) for key in before} == before
        assert len(store.finished()) == 3 * 13


def _wait_for_runs(file: Path, process: subprocess.Popen[str]) -> int:
    """Wait until some runs are kept, and some are not."""
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s and process.poll() is None:
        if file.is_file() and os.path.getsize(file):
            with Store.read(file) as store:
                if kept := len(store.finished()):
                    return kept
        time.sleep(0.02)
    raise AssertionError(f"no run was kept: {process.communicate()}")
