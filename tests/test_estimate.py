"""What is said of a run before it starts: within a factor of three, refused where it would take days."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simkv import estimate as estimates
from simkv.cli.lasting import Lasting
from simkv.errors import InputError
from simkv.estimate import MOST_S, Estimate, check, estimate, spoken, told
from simkv.estimate.run import memory_bytes
from simkv.scenario.build import system_config, workload_source
from simkv.scenario.resolve import Resolved, resolve
from simkv.sim.system import System
from simkv.sweeps.axes import parse_axes
from simkv.sweeps.forecast import forecast
from simkv.sweeps.layout import lay_out
from simkv.sweeps.simulate import Written

ROOT = Path(__file__).parents[1]
FACTOR = 3.0
SHIPPED = {
    "chatbot": ("workload.requests=1500",),
    "plan-chat-70b": ("workload.requests=600",),
    "qos-two-classes": ("workload.requests=400",),
    "speed-100k": ("workload.requests=3000",),
    "speed-sessions": ("workload.requests=1500",),
    "calibrated-small": (),
    "agent-sessions": (),
    "article-maas": ("workload.requests=36", "workload.output_tokens=60"),
    "article-toy": (),
    "long-context-active": ("workload.output_tokens=64",),
    "flexgen-opt-30b-t4": (),
}


def scenario(name: str, *sets: str) -> Resolved:
    return resolve(str(ROOT / "scenarios" / f"{name}.yaml"), [*sets, "run.baselines=[]"])


@pytest.mark.parametrize("name", SHIPPED)
def test_estimate_of_a_shipped_scenario_is_within_a_factor_of_three(name: str) -> None:
    found = scenario(name, *SHIPPED[name])
    said = estimate(found)
    data = System(system_config(found), workload_source(found, 0)).run(None)
    assert said.requests == pytest.approx(data.arrived, rel=0.1)
    assert data.macro_steps / FACTOR < said.decisions < data.macro_steps * FACTOR


STAGE = "{rate: 50 req/s, duration: 9s}"
BOUNDED = {
    "duration of open arrivals": ("speed-100k", ("workload.requests=null", "run.duration=50s")),
    "duration of sessions": ("chatbot", ("workload.requests=null", "run.duration=400s")),
    "stages": (
        "speed-100k",
        (
            "workload.requests=null",
            f"workload.arrival={{process: stages, stages: [{STAGE}, {STAGE}]}}",
        ),
    ),
    "batches": (
        "speed-100k",
        (
            "workload={kind: batch, size: 500, interval: 10s, prompt_tokens: 100, output_tokens: 10}",
            "run.duration=45s",
        ),
    ),
    "users for a time": (
        "speed-100k",
        ("workload.requests=null", "run.duration=60s", "workload.arrival={process: closed_loop, users: 400}"),
    ),
    "users of active offload for a time": ("article-maas", ("workload.requests=null", "run.duration=60s")),
}


@pytest.mark.parametrize("kind", BOUNDED)
def test_estimate_of_how_many_requests_come_is_within_a_factor_of_three(kind: str) -> None:
    name, sets = BOUNDED[kind]
    found = scenario(name, *sets)
    data = System(system_config(found), workload_source(found, 0)).run(None)
    assert data.arrived / FACTOR < estimate(found).requests < data.arrived * FACTOR


def test_estimate_grows_with_requests_and_with_what_is_asked_of_them() -> None:
    few, many = scenario("speed-100k", "workload.requests=1000"), scenario("speed-100k", "workload.requests=1000000")
    assert estimate(many).time_s == pytest.approx(1000 * estimate(few).time_s, rel=0.1)
    assert estimate(few, step_exact=True).time_s > estimate(few).time_s
    assert estimate(few, audit=True).time_s > estimate(few, audit=False).time_s


def test_estimate_of_a_link_that_carries_nothing_is_of_what_is_left() -> None:
    without, with_it = (scenario("article-p03-concurrency", *sets) for sets in (("link.h2d=0 GB/s",), ()))
    assert 0 < estimate(without).time_s <= estimate(with_it).time_s


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("speed-100k", ("workload.requests=1000000000",)),
        ("article-maas", ("workload.requests=100000000",)),
        ("speed-100k", ("workload.requests=1000000000", "workload.arrival={process: all_at_once}")),
        ("speed-100k", ("workload.requests=null", "run.duration=1e10s", "workload.arrival.rate=1000 req/s")),
        (
            "speed-100k",
            ("workload.requests=1000000000", "workload.arrival={process: closed_loop, users: 100000000}"),
        ),
    ],
)
def test_check_of_a_run_of_days_or_of_too_much_memory_names_what_to_lower(name: str, sets: tuple[str, ...]) -> None:
    found = scenario(name, *sets)
    with pytest.raises(InputError, match=r"this run takes about .*; lower it, or give --long") as refusal:
        check(found, estimate(found))
    problem = refusal.value.problems[0]
    assert problem.file and problem.path in ("workload.requests", "run.duration") and problem.value


def test_check_lets_shipped_scenarios_pass() -> None:
    found = scenario("chatbot")
    check(found, estimate(found))
    assert told(estimate(found)) == ""


def test_check_refuses_what_takes_more_memory_than_this_process_may(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scenario("chatbot")
    monkeypatch.setattr(estimates.run, "memory_bytes", lambda: 1 << 30)
    with pytest.raises(InputError, match=r"2 GB of memory, and there are 1\.1 GB"):
        check(found, Estimate(1, 1, 1.0, 2e9))


def test_memory_bytes_is_what_a_limit_of_this_process_leaves() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = memory_bytes()
    assert before is not None and before > 1 << 28
    resource.setrlimit(resource.RLIMIT_AS, (before - (1 << 20), hard))
    try:
        assert memory_bytes() == before - (1 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_told_is_said_of_long_runs_alone() -> None:
    assert told(Estimate(1e6, 1e6, 5.0, 0)) == ""
    assert told(Estimate(1e6, 1e6, 7200.0, 0)).startswith("this run takes about 2 h: 1,000,000 requests")


@pytest.mark.parametrize(
    ("time_s", "text"),
    [
        (25, "25 s"), (150, "2.5 min"), (1500, "25 min"), (7300, "2 h"), (MOST_S, "24 h"), (1e6, "12 days"),
        (1e30, "million years"),
    ],
)  # fmt: skip
def test_spoken_times_have_the_unit_that_one_would_say(time_s: float, text: str) -> None:
    assert spoken(time_s).endswith(text)


def test_forecast_of_a_sweep_adds_its_runs_and_refuses_weeks() -> None:
    written = Written.read(str(ROOT / "scenarios" / "speed-100k.yaml"), ("workload.requests=1000000",))
    layout = lay_out(written, parse_axes(["engine.max_num_seqs=32:256:32"]))
    one, two = forecast(layout, written, 1), forecast(layout, written, 2)
    assert one.runs == 8 and one.time_s == pytest.approx(2 * two.time_s)
    assert re.match(r"these 8 runs take about \d+ min, if none", one.told) and " on 2 processes" in two.told
    many = lay_out(written, parse_axes(["engine.max_num_seqs=32:256:1"]), replications=100)
    with pytest.raises(InputError, match=r"22,500 runs take about .* days, more than 7 days; take fewer points"):
        forecast(many, written, 1)
    assert forecast(many, written, 1, insist=True).runs == 22_500


def test_lasting_says_once_what_nobody_had_said(monkeypatch: pytest.MonkeyPatch) -> None:
    now, said = [0.0], list[str]()
    monkeypatch.setattr("simkv.cli.lasting.time.monotonic", lambda: now[0])
    lasting = Lasting(said.append, False)
    for now[0], fraction in ((1.0, 0.001), (30.0, 0.01), (60.0, 0.02)):
        lasting(fraction)
    assert said == ["this run takes about 50 min more: 1% was done in 30 s"]
    quiet = Lasting(said.append, True)
    now[0] += 100
    quiet(0.01)
    assert len(said) == 1


def test_lasting_names_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now, said = [0.0], list[str]()
    monkeypatch.setattr("simkv.cli.lasting.time.monotonic", lambda: now[0])
    lasting = Lasting(said.append, False, "these curves take")
    now[0] = 30.0
    lasting(0)
    assert said == ["these curves take long: after 30 s nothing is done yet; Ctrl-C ends it"]
