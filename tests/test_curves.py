"""Curves: points on their closed forms where they must be, λ between LRU and LFU, and what has no meaning is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from simkv.calc.concurrency import of_machine
from simkv.catalog import load_hardware, load_model
from simkv.curves import score, t_avg
from simkv.curves.estimate import Estimate, estimate
from simkv.curves.house import House, residencies
from simkv.curves.lengths import mean_lengths
from simkv.curves.setting import Setting, read_setting
from simkv.curves.study import check_names, study
from simkv.errors import InputError
from simkv.formulas.concurrency import max_concurrency
from simkv.formulas.overlap import speedup
from simkv.jobs.workers import Workers
from simkv.scenario.build import workload_source
from simkv.sweeps.simulate import Written, simulate

ROOT = Path(__file__).parents[1]
DENSE = """\
name: dense
model: llama-3.1-8b
hardware: a10
engine: {max_num_seqs: 64, max_num_batched_tokens: 2048, max_model_len: 8192, prefix_caching: false}
workload: {kind: plain, requests: 4, arrival: {process: all_at_once}, prompt_tokens: 4300, output_tokens: 100}
tiers: {dram: {capacity: 64GiB}}
link: {latency: 0s}
offload: {residency: 0.5, write: write_through, prefetch: {policy: layer}}
slo: {itl_p95: 50ms}
"""
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
REUSE = """\
name: reuse
model: llama-3.1-8b
hardware: {step_time: 20ms, kv_tokens: 6000}
engine: {max_num_seqs: 8, max_model_len: 4096}
workload:
  kind: sessions
  requests: 120
  arrival: {process: poisson, rate: 1 req/s}
  turns: {dist: geometric, mean: 4, max: 10}
  think_time: 5s
  system_prompt: {tokens: 128, variants: 2}
  prompt_tokens: {dist: uniform, low: 50, high: 400}
  output_tokens: 20
  max_context: 4000
tiers: {dram: {capacity: 1GiB}}
"""


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(1) as found:
        yield found


def setting(text: str, *assignments: str, steps: int = 4) -> Setting:
    return read_setting(Written(text, "small.yaml", assignments), steps)


def series(curve: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [row for row in curve["rows"] if row["series"] == name]


@pytest.fixture(scope="module")
def dense(workers: Workers) -> dict[str, Any]:
    return study(setting(DENSE), ("t_avg", "speedup", "concurrency", "lambda"), workers)


@pytest.fixture(scope="module")
def sparse(workers: Workers) -> dict[str, Any]:
    return study(setting(SPARSE), ("t_avg", "speedup", "concurrency", "lambda"), workers)


@pytest.fixture(scope="module")
def reuse(workers: Workers) -> dict[str, Any]:
    return study(setting(REUSE), ("lambda",), workers)


def test_t_avg_service_without_descriptors_lies_on_the_line(dense: dict[str, Any]) -> None:
    points = series(dense["curves"]["t_avg"], "on demand")
    assert [row["residency"] for row in points] == [0.25, 0.5, 0.75, 0.9, 1.0]
    for row in points:
        assert row["t_avg_s"] == pytest.approx(row["closed_t_avg_s"], rel=1e-9)


def test_t_avg_steps_on_demand_lie_on_their_line(dense: dict[str, Any]) -> None:
    for row in series(dense["curves"]["t_avg"], "on demand"):
        assert row["step_ratio"] == pytest.approx(row["step_on_demand"], rel=1e-3)


def test_t_avg_prefetch_is_never_slower_than_on_demand_nor_faster_than_perfect_overlap(dense: dict[str, Any]) -> None:
    without = {row["residency"]: row for row in series(dense["curves"]["t_avg"], "on demand")}
    for row in series(dense["curves"]["t_avg"], "prefetch"):
        assert row["step_ratio"] <= without[row["residency"]]["step_ratio"]
        assert row["step_ratio"] >= row["step_overlapped"] * (1 - 1e-6)


def test_t_avg_all_resident_takes_what_it_takes_without_offload(dense: dict[str, Any]) -> None:
    whole = next(row for row in series(dense["curves"]["t_avg"], "on demand") if row["residency"] == 1.0)
    assert whole["p_hit"] == 1.0
    assert whole["step_ratio"] == 1.0
    house = House(setting(DENSE))
    half = house.case(0.5, house.staged(1.0), "{policy: none}")
    case = type(half)(half.written, (*half.assignments, "run.baselines=[no_offload]"))
    baseline = simulate(case, 0)["baselines"]["no_offload"]
    assert baseline["itl_s"]["mean"] == pytest.approx(whole["t_step_s"], rel=1e-3)


def test_t_avg_sentence_compares_with_the_line_at_90_percent(dense: dict[str, Any]) -> None:
    curve = dense["curves"]["t_avg"]
    line = next(row for row in series(curve, "closed form") if row["p_hit"] == 0.9)
    assert curve["marks"]["closed_on_demand"] == line["step_on_demand"]
    assert any("90 % hits can't be felt" in text for text in curve["reads"])


def test_t_avg_what_is_called_simulated_at_90_percent_lies_there(dense: dict[str, Any]) -> None:
    curve = dense["curves"]["t_avg"]
    assert curve["marks"]["simulated_at"] == pytest.approx(0.9, abs=0.01)
    for name, mark in (("on demand", "simulated_on_demand"), ("prefetch", "simulated_prefetch")):
        (row,) = (row for row in series(curve, name) if row["residency"] == 0.9)
        assert curve["marks"][mark] == pytest.approx(row["step_ratio"], rel=0.01)
    assert not any("between simulated points" in text for text in curve["reads"])


def test_t_avg_far_from_90_percent_says_that_it_lies_between_points() -> None:
    marks = {"simulated_at": 0.97, "on_demand": 3.0, "prefetch": None}
    assert t_avg._simulated_at(marks, "on_demand") == ", 3.00 times as long on the line between simulated points"
    assert t_avg._simulated_at(marks, "prefetch") == ", not simulated"
    assert t_avg._simulated_at(marks | {"simulated_at": 0.899}, "on_demand") == ", 3.00 times as long simulated"


def test_speedup_beta_cut_to_what_is_feasible_is_named_as_asked(dense: dict[str, Any]) -> None:
    names = [row["name"] for row in series(dense["curves"]["speedup"], "given β")]
    assert len(set(names)) == len(names)
    assert (names[-1] == "β = 1, cut") == (dense["curves"]["speedup"]["marks"]["beta_feasible"] < 1)


def test_speedup_line_begins_at_one_and_ends_at_the_article_bound(dense: dict[str, Any]) -> None:
    curve = dense["curves"]["speedup"]
    lines, marks = series(curve, "closed form"), curve["marks"]
    assert lines[0]["beta"] == 0.0
    assert lines[0]["speedup"] == 1.0
    assert lines[-1]["speedup"] == pytest.approx(1 + marks["t_transfer_s"] / marks["t_compute_s"])
    assert max(row["speedup"] for row in lines if row["feasible"]) == pytest.approx(marks["speedup_most"])


@pytest.mark.parametrize("scenario", ["dense", "sparse"])
def test_speedup_given_beta_lies_on_the_line(scenario: str, request: pytest.FixtureRequest) -> None:
    curve = request.getfixturevalue(scenario)["curves"]["speedup"]
    marks, points = curve["marks"], series(curve, "given β")
    assert len(points) >= 5
    for row in points:
        exact = speedup(marks["t_compute_s"], marks["t_transfer_s"], min(1.0, max(0.0, row["beta"])))
        assert row["speedup"] == pytest.approx(exact, rel=0.02)
        assert row["beta"] <= marks["beta_feasible"] + 0.02


def test_speedup_schedules_are_those_of_the_access_pattern(dense: dict[str, Any], sparse: dict[str, Any]) -> None:
    names = {row["name"] for row in series(dense["curves"]["speedup"], "schedule")}
    assert names == {"layer", "next_step"}
    names = {row["name"] for row in series(sparse["curves"]["speedup"], "schedule")}
    assert {"oracle", "next_step last_step", "next_step stride", "next_step heavy_hitters"} <= names


def test_concurrency_line_equals_calc(dense: dict[str, Any]) -> None:
    model, gpu = load_model("llama-3.1-8b"), load_hardware("a10")
    for row in series(dense["curves"]["concurrency"], "simulated"):
        answer = of_machine(model, gpu, 4400, row["residency"], max_num_seqs=64, max_num_batched_tokens=2048)
        assert row["c_max"] == answer.result[0].value


def test_concurrency_line_is_the_formula_of_pool_and_sequence() -> None:
    house = House(setting(SPARSE))
    for p in residencies(house.setting):
        assert house.c_max(p) == max_concurrency(250 * 16, 104 * 16, p)


def test_concurrency_points_run_as_many_as_fit(dense: dict[str, Any], sparse: dict[str, Any]) -> None:
    for answer in (dense, sparse):
        for row in series(answer["curves"]["concurrency"], "simulated"):
            assert row["staged"] <= row["running_max"] <= min(row["seats"], row["staged"] + 1)
            assert row["staged"] <= min(row["c_max"], row["seats"])


def test_concurrency_marks_are_those_of_the_points(dense: dict[str, Any]) -> None:
    curve = dense["curves"]["concurrency"]
    points, marks = series(curve, "simulated"), curve["marks"]
    assert marks["best"]["output_tokens_per_s"] == max(row["output_tokens_per_s"] for row in points)
    held = [row["running_max"] for row in points if row["itl_p95_s"] <= 0.05]
    assert marks["within_slo"]["running_max"] == max(held)
    assert any("slo.itl_p95, 50.0 ms, holds with at most" in text for text in curve["reads"])


def test_study_of_sparse_access_says_that_quality_is_not_modelled(
    dense: dict[str, Any], sparse: dict[str, Any]
) -> None:
    assert sparse["about"][0].startswith("Quality not modelled")
    assert dense["about"] == []


def test_concurrency_without_slo_says_how_to_ask(sparse: dict[str, Any]) -> None:
    assert any("no slo.itl_p95" in text for text in sparse["curves"]["concurrency"]["reads"])


@pytest.mark.parametrize("scenario", ["sparse", "reuse"])
def test_lambda_ends_equal_lru_and_lfu_to_the_digit(scenario: str, request: pytest.FixtureRequest) -> None:
    curve = request.getfixturevalue(scenario)["curves"]["lambda"]
    score = {row["lambda"]: row for row in series(curve, "score")}
    for lam, name in ((1.0, "lru"), (0.0, "lfu")):
        other = series(curve, name)[0]
        assert {key: score[lam][key] for key in other if key not in ("series", "lambda")} == {
            key: value for key, value in other.items() if key not in ("series", "lambda")
        }


def test_lambda_points_differ_and_stay_below_the_ceiling(reuse: dict[str, Any]) -> None:
    curve = reuse["curves"]["lambda"]
    ceiling = series(curve, "ceiling")[0]["hit_rate"]
    rates = {row["hit_rate"] for row in series(curve, "score")}
    assert len(rates) > 1
    assert max(rates) <= ceiling
    assert curve["marks"]["best"]["hit_rate"] == max(rates)


def test_lambda_with_room_for_everything_says_that_nothing_is_evicted(workers: Workers) -> None:
    roomy = setting(REUSE, "hardware.kv_tokens=400000", "workload.requests=40", "tiers.dram.capacity=400GiB", steps=2)
    curve = study(roomy, ("lambda",), workers)["curves"]["lambda"]
    assert curve["marks"]["spread"] == 0
    assert curve["title"].startswith("λ makes no difference")
    assert "no tier is ever full" in curve["reads"][0]


def test_lambda_rates_that_differ_by_rounding_are_called_alike() -> None:
    rates = {lam: Estimate(rate, rate, rate) for lam, rate in ((0.0, 0.2), (0.5, 0.3 + 1e-16), (0.6, 0.3), (1.0, 0.3))}
    assert score._alike(rates, max) == [0.5, 0.6, 1.0] and score._alike(rates, min) == [0.0]
    gain = {"gain": 5.6e-17, "gain_low": 5.6e-17, "gain_high": 5.6e-17}
    best = {"lambda": 0.5, "hit_rate": 0.3, "alike": [0.5, 0.6, 1.0]}
    marks = {"article": best, "best": best, "best_over_article": gain, "best_over_lru": gain}
    assert score._hit_most(best) == "λ = 0.5, 0.6 and 1 hit most"
    assert score._hit_most({"alike": [k / 10 for k in range(2, 9)]}) == "7 λ between 0.2 and 0.8 hit most"
    assert score._of_article(marks) == "The article's 0.5 to 0.8 holds here: none is better (as good as LRU)."


def test_lambda_under_dense_access_is_left_out_with_the_reason(dense: dict[str, Any]) -> None:
    assert "pinned" in dense["left_out"]["lambda"]
    assert "lambda" not in dense["curves"]


def test_t_avg_on_an_abstract_machine_is_left_out_with_the_reason(sparse: dict[str, Any]) -> None:
    assert "abstract" in sparse["left_out"]["t_avg"]


def test_study_of_static_batches_refuses_every_curve_with_its_reason(workers: Workers) -> None:
    path = ROOT / "scenarios" / "flexgen-opt-30b-t4.yaml"
    batches = read_setting(Written.read(str(path), ()), 4)
    with pytest.raises(InputError) as error:
        study(batches, ("t_avg", "speedup", "concurrency", "lambda"), workers)
    assert len(error.value.problems) == 4
    assert all("static batches" in problem.what for problem in error.value.problems)


def test_study_of_the_article_toy_has_its_speedup(workers: Workers) -> None:
    path = ROOT / "scenarios" / "article-toy.yaml"
    toy = read_setting(Written.read(str(path), ()), 4)
    answer = study(toy, ("t_avg", "speedup", "concurrency", "lambda"), workers)
    assert list(answer["curves"]) == ["speedup"]
    best = answer["curves"]["speedup"]["marks"]["best"]
    assert best["speedup"] == pytest.approx(527 / 288, rel=1e-3)
    assert set(answer["left_out"]) == {"t_avg", "concurrency", "lambda"}


def test_study_what_if_of_prefix_reuse_says_so_and_gives_dram(workers: Workers) -> None:
    text = DENSE.replace("offload: {residency: 0.5, write: write_through, prefetch: {policy: layer}}\n", "")
    bare = setting(text.replace("tiers: {dram: {capacity: 64GiB}}\n", ""), steps=2)
    answer = study(bare, ("t_avg", "concurrency"), workers)
    assert any("what-if" in line for line in answer["about"])
    assert any("of DRAM" in line for line in answer["about"])
    assert [row["residency"] for row in series(answer["curves"]["concurrency"], "simulated")] == [0.5, 1.0]


def test_study_twice_gives_the_same_answer(workers: Workers, dense: dict[str, Any]) -> None:
    assert study(setting(DENSE), ("t_avg", "speedup", "concurrency", "lambda"), workers) == dense


def test_house_keeps_what_the_scenario_gives_for_other_engines() -> None:
    text = REUSE.replace("max_model_len: 4096", "max_model_len: 4096, load: overlap, store_outputs: true")
    given = setting(text, "link={h2d: 1 GB/s, d2h: 1 GB/s, duplex: 2 GB/s, descriptors_per_block: 3}")
    assert House(given).case(0.5, 2, "{policy: layer}").resolve().scenario.offload.residency == 0.5


def test_lengths_of_sessions_are_means_of_their_turns() -> None:
    resolved = setting(REUSE).resolved
    lengths = mean_lengths(workload_source(resolved, 0), 50)
    assert lengths.requests == 50
    assert lengths.output_tokens == 20
    assert 150 < lengths.prompt_tokens < 2000


@pytest.mark.parametrize(("seeds", "quantile"), [(3, 4.302653), (12, 2.200985), (31, 2.042272)])
def test_estimate_of_seeds_is_a_t_interval(seeds: int, quantile: float) -> None:
    values = [float(k) for k in range(seeds)]
    found = estimate(values)
    assert found is not None
    assert found.mean == (seeds - 1) / 2
    assert found.high - found.mean == pytest.approx(quantile * stdev(values) / seeds**0.5, rel=1e-6)
    assert found.mean - found.low == pytest.approx(found.high - found.mean)


def test_estimate_of_equal_or_single_values_has_no_width_and_of_a_gap_is_none() -> None:
    for values in ([0.1], [0.1, 0.1, 0.1]):
        found = estimate(values)
        assert found is not None
        assert (found.mean, found.low, found.high) == (0.1, 0.1, 0.1)
    assert estimate([1.0, None]) is None
    assert estimate([]) is None


def test_names_unknown_lists_the_valid_ones() -> None:
    with pytest.raises(InputError, match="did you mean lambda"):
        check_names(["lamda"])
    assert check_names(["lambda", "t_avg"]) == ("t_avg", "lambda")
