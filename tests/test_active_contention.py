"""Computation and copies that slow each other: times by hand, a naive reference, and what never happens."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.formulas.step import ConstantStep
from simkv.kvcache.access import TopK
from simkv.scenario.build import system_config
from simkv.scenario.explain import to_yaml
from simkv.scenario.resolve import resolve_text
from simkv.sim.active.computation import Contended
from simkv.sim.active.config import Contention, LaneFactors
from simkv.sim.active.measured import Measured
from simkv.sim.active.traffic import Traffic
from simkv.sim.clock import Clock
from simkv.sim.config import SystemConfig
from simkv.sim.fabric import DEMAND, Lane
from simkv.sim.tiers import Host, ReplicaTiers
from simkv.simulation import run_scenario
from tests import active_factory as make
from tests.sim_factory import system_config as plain_config
from tests.test_active_scenario import BASE, DENSE, RESIDENT, complaints
from tests.test_batchmode_scenario import SMALL

NAMES = ("h2d", "d2h", "ssd_read", "ssd_write")
BYTES_PER_S = {"h2d": 10_000.0, "d2h": 10_000.0, "ssd_read": 5_000.0, "ssd_write": 5_000.0}


class Rig:
    """One replica's lanes and its computation; what ended is noted by name."""

    def __init__(self, contention: Contention) -> None:
        self.clock = Clock()
        config = plain_config(dram_blocks=100, ssd_blocks=100)
        self.host = Host(self.clock, config, 1)
        self.tiers = ReplicaTiers(config, self.host, 0)
        self.measured = Measured()
        self.computation = Contended(Traffic(self.clock, self.tiers, 250, self.measured), contention)
        self.ended: dict[str, float] = {}

    def lane(self, name: str) -> Lane:
        return {"h2d": self.tiers.h2d, "d2h": self.tiers.d2h}.get(name) or getattr(self.host, name)

    def compute(self, at_s: float, seconds: float, name: str = "compute") -> None:
        self.clock.at(at_s, 5, lambda _: self.computation.run(seconds, lambda: self.end(name)))

    def copy(self, at_s: float, lane: str, seconds: float, name: str = "copy") -> None:
        nbytes = round(BYTES_PER_S[lane] * seconds)
        self.clock.at(at_s, 5, lambda _: self.lane(lane).submit(nbytes, 1, DEMAND, lambda: self.end(name)))

    def end(self, name: str) -> None:
        self.ended[name] = self.clock.now

    def run(self) -> dict[str, float]:
        self.clock.run()
        return self.ended


def slow(name: str, compute: float = 1.0, copy: float = 1.0) -> Contention:
    return Contention(LaneFactors(**{name: compute}), LaneFactors(**{name: copy}))


# ---- by hand


@pytest.mark.parametrize("name", NAMES)
def test_copy_inside_a_computation_lengthens_it_by_its_own_time_times_the_factor_less_one(name: str) -> None:
    rig = Rig(slow(name, compute=1.5))
    rig.compute(0.0, 10.0)
    rig.copy(2.0, name, 3.0)
    # 2 s alone; 3 s beside the copy do 2 s of work; 6 s alone
    assert rig.run() == pytest.approx({"compute": 11.0, "copy": 5.0})
    assert rig.measured.contended_s == pytest.approx(1.0)


@pytest.mark.parametrize("name", NAMES)
def test_copy_is_slower_only_as_long_as_something_is_computed(name: str) -> None:
    rig = Rig(slow(name, copy=2.0))
    rig.compute(1.0, 4.0)
    rig.copy(0.0, name, 5.0)
    # 1 s alone; 4 s at half the rate do 2 s of it; 2 s alone
    assert rig.run() == pytest.approx({"compute": 5.0, "copy": 7.0})
    assert rig.measured.contended_s == 0.0


def test_both_factors_at_once_are_solved_piece_by_piece() -> None:
    rig = Rig(slow("h2d", compute=1.25, copy=1.6))
    rig.compute(0.0, 4.0)
    rig.copy(1.0, "h2d", 1.0)
    # the copy takes 1.6 s, in which 1.28 s are computed; 1 + 1.6 + (4 - 1 - 1.28)
    assert rig.run() == pytest.approx({"compute": 4.32, "copy": 2.6})


def test_two_lanes_at_once_add_what_each_costs() -> None:
    factors = LaneFactors(h2d=1.5, ssd_read=2.0)
    rig = Rig(Contention(factors))
    rig.compute(0.0, 10.0)
    rig.copy(0.0, "h2d", 5.0, "up")
    rig.copy(0.0, "ssd_read", 2.0, "read")
    # pace 1 + 0.5 + 1 for 2 s (0.8 s of work), 1.5 for 3 s (2 s), then 7.2 s alone
    assert rig.run() == pytest.approx({"up": 5.0, "read": 2.0, "compute": 12.2})


def test_transfers_back_to_back_are_one_busy_time() -> None:
    rig = Rig(slow("h2d", compute=2.0))
    rig.compute(0.0, 3.0)
    rig.copy(0.0, "h2d", 1.0, "first")
    rig.copy(0.0, "h2d", 1.0, "second")
    assert rig.run() == pytest.approx({"first": 1.0, "second": 2.0, "compute": 4.0})


def test_other_replicas_link_slows_nothing_here_and_their_common_ssd_does() -> None:
    contention = Contention(LaneFactors(2.0, 2.0, 2.0, 2.0))
    config = plain_config(dram_blocks=100, ssd_blocks=100)
    clock, ended = Clock(), {}
    host = Host(clock, config, 2)
    mine, other = (ReplicaTiers(config, host, number) for number in range(2))
    computation = Contended(Traffic(clock, mine, 250, Measured()), contention)
    computation.run(1.0, lambda: ended.setdefault("first", clock.now))
    other.h2d.submit(5_000, 1, DEMAND, lambda: None)
    clock.run()
    assert ended == {"first": 1.0}
    begun = clock.now
    computation.run(1.0, lambda: ended.setdefault("second", clock.now - begun))
    host.ssd_read.submit(10_000, 1, DEMAND, lambda: None)
    clock.run()
    assert ended["second"] == pytest.approx(2.0)


# ---- a naive reference


class Job(NamedTuple):
    """A transfer of so many seconds alone, on a lane, from then on."""

    at_s: float
    lane: str
    seconds: float


def naive(contention: Contention, stretches: list[tuple[float, float]], jobs: list[Job]) -> dict[str, float]:
    """March from event to event with every rate worked out anew; ``stretches``: pause before, seconds of computing."""
    during = {name: getattr(contention.compute_during, name) for name in NAMES}
    slowed = {name: getattr(contention.during_compute, name) for name in NAMES}
    copies = {f"copy {n}": [job.at_s, job.seconds] for n, job in enumerate(jobs)}
    lane_of = {f"copy {n}": job.lane for n, job in enumerate(jobs)}
    ended: dict[str, float] = {}
    now, at, pause, left = 0.0, 0, *stretches[0]
    while copies or at < len(stretches):
        busy: dict[str, str] = {}
        for name, (at_s, _) in copies.items():
            if at_s <= now + 1e-12:
                busy.setdefault(lane_of[name], name)
        computing = at < len(stretches) and pause <= 1e-12
        pace = 1.0 + sum(during[lane] - 1.0 for lane in busy)
        factors = {name: slowed[lane] if computing else 1.0 for lane, name in busy.items()}
        ends = [at_s - now for at_s, _ in copies.values() if at_s > now + 1e-12]
        ends += [copies[name][1] * factor for name, factor in factors.items()]
        if at < len(stretches):
            ends.append(left * pace if computing else pause)
        passed = min(ends)
        now += passed
        for name, factor in factors.items():
            copies[name][1] -= passed / factor
            if copies[name][1] <= 1e-9:
                ended[name] = now
                del copies[name]
        pause, left = (pause, left - passed / pace) if computing else (pause - passed, left)
        if computing and left <= 1e-9:
            ended[f"compute {at}"] = now
            at += 1
            pause, left = stretches[at] if at < len(stretches) else (0.0, 0.0)
    return ended


FACTOR = st.sampled_from((1.0, 1.1, 1.5, 3.0))
TIMES = st.integers(0, 40).map(lambda n: n / 4)
LENGTHS = st.integers(1, 20).map(lambda n: n / 5)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(FACTOR, min_size=8, max_size=8),
    st.lists(st.tuples(st.sampled_from((0.0, 0.3, 2.0)), LENGTHS), min_size=1, max_size=5),
    st.lists(st.builds(Job, TIMES, st.sampled_from(("h2d", "d2h", "ssd_read")), LENGTHS), max_size=6),
)
def test_any_mix_ends_when_the_naive_reference_says(
    factors: list[float], stretches: list[tuple[float, float]], jobs: list[Job]
) -> None:
    contention = Contention(LaneFactors(*factors[:4]), LaneFactors(*factors[4:]))
    jobs = sorted(jobs, key=lambda job: job.at_s)
    rig = Rig(contention)

    def after(number: int) -> None:
        if number:
            rig.end(f"compute {number - 1}")
        if number < len(stretches):
            pause, seconds = stretches[number]
            begin = lambda _: rig.computation.run(seconds, lambda: after(number + 1))  # noqa: E731
            rig.clock.at(rig.clock.now + pause, 5, begin)

    after(0)
    for number, job in enumerate(jobs):
        rig.copy(job.at_s, job.lane, job.seconds, f"copy {number}")
    assert rig.run() == pytest.approx(naive(contention, stretches, jobs), rel=1e-6, abs=1e-6)


# ---- whole steps

TOPK = TopK(24, 4, 4, 0.5, 0.3)
KINDS: dict[str, dict[str, Any]] = {
    "none": {"policy": "none"},
    "layer": {"policy": "layer"},
    "next_step": {"policy": "next_step"},
    "sparse": {"policy": "oracle", "access": TOPK},
    "beside": {"policy": "oracle", "access": TOPK, "overlaps_demand": True},
    "fixed_overlap": {"policy": "fixed_overlap", "beta": 0.5},
    "rewrite": {"policy": "layer", "write": "rewrite"},
}


def config_of(kind: str, **changes: Any) -> SystemConfig:
    knobs = {"residency": 0.3, "num_gpu_blocks": 60, "write": "write_back", "dram_blocks": 100, "ssd_blocks": 100}
    return make.active_config(**(knobs | KINDS[kind] | changes))


def contend(config: SystemConfig, contention: Contention) -> SystemConfig:
    assert config.active is not None
    return replace(config, active=replace(config.active, contention=contention))


@pytest.mark.parametrize("kind", KINDS)
def test_factors_of_one_are_todays_run_to_the_last_digit(kind: str) -> None:
    config = config_of(kind)
    requests = [make.decoding(60, 12, number, 1.0 * number) for number in range(3)]
    plain = make.run(config, requests)
    ones = make.run(contend(config, Contention(LaneFactors(1.0, 1.0, 1.0, 1.0), LaneFactors(), 1.0)), requests)
    assert (ones.active, ones.events, ones.end_s) == (plain.active, plain.events, plain.end_s)
    assert plain.active is not None and plain.active.contended_s == plain.active.hindered_s == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_larger_factors_never_shorten_a_sequence_alone(kind: str) -> None:
    config = config_of(kind, cost=ConstantStep(0.2, make.LAYERS))
    ends = []
    for factor in (1.0, 1.05, 1.3, 2.0, 5.0):
        contention = Contention(LaneFactors(factor, factor, 1.0, 1.0), LaneFactors(factor, 1.0, 1.0, 1.0))
        ends.append(make.run(contend(config, contention), [make.decoding(60, 12)]).end_s)
    assert ends == sorted(ends)
    assert ends[-1] > ends[0] or kind == "none"


def test_computing_beside_a_whole_layers_copy_is_longer_by_what_the_copy_takes() -> None:
    """Dense, layer prefetch, transfers shorter than a layer: each computes beside one copy but the last."""
    config = config_of("layer", residency=0.5, write="write_through")
    found = make.measured(contend(config, slow("h2d", compute=3.0)), [make.decoding(40, 2)])
    plain = make.measured(config, [make.decoding(40, 2)])
    # 10 blocks and the new one: 6 pinned, 5 streamed, 25 ms a piece; three of four layers come beside computing,
    # which then gets on by a third
    copy_s = 5 * 0.025
    assert found.steps == plain.steps == 1
    assert found.contended_s == pytest.approx(3 * copy_s * (1 - 1 / 3))
    assert found.step_s == pytest.approx(plain.step_s + found.contended_s)
    assert found.compute_s == plain.compute_s


def test_copies_slowed_by_computing_are_booked_as_that_and_not_as_queueing() -> None:
    config = config_of("layer", residency=0.3, write="write_through", cost=ConstantStep(0.1, make.LAYERS))
    plain = make.measured(config, [make.decoding(40, 2)])
    found = make.measured(contend(config, slow("h2d", copy=2.0)), [make.decoding(40, 2)])
    assert found.hindered_s > 0.0
    assert found.demand_waited_s == pytest.approx(plain.demand_waited_s, abs=1e-9)
    assert found.step_s > plain.step_s
    assert found.exposed_s == pytest.approx(found.step_s - found.compute_s)


def test_computing_that_nothing_is_carried_beside_takes_as_long_as_ever() -> None:
    config = config_of("none", write="write_through")
    contended = contend(config, Contention(LaneFactors(h2d=9.0), LaneFactors(h2d=9.0)))
    assert make.measured(contended, [make.decoding(40, 3)]).step_s == pytest.approx(
        make.measured(config, [make.decoding(40, 3)]).step_s
    )


# ---- after a wait


def cooled(config: SystemConfig, factor: float, beside: Contention = Contention()) -> SystemConfig:  # noqa: B008
    return contend(config, replace(beside, after_wait=factor))


@pytest.mark.parametrize("factor", [1.05, 2.0])
def test_every_layer_that_waits_takes_the_factor_times_as_long(factor: float) -> None:
    """Dense without prefetch: each of four layers waits for its five pieces, then computes."""
    config = config_of("none", residency=0.5, write="write_through")
    found = make.measured(cooled(config, factor), [make.decoding(40, 2)])
    # a step computes for 1 s; five streamed blocks at 25 ms a piece
    assert found.steps == 1
    assert found.exposed_s == pytest.approx(4 * 5 * 0.025)
    assert found.compute_s == pytest.approx(1.0)
    assert found.contended_s == pytest.approx(factor - 1.0)
    assert found.step_s == pytest.approx(factor + 4 * 5 * 0.025)


def test_layers_that_follow_one_that_waited_take_as_long_as_ever() -> None:
    """Layer prefetch, transfers shorter than a layer: the first layer alone waits."""
    config = config_of("layer", residency=0.5, write="write_through")
    found = make.measured(cooled(config, 1.2), [make.decoding(40, 2)])
    assert found.contended_s == pytest.approx(0.2 * 0.25)
    assert found.step_s == pytest.approx(1.0 + 5 * 0.025 + 0.05)


def test_where_all_is_prefetched_in_time_nothing_waits() -> None:
    """Next step's first layer comes in the step before: no layer waits but the first step's first."""
    config = config_of("next_step", residency=0.5, write="write_through")
    found = make.measured(cooled(config, 1.2), [make.decoding(40, 4)])
    assert found.steps == 3
    assert found.contended_s == pytest.approx(0.2 * 0.25)


def test_what_a_wait_adds_is_work_that_copies_beside_it_slow_too() -> None:
    """Layer prefetch, transfers longer than a layer: all wait, three compute beside a copy from end to end."""
    config = config_of("layer", residency=0.5, write="write_through", cost=ConstantStep(0.2, make.LAYERS))
    both = make.measured(cooled(config, 1.2, slow("h2d", compute=1.5)), [make.decoding(40, 2)])
    # layers of 50 ms take 60 ms, beside the copy of 125 ms 90 ms; the last one has none beside it
    assert both.step_s == pytest.approx(4 * 0.125 + 0.06)
    assert both.contended_s == pytest.approx(3 * 0.04 + 0.01)
    assert both.exposed_s == pytest.approx(0.125 + 3 * 0.035)


def test_a_whole_step_after_a_wait_has_one_slower_layer() -> None:
    config = config_of("fixed_overlap", residency=0.5, write="write_through")
    plain = make.measured(config, [make.decoding(40, 2)])
    found = make.measured(cooled(config, 1.2), [make.decoding(40, 2)])
    assert found.step_s - plain.step_s == pytest.approx(0.2 * 0.25) == pytest.approx(found.contended_s)


@pytest.mark.parametrize("kind", KINDS)
def test_after_wait_never_shortens_a_sequence_alone(kind: str) -> None:
    config = config_of(kind, cost=ConstantStep(0.2, make.LAYERS))
    ends = [make.run(cooled(config, factor), [make.decoding(60, 12)]).end_s for factor in (1.0, 1.05, 2.0)]
    assert ends == sorted(ends)
    assert ends[-1] > ends[0] or kind == "beside"


# ---- in a scenario

FACTORS = "contention={compute_during: {h2d: 1.5, ssd_read: 1.1}, during_compute: {d2h: 2}, after_wait: 1.25}"


def test_scenario_hands_its_factors_on() -> None:
    config = system_config(resolve_text(BASE, "s.yaml", (FACTORS,)))
    assert config.active is not None
    assert config.active.contention == Contention(LaneFactors(1.5, 1.0, 1.1), LaneFactors(d2h=2.0), 1.25)
    plain = system_config(resolve_text(BASE, "s.yaml"))
    assert plain.active is not None and plain.active.contention == Contention()


def test_every_lane_of_the_schema_is_one_of_the_simulators() -> None:
    from simkv.scenario import schema

    assert [field.name for field in fields(LaneFactors)] == list(schema.LaneFactors.model_fields) == list(NAMES)


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("contention.compute_during.h2d=0.5", ("contention.compute_during.h2d = 0.5", "the least is 1")),
        ("contention.during_compute.ssd_read=1001", ("contention.during_compute.ssd_read", "the most is 1000")),
        ("contention.compute_during.d2h=nan", ("contention.compute_during.d2h", "not a number")),
        ("contention.compute_during.nvlink=2", ("contention.compute_during.nvlink", "unknown key")),
        ("contention.after_wait=0.9", ("contention.after_wait = 0.9", "the least is 1")),
        ("contention.both=2", ("contention.both", "unknown key")),
        ("link.setup=-1us", ("link.setup", "negative")),
        ("tiers.ssd.request_latency=inf", ("tiers.ssd.request_latency",)),
        ("offload.host_cost_per_step=x", ("offload.host_cost_per_step",)),
    ],
)
def test_a_hostile_cost_is_refused_with_place_and_mend(assignment: str, words: tuple[str, ...]) -> None:
    found = complaints(BASE, assignment)
    assert any(all(word in line for word in words) for line in found), found


@pytest.mark.parametrize("assignment", [FACTORS, "offload.host_cost_per_step=1ms"])
def test_costs_of_active_offload_without_it_are_refused(assignment: str) -> None:
    [found] = complaints(RESIDENT, assignment)
    assert assignment.split("=")[0] in found and "keep all of their KV in VRAM" in found
    assert "write a residency below 1" in found


def test_batch_mode_refuses_contention() -> None:
    [found] = complaints(SMALL, FACTORS)
    assert "contention" in found and "static batches" in found


def test_contention_at_the_resident_end_of_a_grid_is_a_note_and_left_out_of_what_runs_again() -> None:
    resolved = resolve_text(RESIDENT, "s.yaml", ("offload.residency=1", FACTORS))
    assert "contention_idle" in dict(resolved.notes)
    assert system_config(resolved).active is None
    again = resolve_text(to_yaml(resolved))
    assert again.scenario.contention is None


def test_resolved_scenario_says_its_factors_again() -> None:
    resolved = resolve_text(BASE, "s.yaml", (FACTORS,))
    assert resolve_text(to_yaml(resolved)).scenario.contention == resolved.scenario.contention
    assert "contention_idle" not in dict(resolved.notes)


def test_answer_says_what_copies_cost_computing() -> None:
    assignments = ("offload.prefetch={policy: layer}", "workload.output_tokens=40", "run.baselines=[no_prefetch]")
    plain = run_scenario(resolve_text(DENSE, "s.yaml", assignments), audit=True).summary
    slowed = ("contention={compute_during: {h2d: 3}}",)
    found = run_scenario(resolve_text(DENSE, "s.yaml", (*assignments, *slowed)), audit=True).summary
    assert plain["t_wait_s"]["contention"] == 0.0 < found["t_wait_s"]["contention"]
    assert found["t_compute_s"] == pytest.approx(plain["t_compute_s"])
    assert found["t_step_s"] == pytest.approx(found["t_compute_s"] + sum(found["t_wait_s"].values()))
    assert found["t_step_s"] > plain["t_step_s"]
    alone = found["baselines"]["no_prefetch"]
    assert alone["t_wait_s"]["contention"] == pytest.approx(0.0, abs=1e-9)
