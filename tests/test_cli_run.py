"""``simkv run``: what goes to stdout and stderr, and how it ends."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.cli.interrupt import Interrupt
from simkv.cli.progress import Progress

SMALL = """\
name: small
question: Does it run?
model: llama-3.1-8b
hardware: h100-sxm5-80gb
engine: {max_model_len: 8192}
workload:
  kind: plain
  requests: 20
  arrival: {process: poisson, rate: 5 req/s}
  prompt_tokens: 500
  output_tokens: 20
run: {baselines: []}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIMKV_DEBUG", raising=False)
    (tmp_path / "small.yaml").write_text(SMALL)
    return tmp_path


def simkv(*args: str) -> Any:
    return CliRunner().invoke(app, [*args])


def test_run_writes_its_folder_and_prints_an_answer(folder: Path) -> None:
    result = simkv("run", "small.yaml")
    assert result.exit_code == 0, result.stderr
    assert "Does it run?" in result.stdout
    written = {path.name for path in (folder / "reports" / "small").iterdir()}
    assert {"summary.json", "requests.parquet", "timeseries.parquet", "scenario.resolved.yaml"} <= written


def test_run_json_prints_the_summary_and_nothing_else(folder: Path) -> None:
    result = simkv("run", "small.yaml", "--json", "--out", "elsewhere")
    assert json.loads(result.stdout)["requests"]["finished"] == 20
    assert result.stdout == (folder / "elsewhere" / "summary.json").read_text("utf-8")
    assert result.stderr == ""


def test_run_twice_replaces_the_result(folder: Path) -> None:
    first = simkv("run", "small.yaml", "--json")
    second = simkv("run", "small.yaml", "--json", "--seed", "1")
    assert json.loads(first.stdout)["seed"] == 0
    assert json.loads(second.stdout)["seed"] == 1
    assert json.loads((folder / "reports" / "small" / "summary.json").read_text("utf-8"))["seed"] == 1


def test_run_into_a_folder_of_something_else_is_refused_before_the_run(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("42")
    result = simkv("run", "small.yaml", "--out", "mine")
    assert result.exit_code == 2
    assert "thesis.txt" in result.stderr
    assert [path.name for path in (folder / "mine").iterdir()] == ["thesis.txt"]


def test_run_resolved_scenario_gives_the_same_summary(folder: Path) -> None:
    first = simkv("run", "small.yaml", "--set", "workload.requests=15", "--json")
    again = simkv("run", "reports/small/scenario.resolved.yaml", "--json", "--out", "again")
    assert first.stdout == again.stdout


def test_run_step_exact_and_audit_give_the_same_times(folder: Path) -> None:
    quick = json.loads(simkv("run", "small.yaml", "--json").stdout)
    exact = json.loads(simkv("run", "small.yaml", "--json", "--step-exact", "--audit").stdout)
    assert exact["ttft_s"]["max"] == quick["ttft_s"]["max"]
    assert exact["makespan_s"] == quick["makespan_s"]


def test_run_explain_prints_origins_and_budget_and_runs_nothing(folder: Path) -> None:
    result = simkv(
        "run", "small.yaml", "--explain", "--set", "tiers.dram.capacity=5GiB", "--set", "engine.load=overlap"
    )
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["tiers.dram.capacity", "5GiB", "--set"] in lines
    assert ["engine.max_model_len", "8192", "scenario"] in lines
    assert ["memory", "of", "one", "GPU", "size"] in lines
    assert "note: engine.load = overlap: not realisable in vLLM 0.33 (it can be hold)" in result.stdout
    assert not (folder / "reports").exists()


def test_run_explain_json_has_values_and_budget(folder: Path) -> None:
    answer = json.loads(simkv("run", "small.yaml", "--explain", "--json").stdout)
    assert {"path": "engine.block_tokens", "value": "16", "origin": "preset vllm 0.33"} in answer["values"]
    assert answer["memory_budget"][-1]["line"] == "kv_cache"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["small"], "small: can't be read: No such file or directory; did you mean small.yaml?"),
        (["nowhere.yaml"], "nowhere.yaml: can't be read: No such file or directory; `simkv catalog scenarios`"),
        (["small.yaml", "--set", "tiers.dram.capacity=200"], "--set: tiers.dram.capacity = 200: has no unit; write"),
        (["small.yaml", "--seed", "-1"], "--set: run.seed = -1: negative; a count is zero or more"),
        (["small.yaml", "--seed", "x"], "Invalid value for '--seed'"),
        (["small.yaml", "--nonsense"], "No such option: --nonsense"),
        ([], "Missing argument 'SCENARIO'"),
        (
            ["small.yaml", "--set", "workload={kind: trace, path: no.jsonl}"],
            'small.yaml: workload.path = "no.jsonl": no such file; looked in the working directory',
        ),
    ],
)
def test_run_bad_input_exits_2_with_a_message(args: list[str], message: str, folder: Path) -> None:
    result = simkv("run", *args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_run_several_problems_are_counted_and_listed(folder: Path) -> None:
    result = simkv("run", "small.yaml", "--set", "link.h2d=25", "--set", "slo.ttft_p95=2")
    assert result.stderr.splitlines() == [
        "2 problems:",
        '  --set: link.h2d = 25: has no unit; write "25 GB/s" or "25 GiB/s"',
        '  --set: slo.ttft_p95 = 2: has no unit; write "2s" or "2ms"',
    ]


def test_run_model_that_does_not_fit_exits_3(folder: Path) -> None:
    result = simkv("run", "small.yaml", "--set", "model=llama-3.1-405b")
    assert result.exit_code == 3
    assert "misses" in result.stderr
    assert not (folder / "reports").exists()


def broken(*_: object, **__: object) -> None:
    raise RuntimeError("something\nis off")


def test_run_fault_of_ours_exits_1_in_two_lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simkv.simulation.run_scenario", broken)
    result = simkv("run", "small.yaml")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "simkv failed: RuntimeError: something is off",
        "This is a fault of simkv: please report it (SIMKV_DEBUG=1 shows where it happened).",
    ]


def test_run_fault_of_ours_shows_where_with_debug(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simkv.simulation.run_scenario", broken)
    monkeypatch.setenv("SIMKV_DEBUG", "1")
    assert isinstance(simkv("run", "small.yaml").exception, RuntimeError)


def test_run_interrupted_before_anything_is_written_exits_130(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("simkv.simulation.run_scenario", interrupted)
    result = simkv("run", "small.yaml")
    assert result.exit_code == 130
    assert result.stderr == "interrupted: nothing was written\n"


def test_run_interrupted_writes_what_is_finished_and_exits_130(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from simkv.simulation import run_scenario

    def interrupted(*args: Any, **options: Any) -> Any:
        result = run_scenario(*args, **options)
        result.data.interrupted = True
        return result

    monkeypatch.setattr("simkv.simulation.run_scenario", interrupted)
    result = simkv("run", "small.yaml")
    assert result.exit_code == 130
    assert "interrupted: what was finished is in reports/small" in result.stderr
    assert (folder / "reports" / "small" / "summary.json").exists()


@pytest.mark.parametrize(
    ("fraction", "elapsed_s", "line"),
    [
        (0.0, 3, "[                        ]   0%  just begun"),
        (0.25, 5, "[######                  ]  25%  15 s left"),
        (1.5, 9, "[########################] 100%  0 s left"),
        (0.5, 600, "[############            ]  50%  10 min left"),
        (0.5, 9000, "[############            ]  50%  2.5 h left"),
    ],
)
def test_progress_line_has_share_and_time_left(fraction: float, elapsed_s: float, line: str) -> None:
    assert Progress.line(fraction, elapsed_s) == line


def test_interrupt_waits_for_a_check_and_a_second_one_does_not() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        interrupt.check()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_interrupt_before_the_first_check_does_not_wait() -> None:
    with Interrupt(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_progress_off_a_terminal_is_silent(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simkv.cli.progress._SILENT_S", 0.0)
    with Progress() as progress:
        progress(0.5)
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_is_shown_and_wiped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simkv.cli.progress._SILENT_S", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Progress() as progress:
        progress(0.5)
    shown = capsys.readouterr()
    assert "50%" in shown.err
    assert shown.err.endswith("\r\x1b[K")
    assert shown.out == ""


def test_run_resolved_scenario_finds_what_lay_beside_the_scenario(folder: Path) -> None:
    (folder / "mine").mkdir()
    for name in ("article-toy.yaml", "article-toy.access.jsonl"):
        shutil.copy(Path(__file__).parents[1] / "scenarios" / name, folder / "mine")
    first = simkv("run", "mine/article-toy.yaml", "--json", "--out", "one")
    again = simkv("run", "one/scenario.resolved.yaml", "--json", "--out", "two")
    assert again.exit_code == 0, again.stderr
    assert again.stdout == first.stdout
