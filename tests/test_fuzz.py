"""The fuzzing itself: each fault that a command may have is seen, and a good answer is none."""

from __future__ import annotations

import json
import time
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import driver
from tests.fuzz.__main__ import GENERATORS
from tests.fuzz.asked import Command, Outcome
from tests.fuzz.report import render


def outcome(code: int = 0, stdout: str = "", stderr: str = "", ended: str = "", peak_bytes: int = 0) -> Outcome:
    return Outcome(code, stdout, stderr, 0.1, peak_bytes, ended)


GOOD = outcome(2, stderr="s.yaml:1: a = 1: is wrong; mend it\n")


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (GOOD, ""),
        (outcome(0, stdout="{}"), ""),
        (outcome(3, stderr="it doesn't fit\n"), ""),
        (outcome(2, stderr="Usage: simkv run\nError: Missing argument\n"), ""),
        (outcome(1, stderr="simkv failed: KeyError: 'x'\nThis is a fault\n"), "exit 1: simkv failed: KeyError: 'x'"),
        (outcome(-9), "exit -9"),
        (outcome(2), "no message"),
        (outcome(2, stderr="s.yaml: is wrong\n"), "no mend"),
        (outcome(2, stderr="Traceback (most recent call last)\n"), "a traceback"),
        (outcome(2, stderr="a\x1b[31m; b\n"), "a message with '\\x1b'"),
        (outcome(2, stderr="x" * 5000 + "; b\n"), "a message of 5004 characters"),
        (outcome(2, stdout="{}", stderr="a; b\n"), "an answer beside a failure"),
        (outcome(0, stdout='{"a": NaN}'), "stdout is not JSON: NaN in it"),
        (outcome(0, stdout="{"), "stdout is not JSON"),
        (outcome(0, stdout="{}", peak_bytes=2 << 30), "2048 MiB of memory"),
        (outcome(-9, ended="hang"), "hang"),
        (outcome(-9, ended="long"), ""),
    ],
)
def test_judge_outcome_names_its_fault(found: Outcome, fault: str, tmp_path: Path) -> None:
    judged = driver.judge(Command((), json=True), found, tmp_path)
    assert judged.startswith(fault)
    assert bool(judged) == bool(fault)


def test_judge_files_whole_missing_and_left_over(tmp_path: Path) -> None:
    command = Command((), out="out", holds="summary.json")
    assert driver.judge(command, outcome(), tmp_path) == "out/summary.json is missing"
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "summary.json").write_text("{")
    assert "is not JSON" in driver.judge(command, outcome(), tmp_path)
    (tmp_path / "out" / "summary.json").write_text(json.dumps({"a": 1}))
    assert driver.judge(command, outcome(), tmp_path) == ""
    assert driver.judge(command, GOOD, tmp_path) == "out is there after a failure"
    (tmp_path / ".out.part").mkdir()
    assert driver.judge(command, outcome(), tmp_path) == ".out.part is left over"


def _ask(command: Command, limit_s: float = 30.0) -> driver.Judged:
    return driver.ask("x", lambda rng, folder: command, 0, limit_s=limit_s)


def test_ask_is_judged_by_what_the_process_does() -> None:
    def crash() -> None:
        raise KeyError("x")

    def greedy() -> None:
        bytearray(4 << 30)

    missing = Command(("run", "nowhere.yaml"))
    assert (_ask(missing).code, _ask(missing).fault) == (2, "")
    assert _ask(Command(("run", "x"), in_child=crash)).fault.startswith("exit 1: KeyError")
    assert _ask(Command(("run", "x"), in_child=lambda: time.sleep(60)), 0.5).fault == "hang"
    assert _ask(Command(("run", "x"), in_child=lambda: bytearray(4 << 30) and None)).fault.startswith(
        "exit 1: MemoryError"
    )


@pytest.mark.parametrize("name", ["scenario", "value", "extreme", "set", "grid", "section", "config", "case", "calc"])
def test_generator_same_seed_gives_the_same_input(name: str, tmp_path: Path) -> None:
    asked = []
    for folder in (tmp_path / "1", tmp_path / "2"):
        folder.mkdir()
        args = GENERATORS[name](Random(f"{name}/7"), folder).args
        asked.append((args, [(path.name, path.read_bytes()) for path in sorted(folder.iterdir())]))
    assert asked[0] == asked[1]


def test_render_tells_how_to_ask_again() -> None:
    failed = driver.Judged("set", 17, 1, "", 0.2, 1 << 20, "exit 1: KeyError")
    shown = render([failed, driver.Judged("set", 18, 2, "", 0.1, 1 << 20, "")], 1.0)
    assert "FAILED --only set --seed 17 --inputs 1: exit 1: KeyError" in shown
    assert "1:1 2:1" in shown
    assert "2 inputs in 1 s (2.0/s): 1 failed" in shown
