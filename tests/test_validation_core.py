"""Case files read with distrust, cases asked, and what their errors are held to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError, Problem
from simkv.jobs.job import Job, Outcome
from simkv.jobs.workers import Workers
from simkv.validation import study as studying
from simkv.validation.answer import answer_of, text_of
from simkv.validation.asks.names import CALLED, check_names
from simkv.validation.expected import UNITS, expected_figure, expected_si, written
from simkv.validation.groups import ANY_KIND, GROUPS, MEASURED
from simkv.validation.judge import tally, targets, within
from simkv.validation.read import own_cases, read_cases
from simkv.validation.study import Judged
from tests.validation_factory import SCENARIO, case, case_file, read_one, row, seen, studied

# ---- figures as they are written ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "si", "unit"),
    [
        ("266 ms", 0.266, "ms"),
        (0.266, 0.266, ""),
        ("1.5e3 tokens/s", 1500.0, "tokens/s"),
        ("-6 %", -0.06, "%"),
        ("8 GiB", 2.0**33, "GiB"),
        (3, 3.0, ""),
        ("4,205.5 tokens/s", 4205.5, "tokens/s"),
        ("12,345,678", 12345678.0, ""),
        ("0.5 sec", 0.5, "s"),
        ("20 tok/sec", 20.0, "tokens/s"),
        ("3 QPS", 3.0, "req/s"),
        ("70 ktok/s", 70000.0, "ktok/s"),
        ("3k tok/s", 3000.0, "ktokens/s"),
        ("1.2 k tokens / s", 1200.0, "ktokens/s"),
        ("90 tok/min", 1.5, "tokens/min"),
        ("250 usec", 0.00025, "us"),
    ],
)
def test_expected_figure_with_its_unit_is_si(given: object, si: float, unit: str) -> None:
    found = expected_figure(given)
    assert found.value == pytest.approx(si) and found.unit == unit


@pytest.mark.parametrize(
    "given",
    [
        "fast",
        "1 lightyear",
        "",
        "nan",
        "1e999",
        "12 ms later",
        "0,4 s",
        "4,20 s",
        "400-500 ms",
        float("nan"),
        10**400,
        True,
    ],
)
def test_expected_figure_that_is_none_says_how_to_write_it(given: object) -> None:
    with pytest.raises(InputError) as raised:
        expected_si(given)
    [problem] = raised.value.problems
    assert problem.path == "expected" and problem.mend and problem.value


@given(st.floats(1e-3, 1e9), st.sampled_from(sorted(UNITS)))
def test_written_figure_reads_back(number: float, unit: str) -> None:
    text = written(number * UNITS[unit], unit).replace(",", "")
    assert expected_si(text) == pytest.approx(number * UNITS[unit], rel=1e-3)


# ---- files --------------------------------------------------------------------------------------


def huge() -> dict[str, Any]:
    """Return a scenario of far too many requests."""
    many = {"kind": "plain", "requests": 10**9, "arrival": {"process": "poisson", "rate": "1 req/s"}}
    return SCENARIO | {"workload": many | {"prompt_tokens": 8, "output_tokens": 4}}


def problems(path: Path, data: Path | None = None) -> list[Problem]:
    with pytest.raises(InputError) as raised:
        studied(path, data)
    return raised.value.problems


@pytest.mark.parametrize(
    ("changes", "path", "what", "mend"),
    [
        ({"observations": [seen(expected="3 parsec")]}, "observations.0.expected", "unit", "ms"),
        ({"observations": [seen(expected=0)]}, "observations.0.expected", "zero", "difference"),
        ({"observations": [seen(expected=True)]}, "observations.0.expected", "no number", "266 ms"),
        ({"observations": [seen(), seen()]}, "observations.1", "observations.0", "label"),
        ({"observations": [seen(because="")]}, "observations.0.because", "empty", "give"),
        ({"observations": [seen(tolerance=-1)]}, "observations.0.tolerance", "too small", "least"),
        ({"observations": [seen(metrics="x")]}, "observations.0.metrics", "unknown key", "metric"),
        ({"observations": []}, "observations", "empty", "one"),
        ({"group": "computing"}, "group", "choices", "compute"),
        ({"group": "queueing"}, "observations.0.tolerance", "missing", "tolerance: 0.02"),
        ({"id": "two words"}, "id", "not a name", "letters"),
        ({"calc": {}}, "", "scenario and calc", "one of"),
        ({"scenario": None}, "", "nothing", "one of"),
        ({"scenario": None, "queue": {}, "seeds": 3}, "seeds", "does nothing", "leave it out"),
        ({"scenario": None, "step": {}, "data": {"a": "b"}}, "data", "does nothing", "leave it out"),
        ({"seeds": 0}, "seeds", "too small", "least"),
        ({"scenario": SCENARIO | {"modle": "x"}}, "scenario.modle", "unknown key", "model"),
        ({"scenario": SCENARIO | {"engine": {"preset": "vlm"}}}, "scenario.engine.preset", "choices", "vllm"),
        ({"scenario": huge()},
         "scenario.workload.requests", "this run takes", "lower it"),
        ({"scenario": "chatbott"}, "scenario", "no scenario", "chatbot"),
        ({"observations": [seen(set={"engine.max_num_sequences": 3})]},
         "observations.0.set.engine.max_num_sequences", "unknown key", "max_num_seqs"),
        ({"observations": [seen(set={"workload.size": "many"})]}, "observations.0.set.workload.size", "", ""),
        ({"observations": [seen(expected=2, relative_to={"set": {"workload.sizes": 1}})]},
         "observations.0.relative_to.set.workload.sizes", "unknown key", "size"),
        ({"observations": [seen(metric="ttft_s.p51")]}, "observations.0.metric", "", "docs/results.md"),
        ({"observations": [seen(metric="ttft_s")]}, "observations.0.metric", "no metric", "ttft_s.mean"),
        ({"observations": [seen(metric="mean_ttft")]}, "observations.0.metric", "no metric", "ttft_s.mean"),
        ({"observations": [seen(metric="tokens_per_s", expected=3)]},
         "observations.0.metric", "no metric", "total_tokens_per_s"),
        ({"observations": [seen(metric="turn.1.tft_s")]}, "observations.0.metric", "no metric", "turn.0.ttft_s"),
        ({"scenario": SCENARIO | {"workload": {"kind": "trace", "path": "gone.jsonl"}}},
         "scenario.workload.path", "no such file", "--data"),
        ({"observations": [seen(relative_to={"metric": "hits"})]},
         "observations.0.relative_to.metric", "", "docs/results.md"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_file_with_a_fault_names_place_and_mend(
    tmp_path: Path, changes: dict[str, Any], path: str, what: str, mend: str
) -> None:
    file = case_file(tmp_path, case(id="first"), {k: v for k, v in case(**changes).items() if v is not None})
    [problem] = problems(file)
    assert problem.file == str(file) and problem.line and problem.line > 15
    assert problem.path == ".".join(filter(None, ("cases.1", path)))
    assert what in problem.what and mend in problem.mend


def test_fault_of_a_section_names_the_case(tmp_path: Path) -> None:
    [problem] = problems(case_file(tmp_path, case(scenario=SCENARIO | {"engine": {"preset": "vlm"}})))
    assert "case two" in problem.what and problem.value == '"vlm"'


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    wrong = case(scenario=SCENARIO | {"a": 1}, observations=[seen(set={"b.c": 1})])
    assert len(problems(case_file(tmp_path, wrong, case(id="other", scenario="nowhere")))) == 3


def test_id_given_twice_is_refused(tmp_path: Path) -> None:
    [problem] = problems(case_file(tmp_path, case(), case()))
    assert problem.path == "cases.1.id" and "cases.0" in problem.what and problem.value == "two"


@pytest.mark.parametrize("content", ["", "[1]", "simkv_cases: 2\ncases: []", "cases: {}", "a: &b [*b]", "\x00", "{"])
def test_file_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(content, "utf-8")
    with pytest.raises(InputError) as raised:
        read_cases(str(path))
    assert all(found.file == str(path) and "simkv init" not in found.mend for found in raised.value.problems)


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("throughput", "did you mean output_tokens_per_s, total_tokens_per_s, requests_per_s?"),
        ("slo.attainment", "did you mean slo_attainment.overall?"),
        ("hit_rate.cpu", "did you mean hit_rate.dram? hit_rate has vram, dram,"),
        ("hit_rate", "hit_rate.miss, hit_rate.ceiling, hit_rate.total"),
        ("hit_rate.overall", "did you mean hit_rate.total?"),
        ("ttft_s.median", "did you mean ttft_s.p50?"),
        ("ttft_ms.avg", "did you mean ttft_s.mean?"),
        ("P99_TTFT", "did you mean ttft_s.p99?"),
        ("ttft", "did you mean ttft_s.mean, ttft_s.p50,"),
        ("max_rate", "no single run"),
        ("utilization.link", "utilization has gpu, h2d, d2h"),
        ("foo", "docs/results.md"),
    ],
)
def test_metric_as_others_call_it_is_told_by_ours(name: str, mend: str) -> None:
    with pytest.raises(InputError) as raised:
        check_names([name])
    [problem] = raised.value.problems
    assert mend in problem.mend and problem.what == "is no metric"


def test_metrics_that_mends_name_are_metrics() -> None:
    check_names({name for names in CALLED.values() for name in names})


# ---- cases asked --------------------------------------------------------------------------------


def test_prediction_is_that_of_the_run(tmp_path: Path) -> None:
    [found] = studied(case_file(tmp_path, case()))
    assert found.predicted == pytest.approx(0.4) and found.error == pytest.approx(0, abs=1e-12)
    assert found.id == "two: makespan_s"


def test_settings_are_laid_over_the_scenario(tmp_path: Path) -> None:
    longer = seen(set={"workload.output_tokens": 8, "hardware.step_time": "50ms"}, label="8 steps")
    found = studied(case_file(tmp_path, case(observations=[seen(), longer])))
    assert [one.predicted for one in found] == pytest.approx([0.4, 0.4])
    assert found[1].id == "two: 8 steps"


@pytest.mark.parametrize(("change", "expected"), [(False, 2.0), (True, 1.0)])
def test_relative_figure_is_a_ratio_or_a_change(tmp_path: Path, change: bool, expected: float) -> None:
    base = {"set": {"workload.output_tokens": 4}, "change": change}
    asked = seen(expected=expected, set={"workload.output_tokens": 8}, relative_to=base)
    [found] = studied(case_file(tmp_path, case(observations=[asked])))
    assert found.predicted == pytest.approx(expected) and found.error == pytest.approx(0, abs=1e-12)


def test_relative_figure_may_be_to_another_metric(tmp_path: Path) -> None:
    asked = seen(metric="ttft_s.mean", expected=0.25, relative_to={"metric": "makespan_s"})
    [found] = studied(case_file(tmp_path, case(observations=[asked])))
    assert found.predicted == pytest.approx(0.25) and found.id == "two: ttft_s.mean relative to makespan_s"


def test_figure_relative_to_nothing_has_failed(tmp_path: Path) -> None:
    [found] = studied(case_file(tmp_path, case(observations=[seen(relative_to={"metric": "preemptions"})])))
    assert found.status == "failed" and found.predicted is None and "finite" in found.why


def test_error_of_hit_curves_is_a_difference(tmp_path: Path) -> None:
    asked = case(group="hit_curves", observations=[seen(metric="hit_rate.miss", expected="98 %")])
    [found] = studied(case_file(tmp_path, asked))
    assert found.predicted == 1.0 and found.error == pytest.approx(0.02)


def test_infeasible_scenario_has_failed_and_others_are_judged(tmp_path: Path) -> None:
    large = SCENARIO | {"model": "llama-3.1-70b", "hardware": "t4"}
    found = studied(case_file(tmp_path, case(id="large", scenario=large), case()))
    assert [one.status for one in found] == ["failed", "judged"]
    assert "llama-3.1-70b" in found[0].why and found[0].error is None


@pytest.mark.parametrize(("metric", "expected"), [("requests.0-0.e2e_s", 0.4), ("requests.0-1.e2e_s.max", 0.4)])
def test_some_requests_have_figures_of_their_own(tmp_path: Path, metric: str, expected: float) -> None:
    [found] = studied(case_file(tmp_path, case(observations=[seen(metric=metric)])))
    assert found.predicted == pytest.approx(expected)


def done(monkeypatch: pytest.MonkeyPatch, *cases: dict[str, Any], folder: Path) -> tuple[list[str], list[Judged]]:
    """Return whose runs are done, in order, and the rows."""
    begun: list[str] = []

    def noted(jobs: Sequence[Job], workers: Workers) -> Iterator[Outcome]:
        begun.extend(job.label for job in jobs)
        return execute(jobs, workers)

    execute = studying.execute
    monkeypatch.setattr(studying, "execute", noted)
    return begun, studied(case_file(folder, *cases))


def test_cases_that_ask_the_same_share_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = case(
        id="other", scenario=SCENARIO | {"name": "other"}, group="cross_check", observations=[seen(metric="e2e_s.mean")]
    )
    begun, rows = done(monkeypatch, case(), other, folder=tmp_path)
    assert begun == ["two"] and [row.predicted for row in rows] == pytest.approx([0.4, 0.4])
    assert [row.id for row in rows] == ["two: makespan_s", "other: e2e_s.mean"]


def test_shared_run_without_a_figure_fails_who_asked_for_it(tmp_path: Path) -> None:
    other = case(id="other", scenario=SCENARIO | {"name": "other"}, observations=[seen(metric="turn.3.ttft_s")])
    found = studied(case_file(tmp_path, case(), other))
    assert [(row.case.id, row.status) for row in found] == [("two", "judged"), ("other", "failed")]
    assert "turn 3" in found[1].why


def test_longest_runs_are_begun_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sized = [case(id=f"n{size}", scenario=SCENARIO | {"workload": SCENARIO["workload"] | {"size": size}})
             for size in (10, 1000, 100)]  # fmt: skip
    begun, rows = done(monkeypatch, *sized, folder=tmp_path)
    assert begun == ["n1000", "n100", "n10"] and [row.case.id for row in rows] == ["n10", "n1000", "n100"]


def test_scenario_by_path_is_from_the_case_files_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(json.dumps(SCENARIO), "utf-8")
    [found] = studied(case_file(tmp_path, case(scenario="mine.yaml")))
    assert found.predicted == pytest.approx(0.4)


def test_fault_in_a_scenario_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(json.dumps(SCENARIO | {"modle": 1}), "utf-8")
    [problem] = problems(case_file(tmp_path, case(scenario="mine.yaml")))
    assert problem.file == str(tmp_path / "mine.yaml") and "case two" in problem.what


def test_scenario_by_name_is_one_that_comes_with_simkv(tmp_path: Path) -> None:
    asked = seen(expected=527.0, metric="baselines.no_prefetch.makespan_s")
    [found] = studied(case_file(tmp_path, case(scenario="article-toy", observations=[asked])))
    assert found.predicted == 527.0


def trace_case(tmp_path: Path) -> Path:
    scenario = SCENARIO | {"workload": {"kind": "trace"}}
    observations = [seen(metric="requests.finished", expected=1), seen()]
    return case_file(
        tmp_path, case(scenario=scenario, data={"workload.path": "a/t.jsonl"}, observations=observations), case(id="b")
    )


def test_case_without_its_data_is_skipped(tmp_path: Path) -> None:
    for data in (None, tmp_path):
        found = studied(trace_case(tmp_path), data)
        assert [one.status for one in found] == ["skipped", "skipped", "judged"]
        assert "a/t.jsonl" in found[0].why and found[0].predicted is None


def test_case_with_its_data_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    line = {"timestamp": 0, "input_length": 5, "output_length": 2, "hash_ids": [1]}
    (tmp_path / "a" / "t.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    assert [one.status for one in studied(trace_case(tmp_path), tmp_path)] == ["judged"] * 3


def test_data_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    [problem] = problems(case_file(tmp_path, case()), tmp_path / "nowhere")
    assert problem.path == "--data"


def test_seeds_are_averaged(tmp_path: Path) -> None:
    plain = {
        "kind": "plain", "requests": 20, "arrival": {"process": "poisson", "rate": "3 req/s"}, "prompt_tokens": 4,
        "output_tokens": 4,
    }  # fmt: skip
    scenario = SCENARIO | {"workload": plain}

    def mean(seeds: int, seed: int) -> float:
        asked = case(scenario=scenario | {"run": {"seed": seed}}, seeds=seeds)
        [found] = studied(case_file(tmp_path, asked))
        assert found.predicted is not None
        return found.predicted

    assert mean(2, 5) == pytest.approx((mean(1, 5) + mean(1, 6)) / 2) and mean(1, 5) != mean(1, 6)


# ---- judging ------------------------------------------------------------------------------------

errors = st.floats(-0.9, 5).map(lambda x: round(x, 6))
rows = st.lists(
    st.builds(
        row,
        st.sampled_from([group.name for group in GROUPS if not group.each]),
        errors,
        fitted=st.booleans(),
        kind=st.sampled_from(["a", "b", None]),
    ),
    max_size=20,
)


@given(rows)
def test_tally_leaves_fitted_rows_out(found: list[Judged]) -> None:
    counted = tally(found)
    free = [abs(one.error or 0) for one in found if not one.observation.fitted]
    assert counted.judged == len(free) and counted.judged + counted.fitted == counted.observations
    assert counted.median == (pytest.approx(median(free)) if free else None)
    assert counted.largest == (max(free) if free else None)


@given(rows)
def test_targets_hold_exactly_where_medians_do(found: list[Judged]) -> None:
    held = {target.name: target for target in targets(found)}
    for group in GROUPS:
        free = [abs(one.error or 0) for one in found if one.case.group == group.name and not one.observation.fitted]
        target = held.pop(f"median error of {group.name}", None)
        assert (target is not None) == bool(free)
        assert target is None or target.holds == (median(free) <= (group.target or 0))
    for name, limit in (("published", MEASURED), ("kind", ANY_KIND)):
        for target in (one for one in held.values() if name in one.name):
            assert target.limit == limit and target.value is not None and target.holds == (target.value <= limit)


@given(rows)
def test_answer_is_what_the_rows_are(found: list[Judged]) -> None:
    answer = json.loads(text_of(answer_of(found)))
    cases = [one for group in answer["groups"] for one in group["cases"]]
    assert len(cases) == len(found) == answer["summary"]["observations"]
    for group in answer["groups"]:
        for one in group["cases"]:
            off = one["predicted"] - one["expected"] if group["difference"] else one["predicted"] / one["expected"] - 1
            assert one["error"] == pytest.approx(off, abs=1e-9)
            assert one["pass"] == (abs(one["error"]) <= one["tolerance"])
    assert answer["summary"]["pass"] == all(target["pass"] for target in answer["summary"]["targets"])
    assert len(answer["summary"]["misses"]) == sum(one["pass"] is False and not one["fitted"] for one in cases)


def test_group_held_case_by_case_falls_with_one(tmp_path: Path) -> None:
    good, bad = row("formulas", 0.0), row("formulas", 1e-6)
    assert [target.holds for target in targets([good, good])] == [True]
    [target] = targets([good, bad, good])
    assert not target.holds and target.value == 1 and target.of == "cases"
    assert within(row("formulas", 1e-6, tolerance=1e-3)) is True


def test_median_that_holds_with_a_failed_case_is_missed() -> None:
    rows = [row(error=0.01), row(error=0.01), row(error=None, status="failed")]
    for some in (rows, rows[2:]):
        held = {target.name: target.holds for target in targets(some)}
        assert held["median error of compute"] is held["median error of all published measurements"] is False


def test_skipped_group_is_not_judged_and_does_not_fail() -> None:
    rows = [row(error=None, status="skipped")]
    answer = answer_of(rows)
    assert targets(rows) == [] and answer["summary"]["pass"] and answer["groups"][0]["summary"]["pass"] is None


def test_fitted_rows_alone_are_not_judged() -> None:
    assert targets([row(error=3.0, fitted=True)]) == []


def test_miss_has_its_cause() -> None:
    rows = [row(error=0.9, because="a reason"), row(error=0.1, because="no miss")]
    [miss] = answer_of(rows)["summary"]["misses"]
    assert miss["because"] == "a reason" and miss["error"] == 0.9 and miss["limit"] == ANY_KIND


def test_worst_kind_is_named() -> None:
    rows = [row(error=0.1, kind="good"), row("batch_offload", 0.9, kind="bad"), row("cross_check", 9.0, kind="other")]
    target = targets(rows)[-1]
    assert target.worst == "bad" and target.value == 0.9 and not target.holds


# ---- cases that come with simkv -----------------------------------------------------------------


def test_own_cases_are_valid_and_have_different_ids() -> None:
    ids = [read.case.id for read in own_cases()]
    assert len(ids) == len(set(ids))


def test_own_measured_cases_have_a_source() -> None:
    measured = {group.name for group in GROUPS if group.measured or group.name == "cross_check"}
    without = [read.case.id for read in own_cases() if read.case.group in measured and read.case.source is None]
    assert without == []


def test_case_knows_its_line(tmp_path: Path) -> None:
    read = read_one(case_file(tmp_path, case()))
    text = (tmp_path / "cases.yaml").read_text("utf-8").splitlines()
    line = read.line_of(("observations", "0", "metric"))
    assert line is not None and '"metric": "makespan_s"' in text[line - 1]
