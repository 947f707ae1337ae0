"""Folders to one document: which sections stand where, whatever kinds of folders there are."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from simkv.errors import InputError
from simkv.report.compose import document
from simkv.report.document import Details, Note, Table
from simkv.report.every import every_figure, values
from simkv.report.folders import CurvesFolder, PlanFolder, RunFolder, read_folder
from simkv.report.html.page import page
from simkv.results.write import write_result
from simkv.scenario.resolve import resolve
from simkv.sim.record.recording import PLAYER
from simkv.simulation import run_scenario
from tests.document_factory import DRAWINGS
from tests.report_factory import ROOT, SMALL, changed, copied, small_run

PLAN = Path(__file__).parent / "plans" / "observed.json"


def plan_folder(tmp_path: Path, **change: object) -> Path:
    """Return a folder with a plan."""
    folder = tmp_path / "my-plan"
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(json.loads(PLAN.read_text("utf-8")) | change), "utf-8")
    return folder


@pytest.fixture(scope="module")
def run() -> RunFolder:
    """Return a run."""
    found = read_folder(small_run())
    assert isinstance(found, RunFolder)
    return found


def test_run_has_its_answer_first_and_every_figure_last(run):
    found = document([run], no_curves="none here")
    keys = [section.key for section in found.sections]
    assert found.title == "chatbot"
    assert found.subtitle == run.summary["question"]
    assert keys[0] == "answer"
    assert keys[-1] == "every-figure"
    assert keys.index("closed-form") < keys.index("latency") < keys.index("resources") < keys.index("what-if")
    assert keys.index("what-if") + 2 == keys.index("curves") + 1 == keys.index("obtained")
    curves = next(section for section in found.sections if section.key == "curves")
    assert curves.blocks == [Note("plain", "none here")]
    assert document([run], title="Mine").title == "Mine"


def test_recording_of_a_run_is_played_where_it_kept_one(tmp_path, run):
    assert "blocks" not in [section.key for section in document([run]).sections]
    folder = tmp_path / "r"
    scenario = resolve(str(ROOT / "scenarios" / "chatbot.yaml"), list(SMALL))
    write_result(run_scenario(scenario, record=(PLAYER,)), folder)
    keys = [section.key for section in document([read_folder(folder)]).sections]
    assert keys.index("resources") + 1 == keys.index("blocks")
    (folder / "recording.json").write_text("{}")
    with pytest.raises(InputError, match=r"recording\.json"):
        document([read_folder(folder)])


def test_several_runs_are_compared_and_each_answers_for_itself(tmp_path, run):
    other = read_folder(copied(tmp_path / "other"))
    found = document([run, other])
    assert found.title == "chatbot and other compared"
    assert [section.title for section in found.sections[-2:]] == ["By itself: chatbot", "By itself: other"]
    assert "every-figure" not in [section.key for section in found.sections]


def test_kinds_that_differ_become_parts_with_titles_of_their_own(tmp_path, run):
    plan = read_folder(plan_folder(tmp_path))
    assert isinstance(plan, PlanFolder)
    found = document([plan, run])
    parts = [section.title.partition(": ")[0] for section in found.sections]
    assert list(dict.fromkeys(parts)) == ["my-plan", "Run"]
    assert found.title == f"{plan.name}, chatbot"
    assert len({section.key for section in found.sections}) == len(found.sections)
    alone = document([plan])
    assert not any(section.title.startswith("my-plan") for section in alone.sections)


@pytest.mark.parametrize("change", [{"winner": {}}, {"candidates": [1]}, {"slo": {}}])
def test_plan_that_is_damaged_inside_is_said(tmp_path, change):
    with pytest.raises(InputError, match=r"plan\.json: it is damaged, or of another version"):
        document([read_folder(plan_folder(tmp_path, **change))])


def test_curves_that_are_damaged_inside_are_said(tmp_path):
    answer = {"scenario": "c", "curves": {"t_avg": {}}, "about": [], "left_out": {}}
    with pytest.raises(InputError, match=r"curves\.json: it is damaged"):
        document([CurvesFolder(tmp_path, answer)])


def test_scenario_that_does_not_read_any_more_has_nothing_to_move_and_says_so(tmp_path):
    folder = copied(tmp_path / "r")
    resolved = folder / "scenario.resolved.yaml"
    resolved.write_text(resolved.read_text("utf-8").replace("a100-sxm4-80gb", "gone.json"), "utf-8")
    found = document([read_folder(folder)])
    notes = [block for section in found.sections if section.key == "what-if" for block in section.blocks]
    assert len(notes) == 1
    assert "gone.json" in notes[0].text


def test_run_without_anything_optional_makes_a_page(tmp_path):
    nothing = dict.fromkeys(
        ["question", "ttft_s", "itl_s", "tpot_s", "e2e_s", "queue_s", "time_breakdown_s", "load_wait_s", "load_hidden",
         "slo_attainment", "hit_rate", "bottleneck", "bottleneck_because", "goodput_requests_per_s"]
    )  # fmt: skip
    verdict = {"offload_helps": None, "because": "Nothing was finished."}
    folder = changed(tmp_path / "r", lambda found: found.update(nothing | {"verdict": verdict, "baselines": {}}))
    assert "Nothing was finished." in page(document([read_folder(folder)]), DRAWINGS)


def test_every_figure_is_each_value_of_the_summary_with_its_unit(run):
    section = every_figure(run.summary)
    details = section.blocks[-1]
    assert isinstance(details, Details)
    table = details.blocks[0]
    assert isinstance(table, Table)
    rows = {row[0].text: (row[1].text, row[1].exact, row[2].text) for row in table.rows}
    mean = run.summary["ttft_s"]["mean"]
    assert rows["ttft_s.mean"] == (repr(mean), mean, "s")
    assert rows["ttft_s.ci95.0"][1] == run.summary["ttft_s"]["ci95"][0]
    assert rows["bytes.h2d"][2] == "B"
    assert rows["hit_rate.vram"][2] == ""
    assert rows["baselines.no_offload.makespan_s"][2] == "s"
    assert rows["verdict.offload_helps"][0] in ("true", "false", "null")
    assert float(rows["makespan_s"][0]) == run.summary["makespan_s"]
    assert len(rows) == len(list(values(run.summary)))


def test_values_of_empty_things_are_none():
    assert list(values({"a": [], "b": {}, "c": None, "d": [{"e": math.pi}]})) == [("c", None), ("d.0.e", math.pi)]
