"""The verdict on offload and its parts: decisions on known figures, and small machines where the answer is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.calc.break_even import Machine, of_span
from simkv.jobs.job import Job, Outcome
from simkv.planner import knee, verdict
from simkv.planner.break_even import below_share, break_even, needed_bytes_per_s, reuse_share, reused_span, ways
from simkv.planner.compare import Bench, Comparison, Measured, measure
from simkv.planner.crossing import Crossing, Near
from simkv.planner.knee import Point
from simkv.planner.types import Capacity, Effort, Price, Slo, Trial, Unit
from simkv.planner.verdict import WITH, WITHOUT
from simkv.planner.wear import endurance, wear
from simkv.planner.weigh import weigh
from simkv.planner.why import Contender, against, binds, spoken
from simkv.scenario.scaled import RESOURCES
from simkv.sweeps.simulate import Case, Written

GIB = 1 << 30
RENTED = """\
name: rented
model: llama-3.1-8b
hardware: {hardware}
engine: {{preset: {preset}, max_model_len: 8192}}
workload: {{kind: sessions, arrival: {{process: poisson, rate: 4 req/s}}, requests: 300, turns: 4,
  first_prompt_tokens: {prompt}, prompt_tokens: 100, output_tokens: 8, think_time: 1s}}
tiers: {{dram: {{capacity: {dram}}}}}
"""
ABSTRACT = """\
name: abstract
model: {kv_bytes_per_token: 1000B}
hardware: {step_time: 10ms, kv_tokens: 16Ki}
workload: {kind: plain, arrival: {process: poisson, rate: 5 req/s}, requests: 60, prompt_tokens: 300,
  output_tokens: 2}
tiers: {dram: {capacity: 1GB}}
"""


def a_case(
    *assignments: str, hardware: str = "p4d.24xlarge", preset: str = "lmcache", dram: str = "100GiB", prompt: int = 2000
) -> Case:
    text = RENTED.format(hardware=hardware, preset=preset, dram=dram, prompt=prompt)
    return Case(Written(text, "s.yaml", assignments))


def serially(jobs: Sequence[Job]) -> list[Outcome]:
    return [Outcome(job, "done", job.work(*job.args)) for job in jobs]


def carries(load: float, uncertainty: float = 0.01) -> Crossing:
    return Crossing(load, load, load, uncertainty, "ttft_p95", 2)


def compared(loads: Mapping[str, float], case: Case, **planned: Any) -> Comparison:
    return Comparison({name: Measured(case, carries(load), planned.get(name, {})) for name, load in loads.items()})


def ran(ttft: float = 0.2, miss: float = 0.4, **more: Any) -> dict[str, Any]:
    rates = {"vram": 0.1, "dram": 0.9 - miss, "ssd": 0.0, "miss": miss, "ceiling": 0.75}
    return {"ttft_s": {"p95": ttft, "mean": ttft / 2}, "hit_rate": rates, "prompt_tokens": 300_000,
            "requests": {"finished": 100}, **more}  # fmt: skip


# ---- wear -------------------------------------------------------------------------------------


def test_wear_is_bytes_a_day_over_what_all_drives_are_rated_for() -> None:
    resolved = a_case("tiers.ssd.capacity=1TB", hardware="dgx-h100").resolve()
    rated = endurance(resolved)
    assert rated is not None and resolved.instance is not None and rated.value > 0
    found = wear(resolved, {"bytes": {"ssd_write": 5e9}, "makespan_s": 1000.0}, more=2.0)
    assert found is not None and found["written_tb_per_day"] == pytest.approx(2 * 5e9 / 1000 * 86400 / 1e12)
    assert found["endurance_tb"] == rated.value / 1e12 and found["standing"] == rated.standing
    assert found["years"] == pytest.approx(rated.value / (2 * 5e9 / 1000 * 86400 * 365))
    assert "0.864 TB a day" in found["because"] and rated.standing in found["because"] and found["source"]


def test_wear_of_several_hosts_is_that_of_one() -> None:
    resolved = a_case("tiers.ssd.capacity=1TB", "replicas.count=2", "replicas.hosts=2", hardware="dgx-h100").resolve()
    found = wear(resolved, {"bytes": {"ssd_write": 5e9}, "makespan_s": 1000.0})
    assert found is not None and found["written_tb_per_day"] == pytest.approx(5e9 / 1000 * 86400 / 1e12 / 2)


def test_wear_of_drives_that_nobody_rates_is_no_guess() -> None:
    for hardware, named in (("p4d.24xlarge", "the drives of p4d.24xlarge are"), ("h100-sxm5-80gb", "no instance is")):
        resolved = a_case("tiers.ssd.capacity=1TB", hardware=hardware).resolve()
        found = wear(resolved, {"bytes": {"ssd_write": 5e9}, "makespan_s": 1000.0})
        assert found is not None and found["years"] is None and found["endurance_tb"] is None
        assert found["written_tb_per_day"] > 0 and named in found["because"]
    idle = wear(resolved, {"bytes": {"ssd_write": 0}, "makespan_s": 10.0})
    assert idle is not None and idle["because"] == "Nothing is written to SSD." and idle["years"] is None
    assert wear(resolved, {"bytes": {"ssd_write": None}, "makespan_s": 10.0}) is None


# ---- the knee ---------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 100), min_size=2, max_size=9), st.floats(0.5, 50))
def test_knee_of_a_rising_curve_has_most_of_the_gain_and_the_size_before_has_not(
    steps: list[float], base: float
) -> None:
    values = [base]
    for step in steps:
        values.append(values[-1] + step)
    points = [Point(float(size), value) for size, value in enumerate(values)]
    found, whole = knee.knee(points), values[-1] - values[0]
    if found is None:
        assert whole == 0
        return
    gained = [one.value - base >= knee.ENOUGH * whole for one in points]
    assert gained.index(True) == int(found.size_bytes)


def test_knee_of_a_saturating_curve_is_where_it_is_worked_out_to_be() -> None:
    """1 - exp(-size) has 95 % of its limit at three; sizes go in halves of 32."""
    points = [Point(0.0, 0.0), *(Point(2.0**n, 1 - 2.718281828 ** -(2.0**n)) for n in range(-2, 6))]
    assert knee.knee(points) == points[5] and points[5].size_bytes == 4.0
    assert knee.knee(points[::-1]) == points[5]
    assert knee.knee([]) is None and knee.knee([Point(0, 1.0), Point(1, 1.0), Point(2, 0.5)]) is None


def test_dram_knee_goes_by_load_else_by_latency_else_there_is_none() -> None:
    case = a_case()
    names = [str(size) for size in knee.sizes(2048 * GIB)]
    assert names[0] == "0" and names[-1] == str(2048 * GIB) and len(names) == 6
    loads = dict(zip(names, (1.0, 1.2, 1.5, 1.97, 1.99, 2.0), strict=True))
    by_load = knee.dram_knee(compared(loads, case))
    assert by_load["bytes"] == 512 * GIB and by_load["by"] == "load" and "a unit carries 100 %" in by_load["because"]
    latencies = dict(zip(names, (0.4, 0.3, 0.208, 0.2, 0.2, 0.2), strict=True))
    flat = compared(dict.fromkeys(names, 1.0), case, **{name: ran(ttft) for name, ttft in latencies.items()})
    by_latency = knee.dram_knee(flat)
    assert by_latency["by"] == "ttft_mean" and by_latency["bytes"] == 256 * GIB
    assert "stays the same, and mean TTFT at the planned load falls by 50 %" in by_latency["because"]
    assert [row["hit_rate"] for row in by_latency["sizes"]] == [0.6] * 6
    same = knee.dram_knee(compared(dict.fromkeys(names, 1.0), case, **{name: ran() for name in names}))
    assert same["bytes"] is None and "DRAM of no size gains" in same["because"]
    rising = knee.dram_knee(compared(dict(zip(names, range(1, 7), strict=True)), case))
    assert rising["bytes"] == 2048 * GIB and "has not levelled off" in rising["because"]
    assert knee.dram_knee(Comparison())["bytes"] is None


def test_dram_sizes_are_those_that_the_case_resolves_to() -> None:
    for case in (a_case(), a_case(dram="0GiB"), a_case("replicas.count=2")):
        resolved = case.resolve()
        assert resolved.instance is not None
        for name, one in knee.dram_cases(case, resolved).items():
            assert one.resolve().scenario.tiers.dram.capacity == pytest.approx(int(name), abs=1)
        assert knee.most_dram_bytes(resolved) == resolved.instance.dram_bytes
    bare = a_case(hardware="h100-sxm5-80gb")
    assert knee.most_dram_bytes(bare.resolve()) == 200 * GIB
    assert not knee.dram_cases(a_case(hardware="h100-sxm5-80gb", dram="0GiB"), replace(bare, assignments=(
        "tiers.dram.capacity=0GiB",)).resolve())  # fmt: skip


# ---- SSD --------------------------------------------------------------------------------------


def test_ssd_is_compared_where_engine_and_host_can_have_one() -> None:
    def of(case: Case) -> tuple[dict[str, Case], str]:
        return knee.ssd_cases(case, case.resolve())

    both, why = of(a_case("tiers.ssd.capacity=1TB"))
    assert not why and both[knee.WITHOUT].resolve().scenario.tiers.ssd.capacity == 0
    host, why = of(a_case())
    instance = a_case().resolve().instance
    assert not why and instance is not None
    assert host[knee.WITH].resolve().scenario.tiers.ssd.capacity == instance.ssd_bytes > 0
    assert of(a_case(preset="vllm")) == ({}, "vLLM has no SSD tier of its own")
    assert of(a_case(dram="0GiB"))[1].endswith("there is none")
    assert of(a_case(hardware="h100-sxm5-80gb"))[1] == "no instance is named"


def test_ssd_is_worth_it_where_more_is_carried_beyond_the_doubt() -> None:
    case = a_case()
    more = knee.ssd_worth(
        compared({knee.WITH: 1.3, knee.WITHOUT: 1.0}, case, **{knee.WITH: ran(0.1), knee.WITHOUT: ran(0.2)})
    )
    assert more["worth"] is True and more["load_change"] == pytest.approx(0.3)
    assert more["because"] == (
        "With an SSD below the DRAM a unit carries 30 % ± 2.0 % more load; TTFT p95 at the planned load -50 %."
    )
    same = knee.ssd_worth(compared({knee.WITH: 1.01, knee.WITHOUT: 1.0}, case))
    assert same["worth"] is False and "stays the same" in same["because"]
    none = knee.ssd_worth(Comparison(), "vLLM has no SSD tier of its own")
    assert none["worth"] is None and none["because"].endswith("vLLM has no SSD tier of its own.")
    assert set(none) == set(more)


# ---- the verdict ------------------------------------------------------------------------------


def judged(ours: float, theirs: float, prices: Mapping[str, float | None] | None = None) -> dict[str, Any]:
    found = compared({WITH: ours, WITHOUT: theirs}, a_case(), **{WITH: ran(0.2), WITHOUT: ran(0.9)})
    return verdict.judge(found, prices or {WITH: 10.0, WITHOUT: 10.0})


def test_verdict_is_true_where_a_million_tokens_cost_less_beyond_the_doubt() -> None:
    found = judged(1.5, 1.0)
    assert found["offload_helps"] is True and found["cost_change"] == pytest.approx(-1 / 3)
    assert found["because"] == (
        "Offloading is worth it: a unit carries 1.50 times the scenario's load with lower tiers and 1.00 without "
        "(50 % ± 2.0 % more); TTFT p95 at the planned load is 200 ms with and 900 ms without; at the same price a "
        "million tokens cost 33 % less."
    )
    assert found["with"] == {"load": 1.5, "doubt": 0.01, "ttft_p95_s": 0.2, "price_per_hour": 10.0}


def test_verdict_is_false_where_nothing_is_gained_or_the_price_eats_it() -> None:
    assert judged(1.01, 1.0)["offload_helps"] is False
    assert "no difference that pays" in judged(1.01, 1.0)["because"]
    dear = judged(1.5, 1.0, {WITH: 16.0, WITHOUT: 10.0})
    assert dear["offload_helps"] is False and "costs more than it brings" in dear["because"]
    assert "at 60 % more a unit a million tokens cost 6.7 % more" in dear["because"]
    assert judged(0.8, 1.0)["offload_helps"] is False
    assert judged(1.5, 1.0, {WITH: None, WITHOUT: None})["offload_helps"] is True


def test_verdict_without_one_of_the_two_is_none() -> None:
    found = verdict.judge(compared({WITH: 1.0}, a_case()), {}, "nothing says how much DRAM a host has")
    assert found["offload_helps"] is None and found["because"].endswith("nothing says how much DRAM a host has.")
    failed = Comparison({}, {WITHOUT: "the model does not fit"})
    assert "does not fit" in verdict.judge(failed, {})["because"]
    nothing = Measured(a_case(), Crossing(0, 0, 0.1, inf, "ttft_p95", 8), {})
    only = verdict.judge(Comparison({WITH: Measured(a_case(), carries(2.0), {}), WITHOUT: nothing}), {})
    assert only["offload_helps"] is True and only["cost_change"] is None and only["without"]["doubt"] is None


def test_verdict_holds_a_unit_against_itself_without_tiers_or_with_its_hosts_dram() -> None:
    case = a_case("tiers.ssd.capacity=1TB")
    offers, why = verdict.sides(case, case.resolve())
    tiers = offers[WITHOUT].resolve().scenario.tiers
    assert not why and offers[WITH] is case and tiers.dram.capacity == tiers.ssd.capacity == 0
    bare = a_case(dram="0GiB")
    offers, why = verdict.sides(bare, bare.resolve())
    assert offers[WITHOUT] is bare
    assert offers[WITH].resolve().scenario.tiers.dram.capacity == knee.most_dram_bytes(bare.resolve())
    both = verdict.verdict(
        verdict.ask(bare), Unit("p4d.24xlarge", 8, 1, None), compared({WITH: 1.4, WITHOUT: 1.0}, bare)
    )
    assert both["offload_helps"] is True and both["because"].startswith("The unit has no tier below VRAM, and is held")
    unknown = a_case(hardware="h100-sxm5-80gb", dram="0GiB")
    assert "nothing says how much DRAM" in verdict.sides(unknown, unknown.resolve())[1]


# ---- break-even -------------------------------------------------------------------------------


def test_break_even_bandwidth_is_that_of_the_calculator() -> None:
    resolved = a_case(hardware="h100-sxm5-80gb").resolve()
    assert resolved.model is not None and resolved.gpu is not None
    expected = of_span(Machine(resolved.model, resolved.gpu), 4096).to_json()["break_even_bytes_per_s"]
    assert needed_bytes_per_s(resolved, 4096) == pytest.approx(expected)
    chunked = needed_bytes_per_s(
        a_case("engine.max_num_batched_tokens=1024", hardware="h100-sxm5-80gb").resolve(), 4096
    )
    assert chunked < needed_bytes_per_s(resolved, 4096), "four steps take longer than one"


def test_break_even_of_an_abstract_machine_is_kv_over_one_step() -> None:
    resolved = Case(Written(ABSTRACT, "s.yaml")).resolve()
    assert needed_bytes_per_s(resolved, 1000) == pytest.approx(1000 * 1000 / 0.01)
    text = ABSTRACT.replace(
        "{capacity: 1GB}", "{capacity: 1GB, bandwidth: inf GB/s}, ssd: {capacity: 1TB, read: inf GB/s}"
    )
    endless = Case(Written(text, "s.yaml")).resolve()
    assert ways(endless) == (inf, inf)
    assert ways(resolved)[0] == resolved.scenario.tiers.dram.bandwidth and ways(resolved)[1] is None


def test_break_even_says_what_link_and_ssd_have_of_what_is_needed() -> None:
    resolved = a_case("tiers.ssd.capacity=1TB", "tiers.ssd.read=0.4 GB/s", "link.h2d=12 GB/s").resolve()
    found = break_even(resolved, ran(), {})
    assert found["span_tokens"] == int(0.75 * 3000) // 16 * 16
    assert found["link"] == {"bytes_per_s": 12e9, "times": 12e9 / found["bytes_per_s"], "better": "load"}
    assert found["ssd"]["bytes_per_s"] == pytest.approx(4.8 / 12.4 * 1e9) and found["ssd"]["better"] == "recompute"
    assert "beats computing it above" in found["because"] and "SSD, through DRAM has 387 MB/s" in found["because"]
    nothing = break_even(resolved, ran(hit_rate={"dram": 0.0, "ssd": 0.0, "miss": 1.0, "ceiling": 0.0}), {})
    assert nothing["span_tokens"] is None and nothing["bytes_per_s"] is None and "share nothing" in nothing["because"]
    assert not break_even(resolved, None, {})["because"]
    assert reused_span(None, 16) is None and below_share(None) is None and below_share(ran()) == pytest.approx(0.5)


def test_break_even_reuse_is_where_the_line_reaches_the_price() -> None:
    """A unit carries 50 % more at a reuse of 0.4 and costs 20 % more: 0.4 x 20 / 50."""
    dear = judged(1.5, 1.0, {WITH: 12.0, WITHOUT: 10.0})
    assert reuse_share(0.4, dear)["share"] == pytest.approx(0.16)
    assert reuse_share(0.4, judged(1.5, 1.0))["share"] == 0.0, "DRAM comes with the instance"
    assert reuse_share(0.4, judged(1.0, 1.0))["share"] == 0.0, "and nothing is lost"
    assert reuse_share(0.4, judged(1.0, 1.0, {WITH: 12.0, WITHOUT: 10.0}))["share"] is None
    assert reuse_share(0.4, judged(0.8, 1.0))["share"] is None, "it loses whatever is reused"
    far = reuse_share(0.4, judged(1.05, 1.0, {WITH: 20.0, WITHOUT: 10.0}))
    assert far["share"] is None and far["how"].endswith("No share up to 1 pays that.")
    assert reuse_share(0.0, dear)["share"] is None and reuse_share(0.4, {})["share"] is None


# ---- small machines ---------------------------------------------------------------------------


def told(case: Case, slo: float, load: float) -> dict[str, Any]:
    """Return the verdict with nothing but both offers and the ends of the knee measured."""
    bench = Bench(Slo({"ttft_mean": slo}), Effort(120, 0.05), Near(load), 0.5 * load, least_requests=120)
    asked = verdict.ask(case)
    ends = {name: asked.sizes[name] for name in (min(asked.sizes, key=int), max(asked.sizes, key=int))}
    found = measure({**asked.offers, **ends}, bench, serially)
    return verdict.verdict(asked, Unit("p4d.24xlarge", 8, 1, Price(20.0, "USD", "a test", None)), found)


def test_verdict_where_dram_keeps_what_vram_cannot_is_true() -> None:
    """A pool of 20,000 tokens, and conversations of 6,000 that come back in a second."""
    found = told(a_case("engine.num_gpu_blocks=1250", prompt=5800), 0.5, 0.5)
    assert found["offload_helps"] is True and found["cost_change"] < -0.2
    assert found["dram_knee"]["bytes"] > 0 and found["dram_knee"]["by"] == "load"
    assert found["break_even"]["link"]["better"] == "load" and found["break_even"]["reuse"]["share"] == 0.0
    assert found["wear"] is None and found["ssd"]["worth"] is None


def test_verdict_where_all_fits_vram_is_false() -> None:
    found = told(a_case("engine.num_gpu_blocks=60000", prompt=3000), 0.3, 2.0)
    assert found["offload_helps"] is False and abs(found["cost_change"]) < 0.05
    assert found["dram_knee"]["bytes"] is None


def test_weigh_measures_what_sensitivity_and_verdict_share_once() -> None:
    asked: list[Job] = []

    def evaluate(jobs: Sequence[Job]) -> list[Outcome]:
        asked.extend(jobs)
        answers = [carries(2.0).to_answer() if job.label.endswith("largest load") else ran() for job in jobs]
        return [Outcome(job, "done", answer) for job, answer in zip(jobs, answers, strict=True)]

    bench = Bench(Slo({"ttft_mean": 0.1}), Effort(60, 0.05), Near(1.0), 0.5, least_requests=60)
    case = a_case(hardware="dgx-h100")
    more, found = weigh(case, Unit("dgx-h100", 8, 1, None), bench, evaluate)
    assert len({job.key for job in asked}) == len(asked)
    cases = {job.label.partition(":")[0] for job in asked if job.label.endswith("largest load")}
    knees = {str(size) for size in knee.sizes(knee.most_dram_bytes(case.resolve()))}
    shared = {"base", WITH, knee.WITHOUT}
    assert len(cases & shared) == 1 and cases - shared == {
        *RESOURCES[:6], WITHOUT, knee.WITH, *knees,
    }, "the case itself is all three"  # fmt: skip
    assert set(more) == set(RESOURCES) and found["offload_helps"] is False
    assert set(found) == {
        "offload_helps", "because", "cost_change", "with", "without", "break_even", "dram_knee", "ssd", "wear",
    }  # fmt: skip


# ---- why --------------------------------------------------------------------------------------


def contender(name: str, hour: float | None, units: int, load: float, cost: float | None, ttft: float) -> Contender:
    price = Price(hour, "USD", "list", None) if hour is not None else None
    summary = {"bottleneck": "h2d", "bottleneck_because": "host-to-device link busy 96 % of the run"}
    trials = (Trial(load * 1.05, {"ttft_p95": (2.3, 2.0)}),)
    capacity = Capacity(load, load * 1.05, trials, summary, "ttft_p95")
    return Contender(name, Unit(name, 8, 2, price), units, capacity, cost, {"ttft_p95": ttft})


def test_why_names_price_capacity_and_latency_with_their_differences() -> None:
    found = against(contender("big", 60.0, 2, 0.62, 0.84, 0.4), contender("small", 40.0, 4, 0.31, 0.97, 0.4))
    assert found["against"] == "small" and found["differences"]["cost"] == pytest.approx(0.84 / 0.97 - 1)
    assert found["because"] == (
        "big costs 0.840 USD a million output tokens, 13 % less than small (0.970): a unit of it costs 50 % more an "
        "hour; a unit carries 100 % more (0.620 times the scenario's load, the other 0.310); it takes 2 units instead "
        "of 4; 16 GPUs instead of 32."
    )
    quick = against(contender("a", None, 1, 1.0, None, 0.2), contender("b", None, 1, 1.0, None, 0.4))
    assert (
        quick["differences"]["cost"] is None
        and "TTFT p95 at the planned load is 200 ms instead of 400 ms" in quick["because"]
    )
    same = against(contender("a", 1.0, 1, 1.0, 1.0, 0.2), contender("b", 1.0, 1, 1.0, 1.0, 0.2))
    assert same["because"] == "a and b are alike in price, capacity and latency."
    alone = against(contender("a", 1.0, 1, 1.0, 1.0, 0.2), None)
    assert alone["against"] is None and "only candidate" in alone["because"]


def test_binds_tells_target_and_bottleneck() -> None:
    found = binds(contender("a", 1.0, 1, 1.0, 1.0, 0.2).capacity)
    assert (found["target"], found["value"], found["limit"], found["over"]) == ("ttft_p95", 2.3, 2.0, 1.05)
    assert found["because"] == (
        "A unit carries 1.00 times the scenario's load; at 1.05 times TTFT p95 is 2.30 s, and the limit is 2.00 s. "
        "The bottleneck there is host-to-device link: host-to-device link busy 96 % of the run."
    )
    grows = Capacity(1.0, 1.1, (Trial(1.1, {"stationary": (1.0, 0.0)}),), {}, "stationary")
    assert "at 1.10 times the queue grows without bound" in binds(grows)["because"]
    served = Capacity(1.0, 1.1, (Trial(1.1, {"served": (0.2, 0.0)}),), {}, "served")
    assert "20 % of the requests are turned away" in binds(served)["because"]
    endless = binds(Capacity(5.0, inf, (), {"bottleneck": None, "bottleneck_because": "nothing"}, ""))
    assert endless["over"] is None and endless["target"] is None and "no load tried was too much" in endless["because"]
    nothing = binds(Capacity(0.0, 0.1, (Trial(0.1, {"ttft_p95": (9.0, 2.0)}),), {}, "ttft_p95"))
    assert "carries nothing within the SLO" in nothing["because"]


def test_targets_are_spoken_with_their_class() -> None:
    assert spoken("ttft_p95") == "TTFT p95" and spoken("chat.tpot_mean") == "TPOT mean of class chat"
