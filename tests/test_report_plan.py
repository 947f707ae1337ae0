"""What reports say of plans: numbers are the answer's, every candidate is there, whatever is null or infeasible."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from simkv.planner.answer import PlanResult, plan
from simkv.planner.export import write
from simkv.report.document import Code, Figure, Note, Section, Text
from simkv.report.folders import PlanFolder, read_folder
from simkv.report.plan import sections
from tests.planner_factory import SMALL, here, planned
from tests.report_blocks import blocks, drawn, table, words

REAL = Path(__file__).parent / "plans" / "observed.json"
"""What ``simkv plan --observed`` answered to the small plan of ``test_planner_answer.py``."""
HOSTILE = "<script>alert('x')</script> $\\frac{1}{0}$ \u202e" + "n" * 300


@cache
def _real() -> str:
    return REAL.read_text("utf-8")


@pytest.fixture
def answer() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_real())
    return found


def shown(answer: Mapping[str, Any], path: Path = Path("somewhere")) -> list[Section]:
    return sections(PlanFolder(path, answer))


def section(found: Sequence[Section], key: str) -> Section:
    return next(one for one in found if one.key == key)


def figure(found: Sequence[Section], name: str) -> Figure:
    return next(one for one in blocks(found, Figure) if one.name == name)


def test_answer_is_the_winner_with_units_costs_and_intervals(answer: dict[str, Any]) -> None:
    found, winner = shown(answer), answer["winner"]
    lead = next(text.text for text in blocks(found, Text) if text.lead)
    assert winner["gpus"] == 1
    assert lead == (
        f"Take {winner['units']} x {winner['name']} (1 GPU): {winner['cost_per_hour']:.2f} USD an hour, "
        f"{winner['cost_per_million_output_tokens']:.2f} USD per million output tokens."
    )
    made = winner["confirmed"]["figures"]["output_tokens_per_s"]
    hour = winner["cost_per_hour"] / (1 if winner["confirmed"]["whole"] else winner["units"])
    mean, dear, cheap = (hour / 3600 / rate * 1e6 for rate in (made["mean"], *made["ci95"]))
    assert f"cost {mean:.2f} USD (95 %: {cheap:.2f} to {dear:.2f})" in words(found)


def test_targets_have_limit_interval_and_what_is_left_exactly(answer: dict[str, Any]) -> None:
    found = table(shown(answer), "targets")
    targets = answer["winner"]["confirmed"]["targets"]
    strained = answer["winner"]["confirmed"]["without_headroom"]
    assert len(found.rows) == len(targets) == 2
    for row, (key, one) in zip(found.rows, targets.items(), strict=True):
        assert [cell.exact for cell in row[1:6]] == [
            one["limit"], one["mean"], *one["ci95"], 1 - one["mean"] / one["limit"]
        ]  # fmt: skip
        assert row[6].exact == strained[key]["mean"]


def test_every_candidate_is_in_the_table_with_its_figures(answer: dict[str, Any]) -> None:
    found = table(shown(answer), "candidates")
    by_name = {row["name"]: row for row in answer["candidates"]}
    assert {row[0].text for row in found.rows} == set(by_name)
    assert found.rows[0][0].text == answer["winner"]["name"] and found.rows[0][1].text.startswith("winner")
    heads = list(found.heads)
    for row in found.rows:
        one = by_name[row[0].text]
        assert row[heads.index("carries")].exact == one["carries"]["load"]
        assert row[heads.index("USD/h")].exact == one["cost_per_hour"]
        assert row[heads.index("TTFT p95")].exact == one["latency"]["ttft_p95"]


def test_many_candidates_are_all_there_the_best_first(answer: dict[str, Any]) -> None:
    one = answer["candidates"][-1]
    answer["candidates"] += [one | {"name": f"more {k}"} for k in range(40)]
    names = [row[0].text for row in table(shown(answer), "candidates").rows]
    assert len(names) == len(set(names)) == len(answer["candidates"])
    assert names[0] == answer["winner"]["name"] and names[-1] == "more 39"


def test_refuted_candidate_says_what_it_misses(answer: dict[str, Any]) -> None:
    one = answer["candidates"][-1]
    missed = {"mean": 0.1, "ci95": [0.09, 0.11], "limit": 0.09}
    one["confirmed"] = answer["winner"]["confirmed"] | {
        "holds": False, "targets": {}, "without_headroom": {"tpot_p95": missed}
    }  # fmt: skip
    row = next(row for row in table(shown(answer), "candidates").rows if row[0].text == one["name"])
    state = row[1]
    assert state.text.startswith("refuted: TPOT p95 100 ms ± 10 % of 90.0 ms with the headroom used up")
    assert state.tone == "bad"


def test_what_was_not_simulated_stands_with_its_reason(answer: dict[str, Any]) -> None:
    reason = "even on an idle engine tpot_p95 is at least 28.0 ms"
    answer["pruned"] = [{"name": f"slow {k}", "values": {}, "at_most": 0.25, "reason": reason} for k in range(3)]
    answer["left_out"] = [{"name": HOSTILE, "values": {}, "reason": "does not fit"}]
    found = shown(answer)
    rows = table(found, "not-simulated").rows
    assert [(row[0].text, row[1].text, row[3].text) for row in rows] == [
        *((f"slow {k}", "pruned by a bound", reason) for k in range(3)), (HOSTILE, "left out", "does not fit"),
    ]  # fmt: skip
    assert rows[0][2].exact == 0.25
    assert f"slow 0 and 2 more: {reason}." in words(found)


def test_figures_draw_and_have_the_exact_figures(answer: dict[str, Any]) -> None:
    found = shown(answer)
    assert [one.name for one in blocks(found, Figure)] == ["plan-pareto", "plan-sensitivity", "plan-dram-knee"]
    for one in blocks(found, Figure):
        assert one.finding and one.alt.endswith(".") and drawn(one).count("<svg") == 1
    costs = {row[0]: row[3] for row in figure(found, "plan-pareto").data.rows}
    assert costs == {row["name"]: row["cost_per_million_output_tokens"] for row in answer["candidates"]}
    on = {row[0] for row in figure(found, "plan-pareto").data.rows if row[-1]}
    assert on == set(answer["pareto_names"])
    changes = [row[1] for row in figure(found, "plan-sensitivity").data.rows]
    measured = [one["load_change"] for one in answer["sensitivity"].values() if one["load_change"] is not None]
    assert changes == sorted(measured, reverse=True)
    sizes = [row[:2] for row in figure(found, "plan-dram-knee").data.rows]
    assert sizes == [[row["dram_bytes"], row["load"]] for row in answer["verdict"]["dram_knee"]["sizes"]]


def test_sensitivity_says_what_has_no_figure_and_why(answer: dict[str, Any]) -> None:
    absent = {name: one["because"] for name, one in answer["sensitivity"].items() if one["load_change"] is None}
    assert absent
    told = words([section(shown(answer), "sensitivity")])
    for because in absent.values():
        assert because in told
    assert len(table(shown(answer), "sensitivity").rows) == len(answer["sensitivity"])


def test_verdict_stands_in_the_answer_and_with_its_figures(answer: dict[str, Any]) -> None:
    found, verdict = shown(answer), answer["verdict"]
    tone = "good" if verdict["offload_helps"] else "plain"
    assert Note(tone, verdict["because"], "offload") in found[0].blocks  # type: ignore[arg-type]
    told = words([section(found, "offload")])
    for key in ("break_even", "dram_knee", "ssd", "wear"):
        if verdict[key] is not None:
            assert verdict[key]["because"] in told
    loads = [row[1].exact for row in table(found, "offload").rows]
    assert loads == [verdict["with"]["load"], verdict["without"]["load"]]


def test_fit_stands_with_every_residual(answer: dict[str, Any]) -> None:
    found = shown(answer)
    rows = table(found, "residuals").rows
    expected = [(one["figure"], one["observed"], one["after"]) for one in answer["observed"]["residuals"]]
    assert [(row[0].text, row[1].exact, row[4].exact) for row in rows] == expected
    for note in answer["observed"]["notes"]:
        assert note in words(found)


def test_flags_are_code_with_what_they_do_not_say(answer: dict[str, Any], tmp_path: Path) -> None:
    answer["engine_missing"]["vllm"] = ["half of it"]
    bare = section(shown(answer), "flags").blocks
    assert bare[0] == Note("warning", "Flags of vllm don't say: half of it", "not_said")
    assert isinstance(bare[1], Code) and bare[1].text.startswith(answer["engine_flags"]["vllm"][0])
    (tmp_path / "vllm.sh").write_text("vllm serve --all-of-it\n")
    (code,) = blocks([section(shown(answer, tmp_path), "flags")], Code)
    assert code.text == "vllm serve --all-of-it\n"


def test_command_is_that_of_the_scenario_in_the_folder(answer: dict[str, Any], tmp_path: Path) -> None:
    assert not blocks([section(shown(answer, tmp_path), "obtained")], Code)
    (tmp_path / "scenario.yaml").write_text("name: small-plan\n# --set plan.confirm=3\n")
    (code,) = blocks([section(shown(answer, tmp_path), "obtained")], Code)
    assert code.text == (
        f"simkv plan {tmp_path}/scenario.yaml --set plan.confirm=3 --observed {answer['observed']['file']} "
        f"--out {tmp_path}"
    )


def test_warnings_of_the_winner_are_in_plain_sight(answer: dict[str, Any]) -> None:
    answer["winner"]["warnings"] = [{"code": "cold_cache", "message": "SSD filled 0.64 times."}]
    answer["winner"]["confirmed"]["surely"] = False
    codes = [block.code for block in shown(answer)[0].blocks if isinstance(block, Note) and block.tone == "warning"]
    assert codes == ["unsure", "cold_cache"]


def test_plan_without_prices_verdict_or_fit_is_told_without_them(answer: dict[str, Any]) -> None:
    bare = nulled(answer)
    found = shown(bare)
    assert [one.key for one in found] == ["answer", "question", "candidates", "sensitivity", "flags", "obtained"]
    lead = next(text.text for text in blocks(found, Text) if text.lead)
    assert lead == f"Take {answer['winner']['units']} x {answer['winner']['name']} (1 GPU)."
    assert "None" not in words(found) and "nan" not in words(found)
    assert not any(one.name == "plan-pareto" for one in blocks(found, Figure))


def test_verdict_that_cannot_be_given_is_told(answer: dict[str, Any]) -> None:
    verdict = answer["verdict"]
    verdict |= {"offload_helps": None, "because": "It can't be said: why.", "with": None, "without": None}
    verdict |= {"dram_knee": {"bytes": None, "by": None, "sizes": [], "because": "No sizes to compare: x."}}
    verdict |= {"wear": None, "break_even": verdict["break_even"] | {"because": ""}}
    verdict["break_even"]["reuse"] |= {"share": None, "now": None}
    found = shown(answer)
    assert Note("warning", "It can't be said: why.", "offload") in found[0].blocks
    told = words([section(found, "offload")])
    assert "No sizes to compare: x." in told and "None" not in told


def test_knee_by_waiting_draws_times(answer: dict[str, Any]) -> None:
    answer["verdict"]["dram_knee"]["by"] = "ttft_mean"
    answer["verdict"]["dram_knee"]["sizes"][1]["ttft_mean"] = None
    knee = figure(shown(answer), "plan-dram-knee")
    assert "Mean TTFT at the planned load over the DRAM" in knee.alt and "<svg" in drawn(knee)


def test_hostile_names_stay_data(answer: dict[str, Any]) -> None:
    text = json.dumps(answer).replace(json.dumps(answer["winner"]["name"])[1:-1], json.dumps(HOSTILE)[1:-1])
    text = text.replace('"l4"', json.dumps(HOSTILE))
    hostile = json.loads(text) | {"question": HOSTILE}
    found = shown(hostile)
    assert found[0].blocks[0] == Text(f"Take {hostile['winner']['units']} x {HOSTILE} (1 GPU): "
                                      f"{hostile['winner']['cost_per_hour']:.2f} USD an hour, "
                                      f"{hostile['winner']['cost_per_million_output_tokens']:.2f} USD per million "
                                      "output tokens.", lead=True)  # fmt: skip
    assert all("<svg" in drawn(one) for one in blocks(found, Figure))
    assert "<script>" not in "".join(drawn(one) for one in blocks(found, Figure))


@cache
def infeasible() -> PlanResult:
    """Plan for a target that no card can hold."""
    slo = "{objective: gpus, vary: {dram: [0GiB, 8GiB]}, confirm: 2, slo: {tpot_p95: 1us}}"
    return plan(planned(SMALL, slo), workers=here())


def test_infeasible_plan_says_what_is_nearest_and_why_nothing_was_simulated(tmp_path: Path) -> None:
    result = infeasible()
    write(result, tmp_path)
    folder = read_folder(tmp_path)
    assert isinstance(folder, PlanFolder)
    found = sections(folder)
    assert [one.key for one in found] == ["answer", "question", "candidates", "obtained"]
    (note,) = [note for note in blocks(found[:1], Note) if note.code == "infeasible"]
    nearest = result.answer["nearest"]
    assert note.tone == "bad" and note.text == f"{nearest[0].upper()}{nearest[1:]}."
    assert len(table(found, "not-simulated").rows) == 2
    assert "0 simulated, 2 pruned by a bound" in words(found)


def test_infeasible_plan_with_candidates_still_shows_them(answer: dict[str, Any]) -> None:
    answer |= {"winner": None, "runners_up": [], "nearest": None, "why": [], "sensitivity": {}, "verdict": None,
               "engine_flags": {}, "engine_missing": {}}  # fmt: skip
    found = shown(answer)
    assert "No candidate is left to choose from." in words(found[:1])
    assert len(table(found, "candidates").rows) == len(answer["candidates"])
    assert figure(found, "plan-pareto").finding.startswith("Nothing holds the SLO; ")
    assert "<svg" in drawn(figure(found, "plan-pareto"))


def nulled(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer with null wherever a plan may have it."""
    bare = copy.deepcopy(answer)
    for row in (*bare["candidates"], bare["winner"], *bare["runners_up"]):
        row |= {"price": None, "cost_per_hour": None, "cost_per_million_output_tokens": None, "hit_rate": None}
        row["carries"] |= dict.fromkeys(("over", "requests_per_s", "binds", "at_most", "bottleneck"))
        row["latency"] = dict.fromkeys(row["latency"])
    for one in bare["winner"]["confirmed"]["targets"].values():
        one["ci95"] = None
    bare["winner"]["confirmed"] |= {"without_headroom": {}, "figures": {}}
    bare["sensitivity"] = {name: dict.fromkeys(one) | {"because": "Left out: it is unlimited already."}
                           for name, one in bare["sensitivity"].items()}  # fmt: skip
    bare["load"] = dict.fromkeys(bare["load"]) | {"users": 12}
    return bare | {"question": None, "currency": None, "verdict": None, "observed": None, "budget": None}
