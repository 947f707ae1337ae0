"""What reports say of curves, and the short study that gives a run's report its own."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simkv.curves.setting import read_setting
from simkv.curves.table import points
from simkv.errors import InputError
from simkv.report.curves import curves_for, sections
from simkv.report.document import Details, Figure, Note, Section
from simkv.report.folders import RunFolder, read_folder
from simkv.results.write import write_result
from simkv.scenario.resolve import resolve
from simkv.simulation import run_scenario
from simkv.sweeps.simulate import Written
from tests.report_blocks import blocks, drawn, table, words

SPARSE = """\
name: sparse
model: {kv_bytes_per_token: 4KiB}
hardware: {step_time: 20ms, kv_tokens: 4000}
engine: {max_num_seqs: 16, prefix_caching: false}
workload: {kind: batch, size: 4, prompt_tokens: 1600, output_tokens: 60}
tiers: {dram: {capacity: 1GiB}}
link: {h2d: 20 MB/s, d2h: 20 MB/s, duplex: 40 MB/s, latency: 0s}
offload:
  residency: 0.2
  access: {pattern: topk, budget: 320, recent: 64, sinks: 16}
  write: write_through
  prefetch: {policy: layer}
"""
TRACE = """\
name: recorded
model: llama-3.1-8b
hardware: {step_time: 20ms, kv_tokens: 6000}
workload: {kind: trace, path: requests.jsonl, format: lengths}
"""
BATCHES = Path(__file__).parents[1] / "scenarios" / "flexgen-opt-30b-t4.yaml"


def simulated(text: str, folder: Path) -> RunFolder:
    """Simulate a scenario into ``folder / run``."""
    (folder / "s.yaml").write_text(text)
    write_result(run_scenario(resolve(str(folder / "s.yaml"))), folder / "run")
    found = read_folder(folder / "run")
    assert isinstance(found, RunFolder)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return simulated(SPARSE, tmp_path_factory.mktemp("curves"))


@pytest.fixture(scope="module")
def answer(run: RunFolder) -> Mapping[str, Any]:
    return curves_for(run, points=2, jobs=1)


@pytest.fixture
def shown(answer: Mapping[str, Any]) -> list[Section]:
    return sections(answer)


def test_study_says_that_it_is_short_and_of_one_seed(answer: Mapping[str, Any], run: RunFolder) -> None:
    assert answer["about"][0].startswith("A short study: 2 steps along each axis, one seed.")
    assert answer["seeds"] == [0]
    assert answer["scenario_hash"] == run.summary["scenario_hash"]
    hits = " ".join(answer["curves"]["lambda"]["about"])
    assert "One seed (0): points have no interval" in hits and "drawn at random: each" not in hits


def test_study_is_kept_beside_the_run_and_taken_as_it_is(
    answer: Mapping[str, Any], run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it was studied already")

    monkeypatch.setattr("simkv.report.curves.study.study", never)
    again = read_folder(run.path)
    assert isinstance(again, RunFolder)
    assert curves_for(again) == json.loads((run.path / "curves" / "curves.json").read_text()) == answer


def test_study_of_another_scenario_than_the_run_is_refused(run: RunFolder, tmp_path: Path) -> None:
    other = RunFolder(tmp_path, run.summary | {"scenario_hash": "0" * 64})
    (tmp_path / "scenario.resolved.yaml").write_text(run.resolved)
    with pytest.raises(InputError, match="isn't the scenario that this run is of"):
        curves_for(other, points=2, jobs=1)
    assert not (tmp_path / "curves").exists()


def test_study_of_a_run_whose_trace_is_gone_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "requests.jsonl").write_text('{"arrival_s": 0, "prompt_tokens": 100, "output_tokens": 20}\n' * 9)
    run = simulated(TRACE, tmp_path / "s")
    (tmp_path / "s" / "requests.jsonl").unlink()
    with pytest.raises(InputError, match=r"requests\.jsonl"):
        curves_for(run, points=2, jobs=1)
    assert not (run.path / "curves").exists()


def test_study_of_static_batches_says_why_there_is_no_curve_and_leaves_nothing(tmp_path: Path) -> None:
    run = simulated(BATCHES.read_text(), tmp_path)
    with pytest.raises(InputError, match="static batches"):
        curves_for(run, points=2, jobs=1)
    assert not (run.path / "curves").exists()


def test_seeds_of_a_setting_are_one_where_one_is_asked_for_and_else_those_of_the_scenario() -> None:
    text = SPARSE + "run: {replications: 5}\n"
    assert read_setting(Written(text, "s.yaml"), 2, 1).seeds == (0,)
    assert read_setting(Written(text, "s.yaml"), 2).seeds == (0, 1, 2, 3, 4)


def test_sections_are_one_a_curve_each_with_its_finding_as_title(
    answer: Mapping[str, Any], shown: list[Section]
) -> None:
    assert [section.key for section in shown] == ["curves", "curve-speedup", "curve-concurrency", "curve-lambda"]
    for section in shown[1:]:
        name = section.key.removeprefix("curve-")
        first = next(block for block in section.blocks if isinstance(block, Figure))
        assert first.finding == answer["curves"][name]["title"]


def test_sections_say_everything_that_the_answer_says(answer: Mapping[str, Any], shown: list[Section]) -> None:
    told = words(shown)
    for text in answer["about"]:
        assert text in told
    for curve in answer["curves"].values():
        for key in ("about", "reads", "parts", "warnings"):
            assert all(text in told for text in curve[key])
    assert answer["scenario_hash"] in told


def test_curve_left_out_is_named_with_its_reason(answer: Mapping[str, Any], shown: list[Section]) -> None:
    notes = [note.text for note in blocks(shown[:1], Note)]
    assert notes == [f"No curve of T_avg over p_hit: {answer['left_out']['t_avg']}."]


def test_tables_have_every_point_exactly(answer: Mapping[str, Any], shown: list[Section]) -> None:
    rows = points("concurrency", answer["curves"]["concurrency"])
    found = table(shown, "curve-concurrency-points")
    at = found.heads.index("tokens/s")
    assert [row[at].exact for row in found.rows] == [row["output_tokens_per_s"] for row in rows]
    assert len(rows) == 2


def test_figures_have_the_rows_of_the_answer_exactly_and_draw(answer: Mapping[str, Any], shown: list[Section]) -> None:
    figures = blocks(shown, Figure)
    assert len({figure.name for figure in figures}) == len(figures)
    hits = next(figure for figure in figures if figure.name == "curve-lambda-hits")
    at = hits.data.heads.index("hit rate")
    rows = [row for row in answer["curves"]["lambda"]["rows"] if row["series"] != "closed form"]
    assert [row[at] for row in hits.data.rows] == [row["hit_rate"] for row in rows]
    for figure in figures:
        assert figure.alt.endswith(".") and len(figure.alt) > 100 and not figure.finding.endswith(".")
        assert drawn(figure).count("<svg") == 1


def test_panel_of_what_a_step_can_hide_is_there_only_where_that_is_little(answer: Mapping[str, Any]) -> None:
    little = copy.deepcopy(dict(answer))
    little["curves"]["speedup"]["marks"]["beta_feasible"] = 0.05
    names = {figure.name for figure in blocks(sections(little), Figure)}
    assert "curve-speedup-near" in names
    whole = answer["curves"]["speedup"]["marks"]["beta_feasible"] >= 0.3
    assert ("curve-speedup-near" not in {figure.name for figure in blocks(sections(answer), Figure)}) == whole


def test_t_avg_has_its_step_and_its_access_with_the_closed_form_at_both_ends() -> None:
    curve = t_avg_curve()
    shown = sections(answer_of({"t_avg": curve}))
    step, access = blocks(shown, Figure)
    assert "from 5.00 times at 0.0 % to 1.00 times at 100.0 %" in step.alt
    assert access.finding == (
        "A miss takes 10.0 times as long as a hit (1.00 µs and 100 ns): at 90 % hits a read takes 190 ns on average"
    )
    assert "Simulated, what the GPU waits for it: 500 ns at 50.0 %." in access.alt
    assert all("<svg" in drawn(figure) for figure in (step, access))


def test_t_avg_of_a_machine_whose_hits_take_no_time_has_no_ratio() -> None:
    curve = t_avg_curve()
    curve["marks"] |= {"t_vram_s": 0.0, "simulated_on_demand": None, "simulated_prefetch": None}
    access = blocks(sections(answer_of({"t_avg": curve})), Figure)[1]
    assert access.finding == "A miss takes 1.00 µs; at 90 % hits a read takes 190 ns on average"


def test_warning_of_a_curve_stands_in_plain_sight(answer: Mapping[str, Any]) -> None:
    cold = copy.deepcopy(dict(answer))
    cold["curves"]["lambda"]["warnings"] = ["DRAM filled 0.26 times."]
    opening = sections(cold)[0]
    assert Note("warning", "Hit rate over λ: DRAM filled 0.26 times.") in opening.blocks
    assert not any(isinstance(block, Details) for block in opening.blocks)


def test_hostile_names_stay_data() -> None:
    hostile = "<script>$x$</script>\n\x07"
    found = answer_of({}) | {"left_out": {hostile: hostile}, "about": [hostile]}
    assert f"No curve of {hostile}: {hostile}." in words(sections(found))


def test_folder_of_curves_that_were_drawn_before_is_not_left_with_their_pictures(
    run: RunFolder, answer: Mapping[str, Any], tmp_path: Path
) -> None:
    other = replace(run, path=tmp_path)
    (tmp_path / "scenario.resolved.yaml").write_text(run.resolved)
    place = tmp_path / "curves"
    place.mkdir()
    (place / "runs.sqlite").write_bytes((run.path / "curves" / "runs.sqlite").read_bytes())
    (place / "lambda.png").write_bytes(b"of another scenario")
    (place / "curves.json").write_text(json.dumps(dict(answer) | {"scenario_hash": "0" * 64}))
    assert curves_for(other, points=2, jobs=1) == answer
    assert sorted(entry.name for entry in place.iterdir() if ".sqlite" not in entry.name) == ["curves.json"]


def answer_of(curves: Mapping[str, Any]) -> dict[str, Any]:
    return {"schema_version": 1, "simkv_version": "0", "scenario": "s", "scenario_hash": "h", "seeds": [0],
            "about": [], "curves": dict(curves), "left_out": {}}  # fmt: skip


def t_avg_curve() -> dict[str, Any]:
    """Return T_avg of a machine that anyone can check: T_vram 100 ns, T_mem 1 us, a transfer four times computing."""
    lines = [
        {"series": "closed form", "p_hit": p, "closed_t_avg_s": p * 1e-7 + (1 - p) * 1e-6,
         "step_on_demand": 1 + 4 * (1 - p), "step_overlapped": max(1.0, 4 * (1 - p))}
        for p in (0.0, 0.5, 1.0)
    ]  # fmt: skip
    point = {"residency": 0.5, "p_hit": 0.5, "p_hit_low": 0.5, "p_hit_high": 0.5, "t_avg_s": 5.5e-7,
             "t_avg_s_low": 5.4e-7, "t_avg_s_high": 5.6e-7, "queued_s": 0.0, "exposed_s": 5e-7, "step_ratio": 3.0,
             "step_ratio_low": 2.9, "step_ratio_high": 3.1, "t_step_s": 0.03, "t_compute_s": 0.01,
             "closed_t_avg_s": 5.5e-7, "step_on_demand": 3.0, "step_overlapped": 2.0}  # fmt: skip
    marks = {"p_hit": 0.9, "t_vram_s": 1e-7, "t_mem_s": 1e-6, "t_avg_s": 1.9e-7, "simulated_on_demand": 1.4,
             "closed_on_demand": 1.4, "simulated_prefetch": 1.0, "closed_overlapped": 1.0,
             "prefetch": "layer"}  # fmt: skip
    rows = [*lines, {"series": "on demand", **point}, {"series": "prefetch", **point, "exposed_s": None}]
    return {"title": "90 % hits are felt", "about": ["a"], "reads": ["r"], "parts": ["p"], "warnings": [],
            "marks": marks, "rows": rows}  # fmt: skip
