"""What fuzzing found that ended in a fault of ours, one test each."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from simkv.errors import InputError
from simkv.report.document import Cell, Code, Details, Facts, Figure, Note, Section, Table, Text
from simkv.scenario.resolve import resolve
from simkv.simulation import run_scenario
from simkv.workload.readers.files import MAX_EMPTY_LINES, lines

ROOT = Path(__file__).parents[1]
FEW = ["workload.requests=3", "run.baselines=[]"]


def simkv(*args: str | bytes, where: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "simkv", *args]
    return subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=120)


def test_gzip_of_nothing_but_the_same_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "trace.jsonl.gz"
    bomb.write_bytes(gzip.compress(b'{"timestamp": 0}\n' * (2 << 20), 9))
    with pytest.raises(InputError, match="times its size"):
        for _ in lines(bomb):
            pass


def test_millions_of_empty_lines_are_refused_and_some_are_not(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_bytes(b"\n" * MAX_EMPTY_LINES + b"{}\n")
    assert len(list(lines(file))) == MAX_EMPTY_LINES + 1
    file.write_bytes(b"\n" * (MAX_EMPTY_LINES + 1))
    with pytest.raises(InputError, match="empty lines in a row"):
        list(lines(file))


def test_request_longer_than_any_record_holds_is_refused() -> None:
    long = [
        "workload.prompt_tokens={dist: lognormal, median: 540, sigma: 52}",
        "workload.system_prompt={tokens: 16384}",
    ]
    resolved = resolve(str(ROOT / "scenarios" / "speed-100k.yaml"), ["workload.requests=40", *long, "run.baselines=[]"])
    with pytest.raises(InputError, match=r"a request of 2,147,500,\d+ tokens.*the most is"):
        run_scenario(resolved)


def test_folder_whose_name_is_no_text_takes_a_result(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff")
    done = simkv(
        "run", str(ROOT / "scenarios/chatbot.yaml"), "--set", FEW[0], "--set", FEW[1], "--out", name, where=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert {"summary.json", "requests.parquet", "timeseries.parquet"} <= set(os.listdir(tmp_path / name))


def test_name_that_is_no_text_is_told(tmp_path: Path) -> None:
    done = simkv("init", os.fsdecode(b"\xff.yaml"), where=tmp_path)
    assert done.returncode == 0 and "wrote \\udcff.yaml" in done.stdout


@pytest.mark.parametrize(
    "make",
    [
        Text, Cell, Code, partial(Note, "plain"), partial(Table, rows=()), lambda wrong: Facts([("what", wrong)]),
        partial(Details, blocks=()), partial(Section, "key", blocks=()),
        partial(Figure, "name", draw=None, data=None, alt=""),
    ],
)  # fmt: skip
def test_part_of_a_report_that_is_no_text_is_none(make: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError, match="no text"):
        make([-1])


def test_sweep_whose_settings_or_numbers_are_none_is_called_damaged(tmp_path: Path) -> None:
    scenario = str(ROOT / "scenarios" / "chatbot.yaml")
    grid = ("--grid", "engine.max_num_seqs=8,16", "--jobs", "1", "--set", FEW[0], "--set", FEW[1])
    assert simkv("sweep", scenario, *grid, "--out", "s", where=tmp_path).returncode == 0
    for wrong in ({"engine.max_num_seqs": [1]}, {"engine.max_num_seqs": True}, {"other": "8"}):
        with sqlite3.connect(tmp_path / "s" / "sweep.sqlite") as store:
            store.execute("UPDATE points SET params = ?", [json.dumps(wrong)])
        shown = simkv("sweep", "show", "s", "--objective", "ttft_s.p95:min", where=tmp_path)
        assert shown.returncode == 2 and "it is damaged" in shown.stderr
    for name, value in (("points", "x"), ("number", 1 << 40), ("number", "x"), ("axes.p", "x")):
        with sqlite3.connect(tmp_path / "s" / "sweep.sqlite") as store:
            store.execute("UPDATE meta SET value = json_set(value, ?, ?)", [f"$.{name}", value])
        shown = simkv("sweep", "show", "s", where=tmp_path)
        assert shown.returncode == 2 and "it is damaged" in shown.stderr
