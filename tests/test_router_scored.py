"""The router that weighs scores: what it remembers, what it is told, and that it loses nobody."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.scenario.resolve import resolve_text
from simkv.sim.config import RememberedPrefixes, Scores
from simkv.sim.remembered import Remembered, chained
from simkv.sim.rundata import RunData
from simkv.workload.request import Request
from tests.sim_factory import ComputeStep, request, run, system_config

PREFIXES = RememberedPrefixes(weight=1.0, block_tokens=4, most_tokens=64, capacity_blocks=1000)
SCORES = Scores(queue=1.0, kv_usage=1.0, in_flight=0.0, cold=0.0, prefixes=(PREFIXES,), poll_s=0.0, seed=0)


def routed(requests: list[Request], replicas: int = 3, **weights: Any) -> RunData:
    """Return a run of ``requests`` on replicas that the scores choose from."""
    scores = replace(SCORES, **weights)
    config = system_config(ComputeStep(0.01, 0.001, 0.0001), replicas=replicas, router="scored", scores=scores)
    return run(config, requests)


@settings(max_examples=25, deadline=None)
@given(
    prompts=st.lists(st.tuples(st.integers(1, 200), st.integers(0, 5), st.integers(0, 60)), min_size=1, max_size=40),
    weights=st.fixed_dictionaries(
        {name: st.sampled_from([0.0, 1.0, 2.5]) for name in ("queue", "kv_usage", "in_flight", "cold")}
    ),
    poll_s=st.sampled_from([0.0, 0.05, 1e6]),
)
def test_every_request_is_served_once_whatever_the_weights(
    prompts: list[tuple[int, int, int]], weights: dict[str, float], poll_s: float
) -> None:
    requests = [
        request(number, 0.05 * number, prompt, 2, min(shared, prompt), stream)
        for number, (prompt, stream, shared) in enumerate(prompts)
    ]
    data = routed(requests, poll_s=poll_s, **weights)
    assert (data.arrived, data.finished, data.rejected) == (len(requests), len(requests), 0)
    assert sorted(data.requests["id"].tolist()) == list(range(len(requests)))


def test_same_seed_same_choices_and_other_seeds_others() -> None:
    requests = [request(number, float(number), 40) for number in range(30)]
    chosen = [routed(requests, seed=seed).requests["replica"].tolist() for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2]


def test_prompt_goes_where_its_beginning_was_sent() -> None:
    requests = [request(number, 10.0 * number, 40, 1, 32, number % 5) for number in range(40)]
    data = routed(requests, replicas=4)
    where = dict(zip(data.requests["id"].tolist(), data.requests["replica"].tolist(), strict=True))
    assert all(where[number] == where[number % 5] for number in range(40))


def test_cold_prompts_go_round_and_known_ones_do_not_count() -> None:
    cold = [request(number, 10.0 * number, 40) for number in range(12)]
    data = routed(cold, replicas=4, cold=1.0, queue=0.0, kv_usage=0.0)
    assert Counter(data.requests["replica"].tolist()) == dict.fromkeys(range(4), 3)


def test_requests_in_flight_are_spread_where_they_alone_count() -> None:
    requests = [request(number, 0.0, 40, 50) for number in range(9)]
    data = routed(requests, in_flight=1.0, queue=0.0, kv_usage=0.0, prefixes=())
    assert Counter(data.requests["replica"].tolist()) == dict.fromkeys(range(3), 3)


def test_replica_tells_of_its_queue_only_after_a_step() -> None:
    """A burst within one step is not spread by queues that nobody has told of yet."""
    burst = [request(number, 0.001 * number, 40, 1, 36, 7) for number in range(6)]
    data = routed(burst, replicas=3)
    assert len(set(data.requests["replica"].tolist())) == 1, "their beginning decides"


def test_blocks_are_equal_exactly_as_far_as_content_is() -> None:
    one = chained(((1, 0, 10), (2, 0, 90)), 4, 25)
    other = chained(((1, 0, 10), (2, 0, 38), (3, 0, 52)), 4, 25)
    assert one[:12] == other[:12]
    assert not set(one[12:]) & set(other[12:])
    assert len(set(one)) == 25


def test_least_recently_sent_blocks_are_forgotten() -> None:
    memory = Remembered(replace(PREFIXES, capacity_blocks=20), 2)
    prompts = [memory.blocks(request(number, 0.0, 64, 1, 64, number)) for number in range(3)]
    assert [len(prompt) for prompt in prompts] == [16, 16, 16]
    memory.sent(prompts[0], 0)
    assert (memory.matched(prompts[0], 0), memory.matched(prompts[0], 1)) == (16, 0)
    memory.sent(prompts[1], 0)
    assert memory.matched(prompts[1], 0) == 16
    assert memory.matched(prompts[0], 0) == 0, "its first blocks went first"


def test_nothing_behind_the_most_tokens_is_looked_at() -> None:
    memory = Remembered(replace(PREFIXES, most_tokens=8), 1)
    assert len(memory.blocks(request(0, 0.0, 100))) == 2


def test_scorers_without_their_router_are_refused() -> None:
    text = """
name: x
model: llama-3.1-8b
hardware: a100-sxm4-80gb
replicas: {count: 2, router: least_loaded, scorers: {queue: 2}}
workload: {kind: plain, arrival: {process: poisson, rate: 1 req/s}, prompt_tokens: 5, output_tokens: 4, requests: 3}
"""
    with pytest.raises(InputError, match="does nothing with router least_loaded"):
        resolve_text(text, "x.yaml")


@pytest.mark.parametrize("weights", [{}, {"kv_usage": 0.0}, {"poll_s": 0.5}, {"in_flight": 1.0, "cold": 1.0}])
def test_scored_choices_are_those_of_single_steps(weights: dict[str, float]) -> None:
    """A replica publishes at the end of each step, those included that are booked together."""
    requests = [request(number, 0.037 * number, 20 + 37 * number % 90, 1 + 29 * number % 70) for number in range(120)]
    cost = ComputeStep(0.01, 0.001, 0.0001)
    config = system_config(cost, replicas=3, router="scored", scores=replace(SCORES, **weights), num_gpu_blocks=200)
    whole, single = (run(replace(config, step_exact=exact), requests).requests for exact in (False, True))
    for name in ("id", "replica", "first_token_s", "finish_s"):
        assert whole[name].tolist() == single[name].tolist()
