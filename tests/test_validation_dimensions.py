"""Expected figures beside what their metric measures: units of something else, signs, shares, ratios."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError, Problem
from simkv.results.metrics import METRICS
from simkv.validation.asks import hits, step
from simkv.validation.dimensions import DIMENSIONS, OF_UNIT, RATIO, SHARE, TIME, dimension_of, wrong
from simkv.validation.expected import UNITS, expected_figure
from simkv.validation.question import Question
from simkv.validation.read import own_cases, read_cases
from simkv.validation.schema import Observation
from tests.validation_factory import case, case_file, seen, studied


def problems(folder: Path, *cases: dict[str, Any]) -> list[Problem]:
    with pytest.raises(InputError) as raised:
        read_cases(str(case_file(folder, *cases)))
    return raised.value.problems


def misfit(metric: str, expected: object, relative_to: dict[str, Any] | None = None, ask: str = "scenario") -> str:
    given = {"metric": metric, "expected": expected, "relative_to": relative_to}
    found = wrong(ask, Observation.model_validate(given))
    return "" if found is None else f"{found.what}; {found.mend}"


def test_every_unit_is_of_one_dimension() -> None:
    assert set(OF_UNIT) == set(UNITS) - {""}
    assert sum(len(one.units) for one in DIMENSIONS) == len(OF_UNIT)


@pytest.mark.parametrize("dimension", DIMENSIONS, ids=lambda one: one.noun)
def test_example_of_a_dimension_is_one(dimension: Any) -> None:
    assert expected_figure(dimension.example).unit in ("", *dimension.units)


@pytest.mark.parametrize(
    ("metric", "expected", "said"),
    [
        ("ttft_s.mean", "20 GB/s", 'is a rate of bytes, and ttft_s.mean is a time; write it like "20 ms"'),
        ("output_tokens_per_s", "20 ms", "is a time, and output_tokens_per_s is a rate of tokens"),
        ("requests_per_s", "20 tokens/s", "is a rate of tokens, and requests_per_s is a rate of requests"),
        ("ttft_s.p99", "12 x", "is a ratio, and ttft_s.p99 is a time"),
        ("h2d.bytes_per_busy_s", "12 GiB", "is a size, and h2d.bytes_per_busy_s is a rate of bytes"),
        ("prompt_tokens", "12 blocks", "is a number of blocks, and prompt_tokens is a number of tokens"),
        ("utilization.gpu", "12 ms", "is a time, and utilization.gpu is a share"),
        ("hit_rate.dram", 85, 'is no share; write 0.85 or "85 %"'),
        ("turn.1.hit_rate", "185 %", "is no share; a share is from 0 to 1"),
        ("ttft_s.mean", -1, "is negative, and ttft_s.mean is a time"),
        ("output_tokens_per_s", "-3 tok/s", "is negative"),
        ("slo_attainment.overall", "9 ms", "is a time"),
        ("speedup.vs_no_offload", "9 ms", "is a time, and speedup.vs_no_offload is a ratio"),
    ],
)
def test_figure_of_something_else_is_refused(metric: str, expected: object, said: str) -> None:
    assert said in misfit(metric, expected)


@pytest.mark.parametrize(
    ("expected", "relative_to", "said"),
    [
        ("20 ms", {}, 'is a time, and relative_to makes it a ratio; write it like "1.5 x"'),
        ("-6 pp", {"change": True}, 'is in percentage points, and relative_to makes it a ratio; write it like "-6 %"'),
        ("-6 %", {}, "add change: true"),
        (-6, {"change": True}, 'is a change to less than nothing; write it like "-6 %" or -0.06'),
    ],
)
def test_relative_figure_that_is_no_ratio_is_refused(expected: object, relative_to: dict[str, Any], said: str) -> None:
    assert said in misfit("ttft_s.mean", expected, relative_to)


@pytest.mark.parametrize(
    ("metric", "expected", "relative_to"),
    [
        ("ttft_s.mean", 0.02, None),
        ("ttft_s.mean", "0.02", None),
        ("hit_rate.dram", 0.85, None),
        ("hit_rate.dram", "85 %", None),
        ("hit_rate.dram", "85 pp", None),
        ("utilization.gpu", 1.02, None),
        ("speedup.vs_no_offload", "2.1 x", None),
        ("baselines.no_offload.speedup", 2.1, None),
        ("baselines.no_offload.difference.ttft_s.mean", "-20 ms", None),
        ("baselines.no_offload.difference.ttft_s.relative", "-34 %", None),
        ("closed_form.t_avg_s", "2 us", None),
        ("cost_per_million_output_tokens", 3.5, None),
        ("cost.per_hour", 12, None),
        ("requests.finished", "60 requests", None),
        ("classes.a.b.ttft_s.p90", "6 s", None),
        ("slo_attainment.classes.ttft_s", 0.9, None),
        ("kv_usage.vram.max", "99 %", None),
        ("preemptions", 12, None),
        ("concurrency.mean", 12.5, None),
        ("ttft_s.mean", "9.5 x", {}),
        ("ttft_s.mean", 0.35, {}),
        ("ttft_s.mean", "35 %", {}),
        ("ttft_s.mean", "-6 %", {"change": True}),
        ("ttft_s.mean", "250 %", {"change": True}),
        ("hit_rate.dram", "3 x", {}),
        ("ttft_s.mean", "3 x", {"metric": "e2e_s.mean"}),
        ("output_tokens", "500 tokens/s", {"metric": "makespan_s"}),
        ("itl_s.p50", "60 ms", {"metric": "output_tokens"}),
    ],
)  # fmt: skip
def test_figure_that_is_right_though_unusual_is_taken(metric: str, expected: object, relative_to: Any) -> None:
    assert misfit(metric, expected, relative_to) == ""


@pytest.mark.parametrize(
    ("ask", "metric", "expected"),
    [
        ("calc", "ways.0.gain_s", "-20 ms"),
        ("calc", "bytes_per_token", "128 KiB"),
        ("calc", "bytes_per_token", "4.5 MiB/token"),
        ("calc", "inputs.bytes", "3 us"),
        ("calc", "scores.0", 85),
        ("calc", "s_max_article", "5 x"),
        ("hits", "hits", 105710),
        ("queue", "wait_s_1", "2 s"),
        ("step", "seconds", "1.5 min"),
    ],
)
def test_figure_of_other_sections_is_taken(ask: str, metric: str, expected: object) -> None:
    assert misfit(metric, expected, ask=ask) == ""


@given(st.sampled_from(sorted(METRICS)), st.floats(0, 1))
def test_plain_share_or_small_number_is_right_for_every_metric(metric: str, number: float) -> None:
    assert misfit(f"{metric}.mean", number) == ""


def test_own_cases_measure_what_they_expect() -> None:
    wrongs = [wrong(read.case.ask, one) for read in own_cases() for one in read.case.observations]
    assert wrongs and not any(wrongs)


def test_dimension_is_that_of_the_last_part_that_tells() -> None:
    assert dimension_of("scenario", "classes.hit_rate.ttft_s.mean") is TIME
    assert dimension_of("scenario", "baselines.no_offload.hit_rate.miss") is SHARE
    assert dimension_of("scenario", "speedup.measured") is RATIO
    assert dimension_of("scenario", "cost_per_million_output_tokens") is None


# ---- in a file ----------------------------------------------------------------------------------


def test_wrong_figure_names_place_value_and_mend(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, case(observations=[seen(expected="20 GB/s")]))
    assert problem.path == "cases.0.observations.0.expected" and problem.line and problem.value == '"20 GB/s"'
    assert problem.mend == 'write it like "20 ms"'


def test_faults_of_all_kinds_are_told_together(tmp_path: Path) -> None:
    asked = [seen(expected="3 parsec"), seen(metric="hit_rate.dram", expected=85), seen(expected="3 tokens", label="b")]
    found = problems(
        tmp_path,
        case(observations=asked, kinds="x"),
        case(group="none"),
        case(id="last", observations=[seen(expected=0)]),
    )
    assert [one.path.removeprefix("cases.") for one in found] == [
        "0.observations.0.expected", "0.observations.1.expected", "0.observations.2.expected", "0.kinds", "1.group",
        "2.observations.0.expected",
    ]  # fmt: skip
    assert found[1].value == "85"


def test_case_with_nothing_right_in_it_is_told_once(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, {"id": "a", "group": "compute", "observations": [seen(expected="3 parsec")]})
    assert problem.path.endswith("expected")


@pytest.mark.parametrize(("metric", "mend"), [("turn.0.hit_rate", "hit_curves"), ("preemptions", "leave it out")])
def test_zero_says_where_it_can_be_judged(tmp_path: Path, metric: str, mend: str) -> None:
    [problem] = problems(tmp_path, case(observations=[seen(metric=metric, expected="0")]))
    assert "zero" in problem.what and mend in problem.mend


def test_zero_share_in_hit_curves_is_taken(tmp_path: Path) -> None:
    asked = case(group="hit_curves", observations=[seen(metric="turn.0.hit_rate", expected=0)])
    [read] = read_cases(str(case_file(tmp_path, asked)))
    assert read.case.observations[0].expected == 0


@pytest.mark.parametrize(("given", "share"), [("10 %", 0.1), (0.25, 0.25), (1, 1.0), ("0.05", 0.05), ("200 %", 2.0)])
def test_tolerance_is_a_share_or_in_percent(tmp_path: Path, given: object, share: float) -> None:
    [read] = read_cases(str(case_file(tmp_path, case(observations=[seen(tolerance=given)]))))
    assert read.case.observations[0].tolerance == pytest.approx(share)


@pytest.mark.parametrize(
    ("given", "mend"),
    [
        (10, 'write "10 %" or 0.1'),
        ("20 ms", '"10 %"'),
        ("wide", '"10 %"'),
        ("-5 %", "the least"),
        ("2000 %", "the most"),
    ],
)
def test_tolerance_that_is_none_says_how_to_write_it(tmp_path: Path, given: object, mend: str) -> None:
    [problem] = problems(tmp_path, case(observations=[seen(tolerance=given)]))
    assert problem.path == "cases.0.observations.0.tolerance" and mend in problem.mend


@pytest.mark.parametrize("unit", ["MB/tok", "PB/s", "Mtok/s", "tokens/h", "req/week", "m/s", "KB/token", "MFLOP/s"])
def test_unit_is_never_guessed_across_prefixes_or_times(unit: str) -> None:
    with pytest.raises(InputError) as raised:
        expected_figure(f"3 {unit}")
    assert "did you mean" not in raised.value.problems[0].mend


def test_misspelt_unit_has_a_guess() -> None:
    with pytest.raises(InputError, match="did you mean tokens/s"):
        expected_figure("3 tokns/s")


# ---- names, sections, files ---------------------------------------------------------------------


@pytest.mark.parametrize("below", ["set", "relative_to"])
def test_settings_that_begin_with_the_section_are_named(tmp_path: Path, below: str) -> None:
    settings: dict[str, Any] = {"scenario.workload.size": 4}
    asked = seen(set=settings) if below == "set" else seen(relative_to={"set": settings}, expected=2)
    [problem] = problems(tmp_path, case(observations=[asked]))
    assert problem.path.endswith("set.scenario.workload.size") and problem.path.startswith("cases.0.observations.0.")
    assert problem.mend == 'leave "scenario." out: workload.size'


def test_group_that_is_missing_has_all_groups(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, {key: value for key, value in case().items() if key != "group"})
    assert problem.mend.startswith("give one of formulas, queueing") and problem.mend.endswith("cross_check")


def test_id_that_is_none_says_what_it_may_have(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, case(id="two words"))
    assert "'+'" in problem.mend


def test_seeds_of_one_section_take_the_singular(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, case(scenario=None, step={}, seeds=3))
    assert problem.mend == "leave it out; scenario takes it"


@pytest.mark.parametrize(
    ("section", "group", "metric"),
    [
        ({"calc": {"form": "kv-size", "model": "gone.json", "tokens": 8}}, "formulas", "bytes"),
        ({"hits": {"trace": "gone.jsonl", "policy": "lru", "capacity_blocks": 4}}, "hit_curves", "hit_rate"),
        ({"step": {"model": "gone.json", "hardware": "t4", "work": {"decode": {"context_tokens": 9}}}}, "compute",
         "step_s"),
    ],
    ids=["calc", "hits", "step"],
)  # fmt: skip
def test_file_that_is_gone_is_named_from_where_the_case_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: dict[str, Any], group: str, metric: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    asked = case(scenario=None, group=group, observations=[seen(metric=metric, expected=0.5)]) | section
    file = case_file(tmp_path / "mine", asked)
    with pytest.raises(InputError) as raised:
        studied(file.relative_to(tmp_path))
    [problem] = raised.value.problems
    assert f"mine{os.sep}gone.json" in (problem.file + problem.value) and str(tmp_path) not in str(problem)


def test_tokens_of_a_step_may_be_in_ki() -> None:
    work = {"prefill": {"tokens": "8Ki", "budget": "2Ki"}}
    prefill = step.step_of(Question("a", "step", {"model": "m", "hardware": "t4", "work": work}, (), ())).work.prefill
    assert prefill is not None and (prefill.tokens, prefill.budget) == (8192, 2048)


def test_capacity_of_hits_may_be_in_ki(tmp_path: Path) -> None:
    lines = [{"timestamp": n, "input_length": 1024, "output_length": 2, "hash_ids": [n % 3, 9]} for n in range(9)]
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")

    def hits_of(capacity: object) -> float:
        section = {"trace": str(tmp_path / "t.jsonl"), "policy": "lru", "capacity_tokens": capacity}
        return hits.answer(Question("a", "hits", section, (), ("hits",)))["hits"]

    assert hits_of("1Ki") == hits_of(1024) < hits_of("8Ki tokens")


def test_file_that_is_a_list_says_how_case_files_begin(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("- id: a\n", "utf-8")
    with pytest.raises(InputError) as raised:
        read_cases(str(tmp_path / "x.yaml"))
    assert 'begin with "simkv_cases: 1"' in raised.value.problems[0].mend
