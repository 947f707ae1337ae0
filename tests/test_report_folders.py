"""Result folders read back, whole ones and all kinds of damaged ones."""

from __future__ import annotations

import json
import shutil

import pytest

from simkv.errors import InputError
from simkv.report import files
from simkv.report.folders import CurvesFolder, PlanFolder, RunFolder, read_folder
from tests.report_factory import changed, copied, small_run

PLAN = {
    "schema_version": 1, "scenario": "p", "objective": "cost", "slo": {}, "load": {}, "candidates": [], "pruned": [],
    "left_out": [], "pareto": [], "why": [], "sensitivity": {}, "engine_flags": {}, "winner": None,
}  # fmt: skip
CURVES = {
    "schema_version": 1, "scenario": "c", "scenario_hash": "h", "seeds": [0], "about": [], "curves": {}, "left_out": {},
}  # fmt: skip


def said(path) -> str:
    """Return what is wrong with the folder at ``path``, read as far as it goes."""
    with pytest.raises(InputError) as caught:
        found = read_folder(path)
        assert isinstance(found, RunFolder)
        assert (len(found.requests), len(found.timeseries), found.resolved, found.curves) is None
    assert len(caught.value.problems) == 1
    problem = caught.value.problems[0]
    assert problem.file.startswith(str(path))
    assert problem.mend
    return str(problem)


def test_folder_of_a_run_reads_as_it_was_written():
    found = read_folder(small_run())
    assert isinstance(found, RunFolder)
    assert found.name == "chatbot"
    assert len(found.requests) == found.summary["requests"]["finished"] == 60
    assert len(found.timeseries) > 1
    assert "name: chatbot" in found.resolved
    assert found.curves is None


def test_curves_below_a_run_are_its_own_only_by_the_hash_of_the_scenario(tmp_path):
    folder = copied(tmp_path / "r")
    (folder / "curves").mkdir()
    file = folder / "curves" / "curves.json"
    file.write_text(json.dumps(CURVES))
    assert read_folder(folder).curves is None
    file.write_text(json.dumps(CURVES | {"scenario_hash": read_folder(folder).summary["scenario_hash"]}))
    assert read_folder(folder).curves["scenario"] == "c"
    file.write_text("{")
    assert "it is no JSON" in said(folder)


def test_folders_of_plans_and_curves_are_told_by_their_files(tmp_path):
    for name, answer in (("plan.json", PLAN), ("curves.json", CURVES)):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(json.dumps(answer))
    assert isinstance(read_folder(tmp_path / "plan.json"), PlanFolder)
    assert isinstance(read_folder(tmp_path / "curves.json"), CurvesFolder)
    (tmp_path / "plan.json" / "curves.json").write_text(json.dumps(CURVES))
    assert "several commands" in said(tmp_path / "plan.json")


def test_folder_that_is_none_names_what_is_wrong(tmp_path):
    assert "no such folder" in said(tmp_path / "absent")
    (tmp_path / "file").write_text("x")
    assert "that is a file" in said(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert "is empty" in said(tmp_path / "empty")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("x")
    assert "notes.txt, and none of summary.json" in said(tmp_path / "other")
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "plan.sqlite").write_text("")
    assert "its plan was stopped" in said(tmp_path / "begun")
    with pytest.raises(InputError, match="no such folder"):
        read_folder(tmp_path / "nu\0ll")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "no JSON"),
        (b'{"schema_version": 1', "no JSON"),
        (b'{"schema_version": 1, "x": NaN}', "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[]", "it has a list where a mapping is expected"),
        (b"{}", "says no schema_version"),
        (b'{"schema_version": 2}', "schema_version = 2: its layout is another one"),
        (b'{"schema_version": 1, "simkv_version": "0.0.1"}', "simkv 0.0.1 wrote this"),
    ],
)
def test_summary_that_is_none_is_said(tmp_path, content, what):
    (tmp_path / "summary.json").write_bytes(content)
    assert what in said(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scenario", None), ("scenario", 3), ("requests", {}), ("requests", None), ("ttft_s", {"mean": 1}),
        ("makespan_s", "long"), ("makespan_s", True), ("warnings", {}), ("warnings", [{}]), ("notes", [1]),
        ("verdict", []), ("baselines", None), ("hit_rate", {"vram": 1}),
    ],
)  # fmt: skip
def test_summary_with_a_value_of_another_shape_names_it(tmp_path, name, value):
    assert f" {name}" in said(changed(tmp_path / "r", lambda summary: summary.update({name: value})))


def test_summary_without_a_metric_names_it(tmp_path):
    assert "itl_s: it isn't there" in said(changed(tmp_path / "r", lambda summary: summary.pop("itl_s")))


@pytest.mark.parametrize("name", ["requests.parquet", "timeseries.parquet"])
def test_table_that_is_damaged_is_said(tmp_path, name):
    folder = copied(tmp_path / "r")
    whole = (folder / name).read_bytes()
    for content in (b"", b"PAR1", whole[: len(whole) // 2], whole[:-20], b"PAR1" + bytes(200) + b"PAR1"):
        (folder / name).write_bytes(content)
        assert name in said(folder)
    (folder / name).unlink()
    assert "no file is there" in said(folder)
    (folder / name).mkdir()
    assert "that is no file" in said(folder)


def test_table_with_foreign_columns_is_said(tmp_path):
    import pandas as pd

    folder = copied(tmp_path / "r")
    pd.DataFrame({"a": [1.0]}).to_parquet(folder / "timeseries.parquet")
    assert "it has no column t_s, it has a" in said(folder)
    table = pd.read_parquet(small_run() / "timeseries.parquet")
    table.assign(running="many").to_parquet(folder / "timeseries.parquet")
    assert "column running has" in said(folder)


def test_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    folder = copied(tmp_path / "r")
    monkeypatch.setattr(files, "MOST_ROWS", 10)
    assert "at most 10 are read" in said(folder)
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    assert "at most 0 are read" in said(folder)


def test_file_that_is_gone_is_made_again_not_moved_away(tmp_path):
    folder = copied(tmp_path / "r")
    (folder / "timeseries.parquet").unlink()
    assert said(folder).endswith(
        "timeseries.parquet: no file is there, and a report needs it; run again what made this folder"
    )


def test_recording_that_is_damaged_is_said_with_its_folder(tmp_path):
    folder = copied(tmp_path / "r")
    (folder / "recording.json").write_bytes(b"\0")
    run = read_folder(folder)
    assert isinstance(run, RunFolder)
    with pytest.raises(InputError, match=f"^{folder / 'recording.json'}: "):
        _ = run.recording


def test_resolved_scenario_that_is_no_text_is_said(tmp_path):
    folder = copied(tmp_path / "r")
    (folder / "scenario.resolved.yaml").write_bytes(b"name: \xff\n")
    assert "byte 6 is not UTF-8" in said(folder)


def test_link_that_goes_round_in_a_circle_is_said(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "a")
    with pytest.raises(InputError):
        read_folder(tmp_path / "a")
    folder = copied(tmp_path / "r")
    shutil.move(folder / "summary.json", tmp_path / "elsewhere.json")
    (folder / "summary.json").symlink_to(tmp_path / "elsewhere.json")
    assert isinstance(read_folder(folder), RunFolder)
