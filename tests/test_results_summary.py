"""The figures of a summary: laws, exact values on a made-up run, and nulls where there is no meaning."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simkv.errors import LawError
from simkv.results.check import check_run, violations
from simkv.results.columns import REQUEST_FIELDS, TIMESERIES_FIELDS
from simkv.results.metrics import METRICS
from simkv.results.reference import reference
from simkv.results.summary import PARTS, summarize
from simkv.results.write import summary_text
from simkv.sim.active.measured import Measured
from simkv.sim.rundata import REQUEST_COLUMNS, TIMESERIES_COLUMNS, RunData
from tests.results_factory import make_context, make_run

ROOT = Path(__file__).parents[1]
COST = {"gpu_hour": 2.0, "dram_gib_hour": 0.003, "ssd_tib_hour": 0.05, "currency": "USD", "source": "a list"}


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, float):
        yield value


def test_summary_keys_are_the_declared_metrics_in_their_order() -> None:
    assert list(summarize(make_run(100), make_context())) == list(METRICS)


def test_summary_of_any_size_is_finite_plain_json() -> None:
    for n in (0, 1, 2, 9, 40, 500):
        summary = summarize(make_run(n), make_context(cost=COST, slo={"ttft_p95": 1.0}), {"no_offload": make_run(n)})
        assert all(math.isfinite(x) for x in numbers(summary))
        assert json.loads(summary_text(summary)) == summary


def test_summary_of_no_requests_has_nulls_not_zeros() -> None:
    summary = summarize(make_run(0), make_context(cost=COST))
    for key in ("ttft_s", "itl_s", "hit_rate", "requests_per_s", "bottleneck", "cost_per_million_output_tokens"):
        assert summary[key] is None


def test_summary_parts_of_time_sum_to_mean_e2e() -> None:
    summary: Any = summarize(make_run(800), make_context(warm_up=100.0))
    assert tuple(summary["time_breakdown_s"]) == PARTS
    assert sum(summary["time_breakdown_s"].values()) == pytest.approx(summary["e2e_s"]["mean"], rel=1e-9)


def test_summary_hits_by_tier_and_misses_sum_to_one() -> None:
    rates: Any = summarize(make_run(300, rejected=7), make_context())["hit_rate"]
    assert rates["vram"] + rates["dram"] + rates["ssd"] + rates["miss"] == pytest.approx(1, abs=1e-12)
    assert (rates["vram"], rates["dram"]) == (0.1, 0.3)


def test_summary_warm_up_trims_latencies_and_nothing_else() -> None:
    data = make_run(3000)
    whole: Any = summarize(data, make_context(warm_up=0.0))
    late: Any = summarize(data, make_context(warm_up=1500.0))
    arrival = data.requests["arrival_s"]
    kept = arrival >= arrival[0] + 1500
    e2e = (data.requests["finish_s"] - arrival)[kept]
    assert late["e2e_s"]["mean"] == pytest.approx(e2e.mean(), rel=1e-12)
    assert late["warm_up_s"] == 1500
    for key in ("requests", "output_tokens", "makespan_s", "hit_rate", "bytes", "utilization", "output_tokens_per_s"):
        assert late[key] == whole[key]


def test_summary_auto_warm_up_of_a_cold_start_cuts_it() -> None:
    arrivals = np.arange(4000) * 2.0
    data = make_run(4000, arrival_s=arrivals, dram_hit=0.8, prefill_s_per_token=1e-3, warm_after=400)
    summary: Any = summarize(data, make_context(warm_up="auto"))
    assert 700 <= summary["warm_up_s"] <= 1000
    assert summary["ttft_s"]["mean"] == pytest.approx(0.108, rel=0.02)


def test_summary_latencies_equal_their_definitions() -> None:
    data = make_run(1000)
    r = data.requests
    several = r["output_tokens"] > 1
    tpot = (r["finish_s"] - r["first_token_s"])[several] / (r["output_tokens"][several] - 1)
    summary: Any = summarize(data, make_context())
    assert summary["ttft_s"]["p99"] == np.percentile(r["first_token_s"] - r["arrival_s"], 99)
    assert summary["tpot_s"]["mean"] == pytest.approx(tpot.mean())
    assert summary["queue_s"]["mean"] == pytest.approx(summary["time_breakdown_s"]["queue"])
    weighted = (r["finish_s"] - r["first_token_s"]).sum() / (r["output_tokens"] - 1).sum()
    assert summary["itl_s"]["mean"] == pytest.approx(weighted)


def test_summary_makespan_begins_with_the_first_arrival() -> None:
    data = make_run(50)
    assert summarize(data, make_context())["makespan_s"] == data.end_s - data.requests["arrival_s"][0]


def test_summary_cost_is_machine_hours_over_tokens() -> None:
    data = make_run(500)
    summary: Any = summarize(data, make_context(cost=COST, gpus=2, dram_gib=100.0, ssd_tib=2.0))
    assert summary["cost"]["per_hour"] == pytest.approx(4 + 0.3 + 0.1)
    hours = summary["makespan_s"] / 3600
    assert summary["cost_per_million_output_tokens"] == pytest.approx(4.4 * hours / summary["output_tokens"] * 1e6)


def test_summary_slo_counts_requests_within_their_own_limits() -> None:
    data = make_run(1000, rejected=10, classes=("fast", "slow"))
    ctx = make_context(slo={"ttft_p95": 0.5, "e2e_mean": 9.0}, classes={"fast": {"ttft": 0.2}, "slow": {}})
    summary: Any = summarize(data, ctx)
    r = data.requests
    ttft, ok = r["first_token_s"] - r["arrival_s"], ~r["rejected"]
    e2e = r["finish_s"] - r["arrival_s"]
    met = ok & (ttft <= np.where(r["cls"] == 0, 0.2, 0.5)) & (e2e <= 9)
    assert summary["slo_attainment"]["overall"] == pytest.approx(met.sum() / 1010)
    assert summary["slo_attainment"]["classes"] == {"fast": pytest.approx(met[r["cls"] == 0].mean())}
    assert summary["goodput_requests_per_s"] == pytest.approx(met.sum() / summary["makespan_s"])
    target = summary["slo_attainment"]["targets"]["ttft_p95"]
    assert target == {"limit": 0.5, "value": summary["ttft_s"]["p95"], "met": summary["ttft_s"]["p95"] <= 0.5}


def test_summary_without_slo_cost_or_lower_tier_is_null_there() -> None:
    summary: Any = summarize(make_run(100, dram_hit=0.0), make_context(tiers=("vram",)))
    assert summary["goodput_requests_per_s"] is None and summary["slo_attainment"] is None
    assert summary["cost"] is None and summary["load_wait_s"] is None and summary["p_hit"] is None
    for key in ("h2d", "dram", "ssd_read"):
        assert summary["utilization"][key] is None and summary["bytes"][key] is None
    assert summary["kv_usage"]["dram"] is None and summary["verdict"]["offload_helps"] is None


def test_summary_classes_are_given_when_there_are_two() -> None:
    summary: Any = summarize(make_run(400, classes=("a", "b")), make_context())
    assert set(summary["classes"]) == {"a", "b"}
    assert sum(row["requests"] for row in summary["classes"].values()) == 400
    assert summarize(make_run(10), make_context())["classes"] is None


def test_summary_baseline_is_over_the_same_window_and_paired() -> None:
    data, plain = make_run(2000), make_run(2000, dram_hit=0.0)
    summary: Any = summarize(data, make_context(warm_up=300.0, cost=COST), {"no_offload": plain})
    base = summary["baselines"]["no_offload"]
    assert base["warm_up_s"] == 300.0
    gap = base["difference"]["e2e_s"]
    assert gap["mean"] == pytest.approx(summary["e2e_s"]["mean"] - base["e2e_s"]["mean"])
    assert gap["ci95"][0] < gap["mean"] < gap["ci95"][1] < 0
    spread = summary["e2e_s"]["ci95"][1] - summary["e2e_s"]["ci95"][0]
    assert gap["ci95"][1] - gap["ci95"][0] < spread  # common random numbers
    assert summary["speedup"]["vs_no_offload"] == pytest.approx(base["e2e_s"]["mean"] / summary["e2e_s"]["mean"])
    assert base["cost_per_million_output_tokens"] < summary["cost_per_million_output_tokens"]


def test_summary_twice_and_in_another_process_is_the_same_bytes() -> None:
    code = (
        "from tests.results_factory import make_result; from simkv.results.write import summary_text;"
        "import sys; sys.stdout.write(summary_text(make_result(1500).summary))"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert texts[0] == texts[1] and texts[0].startswith("{")


def test_summary_imports_nothing_heavy() -> None:
    code = (
        "import sys; from tests.results_factory import make_result; make_result(100);"
        "assert not {'pandas', 'pyarrow', 'scipy', 'simpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_bottleneck_names_the_saturated_link() -> None:
    data = make_run(500)
    data.busy_s["h2d"] = 0.97 * data.end_s
    data.timeseries["h2d_busy_s"] = 0.97 * data.timeseries["t_s"]
    summary: Any = summarize(data, make_context())
    assert summary["bottleneck"] == "h2d" and "97 %" in summary["bottleneck_because"]


def test_bottleneck_is_the_link_that_saturates_in_the_second_half_of_the_arrivals() -> None:
    data = make_run(500)
    times = data.timeseries["t_s"]
    data.timeseries["h2d_busy_s"] = 0.6 * times + 0.4 * np.maximum(times - times[-1] / 2, 0.0)
    data.busy_s["h2d"] = float(data.timeseries["h2d_busy_s"][-1])
    summary: Any = summarize(data, make_context())
    assert summary["bottleneck"] == "h2d" and "in the second half of the arrivals" in summary["bottleneck_because"]
    assert "saturated" in [one["code"] for one in summary["warnings"]]


def test_bottleneck_of_a_batch_speaks_of_the_run_and_of_what_takes_most_of_its_time() -> None:
    summary: Any = summarize(make_run(500, batch=True), make_context())
    because = summary["bottleneck_because"]
    assert "of the run" in because and "while requests arrive" not in because and "waiting is" in because


def test_bottleneck_under_active_offload_says_how_long_steps_wait_for_kv() -> None:
    measured = Measured(steps=10, step_s=10.0, compute_s=7.0, exposed_s=3.0)
    waits: Any = summarize(replace(make_run(500), active=measured), make_context())
    assert "a decode step waits for KV 30 % of its time" in waits["bottleneck_because"]
    hidden: Any = summarize(replace(make_run(500), active=replace(measured, exposed_s=0.3)), make_context())
    assert "waits for KV" not in hidden["bottleneck_because"]


def test_bottleneck_of_writes_that_nobody_waits_for_is_none_of_theirs() -> None:
    data = make_run(500, rate=0.2, load_s_per_token=0.0)
    data.busy_s["d2h"] = 0.97 * data.end_s
    data.timeseries["d2h_busy_s"] = 0.97 * data.timeseries["t_s"]
    idle: Any = summarize(data, make_context())
    assert idle["time_breakdown_s"]["queue"] < 0.1 * idle["e2e_s"]["mean"] and idle["bottleneck"] != "d2h"
    felt: Any = summarize(replace(data, refused_stores=3), make_context())
    assert felt["bottleneck"] == "d2h"


def test_bottleneck_of_an_idle_machine_is_null_and_says_why() -> None:
    summary: Any = summarize(make_run(500, rate=0.2), make_context())
    assert summary["bottleneck"] is None and summary["bottleneck_because"].startswith("nothing is near its limit")


def test_bottleneck_names_room_and_seats_where_requests_wait_for_them() -> None:
    data = make_run(500, rate=1.9)
    assert summarize(data, make_context(max_running=1))["bottleneck"] == "max_num_seqs"
    data.timeseries["vram_blocks"] = np.full(201, 195.0)
    summary: Any = summarize(data, make_context(max_running=1))
    assert summary["bottleneck"] == "vram" and "KV blocks" in summary["bottleneck_because"]


def test_laws_hold_on_an_exact_run() -> None:
    for data in (make_run(0), make_run(1), make_run(500, rejected=3), make_run(500, batch=True), make_run(300, 3.0)):
        check_run(data)


def _lose_one(data: RunData) -> None:
    data.arrived += 1


def _twice(data: RunData) -> None:
    data.requests["id"][5] = data.requests["id"][6]


def _early(data: RunData) -> None:
    data.requests["first_token_s"][5] = data.requests["arrival_s"][5] - 1


def _slip(data: RunData) -> None:
    data.requests["queue_time_s"][5] += 0.5


def _free_hits(data: RunData) -> None:
    data.requests["hit_dram_tokens"][5] = 2000


def _interval(data: RunData) -> None:
    data.steps["count"][5] += 1


def _busier(data: RunData) -> None:
    data.busy_s["h2d"] = 2 * data.end_s


def _miscount(data: RunData) -> None:
    data.preemptions = 1


def _overrun(data: RunData) -> None:
    data.running_time_s *= 100


MUTANTS = {
    "requests_conserved": (_lose_one, _twice),
    "cause_before_effect": (_early,),
    "time_parts_sum": (_slip,),
    "hits_sum_to_one": (_free_hits,),
    "intervals_conserved": (_interval,),
    "busy_within_time": (_busier,),
    "counters_agree": (_miscount,),
    "littles_identity": (_overrun,),
}


@pytest.mark.parametrize(("law", "mutate"), [(law, m) for law, some in MUTANTS.items() for m in some])
def test_laws_broken_by_a_mutant_are_named(law: str, mutate: Any) -> None:
    data = make_run(200)
    mutate(data)
    with pytest.raises(LawError, match=law):
        check_run(data)


def test_laws_name_what_they_found() -> None:
    data = make_run(200)
    _slip(data)
    finish_s = data.requests["finish_s"][data.requests["id"] == 5][0]
    assert violations(data) == [
        f"law time_parts_sum broken at {finish_s:.9g} s, request 5: "
        "the parts of its time do not sum to finish - arrival"
    ]


def test_columns_documented_are_those_recorded() -> None:
    recorded = [name for name in REQUEST_COLUMNS if name != "cls"]
    assert [name for name in REQUEST_FIELDS if name in recorded] == recorded
    assert set(REQUEST_FIELDS) - set(recorded) == {"class", "ttft_s", "tpot_s", "e2e_s"}
    assert tuple(TIMESERIES_FIELDS) == TIMESERIES_COLUMNS


def test_reference_page_is_up_to_date() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page == reference(), "run: python -m simkv.results.reference > docs/results.md"


def test_reference_page_documents_every_warning_of_the_code() -> None:
    source = (ROOT / "simkv" / "results" / "warnings.py").read_text(encoding="utf-8")
    codes = {line.split('yield "')[1].split('"')[0] for line in source.splitlines() if 'yield "' in line}
    assert len(codes) >= 7
    assert all(f"| `{code}` |" in reference() for code in codes)


def test_summary_interrupted_run_counts_live_requests() -> None:
    data = replace(make_run(100), arrived=120, live=20, interrupted=True)
    summary: Any = summarize(data, make_context())
    assert summary["requests"] == {"arrived": 120, "finished": 100, "rejected": 0, "live": 20}
    assert "interrupted" in [w["code"] for w in summary["warnings"]]
