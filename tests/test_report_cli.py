"""``simkv report``: which files it writes where, and what it says of what it can't do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.errors import InputError
from simkv.report.curves import study
from simkv.report.document import Document
from simkv.report.write import write
from simkv.results.write import check_out
from tests.report_factory import copied, small_run


def told(*words) -> str:
    """Return what ``simkv report`` prints."""
    done = CliRunner().invoke(app, ["report", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*words) -> str:
    """Return what ``simkv report`` refuses with."""
    done = CliRunner().invoke(app, ["report", *map(str, words)])
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    return done.stderr


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the folder of a run, for tests that change nothing but reports in it."""
    return copied(tmp_path_factory.mktemp("report") / "chatbot")


def test_report_of_a_run_goes_into_its_folder_in_each_form_asked_for(run):
    said = told(run, "--no-curves", "--format", "md, html,md")
    for name in ("report.html", "report.md"):
        assert f"{run / name}  " in said
    assert f"{run / 'report-files'}/  " in said
    assert (run / "report.html").read_text("utf-8").startswith("<!doctype html>")
    assert said.index("report.html") < said.index("report.md")
    assert not list(run.glob(".*"))


def test_json_names_the_files_and_their_size(run, tmp_path):
    said = json.loads(told(run, "--no-curves", "--json", "--out", tmp_path / "new" / "place", "--title", "My & title"))
    file = tmp_path / "new" / "place" / "report.html"
    assert said == {"files": [str(file)], "bytes": file.stat().st_size}
    assert "<title>My &amp; title</title>" in file.read_text("utf-8")


def test_same_folder_gives_the_same_bytes(run, tmp_path):
    for name in ("one", "two"):
        told(run, "--no-curves", "--format", "html,md", "--out", tmp_path / name)
    one, two = (
        {str(file.relative_to(tmp_path / name)): file.read_bytes() for file in sorted((tmp_path / name).rglob("*.*"))}
        for name in ("one", "two")
    )
    assert one == two
    assert len(one) > 10


def test_pictures_of_an_earlier_report_go_and_other_files_stay(run, tmp_path):
    beside = tmp_path / "report-files"
    beside.mkdir()
    for name in ("old.svg", "old.csv", "mine.txt"):
        (beside / name).write_text("x")
    told(run, "--no-curves", "--format", "md", "--out", tmp_path)
    names = {file.name for file in beside.iterdir()}
    assert "mine.txt" in names
    assert not names & {"old.svg", "old.csv"}


def test_several_runs_are_compared_in_the_first_folder(run, tmp_path):
    other = copied(tmp_path / "other")
    told(run, other)
    text = (run / "report.html").read_text("utf-8")
    assert "Differences, and which of them are noise" in text
    assert "By itself: other" in text
    assert not (other / "report.html").exists()
    assert not (run / "curves").exists()


@pytest.mark.slow
def test_curves_are_simulated_once_and_then_taken(tmp_path, monkeypatch):
    folder = copied(tmp_path / "chatbot")
    assert "About the curves" in told_page(folder, "--points", "2", "--jobs", "1")
    assert (folder / "curves" / "curves.json").is_file()
    assert "3 steps along each axis" in told_page(folder, "--points", "3", "--jobs", "1")
    monkeypatch.setattr(study, "study", None)
    assert "curve-concurrency" in told_page(folder)


def told_page(folder, *more) -> str:
    """Return the page of ``folder``."""
    told(folder, *more)
    return (folder / "report.html").read_text("utf-8")


def test_scenario_that_does_not_run_any_more_leaves_the_curves_out_and_says_why(tmp_path):
    folder = copied(tmp_path / "chatbot")
    resolved = folder / "scenario.resolved.yaml"
    resolved.write_text(resolved.read_text("utf-8").replace("llama-3.1-8b", "gone/config.json"), "utf-8")
    text = told_page(folder)
    assert "Curves can&#39;t be drawn of this run: " in text
    assert "gone/config.json" in text


def test_report_in_a_folder_is_replaced_by_the_next_run(run):
    told(run, "--no-curves")
    assert check_out(run, "chatbot") == run.resolve()
    with pytest.raises(InputError, match="this one is 'another'"):
        check_out(run, "another")


def test_unknown_format_names_the_valid_ones(run):
    assert "--format = htm: no such format; did you mean html? valid: html, md, pdf" in refused(run, "--format", "htm")
    assert "--format: names no format" in refused(run, "--format", ",")


def test_folder_that_is_none_is_refused_before_anything_is_written(run, tmp_path):
    assert "no such folder" in refused(run, tmp_path / "absent", "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_folder_that_is_named_twice_is_refused(run, tmp_path):
    link = tmp_path / "same"
    link.symlink_to(run)
    assert "this folder is named twice" in refused(run, link, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_forms_of_an_earlier_report_are_told_of(run, tmp_path):
    told(run, "--no-curves", "--format", "html,md", "--out", tmp_path)
    done = CliRunner().invoke(app, ["report", str(run), "--no-curves", "--out", str(tmp_path)])
    assert done.stderr == f"still of an earlier report: report.md in {tmp_path}\n"


def test_curves_that_are_simulated_are_announced_with_how_to_leave_them_out(tmp_path):
    folder = copied(tmp_path / "chatbot")
    (folder / "scenario.resolved.yaml").write_text("name: gone\n", "utf-8")
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert "simulating the curves of this scenario, once; --no-curves leaves them out" in done.stderr
    assert "no curves: model is missing; hardware is missing; workload is missing" in done.stderr


def test_no_processes_are_refused(run):
    assert "--jobs = 0" in refused(run, "--jobs", "0")


def test_place_where_nothing_can_be_taken_away_is_named(tmp_path, monkeypatch):
    def read_only(path, missing_ok=False):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", read_only)
    monkeypatch.setattr(Path, "write_bytes", lambda path, content: read_only(path))
    with pytest.raises(InputError, match=r"report\.html: can't be written: the file system is read-only"):
        write(Document("d", "", []), tmp_path, ["html"])


def test_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "report.html").mkdir()
    empty = Document("d", "", [])
    with pytest.raises(InputError, match=r"file/below/report\.html: can't be written: a part of its path is a"):
        write(empty, tmp_path / "file" / "below", ["html"])
    with pytest.raises(InputError, match=r"report\.html: can't be written"):
        write(empty, tmp_path, ["html"])
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "report.html"]


def test_title_that_is_no_text_is_written_out(tmp_path):
    words = [sys.executable, "-m", "simkv", "report", str(small_run()), "--no-curves"]
    words += ["--out", str(tmp_path), "--title", b"bad \xff name"]
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, "PYTHONUTF8": "1"})
    assert "bad \\udcff name" in (tmp_path / "report.html").read_text("utf-8")


def test_help_says_how_many_steps_curves_have_by_default():
    said = " ".join(CliRunner().invoke(app, ["report", "--help"]).stdout.split())
    assert "--format" in said
    assert f"else {study.POINTS}]" in said


@pytest.mark.parametrize("option", [["--curves"], ["--points", "3"]])
def test_curves_that_would_be_of_no_one_run_are_refused(tmp_path, option):
    one, other = copied(tmp_path / "one"), copied(tmp_path / "other")
    assert f"{option[0]}: these are curves of one run, and 2 are here" in refused(one, other, *option)
    assert not (one / "report.html").exists()
