"""Engines that decide a step while the one before it runs: who comes meanwhile joins the step after next."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from simkv.scenario.resolve import resolve
from tests.sim_factory import request, run, system_config
from tests.test_oracle import KINDS, Case
from tests.test_oracle import run as run_case

CHATBOT = "scenarios/chatbot.yaml"


def begun_s(arrivals_s: list[float], outputs: list[int], **changes: object) -> list[float]:
    """When each request was first thought of, with steps of one second."""
    config = system_config(max_num_batched_tokens=64, **changes)
    requests = [request(i, t, 4, n) for i, (t, n) in enumerate(zip(arrivals_s, outputs, strict=True))]
    rows = run(config, requests).requests
    return [float(s) for _, s in sorted(zip(rows["id"], rows["scheduled_s"], strict=True))]


def test_newcomer_beside_a_running_request_joins_the_step_after_next() -> None:
    assert begun_s([0.0, 2.5], [10, 1]) == [0.0, 3.0]
    assert begun_s([0.0, 2.5], [10, 1], async_scheduling=True) == [0.0, 4.0]


def test_newcomer_at_the_end_of_a_step_counts_as_one_within_it() -> None:
    assert begun_s([0.0, 3.0], [10, 1], async_scheduling=True) == [0.0, 4.0]


def test_newcomer_of_an_idle_engine_is_taken_at_once() -> None:
    assert begun_s([0.5, 20.25], [3, 1], async_scheduling=True) == [0.5, 20.25]


def test_newcomer_during_the_last_step_waits_for_its_end_only() -> None:
    assert begun_s([0.0, 2.5], [3, 1], async_scheduling=True) == [0.0, 3.0]


def test_newcomers_keep_their_order_and_none_is_lost() -> None:
    arrivals = [0.0, *(1.1 + 0.2 * i for i in range(30))]
    begun = begun_s(arrivals, [40, *([2] * 30)], async_scheduling=True, max_num_seqs=3)
    assert begun == sorted(begun)


@pytest.mark.parametrize("kind", KINDS)
def test_slower_engines_agree_on_scheduling_ahead(kind: str) -> None:
    draw, check, count = KINDS[kind]
    for seed in range(count // 2):
        check(ahead(draw(Random(seed), 12)))


def test_scheduling_ahead_alone_never_admits_sooner() -> None:
    """A request that meets one other, in VRAM alone: nothing but its own wait changes."""
    for seed in range(60):
        case = KINDS["plain"][0](Random(seed), 2)
        now, later = run_case(case).requests, run_case(ahead(case)).requests
        if not now["rejected"].any():
            assert later["scheduled_s"].max() >= now["scheduled_s"].max()


def ahead(case: Case) -> Case:
    """The same system, deciding ahead."""
    return Case(replace(case.config, engine=replace(case.config.engine, async_scheduling=True)), case.requests)


def test_preset_schedules_ahead_and_abstract_hardware_does_not() -> None:
    assert resolve(CHATBOT).scenario.engine.async_scheduling is True
    assert resolve(CHATBOT, ["engine.async_scheduling=false"]).scenario.engine.async_scheduling is False
    assert resolve("scenarios/article-toy.yaml").scenario.engine.async_scheduling is None


def test_version_before_it_was_the_default_decides_between_steps() -> None:
    assert resolve(CHATBOT, ['engine.version="0.13"']).scenario.engine.async_scheduling is False
