"""``simkv sweep``: as its user calls it, from the first point to the files, through kills, faults and changes."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.cli.sweeping import counts, estimate
from simkv.sweeps.study import Tally
from tests.readme import BLOCK, PAGES, run

SMALL = """\
name: small
model: llama-3.1-8b
hardware: h100-sxm5-80gb
engine: {max_model_len: 8192}
workload:
  kind: plain
  requests: 15
  arrival: {process: poisson, rate: 5 req/s}
  prompt_tokens: {dist: uniform, low: 400, high: 600}
  output_tokens: 10
run: {baselines: []}
"""
GRID = ("--grid", "rate=5req/s,20req/s", "--grid", "workload.output_tokens=5:15:5")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIMKV_DEBUG", raising=False)
    (tmp_path / "small.yaml").write_text(SMALL)
    return tmp_path


def simkv(*args: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [*args], env={"COLUMNS": "120"})
    assert result.exit_code == code, result.output
    return result


def shown(folder: str = "reports/small-sweep", *args: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(simkv("sweep", "show", folder, "--json", *args).stdout)
    return answer


def test_sweep_answers_every_point_once_in_the_order_of_the_grid(folder: Path) -> None:
    result = simkv("sweep", "small.yaml", *GRID, "--jobs", "1")
    answer = shown()
    params = [point["params"] for point in answer["points"]]
    assert params == [
        {"rate": rate, "workload.output_tokens": tokens} for rate in ("5req/s", "20req/s") for tokens in (5, 10, 15)
    ]
    for point in answer["points"]:
        assert (point["status"], point["attempts"], point["seed"]) == ("done", 1, 0)
        assert point["summary"]["output_tokens"] == 15 * point["params"]["workload.output_tokens"]
    assert answer["pending"] == 0
    assert "6 points: 6 done" in result.stdout
    assert "6 points; on 1 process" in result.stderr


def test_sweep_options_may_stand_before_the_scenario(folder: Path) -> None:
    result = simkv("sweep", "--jobs", "1", "--grid", "workload.output_tokens=5", "--json", "--out", "x", "small.yaml")
    assert json.loads(result.stdout) == shown("x")


def test_sweep_help_is_that_of_the_sweep_and_mentions_show(folder: Path) -> None:
    text = simkv("sweep", "--help").stdout
    assert "Usage: simkv sweep" in text.replace("root", "simkv")
    assert "--grid PATH=VALUES" in text
    assert "simkv sweep show DIR" in text


def test_sweep_jobs_1_and_2_give_equal_points(folder: Path) -> None:
    for jobs in ("1", "2"):
        simkv("sweep", "small.yaml", *GRID, "--jobs", jobs, "--out", f"with-{jobs}")
    assert shown("with-1") == shown("with-2")
    assert (folder / "with-1" / "points.csv").read_bytes() == (folder / "with-2" / "points.csv").read_bytes()


def test_sweep_again_computes_nothing_anew(folder: Path) -> None:
    simkv("sweep", "small.yaml", *GRID)
    before = shown()
    again = simkv("sweep", "small.yaml", *GRID)
    assert shown() == before
    assert "6 of 6 runs kept from before" in again.stderr


def test_sweep_of_more_values_goes_on_from_those_that_are_there(folder: Path) -> None:
    simkv("sweep", "small.yaml", "--grid", "workload.output_tokens=5,10")
    result = simkv("sweep", "small.yaml", "--grid", "workload.output_tokens=10,15")
    answer = shown()
    assert "1 of 2 runs kept from before" in result.stderr
    assert [point["params"]["workload.output_tokens"] for point in answer["points"]] == [10, 15]
    assert answer["elsewhere"] == 1


def test_sweep_of_a_changed_scenario_shows_its_own_points_and_keeps_the_others(folder: Path) -> None:
    simkv("sweep", "small.yaml", *GRID)
    first = shown()["points"]
    simkv("sweep", "small.yaml", *GRID, "--set", "workload.requests=14")
    answer = shown()
    assert answer["elsewhere"] == 6
    assert {point["key"] for point in first}.isdisjoint(point["key"] for point in answer["points"])
    assert all(point["summary"]["requests"]["arrived"] == 14 for point in answer["points"])
    assert "keeps 6 more runs" in simkv("sweep", "show", "reports/small-sweep").stdout
    simkv("sweep", "small.yaml", *GRID)
    assert shown()["points"] == first


def test_sweep_records_points_that_fail_and_goes_on(folder: Path) -> None:
    grid = ("--grid", "engine.num_gpu_blocks=200,2000", "--grid", "engine.max_model_len=2048,8192")
    result = simkv("sweep", "small.yaml", *grid)
    by_params = {tuple(point["params"].values()): point for point in shown()["points"]}
    assert {params: point["status"] for params, point in by_params.items()} == {
        (200, 2048): "done", (200, 8192): "failed", (2000, 2048): "done", (2000, 8192): "done",
    }  # fmt: skip
    failed = by_params[200, 8192]
    assert failed["summary"] is None
    assert "engine.max_model_len 8192 tokens doesn't fit" in failed["error"]["message"]
    for printed in (result, simkv("sweep", "show", "reports/small-sweep")):
        assert "1 of 4 points failed:\n  engine.num_gpu_blocks=200, engine.max_model_len=8192: one" in printed.stderr
        assert "3 done, 1 failed" in printed.stdout


def test_sweep_where_every_point_fails_ends_with_their_code(folder: Path) -> None:
    result = simkv("sweep", "small.yaml", "--grid", "engine.num_gpu_blocks=20,30", code=3)
    assert "2 of 2 points failed:" in result.stderr
    assert "engine.num_gpu_blocks=20" in result.stderr
    assert {point["status"] for point in shown()["points"]} == {"failed"}


def test_sweep_replications_give_means_with_intervals_under_common_seeds(folder: Path) -> None:
    simkv("sweep", "small.yaml", "--grid", "rate=5req/s,20req/s", "--replications", "3", "--seed", "7")
    answer = shown()
    assert [point["seed"] for point in answer["points"]] == [7, 8, 9, 7, 8, 9]
    for k, row in enumerate(answer["means"]):
        values = [point["summary"]["ttft_s"]["p95"] for point in answer["points"][3 * k : 3 * k + 3]]
        mean = sum(values) / 3
        half = 4.302653 * (sum((value - mean) ** 2 for value in values) / 2 / 3) ** 0.5
        found = row["metrics"]["ttft_s.p95"]
        assert found["mean"] == pytest.approx(mean)
        assert found["ci95"] == pytest.approx([mean - half, mean + half], rel=1e-5)
    with open("reports/small-sweep/means.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[1]["ttft_s.p95.low"]) == pytest.approx(answer["means"][1]["metrics"]["ttft_s.p95"]["ci95"][0])
    assert " ± " in simkv("sweep", "show", "reports/small-sweep").stdout


def test_sweep_replications_alone_need_no_axis(folder: Path) -> None:
    simkv("sweep", "small.yaml", "--replications", "2")
    assert [(point["params"], point["seed"]) for point in shown()["points"]] == [({}, 0), ({}, 1)]


def test_sweep_takes_its_axes_from_the_scenario_unless_told_otherwise(folder: Path) -> None:
    section = "sweep: {grid: {workload.output_tokens: [5, 10]}, replications: 2}\n"
    (folder / "small.yaml").write_text(SMALL + section)
    simkv("sweep", "small.yaml")
    assert len(shown()["points"]) == 4
    simkv("sweep", "small.yaml", "--grid", "rate=5req/s", "--replications", "1")
    assert [point["params"] for point in shown()["points"]] == [{"rate": "5req/s"}]


def test_sweep_files_agree_with_what_show_prints(folder: Path) -> None:
    import pandas as pd

    simkv("sweep", "small.yaml", *GRID)
    place = folder / "reports" / "small-sweep"
    tables = (pd.read_csv(place / "points.csv"), pd.read_parquet(place / "points.parquet"))
    for point, *rows in zip(shown()["points"], *(table.to_dict("records") for table in tables), strict=True):
        for row in rows:
            assert row["params.rate"] == point["params"]["rate"]
            assert row["params.workload.output_tokens"] == point["params"]["workload.output_tokens"]
            assert row["itl_s.p95"] == pytest.approx(point["summary"]["itl_s"]["p95"], rel=1e-12)
            assert row["requests.finished"] == point["summary"]["requests"]["finished"]
            assert (row["seed"], row["status"], row["attempts"]) == (0, "done", 1)
    assert (place / "scenario.yaml").read_text() == SMALL


def test_sweep_show_chooses_metrics_objectives_and_order(folder: Path) -> None:
    simkv("sweep", "small.yaml", *GRID)
    args = ("--metric", "makespan_s", "--objective", "makespan_s:min,output_tokens:max", "--sort", "-makespan_s")
    answer = shown("reports/small-sweep", *args)
    spans = [point["summary"] for point in answer["points"]]
    assert all(list(summary) == ["makespan_s"] for summary in spans)
    assert spans == sorted(spans, key=lambda summary: -summary["makespan_s"])
    best = [row["params"] for row in answer["pareto"]]
    assert best == [{"rate": "20req/s", "workload.output_tokens": tokens} for tokens in (5, 10, 15)]
    text = simkv("sweep", "show", "reports/small-sweep", *args).stdout
    assert "Pareto front, makespan_s:min, output_tokens:max" in text


@pytest.mark.parametrize("sort", ["rate", "params.rate", "-rate"])
def test_sweep_show_sorts_an_axis_by_what_it_measures(folder: Path, sort: str) -> None:
    simkv("sweep", "small.yaml", "--grid", "rate=20req/s,240req/min,5req/s")
    rates = [point["params"]["rate"] for point in shown("reports/small-sweep", "--sort", sort)["points"]]
    rising = ["240req/min", "5req/s", "20req/s"]
    assert rates == (rising[::-1] if sort.startswith("-") else rising)


@pytest.mark.parametrize("harm", ["UPDATE meta SET value = '3'", "UPDATE points SET params = '3'", "DROP TABLE points"])
def test_sweep_and_show_of_a_damaged_file_say_so(folder: Path, harm: str) -> None:
    simkv("sweep", "small.yaml", "--grid", "rate=5req/s")
    file = sqlite3.connect(folder / "reports" / "small-sweep" / "sweep.sqlite")
    with file:
        file.execute(harm)
    file.close()
    assert "sweep.sqlite: it is damaged; move it away" in simkv("sweep", "show", "reports/small-sweep", code=2).stderr


def test_sweep_show_of_what_no_point_has_is_refused(folder: Path) -> None:
    simkv("sweep", "small.yaml", "--grid", "rate=5req/s,20req/s")
    for option, value, words in (
        ("--metric", "ttft_s.p96", ("--metric = ttft_s.p96", "did you mean ttft_s.p")),
        ("--objective", "ttft_s.p95:up", ("--objective = ttft_s.p95:up", "METRIC:min")),
        ("--objective", "ttft_s.p95:min,ttft_s.p95:max", ("--objective = ttft_s.p95: is there twice",)),
        ("--objective", "nothing:min", ("--objective = nothing", "no point has such a metric")),
        ("--objective", "p_hit:max", ("--objective = p_hit:max", "no point has a number there")),
        ("--sort", "size", ("--sort = size", "rate")),
    ):
        for form in ((), ("--json",)):
            result = simkv("sweep", "show", "reports/small-sweep", option, value, *form, code=2)
            assert all(word in result.stderr for word in words), result.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), ("small.yaml: nothing varies", "--grid p=0.1:1.0:0.1")),
        (("--grid", "tiers.dram.capacty=1GiB"), ("--grid: tiers.dram.capacty", "tiers.dram.capacity")),
        (("--grid", "tiers.dram.capacity=1GB/s"), ("--grid: tiers.dram.capacity", "1GB/s")),
        (("--grid", "rate="), ("--grid: rate", "list values")),
        (("--grid", "rate=9req/s:1req/s:1req/s"), ("--grid: rate", "empty")),
        (("--grid", "rate=1req/s", "--jobs", "0"), ("--jobs = 0", "write 1 or more")),
        (("--grid", "rate=1req/s", "--sample", "0"), ("--sample", "write 1")),
    ],
)
def test_sweep_of_a_bad_grid_exits_2_with_place_value_and_mend(
    folder: Path, args: tuple[str, ...], words: tuple[str, ...]
) -> None:
    result = simkv("sweep", "small.yaml", *args, code=2)
    assert all(word in result.stderr for word in words), result.stderr
    assert not (folder / "reports").exists()


def test_sweep_of_ten_million_points_is_refused_at_once(folder: Path) -> None:
    begun_s = time.monotonic()
    axes = ("workload.requests=1:1000:1", "workload.output_tokens=1:1000:1", "engine.max_num_seqs=1:10:1")
    result = simkv("sweep", "small.yaml", *(word for axis in axes for word in ("--grid", axis)), code=2)
    assert "10,000,000 points" in result.stderr
    assert "--sample" in result.stderr
    assert time.monotonic() - begun_s < 20  # some values are tried first


def test_sweep_into_a_folder_of_something_else_is_refused_before_it_begins(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("42")
    result = simkv("sweep", "small.yaml", *GRID, "--out", "mine", code=2)
    assert "thesis.txt" in result.stderr
    assert [path.name for path in (folder / "mine").iterdir()] == ["thesis.txt"]
    simkv("run", "small.yaml", "--out", "result")
    assert "no result of this command" in simkv("sweep", "small.yaml", *GRID, "--out", "result", code=2).stderr


def test_sweep_of_another_scenario_into_its_folder_is_refused(folder: Path) -> None:
    simkv("sweep", "small.yaml", "--grid", "rate=5req/s", "--out", "x")
    (folder / "other.yaml").write_text(SMALL.replace("name: small", "name: other"))
    assert "'small'" in simkv("sweep", "other.yaml", "--grid", "rate=5req/s", "--out", "x", code=2).stderr


@pytest.mark.parametrize("place", ["empty", "absent", "small.yaml"])
def test_sweep_show_of_a_folder_without_a_sweep_is_refused(folder: Path, place: str) -> None:
    (folder / "empty").mkdir()
    assert place in simkv("sweep", "show", place, code=2).stderr


def test_sweep_counts_name_what_there_is() -> None:
    assert counts(Tally(10, 8)) == "0/8 runs (2 shared)"
    assert counts(Tally(10, 8, unfit=1, done=4, failed=1, kept=2)) == (
        "5/8 runs (4 done, 2 failed, 2 kept from before, 1 shared)"
    )


@pytest.mark.parametrize(
    ("each_s", "left", "size", "said"),
    [
        (0.1, 20, 2, ""),
        (2.0, 30, 2, "about 30 s for 30 more runs of 2 s each"),
        (60.0, 240, 2, "about 2.0 h for 240 more runs of 60 s each; Ctrl-C stops it"),
    ],
)
def test_sweep_estimate_says_how_long_and_what_to_do_about_it(each_s: float, left: int, size: int, said: str) -> None:
    assert estimate(each_s, left, size).startswith(said)
    assert bool(estimate(each_s, left, size)) == bool(said)


@pytest.mark.parametrize("block", list(BLOCK.finditer(PAGES[3].read_text("utf-8"))), ids=lambda block: block["command"])
def test_sweep_page_shows_what_its_command_prints(block: re.Match[str]) -> None:
    assert block["output"] == run(block["command"]), "run: make readme"


LONG = SMALL.replace("requests: 15", "requests: 1500")
MANY = ("--grid", "workload.output_tokens=20:39:1", "--jobs", "2", "--out", "x")


def begun(*args: str) -> subprocess.Popen[str]:
    """Start a sweep in a process group of its own, and wait until some of it is done."""
    command = [str(Path(sys.executable).with_name("simkv")), "sweep", "long.yaml", *args]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL, start_new_session=True
    )
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        result = CliRunner().invoke(app, ["sweep", "show", "x", "--json"])
        if result.exit_code == 0 and len(json.loads(result.stdout)["points"]) >= 2:
            return process
        time.sleep(0.05)
    raise AssertionError("no point was done")


@pytest.mark.slow
def test_sweep_killed_in_the_middle_goes_on_and_repeats_nothing(folder: Path) -> None:
    (folder / "long.yaml").write_text(LONG)
    process = begun(*MANY)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = shown("x")
    assert 2 <= len(before["points"]) < 20
    assert before["pending"] == 20 - len(before["points"])
    simkv("sweep", "long.yaml", *MANY)
    after = shown("x")
    assert [point["params"]["workload.output_tokens"] for point in after["points"]] == list(range(20, 40))
    by_key = {point["key"]: point for point in after["points"]}
    assert len(by_key) == 20
    assert all(by_key[point["key"]] == point for point in before["points"])
    assert sum(point["attempts"] > 1 for point in after["points"]) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_sweep_interrupted_says_what_is_there_and_writes_it(folder: Path, number: int) -> None:
    (folder / "long.yaml").write_text(LONG)
    process = begun(*MANY)
    os.killpg(process.pid, number)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    points = shown("x")["points"]
    assert f"interrupted: {len(points)} of 20 points are in x; the same command goes on" in told
    with open("x/points.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(points) < 20


@pytest.mark.parametrize("at", ["read", "write"])
def test_sweep_interrupted_twice_says_that_what_is_finished_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("simkv.cli.sweeping.write", interrupted)
    if at == "read":
        monkeypatch.setattr("simkv.cli.sweeping.run_all", interrupted)
    told = simkv("sweep", "small.yaml", "--grid", "rate=5req/s", "--out", "x", "--jobs", "1", code=130).stderr
    assert "interrupted: " in told
    assert "nothing was written" not in told
    assert "the same command goes on" in told or "none of 1 points" in told


def test_sweep_with_closed_outputs_does_its_work(folder: Path) -> None:
    line = f"{sys.executable} -m simkv sweep small.yaml --grid rate=5req/s --out x --jobs 1 >&- 2>&-"
    assert subprocess.run(line, shell=True, cwd=folder).returncode == 0
    assert shown("x")["pending"] == 0
