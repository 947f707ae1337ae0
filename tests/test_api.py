"""What ``import simkv`` offers: scenarios, runs, sweeps, plans, curves, hit rates, closed forms, calibrations."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import simkv
from simkv.simulation import run_scenario
from tests.planner_factory import SMALL

ROOT = Path(__file__).parents[1]
TEXT = SMALL.replace("requests: 400", "requests: 40") + "tiers: {dram: {capacity: 1GiB}}\nrun: {warm_up: 0s}\n"
PROFILE = ROOT / "calibration" / "amd-epyc-2-cores.json"
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def small() -> simkv.Scenario:
    return simkv.load_scenario(TEXT)


@pytest.fixture(scope="module")
def run(small: simkv.Scenario) -> simkv.Run:
    return simkv.run(small)


@pytest.fixture(scope="module")
def sweep(small: simkv.Scenario) -> simkv.Sweep:
    return simkv.sweep(small, {"tiers.dram.capacity": ["0GiB", "1GiB"], "workload.think_time": "1s,4s"}, jobs=1)


# ---- scenarios --------------------------------------------------------------------------------


def test_scenario_from_file_and_from_its_text_are_the_same() -> None:
    path = ROOT / "scenarios" / "chatbot.yaml"
    from_file, from_text = simkv.load_scenario(path), simkv.load_scenario(path.read_text("utf-8"))
    assert from_file.hash == from_text.hash == simkv.load_scenario(str(path)).hash
    assert from_file.name == "chatbot" and "DRAM" in from_file.question


def test_scenario_explained_tells_where_each_value_is_from(small: simkv.Scenario) -> None:
    changed = small.with_({"workload.requests": 10}, tiers__dram__capacity="2GiB")
    rows = changed.explain()
    assert tuple(rows.loc["tiers.dram.capacity"]) == ("2GiB", "set")
    assert tuple(rows.loc["workload.requests"]) == ("10", "set")
    assert rows.loc["model", "origin"] == "scenario"
    assert small.explain().loc["tiers.dram.capacity", "value"] == "1GiB", "the first one stays as it is"
    assert changed.hash != small.hash and small.with_({"workload.requests": 40}).hash == small.hash


@pytest.mark.parametrize(
    ("value", "written"),
    [(np.float64(0.25), "0.25"), (np.int64(3), "3"), (None, "null"), (True, "true"), ("64GiB", "64GiB"),
     ([1, 2.5], "[1, 2.5]"), ({"policy": "lru"}, '{"policy": "lru"}'), (Path("a b.yaml"), "a b.yaml"),
     (float("inf"), ".inf"), (np.array([1, 2]), "[1, 2]")],
)  # fmt: skip
def test_settings_of_any_plain_kind_are_written_as_a_scenario_has_them(value: object, written: str) -> None:
    from simkv.api.given import assignments

    assert assignments({"a.b": value}) == (f"a.b={written}",)


def test_settings_as_texts_and_as_mapping_are_the_same(small: simkv.Scenario) -> None:
    texts = simkv.load_scenario(TEXT, ["tiers.dram.capacity=2GiB", "offload.eviction={policy: lfu}"])
    mapping = simkv.load_scenario(TEXT, {"tiers.dram.capacity": "2GiB", "offload.eviction": {"policy": "lfu"}})
    assert texts.hash == mapping.hash != small.hash


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: simkv.load_scenario(TEXT, {"tiers.dram.capacity": "64 GB/s"}), 'set: tiers.dram.capacity = "64 GB/s"'),
        (lambda: simkv.load_scenario(TEXT, "a=1"), "set"),
        (lambda: simkv.load_scenario(TEXT, [1]), "PATH=VALUE"),
        (lambda: simkv.load_scenario(TEXT, {"model": object()}), "is no value of a scenario"),
        (lambda: simkv.load_scenario("nowhere.yaml"), "nowhere.yaml"),
        (lambda: simkv.load_scenario(7), "is no scenario"),
        (lambda: simkv.load_scenario("scenarios/chatbot.yaml", folder="x"), "folder"),
        (lambda: simkv.run(TEXT, {"run.replications": 3}), "simkv.sweep"),
        (lambda: simkv.run(TEXT, trace=("9s", "1s")), "trace"),
        (lambda: simkv.sweep(TEXT), "grid: nothing varies"),
        (lambda: simkv.sweep(TEXT, {"tiers.dram.capacty": [1]}), "grid.tiers.dram.capacty"),
        (lambda: simkv.sweep(TEXT, {"seed": [1, 2]}, jobs=0), "jobs = 0"),
        (lambda: simkv.plan(TEXT), "plan"),
        (lambda: simkv.plan(TEXT, emit=["tgi"]), "emit = tgi"),
        (lambda: simkv.curves_of(TEXT, points=1), "points = 1"),
        (lambda: simkv.curves_of(TEXT, only=["alpha"]), "only = alpha"),
        (lambda: simkv.hit_rates("nowhere.jsonl"), "nowhere.jsonl"),
        (lambda: simkv.calibration("scenarios/chatbot.yaml"), "chatbot.yaml"),
        (lambda: simkv.kv_size("llama-3.1-8", "1k"), "llama-3.1-8b"),
        (lambda: simkv.kv_size("llama-3.1-8b", 0), "tokens = 0"),
        (lambda: simkv.concurrency("40", "10 GB"), "free"),
        (lambda: simkv.concurrency("40 GB", float("nan")), "sequence"),
        (lambda: simkv.speedup("1 s"), "transfer"),
        (lambda: simkv.speedup("1 s", "2 s", size="1 GB", bandwidth="1 GB/s"), "transfer"),
        (lambda: simkv.speedup("1 s", "2 s", beta=2.0), "beta"),
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_told_by_their_name(call, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(simkv.InputError) as error:
        call()
    assert told in str(error.value)
    assert "--" not in str(error.value)


def test_scenario_that_does_not_fit_says_what_would() -> None:
    with pytest.raises(simkv.InfeasibleError, match="fits with"):
        simkv.load_scenario(TEXT, {"model": "llama-3.1-70b", "engine.num_gpu_blocks": None})


# ---- runs -------------------------------------------------------------------------------------


def test_run_equals_that_of_the_simulator(small: simkv.Scenario, run: simkv.Run) -> None:
    same = run_scenario(small.resolved)
    assert run.summary == same.summary
    assert len(run.requests) == run.summary["requests"]["finished"] == 40
    assert run.latencies.loc["TTFT", "mean"] == run.summary["ttft_s"]["mean"]
    assert list(run.timeseries["t_s"]) == sorted(run.timeseries["t_s"])
    assert run.verdict == run.summary["verdict"]["because"] and "TTFT" in repr(run) + run._repr_html_()


def test_run_seed_given_wins(small: simkv.Scenario, run: simkv.Run) -> None:
    other = simkv.run(small, seed=5)
    assert other.summary["seed"] == 5 and other.summary["e2e_s"] != run.summary["e2e_s"]
    assert other.summary["e2e_s"] == simkv.run(small, {"run.seed": 5}).summary["e2e_s"]


def test_run_saved_is_what_the_command_line_writes(run: simkv.Run, tmp_path: Path) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(TEXT, "utf-8")
    subprocess.run(
        [sys.executable, "-m", "simkv", "run", str(scenario), "--out", str(tmp_path / "command")], check=True,
        capture_output=True, cwd=ROOT,
    )  # fmt: skip
    saved = run.save(tmp_path / "saved")
    for name in ("summary.json", "scenario.resolved.yaml", "recording.json", "requests.parquet"):
        assert (saved / name).read_bytes() == (tmp_path / "command" / name).read_bytes(), name
    other = run.scenario.with_(name="other", workload__requests=5)
    with pytest.raises(simkv.InputError, match=r"out = .*small"):
        simkv.run(other).save(saved)


def test_run_pictures_are_those_of_its_report(run: simkv.Run, tmp_path: Path) -> None:
    for picture in (run.plot_latency(), run.plot_waterfall(), run.plot_hits(), run.plot_over_time("occupancy")):
        assert picture._repr_png_()[:4] == PNG and picture.finding in repr(picture)
        assert len(picture._repr_png_()) < 60_000
    assert run.plot_waterfall().data is not None and len(run.plot_waterfall().data) >= 3
    assert run.plot_hits().save(tmp_path / "hits.svg").read_text("utf-8").startswith("<?xml")
    with pytest.raises(simkv.InputError, match="png or"):
        run.plot_hits().save(tmp_path / "hits.gif")
    with pytest.raises(simkv.InputError, match="waterfall"):
        run.plot_latency("ttfb")


def test_run_reported_and_traced_has_both_files(small: simkv.Scenario, run: simkv.Run, tmp_path: Path) -> None:
    traced = simkv.run(small, trace=True)
    assert traced.summary == run.summary
    events = json.loads(traced.save_trace(tmp_path / "trace.json").read_bytes())["traceEvents"]
    assert len(events) > 100
    with pytest.raises(simkv.InputError, match="trace=True"):
        run.save_trace(tmp_path / "no.json")
    files = run.report(tmp_path / "report", ["html", "md"])
    assert {"report.html", "report.md"} <= {path.name for path in files}


def test_run_interrupted_raises() -> None:
    def stop(share: float, doing: str) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        simkv.run(TEXT, {"workload.requests": 20_000}, progress=stop)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_run_of_days_is_refused_unless_one_insists() -> None:
    endless = {"workload.requests": 10**9}
    for ask in (simkv.run, simkv.curves_of):
        with pytest.raises(simkv.InputError, match=r"this run takes about .*give long=True") as refused:
            ask(TEXT, endless)
        assert refused.value.problems[0].path == "workload.requests"
    with pytest.raises(simkv.InputError, match=r"this run takes about .*give long=True"):
        simkv.sweep(TEXT, {"tiers.dram.capacity": ["1GiB", "2GiB"]}, endless)

    def stop(share: float, doing: str) -> None:
        raise StopIteration(doing)

    with pytest.raises(StopIteration, match=r"this run takes about .* 1,000,000,000 requests"):
        simkv.run(TEXT, endless, long=True, progress=stop)


def test_run_that_is_over_soon_says_nothing_of_its_length() -> None:
    told: list[str] = []
    simkv.run(TEXT, {"workload.requests": 20}, progress=lambda share, doing: told.append(doing))
    assert not any(told)


def test_run_names_that_are_hostile_come_out_escaped() -> None:
    found = simkv.run(TEXT, {"name": "<script>alert(1)</script>" + "x" * 20, "workload.requests": 5})
    assert "<script>" not in found._repr_html_() and "&lt;script&gt;" in found.scenario._repr_html_()


# ---- sweeps, plans, curves --------------------------------------------------------------------


def test_sweep_points_equal_runs(small: simkv.Scenario, sweep: simkv.Sweep) -> None:
    assert len(sweep.points) == 4 and set(sweep.points["status"]) == {"done"}
    one = sweep.points[
        (sweep.points["params.tiers.dram.capacity"] == "0GiB") & (sweep.points["params.workload.think_time"] == "4s")
    ]
    alone = simkv.run(small, {"tiers.dram.capacity": "0GiB", "workload.think_time": "4s"})
    assert one["ttft_s.mean"].item() == alone.summary["ttft_s"]["mean"]
    assert "4 points" in repr(sweep) and "tiers.dram.capacity" in sweep._repr_html_()


def test_sweep_pictures_and_tables_tell_what_they_are_of(sweep: simkv.Sweep) -> None:
    lines = sweep.plot_metric("ttft_s.mean", over="workload.think_time")
    assert lines._repr_png_()[:4] == PNG and "workload.think_time" in lines.finding
    cloud = sweep.plot_pareto("concurrency.mean:min,output_tokens_per_s:max")
    assert cloud._repr_png_()[:4] == PNG and "2 of 4 settings" in cloud.finding and cloud.note.startswith("1: ")
    assert list(sweep.table("ttft_s.p95").columns)[-1] == "ttft_s.p95"
    for wrong in (lambda: sweep.plot_metric("ttft"), lambda: sweep.plot_metric("ttft_s.mean", over="p")):
        with pytest.raises(simkv.InputError):
            wrong()
    with pytest.raises(simkv.InputError, match="two objectives"):
        sweep.plot_pareto("ttft_s.mean:min")


@pytest.mark.parametrize(
    ("values", "told"),
    [([1, 2, 2, 3], "rises with p"), ([3, 1, 1], "falls with p"), ([2, 2, 2], "doesn't change with p"),
     ([1, 5, 2], "is highest at p\u00a0=\u00a01")],
)  # fmt: skip
def test_sweep_picture_title_says_what_the_line_does(values: list[float], told: str) -> None:
    from simkv.api.points import _course
    from simkv.plots.sweep import Along, Line

    places = [float(at) for at in range(len(values))]
    along = Along("p", places, [str(at) for at in range(len(values))], measured=True)
    assert _course([Line("", places, values, [0.0] * len(values))], along) == told


def test_sweep_with_a_folder_goes_on_where_it_was(small: simkv.Scenario, tmp_path: Path) -> None:
    told: list[str] = []
    grid = {"tiers.dram.capacity": ["0GiB", "1GiB"]}
    first = simkv.sweep(small, grid, jobs=1, out=tmp_path / "s", progress=lambda share, doing: told.append(doing))
    assert told[-1] == "2 of 2 runs" and (tmp_path / "s" / "points.csv").exists()
    again = simkv.sweep(small, grid, jobs=1, out=tmp_path / "s")
    assert again.summary == first.summary and (again.points["attempts"] == 1).all()


def test_workers_of_a_script_without_guard_do_not_run_it_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import simkv\n"
        f"print('begun')\nsweep = simkv.sweep({TEXT!r}, {{'workload.requests': [5, 6]}}, jobs=2)\n"
        "print(sweep.points['status'].tolist())\n",
        "utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "begun\n['done', 'done']\n", "")


def test_plan_has_winner_candidates_and_flags(small: simkv.Scenario) -> None:
    plan = simkv.plan(TEXT + "plan: {objective: gpus, vary: {dram: [0GiB, 4GiB]}, confirm: 2}\n", jobs=2)
    assert plan.feasible and plan.winner["name"] in set(plan.candidates["name"])
    assert plan.winner == plan.summary["winner"] and plan.why and plan.verdict
    assert "vllm serve" in plan.flags["vllm"]
    assert plan.plot_sensitivity()._repr_png_()[:4] == PNG and "memory_bandwidth" in plan.sensitivity.index
    assert plan.winner["name"] in repr(plan)


def test_plan_that_nothing_satisfies_says_so() -> None:
    text = TEXT.replace("ttft_p95: 400ms", "ttft_p95: 1us") + "plan: {vary: {dram: [0GiB]}, objective: gpus}\n"
    plan = simkv.plan(text, jobs=1)
    assert not plan.feasible and plan.nearest in repr(plan)
    with pytest.raises(simkv.InfeasibleError):
        _ = plan.winner


def test_curves_have_rows_and_say_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    over = {"workload.size": 2, "workload.output_tokens": 16, "workload.prompt_tokens": 8192}
    curves = simkv.curves_of("scenarios/long-context-active.yaml", over, points=2, only=["speedup"], jobs=2)
    assert {"closed form", "schedule"} <= set(curves.rows["speedup"]["series"])
    assert curves.plot_speedup()._repr_png_()[:4] == PNG and curves.marks("speedup")
    with pytest.raises(simkv.InputError, match="t_avg"):
        curves.plot_t_avg()


# ---- without simulation -----------------------------------------------------------------------


def test_hit_rates_lie_between_nothing_and_the_bound() -> None:
    rows = simkv.hit_rates(ROOT / "scenarios" / "agent-sessions", ["lru", "score"], [64, 512], lam=1.0)
    rates = rows.set_index(["policy", "capacity_blocks"])["hit_rate"]
    assert set(rows["policy"]) == {"lru", "score", "belady"}
    assert (rates["belady"] >= rates["lru"]).all() and (rates["score"] == rates["lru"]).all()
    assert rows.attrs["infinite_hit_rate"] >= rates.max()
    sized = simkv.hit_rates(ROOT / "scenarios" / "agent-sessions", ["lru"], ["16GiB"], model="llama-3.1-8b")
    assert sized["capacity_bytes"].iloc[0] <= 16 << 30


def test_closed_forms_have_the_figures_of_the_article() -> None:
    assert simkv.kv_size("llama-2-7b", "128Ki")["bytes"] == 64 << 30
    assert (simkv.concurrency("40 GB", "10 GB")["c_max"], simkv.concurrency(40e9, 10e9, 0.3)["c_max"]) == (4, 13)
    assert simkv.speedup("10 ms", size="20 GB", bandwidth="32 GB/s")["transfer_s"] == 0.625
    assert simkv.t_avg(0.9, "1 us", "100 us")["t_avg_s"] == pytest.approx(10.9e-6)
    assert simkv.scores([1, 2], [2, 1], 1.0) == [0.0, 1.0]
    assert "C_max" in repr(simkv.concurrency_of("llama-3.1-8b", "a100-sxm4-80gb", "32Ki"))
    assert dict(simkv.step_time("llama-3.1-8b", "a100-sxm4-80gb", 8, 1000))["t_decode_s"] > 0
    assert simkv.break_even("llama-3.1-8b", "a100-sxm4-80gb", 4096)["span_tokens"] == 4096


def test_calibration_shipped_has_fit_residuals_and_verification(tmp_path: Path) -> None:
    shipped = simkv.calibration(PROFILE)
    assert shipped.bit_identical and shipped.fit.loc["host to device", "bytes_per_s"] > 1e9
    assert len(shipped.residuals) == len(shipped.profile.samples)
    steps = shipped.verification.xs("t_step_s", level="figure")
    assert steps["error"].abs().max() < 0.2
    assert simkv.calibration(shipped.save(tmp_path / "copy.json")).profile == shipped.profile


@pytest.mark.parametrize(
    ("arguments", "told"),
    [({"only": ["h3d"]}, "only = h3d"), ({"hot_pool": "1 MiB"}, "hot_pool"), ({"device": "tpu"}, "device = tpu"),
     ({"verify": True}, "ssd_path"), ({"threads": 4, "device": "cuda"}, "")],
)  # fmt: skip
def test_calibration_asked_wrongly_measures_nothing(arguments: dict[str, object], told: str) -> None:
    pytest.importorskip("torch")
    with pytest.raises(simkv.InputError) as error:
        simkv.calibration(**({"device": "cpu", "hot_pool": "64MiB"} | arguments))
    assert told in str(error.value) and "--" not in str(error.value)


# ---- the package ------------------------------------------------------------------------------


def test_package_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        _ = simkv.rum


def test_page_of_the_docs_has_an_example_that_runs() -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Offloading helps" in done.stdout


def test_page_of_the_docs_names_everything_that_is_offered() -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    classes = (simkv.Scenario, simkv.Run, simkv.Sweep, simkv.Plan, simkv.Curves, simkv.Calibration)
    members = {name for cls in classes for name in vars(cls) if name.startswith("plot_")}
    assert {name for name in [*simkv.__all__, *members] if f"`{name}" not in page and f"`simkv.{name}" not in page} <= {
        "Picture"
    }
