"""Metrics that are of nothing in a run fail alone, with the reason; warnings of the run stand beside its figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simkv.cli import app
from simkv.errors import InputError
from tests.validation_factory import SCENARIO, case, case_file, seen, studied

ALL_AT_ONCE = {"kind": "plain", "requests": 4, "arrival": {"process": "all_at_once"}, "output_tokens": 1}
SMALL = SCENARIO | {"engine": {"max_model_len": 100}}
"""Requests of at most 100 tokens."""


def answered(folder: Path, prompt_tokens: Any, *metrics: str, **changes: Any) -> dict[str, Any]:
    """Return the rows of a case by their metrics; requests of a plain load, all at once, of one output token."""
    scenario = SMALL | {"workload": ALL_AT_ONCE | {"prompt_tokens": prompt_tokens}} | changes
    asked = case(scenario=scenario, observations=[seen(metric=metric, expected=1) for metric in metrics])
    return {row.observation.metric: row for row in studied(case_file(folder, asked))}


def test_metrics_fail_with_the_reason_where_nobody_is_served_and_other_cases_are_judged(tmp_path: Path) -> None:
    refused = case(id="refused", scenario=SMALL | {"workload": ALL_AT_ONCE | {"prompt_tokens": 500}})
    refused["observations"] = [seen(metric=metric) for metric in ("ttft_s.mean", "turn.0.e2e_s", "decode_s")]
    path = case_file(tmp_path, refused, case(id="good"))
    *failed, judged = studied(path)
    assert [row.status for row in failed] == ["failed"] * 3 and judged.status == "judged" and judged.error == 0
    assert failed[0].why == failed[2].why and failed[0].why.startswith("no request was served: 4 of 4 requests")
    assert failed[1].why == "no request that was served is of turn 0"
    done = CliRunner().invoke(app, ["validate", "--cases", str(path), "--jobs", "1", "--json"])
    assert done.exit_code == 4 and json.loads(done.stdout)["summary"]["failed"] == 3


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        ("requests.0-4.ttft_s", "there is no request 4: 4 arrived"),
        ("turn.1.ttft_s", "no request that was served is of turn 1"),
        ("itl_s.mean", "this run has no itl_s.mean, it needs more than one output token"),
        ("decode_tokens_per_s", "nothing takes time in it"),
        ("ssd_read.bytes_per_busy_s", "nothing went over ssd_read"),
        ("ttft_s.p99.9", "this run has no ttft_s.p99.9; it has a number before 9"),
        ("concurrency.often", "this run has no concurrency.often; it has formula, mean, max"),
        ("classes.gold.total_tokens_per_s", "no request that was served is of class 'gold'"),
    ],
)
def test_metric_of_nothing_fails_alone(tmp_path: Path, metric: str, why: str) -> None:
    rows = answered(tmp_path, 8, metric, "ttft_s.mean", "requests.0-3.ttft_s")
    assert rows[metric].status == "failed" and why in rows[metric].why
    assert rows["ttft_s.mean"].predicted == rows["requests.0-3.ttft_s"].predicted


def test_figure_relative_to_one_of_nothing_fails_with_its_reason(tmp_path: Path) -> None:
    asked = seen(metric="ttft_s.mean", expected="2 x", relative_to={"metric": "itl_s.mean"})
    workload = ALL_AT_ONCE | {"prompt_tokens": 8}
    [row] = studied(case_file(tmp_path, case(scenario=SMALL | {"workload": workload}, observations=[asked])))
    assert row.status == "failed" and "no itl_s.mean" in row.why


def test_warnings_of_a_run_that_is_not_what_was_asked_for_are_told_once(tmp_path: Path) -> None:
    mixed = {"dist": "uniform", "low": 1, "high": 200}
    rows = answered(tmp_path, mixed, "ttft_s.mean", "makespan_s", tiers={"ssd": {"capacity": "1GiB"}})
    [refused, unreachable] = rows["makespan_s"].warnings
    assert "can never fit" in refused and unreachable.startswith("tiers.ssd does nothing")
    assert rows["ttft_s.mean"].warnings == rows["makespan_s"].warnings
    assert answered(tmp_path, 8, "ttft_s.mean")["ttft_s.mean"].warnings == ()


@pytest.mark.parametrize(
    ("data", "what"),
    [({"path": "x.jsonl"}, r"data\.path: .*unknown key"), ({"workload.paths": "x.jsonl"}, r"data\.workload\.paths: ")],
)
def test_key_of_a_file_is_checked_where_the_file_is_not_there(tmp_path: Path, data: dict[str, str], what: str) -> None:
    trace = SMALL | {"workload": {"kind": "trace"}}
    with pytest.raises(InputError, match=what):
        studied(case_file(tmp_path, case(scenario=trace, data=data)))
    [row] = studied(case_file(tmp_path, case(scenario=trace, data={"workload.path": "x.jsonl"})))
    assert row.status == "skipped" and "x.jsonl" in row.why


def test_hit_rate_of_all_tiers_and_time_an_output_token_of_one_turn(tmp_path: Path) -> None:
    turns = {"kind": "sessions", "requests": 6, "arrival": {"process": "constant", "rate": "1 req/s"}, "turns": 2,
             "think_time": "1s", "prompt_tokens": 40, "output_tokens": 5}  # fmt: skip
    scenario = SCENARIO | {"engine": {"block_tokens": 8}, "run": {"warm_up": "0s"}, "workload": turns}
    asked = ("hit_rate.total", "hit_rate.miss", "turns.0-1.hit_rate", "turn.1.hit_rate", "turn.1.tpot_s", "tpot_s.mean")
    rows = studied(case_file(tmp_path, case(scenario=scenario, group="hit_curves", observations=[
        seen(metric=metric, expected=0.5) for metric in asked])))  # fmt: skip
    found = {row.observation.metric: row.predicted for row in rows}
    assert found["hit_rate.total"] == pytest.approx(1 - found["hit_rate.miss"], rel=1e-12)
    assert found["turn.1.hit_rate"] > found["hit_rate.total"] > 0.2
    assert found["hit_rate.total"] == pytest.approx(found["turns.0-1.hit_rate"], rel=1e-12)
    assert found["turn.1.tpot_s"] == pytest.approx(0.1) == found["tpot_s.mean"]
