"""Figures of a run's report: what is drawn is what the summary says."""

from __future__ import annotations

import numpy as np
import pytest

from simkv.report.run import sections
from simkv.report.run.active import step_parts
from simkv.report.run.hits import bins_over_time
from simkv.report.run.overtime import edges, occupancy, utilization
from simkv.report.run.parts import first_token_parts, mean_parts
from simkv.report.run.window import window
from simkv.results.words import RESOURCES, TIERS
from tests.report_runs import FEW, changed, figures, made_up, shipped

NAMES = sorted(FEW)


@pytest.mark.parametrize("name", NAMES)
def test_window_is_the_one_that_the_summarys_latencies_are_over(name: str) -> None:
    folder = shipped(name)
    frame = window(folder)
    assert frame["ttft_s"].mean() == pytest.approx(folder.summary["ttft_s"]["mean"], rel=1e-12)
    assert np.percentile(frame["e2e_s"], 95) == pytest.approx(folder.summary["e2e_s"]["p95"], rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_waterfall_sums_to_the_mean_e2e(name: str) -> None:
    folder = shipped(name)
    whole = mean_parts(folder.summary)
    assert whole.total_s == pytest.approx(folder.summary["e2e_s"]["mean"], rel=1e-9)
    *parts, (last, total) = figures(sections(folder))["waterfall"].data.rows
    assert last == "sum" and sum(value for _, value in parts) == pytest.approx(total, rel=1e-12)
    assert all(value >= 0 for _, value in parts)


@pytest.mark.parametrize("name", NAMES)
def test_first_token_parts_sum_to_ttft_of_each_request(name: str) -> None:
    frame = window(shipped(name))
    parts = first_token_parts(frame, preempted=True)
    assert np.allclose(sum(values for _, values in parts), frame["ttft_s"], rtol=1e-9)
    assert all((values >= 0).all() for _, values in parts)


def test_times_beside_each_other_are_means_of_all_and_of_the_slowest() -> None:
    folder = shipped("chatbot")
    rows = figures(sections(folder))["time-to-end"].data.rows
    e2e = window(folder)["e2e_s"]
    totals = {label: sum(s for one, _, s in rows if one == label) for label, _, _ in rows}
    assert totals["all requests"] == pytest.approx(e2e.mean())
    assert totals["slowest 5 %"] == pytest.approx(e2e[e2e > e2e.quantile(0.95)].mean())
    assert totals["no offload"] == pytest.approx(folder.summary["baselines"]["no_offload"]["e2e_s"]["mean"])


def test_decode_step_sums_to_t_step_and_waits_of_requests_follow_it() -> None:
    summary = shipped("long-context-active").summary
    assert step_parts(summary, "T_step").total_s == pytest.approx(summary["t_step_s"], rel=1e-9)
    parts = dict(mean_parts(summary).parts)
    wait = parts["waiting for loads"] / (parts["decode"] + parts["waiting for loads"])
    assert wait == pytest.approx(summary["t_wait_s"]["loads"] / summary["t_step_s"])


@pytest.mark.parametrize("name", NAMES)
def test_hit_shares_sum_to_one(name: str) -> None:
    figure = figures(sections(shipped(name))).get("hit-rates")
    for row in figure.data.rows if figure else ():
        assert sum(row[1:5]) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", ["chatbot", "qos-two-classes", "calibrated-small"])
def test_hit_rates_over_time_average_to_the_summarys(name: str) -> None:
    folder = shipped(name)
    bins = bins_over_time(folder)
    assert bins is not None and sum(bins.prompt_tokens) == folder.summary["prompt_tokens"]
    for _, key in TIERS:
        mean = np.average(bins.shares[key], weights=bins.prompt_tokens)
        assert mean == pytest.approx(folder.summary["hit_rate"][key], abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_utilization_over_time_integrates_to_the_busy_time(name: str) -> None:
    folder = shipped(name)
    series, at = utilization(folder), edges(folder)
    assert series is not None and at is not None
    spans = np.diff(series.edges_s)
    for _, key in RESOURCES:
        share = folder.summary["utilization"][key]
        if share is None:
            assert key not in series.values
            continue
        busy = float(np.dot(series.values[key], spans))
        assert busy == pytest.approx(share * folder.summary["makespan_s"], rel=0.03, abs=0.02 * spans.max())
        assert max(series.values[key]) <= 1 + 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_occupancy_over_time_is_within_what_the_summary_says(name: str) -> None:
    folder = shipped(name)
    series = occupancy(folder)
    assert series is not None
    for key, values in series.values.items():
        assert max(values) <= folder.summary["kv_usage"][key]["max"] + 1e-9
        assert min(values) >= 0


def test_occupancy_over_time_is_what_the_samples_say_of_the_pools() -> None:
    folder = shipped("chatbot")
    series, at, frame = occupancy(folder), edges(folder), folder.timeseries
    assert series is not None and at is not None
    first = slice(at[0], at[1])
    used = (frame["vram_blocks"] + frame["vram_cached_blocks"])[first].mean()
    assert series.values["vram"][0] == pytest.approx(used / 28151)
    assert series.values["dram"][-1] == pytest.approx(frame["dram_blocks"][at[-2] : at[-1] - 1].mean() / 102400)


def test_edges_skip_samples_that_took_no_time() -> None:
    folder = made_up(50)
    frame = folder.timeseries.copy()
    frame.loc[frame.index[-1], "t_s"] = frame["t_s"].iloc[-2]
    folder.__dict__["timeseries"] = frame
    at = edges(folder)
    assert at is not None and (np.diff(frame["t_s"].to_numpy()[at]) > 0).all() and at[-1] == len(frame) - 1
    folder.__dict__["timeseries"] = frame.iloc[:1]
    assert edges(folder) is None


@pytest.mark.parametrize("name", NAMES)
def test_latency_figures_hold_the_summarys_quantiles(name: str) -> None:
    folder = shipped(name)
    for key, figure in figures(sections(folder)).items():
        if not key.startswith("latency-") or key.endswith("by-class"):
            continue
        values = folder.summary[f"{key.removeprefix('latency-')}_s"]
        mine = {q: s for label, q, s in figure.data.rows if label == "this run"}
        for name_, q in (("p50", 0.5), ("p95", 0.95)):
            if q in mine:
                assert mine[q] == pytest.approx(values[name_], rel=1e-12)
        assert list(mine.values()) == sorted(mine.values())


def test_latency_figure_says_the_slo_and_the_baseline() -> None:
    figure = figures(sections(shipped("chatbot")))["latency-ttft"]
    assert "without offload it is" in figure.finding and "(SLO 2.00 s)" in figure.finding
    assert {row[0] for row in figure.data.rows} == {"this run", "no offload"}


def test_latency_of_classes_tells_them_apart() -> None:
    folder = shipped("qos-two-classes")
    figure = figures(sections(folder))["latency-ttft-by-class"]
    assert {row[0] for row in figure.data.rows} == {"interactive", "batch"} and "SLO interactive: 1.00 s" in figure.alt
    p95 = {label: s for label, q, s in figure.data.rows if q == 0.95}
    assert p95["batch"] == pytest.approx(folder.summary["classes"]["batch"]["ttft_s"]["p95"])


def test_figures_mark_what_binds() -> None:
    folder = shipped("qos-two-classes")
    found = figures(sections(folder))["utilization"]
    assert "host-to-device link binds" in found.finding
    calm = changed(folder, bottleneck=None, bottleneck_because="nothing is near its limit: so")
    assert "binds" not in figures(sections(calm))["utilization"].finding
    full = changed(folder, bottleneck="vram", bottleneck_because="running requests hold all of it")
    assert "binds" not in figures(sections(full))["utilization"].finding
