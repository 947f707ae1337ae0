"""A plan from its scenario to its answer, its files and what the command line prints."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.cli import app

SMALL = """
name: small-plan
question: Which of two cards?
model: llama-3.1-8b
hardware: l4
engine: {preset: vllm, max_model_len: 4096, max_num_seqs: 32}
workload:
  kind: sessions
  requests: 400
  arrival: {process: poisson, rate: 1 req/s}
  turns: {dist: geometric, mean: 3, max: 8}
  think_time: {dist: exponential, mean: 5s}
  prompt_tokens: {dist: lognormal, median: 200, sigma: 0.5, max: 1000}
  output_tokens: {dist: lognormal, median: 60, sigma: 0.4, max: 200}
  max_context: 4000
tiers: {dram: {capacity: 20GiB}}
slo: {ttft_p95: 2s, tpot_p95: 90ms}
plan:
  objective: cost
  vary: {gpu: [l4, a10], dram: [0GiB, 20GiB]}
  prices:
    l4: {hour: 0.8, currency: USD, source: an offer, date: '2026-10-01'}
    a10: {hour: 1.1, currency: USD, source: an offer, date: '2026-10-01'}
  confirm: 2
"""


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Plan the small scenario once; its folder, and what was printed."""
    folder = tmp_path_factory.mktemp("plan")
    (folder / "s.yaml").write_text(SMALL)
    out = folder / "out"
    result = CliRunner().invoke(app, ["plan", str(folder / "s.yaml"), "--emit", "vllm,vllm", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out, result.stdout


@pytest.fixture(scope="module")
def answer(planned: tuple[Path, str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((planned[0] / "plan.json").read_text())
    return found


def test_plan_answer_has_winner_front_sensitivity_verdict_and_flags(answer: dict[str, Any]) -> None:
    assert answer["winner"]["name"] in {row["name"] for row in answer["candidates"]}
    assert len(answer["candidates"]) + len(answer["pruned"]) + len(answer["left_out"]) == 4
    assert {row["name"] for row in answer["pareto"]} <= {row["name"] for row in answer["candidates"]}
    assert any(one["load_change"] is not None for one in answer["sensitivity"].values())
    assert answer["verdict"]["because"] and answer["why"]
    flags = answer["engine_flags"]["vllm"]
    dram = answer["winner"]["values"]["dram"]
    assert ("--kv-offloading-size" in flags) == (dram != "0GiB")


def test_plan_winner_costs_what_its_units_cost_and_no_confirmed_one_costs_less(answer: dict[str, Any]) -> None:
    winner = answer["winner"]
    assert winner["cost_per_hour"] == pytest.approx(winner["units"] * winner["price"]["hour"])
    rate = answer["load"]["output_tokens_per_s"]
    assert winner["cost_per_million_output_tokens"] == pytest.approx(winner["cost_per_hour"] / (rate * 3600) * 1e6)
    assert all(row["cost_per_hour"] >= winner["cost_per_hour"] for row in answer["runners_up"])


def test_plan_winner_keeps_its_headroom_and_holds_the_slo(answer: dict[str, Any]) -> None:
    winner = answer["winner"]
    assert winner["units"] * winner["carries"]["load"] * (1 - answer["headroom"]) >= 1 - 1e-9
    for key, one in winner["confirmed"]["targets"].items():
        assert one["mean"] <= one["limit"] == answer["slo"]["targets"][key]


def test_plan_files_are_there_and_agree(planned: tuple[Path, str], answer: dict[str, Any]) -> None:
    folder, _ = planned
    for name in ("plan.sqlite", "candidates.csv", "vllm.sh", "pareto.png", "pareto.svg", "sensitivity.png"):
        assert (folder / name).stat().st_size > 0, name
    with (folder / "candidates.csv").open() as file:
        rows = list(csv.DictReader(file))
    states = {row["name"]: row["state"] for row in rows}
    assert states[answer["winner"]["name"]] == "confirmed"
    refuted = {row["name"] for row in answer["candidates"] if row["confirmed"] and not row["confirmed"]["holds"]}
    assert {name for name, state in states.items() if state == "refuted"} == refuted
    assert len(rows) == 4


def test_plan_text_says_what_the_answer_says(planned: tuple[Path, str], answer: dict[str, Any]) -> None:
    text = re.sub(r"\s+", " ", planned[1])
    winner = answer["winner"]
    assert f"Take {winner['units']} x {winner['name']}" in text
    assert f"{winner['cost_per_hour']:.2f} USD an hour" in text
    assert "Verdict:" in text and "vllm serve" in text and text.count("args=(") == 1


def test_plan_again_simulates_nothing_anew(planned: tuple[Path, str], answer: dict[str, Any]) -> None:
    from simkv.jobs.store import Store

    folder, _ = planned
    with Store.read(folder / "plan.sqlite") as store:
        before = {key: store.attempts(key) for key in store.finished()}
    again = CliRunner().invoke(app, ["plan", str(folder.parent / "s.yaml"), "--json", "--out", str(folder)])
    assert json.loads(again.stdout) == answer | {"engine_flags": json.loads(again.stdout)["engine_flags"]}
    with Store.read(folder / "plan.sqlite") as store:
        assert {key: store.attempts(key) for key in store.finished()} == before


def test_plan_nothing_holds_exits_3_and_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SMALL.replace("tpot_p95: 90ms", "tpot_p95: 1ms"))
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "s.yaml"), "--json", "--out", str(tmp_path / "out")])
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["winner"] is None and "nearest is" in found["nearest"]
    assert "nearest is" in result.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("plan:\n", "other:\n"), "other"),
        (("vary: {gpu: [l4, a10], dram: [0GiB, 20GiB]}", "vary: {gpu: [l4, no-card]}"), "no-card"),
        (("vary: {gpu: [l4, a10], dram: [0GiB, 20GiB]}", "vary: {dram: [0, 20]}"), "no unit"),
        (("vary: {gpu: [l4, a10], dram: [0GiB, 20GiB]}", "vary: {rate: [1 req/s, 2 req/s]}"), "what is asked"),
        (("objective: cost", "objective: speed"), "objective"),
        (("slo: {ttft_p95: 2s, tpot_p95: 90ms}\n", ""), "plan.slo"),
        (("currency: USD, source: an offer, date: '2026-10-01'}\n  confirm", "currency: EUR}\n  confirm"), "EUR"),
    ],
)
def test_plan_that_makes_no_sense_is_refused_with_place_and_mend(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    (tmp_path / "s.yaml").write_text(SMALL.replace(*change))
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2 and said in result.stderr and ";" in result.stderr
    assert not (tmp_path / "out" / "plan.json").exists()


def test_plan_unknown_engine_lists_those_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SMALL)
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "s.yaml"), "--emit", "vlm", "--out", str(tmp_path / "o")])
    assert result.exit_code == 2
    assert "did you mean vllm?" in result.stderr
    assert not (tmp_path / "o").exists()


def test_plan_into_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SMALL)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_plan_of_targets_of_classes_alone_shows_and_draws_them(tmp_path: Path) -> None:
    text = SMALL.replace("slo: {ttft_p95: 2s, tpot_p95: 90ms}\n", "classes: {chat: {}, batch: {}}\n")
    text = text.replace("  max_context: 4000\n", "  max_context: 4000\n  mix: {chat: 0.5, batch: 0.5}\n")
    text = text.replace("gpu: [l4, a10], dram: [0GiB, 20GiB]", "gpu: [l4]")
    text += "  classes: {chat: {ttft_p95: 2s}, batch: {ttft_p95: 20s}}\n"
    (tmp_path / "s.yaml").write_text(text)
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert found["slo"]["limits"] == {"chat.ttft_p95": 2.0, "batch.ttft_p95": 20.0}
    assert list(found["winner"]["latency"]) == ["chat.ttft_p95", "batch.ttft_p95"]
    assert re.search(r"candidate .* chat\.ttft_p95 +batch\.ttft_p95", result.stdout)


def test_plan_for_the_most_does_not_speak_of_headroom_used_up(planned: tuple[Path, str]) -> None:
    from simkv.planner.words import held_to

    assert "and the headroom used up" in planned[1]
    assert held_to({"objective": "goodput"}) == held_to({"objective": "users"}) == "several seeds"


def test_plan_report_has_every_candidate_and_the_answer_that_it_is_tested_with_looks_like_a_real_one(
    planned: tuple[Path, str], answer: dict[str, Any]
) -> None:
    from simkv.report.folders import PlanFolder, read_folder
    from simkv.report.plan import sections
    from tests.report_blocks import table
    from tests.test_report_plan import REAL

    folder = read_folder(planned[0])
    assert isinstance(folder, PlanFolder)
    rows = table(sections(folder), "candidates").rows
    assert {row[0].text for row in rows} == {row["name"] for row in answer["candidates"]}
    assert (planned[0] / "scenario.yaml").read_text() == SMALL
    assert _shape(json.loads(REAL.read_text()) | {"observed": None}) == _shape(answer)


def _shape(value: Any, depth: int = 3) -> Any:
    """Return the keys of an answer; what hangs on the scenario isn't looked into."""
    if not isinstance(value, dict) or not depth:
        return None
    return {key: _shape(one, depth - 1) for key, one in value.items() if key not in ("engine_flags", "figures")}
