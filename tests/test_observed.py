"""Files that benchmarks wrote, read; and machines fitted to them: known figures come back."""

from __future__ import annotations

import json
import tempfile
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from math import exp, inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InfeasibleError, InputError
from simkv.planner.observed import Fitted, Observed, Rows, fit, read_observed
from simkv.planner.observed.choice import choose
from simkv.planner.observed.notes import notes_of
from simkv.planner.observed.parameters import parameters
from simkv.planner.observed.replay import Asked, Replayed, asked_of, replay
from simkv.planner.observed.surface import Box, least
from simkv.planner.observed.types import figures_of
from simkv.scenario.as_measured import Measured, as_measured
from simkv.scenario.build import system_config
from simkv.scenario.resolve import Resolved, resolve_text
from simkv.sim.rundata import RunData
from simkv.simulation import simulate
from simkv.sweeps.simulate import Case, Written, key_of

FILES = Path(__file__).parent / "observed"
SCENARIO = """
name: measured
model: llama-3.1-8b
hardware: h100-sxm5-80gb
engine: {preset: vllm, max_num_seqs: 64, max_num_batched_tokens: 2048, max_model_len: 8Ki tokens}
workload:
  kind: plain
  requests: 50
  arrival: {process: poisson, rate: 4 req/s}
  prompt_tokens: {dist: uniform, low: 100, high: 1500}
  output_tokens: {dist: uniform, low: 10, high: 200}
"""
WRITTEN = Written(SCENARIO, "measured.yaml")
OVERHEAD_S, FACTOR = 3e-3, 0.8
BANDWIDTH = ("weight_bandwidth_efficiency", "attention_bandwidth_efficiency")
COMPUTE = ("flops_efficiency", "attention_flops_efficiency")
TRUTH = Measured((("step_overhead_s", OVERHEAD_S),), tuple((name, FACTOR) for name in COMPUTE))
SLOW_MEMORY = Measured((), tuple((name, FACTOR) for name in BANDWIDTH))


def measured_run(truth: Measured, asked: Asked, scenario: str = SCENARIO) -> RunData:
    """Return a run of a machine whose figures are known."""
    config = system_config(as_measured(resolve_text(scenario), truth))
    return simulate(config, Replayed(asked))


def mixed_load(requests: int = 60, prompts: tuple[int, int] = (500, 7000)) -> Asked:
    """Return requests of many lengths, coming faster and faster, so that batches of many sizes occur."""
    draw = np.random.default_rng(6)
    gaps = draw.exponential(0.5, requests) * np.linspace(4, 0.5, requests)
    lengths, outputs = draw.integers(*prompts, requests), draw.integers(5, 200, requests)
    return Asked(tuple(lengths.tolist()), tuple(outputs.tolist()), tuple((np.cumsum(gaps) - gaps[0]).tolist()), None)


def log_file(data: RunData, folder: Path) -> Path:
    """Write a run as a log of requests, by a clock that began some time ago."""
    columns = data.requests
    lines = []
    for n in range(len(columns["id"])):
        at = {"queued_ts": "arrival_s", "first_token_ts": "first_token_s", "last_token_ts": "finish_s"}
        row: dict[str, Any] = {key: 5000.0 + float(columns[column][n]) for key, column in at.items()}
        row |= {"input_toks": int(columns["prompt_tokens"][n]), "output_toks": int(columns["output_tokens"][n])}
        lines.append(json.dumps(row))
    path = folder / "requests.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def bench_object(data: RunData, detailed: bool = False, **more: Any) -> dict[str, Any]:
    """Return a run as ``vllm bench serve`` sums it up."""
    columns = data.requests
    ttft, e2e = (columns[name] - columns["arrival_s"] for name in ("first_token_s", "finish_s"))
    outputs = columns["output_tokens"]
    duration = float(columns["finish_s"].max() - columns["arrival_s"].min())
    figures = figures_of(ttft, e2e, outputs, duration)
    found: dict[str, Any] = {
        "duration": duration, "completed": len(outputs), "total_input_tokens": int(columns["prompt_tokens"].sum()),
        "total_output_tokens": int(outputs.sum()), "request_rate": "inf", "max_concurrency": None,
    }  # fmt: skip
    for name, value in figures.items():
        metric, _, statistic = name.partition("_s.")
        prefix = {"p50": "median"}.get(statistic, statistic)
        if statistic:
            found[f"{prefix}_{'e2el' if metric == 'e2e' else metric}_ms"] = value * 1e3
    if detailed:
        gaps = [[(e - t) / max(1, n - 1)] * (int(n) - 1) for e, t, n in zip(e2e, ttft, outputs, strict=True)]
        found |= {"input_lens": columns["prompt_tokens"].tolist(), "output_lens": outputs.tolist(), "itls": gaps,
                  "ttfts": ttft.tolist(), "start_times": (columns["arrival_s"] + 70.0).tolist()}  # fmt: skip
    return found | more


def fitted_value(fitted: Fitted, figure: str) -> float:
    (value,) = (value for value in fitted.values if value.figure == figure)
    return value.value


def catalogue(figure: str) -> float:
    gpu = resolve_text(SCENARIO).gpu
    assert gpu is not None
    return gpu.value(figure)


# Reading


def test_read_vllm_result_has_its_figures_in_seconds() -> None:
    observed = read_observed(str(FILES / "vllm-bench.json"))
    assert (observed.tool, observed.model) == ("vllm bench serve", "meta-llama/Llama-3.1-8B-Instruct")
    assert (observed.requests, observed.prompt_tokens, observed.output_tokens) == (12, 6328, 297)
    assert observed.figures["ttft_s.mean"] == pytest.approx(0.0590458)
    assert observed.figures["ttft_s.p50"] == pytest.approx(0.06046)
    assert observed.figures["tpot_s.mean"] == pytest.approx(0.008995)
    assert observed.figures["itl_s.mean"] == pytest.approx(0.0089842)
    assert observed.figures["output_tokens_per_s"] == pytest.approx(297 / 3.9013)
    assert "itl_s.p99" not in observed.figures, "of chunks, not of tokens"
    assert (observed.rate_per_s, observed.burstiness, observed.concurrency) == (2.0, 1.0, None)
    assert observed.rows is None


def test_read_detailed_vllm_result_has_each_request_and_leaves_failed_ones_out() -> None:
    observed = read_observed(str(FILES / "vllm-bench-detailed.json"))
    rows = observed.rows
    assert rows is not None and rows.arrival_s is not None
    assert len(rows.prompt_tokens) == len(rows.arrival_s) == observed.requests == 12
    assert rows.arrival_s[0] == 0 and list(rows.arrival_s) == sorted(rows.arrival_s)
    assert sum(rows.output_tokens) == 297
    assert observed.figures["ttft_s.mean"] == pytest.approx(0.0590458, rel=1e-5)
    assert observed.figures["e2e_s.mean"] == pytest.approx(0.2724208, rel=1e-5)
    assert observed.notes == ("1 of 13 requests failed and are left out",)


def test_read_sglang_result_of_several_runs_is_the_last() -> None:
    observed = read_observed(str(FILES / "sglang-bench.jsonl"))
    assert observed.tool == "sglang.bench_serving"
    assert (observed.rate_per_s, observed.duration_s) == (2.0, 3.9013)
    assert observed.figures["e2e_s.mean"] == pytest.approx(0.2724208, rel=1e-4)
    assert observed.notes == ("the file has 2 runs: the last is taken",)


def test_read_log_of_requests_is_of_one_clock() -> None:
    observed = read_observed(str(FILES / "requests.jsonl"))
    assert (observed.requests, observed.output_tokens) == (12, 297)
    assert observed.figures["ttft_s.mean"] == pytest.approx(0.0590458, abs=1e-5)
    assert observed.figures["tpot_s.mean"] == pytest.approx(0.008995, abs=1e-5)
    rows, detailed = observed.rows, read_observed(str(FILES / "vllm-bench-detailed.json")).rows
    assert rows is not None and detailed is not None and rows.arrival_s is not None and detailed.arrival_s is not None
    assert rows.arrival_s == pytest.approx(detailed.arrival_s)
    assert rows.prompt_tokens == detailed.prompt_tokens


def test_read_files_of_one_run_agree_on_what_they_share() -> None:
    names = ("vllm-bench.json", "vllm-bench-detailed.json", "sglang-bench.jsonl", "requests.jsonl")
    found = [read_observed(str(FILES / name)).figures for name in names]
    for key in ("ttft_s.mean", "ttft_s.p50", "tpot_s.mean", "itl_s.mean"):
        assert [figures[key] for figures in found] == pytest.approx([found[0][key]] * 4, rel=1e-3)


BENCH = json.loads((FILES / "vllm-bench.json").read_text("utf-8"))
DETAILED = json.loads((FILES / "vllm-bench-detailed.json").read_text("utf-8"))
LOG = (FILES / "requests.jsonl").read_text("utf-8")


def without(values: dict[str, Any], *keys: str) -> str:
    return json.dumps({key: value for key, value in values.items() if key not in keys})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty; give what vllm bench serve"),
        (" \n\n", "is empty"),
        ("<!DOCTYPE html><html></html>", "1: is HTML or XML, no JSON"),
        (json.dumps([BENCH]), "is a JSON list"),
        ("3\n", "1: 3 is no JSON object"),
        ('{"a": 1}', "is no measured run that simkv knows (its keys are a)"),
        ('{"a": 1}\n{"a": \n', '2: "{"a":" is no JSON: Expecting'),
        ("{" * 100_000, "is no JSON"),
        (b"\xff\xfe\x00", "1: is not UTF-8"),
        (without(BENCH, "completed"), "completed: is missing"),
        (without(BENCH, *(key for key in BENCH if key.endswith("_ms"))), "mean_ttft_ms: is missing: the file has no"),
        (json.dumps(BENCH | {"mean_ttft_ms": float("nan")}), "mean_ttft_ms = nan: is not a finite number"),
        (json.dumps(BENCH | {"duration": float("inf")}), "duration = inf: is not a finite number"),
        (json.dumps(BENCH | {"duration": -1}), "duration = -1: is negative"),
        (json.dumps(BENCH | {"duration": "9"}), 'duration = "9": is no number'),
        (json.dumps(BENCH | {"completed": 0}), "completed = 0: is zero: nothing was served"),
        (json.dumps(BENCH | {"completed": 10**9}), "completed = 1000000000: is more than 100,000"),
        (json.dumps(BENCH | {"burstiness": 1e-9}), "burstiness = 1e-09: is below 0.01"),
        (json.dumps(BENCH | {"completed": 1.5}), "completed = 1.5: is no whole number"),
        (json.dumps(BENCH | {"mean_ttft_ms": 1e300}), "mean_ttft_ms = 1e+300: is more than"),
        (json.dumps(BENCH | {"request_rate": 0}), "request_rate = 0: is zero"),
        (json.dumps(DETAILED | {"ttfts": DETAILED["ttfts"][:-1]}), "ttfts: has 12 values, and there are 13 requests"),
        (json.dumps(DETAILED | {"itls": [[None]] * 13}), "itls[0][0] = null: is no number"),
        (json.dumps(DETAILED | {"itls": [1.0] * 13}), "itls[0] = 1.0: is no list"),
        (json.dumps(DETAILED | {"output_lens": [0] * 13}), "holds no request that was served"),
        (LOG.replace('"queued_ts"', '"queued"', 1), "1: queued_ts: is missing"),
        (LOG + '{"first_token_ts": NaN, "output_toks": 1}\n', "13: queued_ts: is missing"),
        (LOG.replace('"input_toks": ', '"input_toks": -', 1), "1: input_toks = -"),
        (LOG + LOG.splitlines()[0].replace('"first_token_ts": ', '"first_token_ts": 0 , "x": '), "13: first_token_ts"),
    ],
)
def test_read_wrong_file_is_refused_with_its_place(content: str | bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as refused:
        read_observed(str(path))
    message = str(refused.value)
    assert message.startswith(str(path)) and said in message.replace(": ", ": "), message
    assert "; " in message, "says how to mend it"


def test_read_log_of_too_many_requests_is_refused_at_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simkv.planner.observed.requests_log.MOST_REQUESTS", 11)
    with pytest.raises(InputError, match=r"requests.jsonl:12: the log has more than 11 requests; give a part"):
        read_observed(str(FILES / "requests.jsonl"))
    monkeypatch.setattr("simkv.planner.observed.bench.MOST_REQUESTS", 12)
    with pytest.raises(InputError, match=r"output_lens: is of more than 12 requests; give a part"):
        read_observed(str(FILES / "vllm-bench-detailed.json"))


def test_read_long_log_keeps_no_more_than_its_numbers(tmp_path: Path) -> None:
    """An object a row, kept, would take another seven times the text."""
    path = tmp_path / "long.jsonl"
    row = json.loads(LOG.splitlines()[0])
    text = "".join(json.dumps(row | {"request_id": f"bench-{n}"}) + "\n" for n in range(20_000))
    path.write_text(text)
    tracemalloc.start()
    try:
        observed = read_observed(str(path))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert observed.requests == 20_000
    assert most < 5 * len(text)


def test_read_line_with_a_separator_of_unicode_in_a_text_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    lines = [json.dumps(BENCH | {"generated_texts": ["a\u2028b\x0cc"]}, ensure_ascii=False)] * 2
    path.write_text("\n".join(lines), encoding="utf-8")
    assert read_observed(str(path)).notes == ("the file has 2 runs: the last is taken",)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("whole", [BENCH, DETAILED, json.loads(LOG.splitlines()[0])], ids=["sums", "detailed", "log"])
@given(data=st.data())
def test_read_file_with_any_value_anywhere_is_read_or_refused(whole: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(whole)))
    values = whole | {key: data.draw(ANY_JSON)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        path.write_text(json.dumps(values))
        try:
            observed = read_observed(str(path))
        except InputError as refused:
            assert str(refused).startswith(str(path))
        else:
            assert observed.requests > 0 and all(np.isfinite(value) for value in observed.figures.values())


@pytest.mark.parametrize("name", ["missing.json", "", "a\0b"])
def test_read_file_that_is_not_there_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"can't be read|is no file name"):
        read_observed(str(tmp_path / name))


# Fitting


@pytest.fixture(scope="module")
def two_parameters() -> Fitted:
    with tempfile.TemporaryDirectory() as folder:
        return fit(read_observed(str(log_file(measured_run(TRUTH, mixed_load()), Path(folder)))), WRITTEN)


def test_fit_of_a_log_finds_the_machine_that_made_it(two_parameters: Fitted) -> None:
    assert fitted_value(two_parameters, "step_overhead_s") == pytest.approx(OVERHEAD_S, rel=0.02)
    expected = FACTOR * catalogue("flops_efficiency")
    assert fitted_value(two_parameters, "flops_efficiency") == pytest.approx(expected, rel=0.02)


def test_fit_says_what_it_predicted_before_and_after(two_parameters: Fitted) -> None:
    assert two_parameters.error_after < 0.01 < 0.1 < two_parameters.error_before
    assert not any("isn't explained" in note for note in two_parameters.notes)
    by_name = {residual.figure: residual for residual in two_parameters.residuals}
    tpot = by_name["tpot_s.mean"]
    assert tpot.before < 0.9 * tpot.observed and tpot.after == pytest.approx(tpot.observed, rel=0.01)
    assert by_name["tpot_s.mean"].fitted and not by_name["tpot_s.p99"].fitted
    plain = json.loads(json.dumps(two_parameters.as_dict()))
    assert plain["file"].endswith("requests.jsonl") and plain["runs"] == two_parameters.runs > 4


def test_read_detailed_result_of_a_run_tells_what_its_log_tells(tmp_path: Path) -> None:
    data = measured_run(TRUTH, mixed_load(20))
    path = tmp_path / "result.json"
    path.write_text(json.dumps(bench_object(data, detailed=True)))
    detailed, log = read_observed(str(path)), read_observed(str(log_file(data, tmp_path)))
    assert detailed.figures == pytest.approx(log.figures)
    assert detailed.rows is not None and log.rows is not None
    assert detailed.rows.prompt_tokens == log.rows.prompt_tokens
    assert detailed.rows.arrival_s == pytest.approx(log.rows.arrival_s)


def test_fit_where_decoding_dominates_is_of_memory(tmp_path: Path) -> None:
    data = measured_run(SLOW_MEMORY, mixed_load(60, (20, 200)))
    fitted = fit(read_observed(str(log_file(data, tmp_path))), WRITTEN)
    (value,) = fitted.values
    assert value.figure == "weight_bandwidth_efficiency"
    assert value.value == pytest.approx(FACTOR * value.catalogue, rel=0.02)


def test_fit_of_sums_alone_draws_lengths_and_times_and_finds_the_factor(tmp_path: Path) -> None:
    """Lengths all alike, a bound on what is in flight: what a file without details tells."""
    asked = Asked((700,) * 60, (80,) * 60, (0.0,) * 60, 8)
    path = tmp_path / "result.json"
    path.write_text(json.dumps(bench_object(measured_run(SLOW_MEMORY, asked), max_concurrency=8)))
    workload = "workload={kind: batch, size: 60, requests: 60, prompt_tokens: 700, output_tokens: 80}"
    fitted = fit(read_observed(str(path)), Written(SCENARIO, "measured.yaml", (workload,)))
    expected = FACTOR * catalogue("weight_bandwidth_efficiency")
    assert fitted_value(fitted, "weight_bandwidth_efficiency") == pytest.approx(expected, rel=0.02)
    assert any("all alike" in note for note in fitted.notes)


def test_fit_where_prompts_dominate_is_of_compute(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    prompts = draw.integers(1000, 7000, 25)
    asked = Asked(tuple(prompts.tolist()), (2,) * 25, tuple((np.arange(25) * 0.35).tolist()), None)
    truth = Measured((), tuple((name, FACTOR) for name in COMPUTE))
    fitted = fit(read_observed(str(log_file(measured_run(truth, asked), tmp_path))), WRITTEN)
    expected = FACTOR * catalogue("flops_efficiency")
    assert fitted_value(fitted, "flops_efficiency") == pytest.approx(expected, rel=0.02)


def test_fit_of_a_run_that_cannot_tell_two_apart_is_of_one_and_says_so(tmp_path: Path) -> None:
    """One request at a time, of one length: a step takes longer, and nothing says why."""
    asked = Asked((16,) * 10, (60,) * 10, tuple(np.arange(10.0).tolist()), None)
    truth = Measured(TRUTH.more, SLOW_MEMORY.times)
    fitted = fit(read_observed(str(log_file(measured_run(truth, asked), tmp_path))), WRITTEN)
    assert [value.figure for value in fitted.values] == ["weight_bandwidth_efficiency"]
    assert any("condition number" in note for note in fitted.notes)
    assert fitted.error_after < 0.1 * fitted.error_before


@pytest.mark.parametrize("name", ["vllm-bench.json", "vllm-bench-detailed.json", "requests.jsonl"])
def test_residuals_of_any_file_come_metric_by_metric_and_leave_nothing_out(name: str) -> None:
    run = read_observed(str(FILES / name))
    shown = [residual.figure for residual in fit(run, WRITTEN).residuals]
    assert set(shown) == {figure for figure, value in run.figures.items() if value}
    metrics = [figure.partition(".")[0] for figure in shown]
    assert len(list(groupby(metrics))) == len(set(metrics)), "each metric's statistics stand together"


def test_fit_that_explains_nothing_says_so_first() -> None:
    """A run of a card that is twice as fast as the scenario's."""
    run = read_observed(str(FILES / "vllm-bench.json"))
    slow = fit(run, Written(SCENARIO, "measured.yaml", ("hardware=rtx-4090", "engine.max_model_len=4096")))
    assert slow.error_after > 0.25
    assert slow.notes[0].startswith("the run isn't explained") and "hardware" in slow.notes[0]


def test_fit_to_one_figure_is_of_one_parameter(tmp_path: Path) -> None:
    observed = read_observed(str(log_file(measured_run(TRUTH, mixed_load(40)), tmp_path)))
    figures = {"tpot_s.mean": observed.figures["tpot_s.mean"]}
    fitted = fit(replace(observed, figures=figures), WRITTEN)
    assert len(fitted.values) == 1 and fitted.error_after < 0.01
    assert any("one figure" in note for note in fitted.notes)


def test_fit_of_the_catalogues_own_machine_changes_nothing(tmp_path: Path) -> None:
    fitted = fit(read_observed(str(log_file(measured_run(Measured(), mixed_load(60)), tmp_path))), WRITTEN)
    assert fitted.error_before < 1e-6 and fitted.error_after <= 1e-6
    for value in fitted.values:
        assert value.value == pytest.approx(value.catalogue, abs=1e-4, rel=0.01)


def test_fit_beyond_what_a_card_can_do_ends_at_the_bound_and_says_so(tmp_path: Path) -> None:
    data = measured_run(Measured(), mixed_load(40))
    observed = read_observed(str(log_file(data, tmp_path)))
    figures = {name: value / 4 if name.startswith("tpot") else value for name, value in observed.figures.items()}
    fitted = fit(replace(observed, figures={k: v for k, v in figures.items() if k.startswith("tpot")}), WRITTEN)
    assert max(catalogue(name) for name in BANDWIDTH) < 1
    gpu = fitted.apply(resolve_text(SCENARIO)).gpu
    assert gpu is not None and all(gpu.value(name) <= 1 for name in BANDWIDTH)
    assert any("ends at its bound" in note for note in fitted.notes)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("Qwen/Qwen3-8B", True),
        ("meta-llama/Llama-3.1-8B-Instruct", False),
        ("/models/Llama-3.1-8B/", False),
        ("", False),
    ],
)
def test_run_of_another_model_is_named_in_a_note(name: str, named: bool) -> None:
    notes = list(notes_of(observed_of(model=name), resolve_text(SCENARIO), {"rejected": 0}, []))
    assert any("the scenario is of llama-3.1-8b" in note for note in notes) == named


def test_fit_of_requests_that_are_all_too_long_is_infeasible(tmp_path: Path) -> None:
    observed = read_observed(str(FILES / "requests.jsonl"))
    with pytest.raises(InfeasibleError, match="all are too long"):
        fit(observed, Written(SCENARIO, "measured.yaml", ("engine.max_model_len=20",)))


@pytest.mark.parametrize("hardware", ["{step_time: 10ms, kv_tokens: 100000}"])
def test_fit_of_an_abstract_machine_is_refused(hardware: str) -> None:
    scenario = SCENARIO.replace("h100-sxm5-80gb", hardware)
    with pytest.raises(InputError, match=r"hardware: is an abstract machine.*name a GPU"):
        fit(read_observed(str(FILES / "requests.jsonl")), Written(scenario, "measured.yaml"))


def test_fit_asks_for_runs_side_by_side() -> None:
    from simkv.planner.observed.fitting import in_turn

    sizes = []

    def evaluate(jobs: Any) -> Any:
        sizes.append(len(jobs))
        return reversed(list(in_turn(jobs)))

    alone = fit(read_observed(str(FILES / "requests.jsonl")), WRITTEN)
    fitted = fit(read_observed(str(FILES / "requests.jsonl")), WRITTEN, evaluate)
    assert fitted.values == alone.values, "whatever the order in which they come"
    assert max(sizes) > 2 and sum(sizes) == fitted.runs


def test_surface_finds_the_least_squares_of_answers_that_tremble() -> None:
    """The truth is at (0.3, -0.2), far from the start, and every answer is off by one in a hundred."""
    draw = np.random.default_rng(1)
    matrix = np.array([[1.0, 0.2], [0.1, 1.0], [1.0, -0.5], [0.4, 0.4]])

    def errors(points: Any) -> Any:
        return [np.expm1(matrix @ (x - [0.3, -0.2])) + draw.normal(0, 0.01, 4) for x in points]

    box = Box(np.array([0.0, -2.0]), np.array([3.0, 0.1]), np.array([0.05, 0.08]))
    assert least(errors, np.zeros(2), box) == pytest.approx([0.3, -0.2], abs=0.01)


def test_surface_stays_within_its_bounds() -> None:
    asked: list[Any] = []

    def errors(points: Any) -> Any:
        asked.extend(points)
        return [x - 5.0 for x in points]

    assert least(errors, np.zeros(1), Box(np.array([-1.0]), np.array([0.5]), np.array([0.2]))) == pytest.approx(0.5)
    assert all(-1 <= x[0] <= 0.5 for x in asked)


@pytest.mark.parametrize(
    ("base", "slopes", "chosen"),
    [
        ([-0.3, -0.1], {"overhead": [1, 0], "bandwidth": [0.5, 0], "compute": [0, 1]}, ["overhead", "compute"]),
        ([-0.3, -0.1], {"overhead": [1, 0.5], "bandwidth": [-1, -0.5], "compute": [0, 0]}, ["bandwidth"]),
        ([0.3, 0.0], {"overhead": [1, 0], "bandwidth": [-1, 0.01], "compute": [0, 0.01]}, ["bandwidth"]),
        ([0.0, 0.2], {"overhead": [1, 0], "bandwidth": [-1, 0], "compute": [0, -1]}, ["compute"]),
        ([0.1, 0.1], {"overhead": [0, 0], "bandwidth": [0, 0], "compute": [0, 0]}, []),
        ([0.1], {"overhead": [1], "bandwidth": [-1], "compute": [-0.1]}, ["bandwidth"]),
    ],
)
def test_choice_is_what_explains_the_run_with_the_fewest_parameters(
    base: list[float], slopes: dict[str, list[float]], chosen: list[str]
) -> None:
    gpu = resolve_text(SCENARIO).gpu
    assert gpu is not None
    columns = {name: np.array(slope, float) for name, slope in slopes.items()}
    found, note = choose(np.array(base), columns, parameters(gpu, 0.01))
    assert found == chosen
    assert bool(note) == (len(chosen) == 1)


# Replaying


def observed_of(**changes: Any) -> Observed:
    return replace(read_observed(str(FILES / "vllm-bench.json")), **changes)


def test_replay_of_sums_has_their_means_and_their_rate() -> None:
    resolved = resolve_text(SCENARIO)
    asked = asked_of(observed_of(requests=400, prompt_tokens=200_000, output_tokens=40_000, rate_per_s=5.0), resolved)
    assert np.mean(asked.prompt_tokens) == pytest.approx(500, rel=0.01)
    assert np.mean(asked.output_tokens) == pytest.approx(100, rel=0.01)
    assert len(set(asked.prompt_tokens)) > 20, "the scenario's own spread"
    assert asked.arrival_s[-1] == pytest.approx(80, rel=0.02)


@pytest.mark.parametrize(("rate", "bound"), [(inf, 4), (40.0, 4), (inf, None)])
def test_replay_never_has_more_in_flight_than_was_allowed(rate: float, bound: int | None) -> None:
    resolved = resolve_text(SCENARIO)
    asked = asked_of(observed_of(requests=40, prompt_tokens=20_000, output_tokens=2_000, rate_per_s=rate,
                                 concurrency=bound), resolved)  # fmt: skip
    data = simulate(system_config(resolved), Replayed(asked))
    arrivals, ends = np.sort(data.requests["arrival_s"]), np.sort(data.requests["finish_s"])
    assert len(ends) == 40
    in_flight = [n + 1 - np.searchsorted(ends, at, side="right") for n, at in enumerate(arrivals)]
    assert max(in_flight) == (bound if bound is not None else 40)


def test_replay_keeps_recorded_times_unless_others_were_waited_for() -> None:
    rows = Rows((10, 20), (2, 2), (0.0, 7.0))
    resolved = resolve_text(SCENARIO)
    assert asked_of(observed_of(rows=rows), resolved).arrival_s == (0.0, 7.0)
    assert asked_of(observed_of(rows=rows, concurrency=1, rate_per_s=inf), resolved).arrival_s == (0.0, 0.0)


def test_replay_counts_what_it_cannot_serve() -> None:
    rows = Rows((10, 9000), (2, 2), (0.0, 1.0))
    assert replay(observed_of(rows=rows, requests=2), WRITTEN, Measured())["rejected"] == 1


# Planning from there


def gpu_values(resolved: Resolved, *names: str) -> list[float]:
    assert resolved.gpu is not None
    return [resolved.gpu.value(name) for name in names]


def test_case_with_a_measured_machine_is_another_case_of_the_corrected_figures() -> None:
    plain, corrected = Case(WRITTEN).resolve(), Case(WRITTEN, measured=TRUTH).resolve()
    assert key_of(plain, 0) != key_of(corrected, 0)
    assert gpu_values(corrected, "step_overhead_s") == [OVERHEAD_S]
    assert gpu_values(corrected, *COMPUTE) == [FACTOR * value for value in gpu_values(plain, *COMPUTE)]
    figure = corrected.gpu.figure(COMPUTE[0])  # type: ignore[union-attr]
    assert figure.standing == "fitted"
    assert key_of(Case(WRITTEN).resolve(), 0) == key_of(plain, 0)


def test_measured_efficiency_carries_over_to_another_gpu_as_a_factor(two_parameters: Fitted) -> None:
    other = resolve_text(SCENARIO, assignments=["hardware=a100-sxm4-80gb"])
    applied = two_parameters.apply(other)
    before, after = gpu_values(other, COMPUTE[0]), gpu_values(applied, COMPUTE[0])
    own = fitted_value(two_parameters, COMPUTE[0]) / catalogue(COMPUTE[0])
    assert after[0] / before[0] == pytest.approx(own)
    assert any("other GPUs" in note for note in two_parameters.notes)
    assert applied.gpu is not None and "requests.jsonl" in applied.gpu.figure(COMPUTE[0]).source


def test_measured_efficiency_of_another_gpu_stays_a_share() -> None:
    faster = as_measured(resolve_text(SCENARIO), Measured((), ((BANDWIDTH[1], exp(1)),), "x"))
    assert gpu_values(faster, BANDWIDTH[1]) == [1.0]


def test_measured_machine_on_step_times_of_a_profile_is_refused(shipped: Callable[[], Resolved]) -> None:
    with pytest.raises(InputError, match="has measured step times already"):
        as_measured(shipped(), TRUTH)


@pytest.fixture
def shipped() -> Callable[[], Resolved]:
    from simkv.scenario.resolve import resolve

    return lambda: resolve(str(Path(__file__).parents[1] / "scenarios" / "calibrated-small.yaml"))


@pytest.mark.shared
def test_fit_of_a_measured_vllm_run_predicts_it_better(shared: Path) -> None:
    traces = shared / "traces" / "vllm_measured"
    path = Path(__file__).parents[1] / "scenarios" / "vllm-rtx4090-llama-3.1-8b.yaml"
    trace = traces / "sharegpt-llama-3.1-8b-300.jsonl"
    written = Written.read(str(path), (f"workload.path={trace}",))
    observed = read_observed(str(traces / "RTX4090" / "Llama-3.1-8B" / "requests.jsonl"))
    assert observed.requests == 300
    assert observed.figures["ttft_s.mean"] == pytest.approx(65.46, abs=0.01)
    assert observed.figures["ttft_s.p95"] == pytest.approx(122.74, abs=0.01)
    assert observed.figures["tpot_s.mean"] == pytest.approx(0.0324, abs=1e-4)
    assert observed.duration_s == pytest.approx(183.6, abs=0.1)
    fitted = fit(observed, written)
    for residual in fitted.residuals:
        print(f"{residual.figure}: {residual.error_before:+.1%} -> {residual.error_after:+.1%}")
    assert fitted.error_after < 0.8 * fitted.error_before
    assert fitted.error_after < 0.035
