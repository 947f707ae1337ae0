"""Degenerate systems against queueing theory, and LRU against Che's approximation.

With a constant step and a pool that never fills, a request of n output tokens takes n steps of its own, so the
engine is a queue with ``max_num_seqs`` servers. Seeds are fixed; an oracle must lie within the 99.9 % interval of
batch means, and the interval must be narrow.
"""

from __future__ import annotations

from math import exp, inf, isclose, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.formulas import cache, queueing
from simkv.formulas.step import ConstantStep
from simkv.kvcache.eviction import make_policy
from simkv.kvcache.replay import replay
from simkv.sim.config import ClassConfig
from simkv.sim.rundata import RunData
from simkv.validation.asks.queue_caches import through_pool
from simkv.workload.request import PRIVATE_STREAM_BASE, Request
from tests.sim_factory import run, system_config

BATCHES = 20
T_999 = 3.883
"""Two-sided 99.9 % quantile of Student's t with 19 degrees of freedom."""
RATE = 1.0


def arrivals(seed: int, outputs: np.ndarray, rate: float = RATE, cls: list[str] | None = None) -> list[Request]:
    """Return requests at Poisson times, each with a prompt of one token and the given output."""
    times = np.random.default_rng(seed).exponential(1 / rate, len(outputs)).cumsum()
    return [
        Request(i, t, 1, n, ((PRIVATE_STREAM_BASE + i, 0, 1 + n),), cls=cls[i] if cls else "")
        for i, (t, n) in enumerate(zip(times.tolist(), outputs.tolist(), strict=True))
    ]


def served(requests: list[Request], step_s: float, servers: int = 1, **changes: Any) -> RunData:
    """Run requests through an engine of ``servers`` sequences at ``step_s`` a step."""
    config = system_config(
        ConstantStep(step_s), max_num_seqs=servers, num_gpu_blocks=10**9, prefix_caching=False, **changes
    )
    return run(config, requests, audit=False)


def waits(data: RunData) -> np.ndarray:
    """Return times before service in order of arrival, the first tenth left out."""
    order = np.argsort(data.requests["id"])
    wait = (data.requests["scheduled_s"] - data.requests["arrival_s"])[order]
    return wait[len(wait) // 10 :]


def assert_mean(values: np.ndarray, oracle: float, within: float, slack_s: float = 0.0) -> None:
    """Hold ``oracle`` to the interval of ``values``' mean by batch means; the interval to a share of the mean."""
    means = np.array([batch.mean() for batch in np.array_split(values, BATCHES)])
    half = T_999 * means.std(ddof=1) / sqrt(BATCHES)
    assert half < within * oracle, f"the interval is too wide to tell: {means.mean()} +- {half}"
    assert abs(means.mean() - oracle) < half + slack_s, f"{means.mean()} +- {half}, oracle {oracle}"


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_one_sequence_geometric_outputs_is_mm1(load: float) -> None:
    mean, step_s = 100.0, load / 100
    data = served(arrivals(1, np.random.default_rng(2).geometric(1 / mean, 40_000)), step_s)
    wait = waits(data)
    assert_mean(wait, queueing.mg1_wait_s(RATE, queueing.geometric(mean, step_s)), 0.15)
    assert_mean(wait, queueing.mm1_wait_s(RATE, load), 0.15)  # a mean of 100 steps is as good as exponential
    finish = data.requests["finish_s"]
    arrival = np.sort(data.requests["arrival_s"])
    found = np.arange(len(arrival)) - np.searchsorted(np.sort(finish), arrival)
    for count in range(3):  # arrivals find what time does
        assert_mean(found == count, queueing.mm1_present(RATE, load, count), 0.15)


@pytest.mark.parametrize("load", [0.4, 0.8])
def test_one_sequence_equal_outputs_is_md1(load: float) -> None:
    data = served(arrivals(3, np.full(40_000, 10)), load / 10)
    assert_mean(waits(data), queueing.md1_wait_s(RATE, load), 0.15)


def test_one_sequence_two_lengths_is_mg1() -> None:
    lengths, weights = [2, 60], [0.9, 0.1]
    outputs = np.random.default_rng(4).choice(lengths, 50_000, p=weights)
    service = queueing.discrete([2 * 0.08, 60 * 0.08], weights)
    assert_mean(waits(served(arrivals(5, outputs), 0.08)), queueing.mg1_wait_s(RATE, service), 0.2)


@pytest.mark.parametrize(("servers", "load"), [(2, 0.7), (5, 0.7)])
def test_many_sequences_geometric_outputs_is_mmc(servers: int, load: float) -> None:
    """Sequences start on a common step, so an arrival waits up to one step more than in theory."""
    mean_s = load * servers / RATE
    step_s = mean_s / 250
    data = served(arrivals(6, np.random.default_rng(7).geometric(1 / 250, 40_000)), step_s, servers)
    assert_mean(waits(data) - step_s / 2, queueing.mmc_wait_s(RATE, mean_s, servers), 0.25, step_s / 2)
    assert data.running_max == servers


def test_priorities_wait_as_cobham_says() -> None:
    rng = np.random.default_rng(8)
    names = rng.choice(["urgent", "plain"], 40_000, p=[0.4, 0.6]).tolist()
    data = served(
        arrivals(9, rng.geometric(1 / 50, 40_000), cls=names),
        0.7 / 50,
        scheduling="priority",
        classes=(ClassConfig("urgent", 0), ClassConfig("plain", 1)),
    )
    service = queueing.geometric(50, 0.7 / 50)
    oracles = queueing.mg1_priority_waits_s([(0.4, service), (0.6, service)])
    order = np.argsort(data.requests["id"])
    wait = (data.requests["scheduled_s"] - data.requests["arrival_s"])[order]
    for name, oracle in zip(("urgent", "plain"), oracles, strict=True):
        cls = data.class_names.index(name)
        assert_mean(wait[data.requests["cls"][order] == cls], oracle, 0.25)


def test_interval_rejects_a_wrong_oracle() -> None:
    """The check has teeth: the same run is no M/M/1."""
    data = served(arrivals(3, np.full(40_000, 10)), 0.08)
    with pytest.raises(AssertionError, match="oracle"):
        assert_mean(waits(data), queueing.mm1_wait_s(RATE, 0.8), 0.15)


# ---- the oracles themselves


def test_queueing_known_values() -> None:
    assert queueing.mm1_wait_s(0.5, 1.0) == 1.0
    assert queueing.md1_wait_s(0.5, 1.0) == 0.5
    assert queueing.erlang_c(2.0, 1.0, 3) == pytest.approx(4 / 9)
    assert queueing.mmc_wait_s(2.0, 1.0, 3) == pytest.approx(4 / 9)
    assert queueing.geometric(1, 0.5) == queueing.constant(0.5)


@given(st.floats(0.01, 0.99), st.floats(0.1, 10))
def test_queueing_forms_agree_where_they_meet(load: float, mean_s: float) -> None:
    rate = load / mean_s
    assert isclose(queueing.mg1_wait_s(rate, queueing.exponential(mean_s)), queueing.mm1_wait_s(rate, mean_s))
    assert isclose(queueing.mg1_wait_s(rate, queueing.constant(mean_s)), queueing.md1_wait_s(rate, mean_s))
    assert isclose(queueing.mmc_wait_s(rate, mean_s, 1), queueing.mm1_wait_s(rate, mean_s), rel_tol=1e-9)
    half = (rate / 2, queueing.exponential(mean_s))
    urgent, other = queueing.mg1_priority_waits_s([half, half])
    assert isclose((urgent + other) / 2, queueing.mm1_wait_s(rate, mean_s))  # equal services: work is conserved
    assert urgent < other


def test_queueing_geometric_moments_equal_their_sums() -> None:
    p = 1 / 7
    chance = [p * (1 - p) ** (n - 1) for n in range(1, 2000)]
    steps = [0.3 * n for n in range(1, 2000)]
    assert queueing.geometric(7, 0.3) == pytest.approx(queueing.discrete(steps, chance))


@pytest.mark.parametrize("load", [1.0, 1.5, inf])
def test_queueing_overload_is_an_error(load: float) -> None:
    with pytest.raises(InputError, match="grows without bound"):
        queueing.mm1_wait_s(load, 1.0)


def test_che_equal_items_hit_as_their_share() -> None:
    assert cache.lru_hit_rate([0.01] * 100, 30) == pytest.approx(0.3)
    assert cache.fifo_hit_rate([0.01] * 100, 30) == pytest.approx(0.3)
    assert cache.lru_hit_rate([0.01] * 100, 0) == 0.0
    assert cache.lru_hit_rate([0.01] * 100, 100) == 1.0


def test_che_two_items_one_slot_is_near_the_exact_rate() -> None:
    """A cache of one hits whenever an item repeats: sum of p^2; Che is rough here and has the right order."""
    assert cache.lru_hit_rate([0.8, 0.2], 1) == pytest.approx(0.8**2 + 0.2**2, abs=0.08)


def test_che_characteristic_time_solves_its_equation() -> None:
    p = cache.zipf(500, 0.9)
    span = cache.characteristic_references(p, 77)
    assert sum(1 - exp(-x * span) for x in p) == pytest.approx(77)
    assert sum(p) == pytest.approx(1)


# ---- caches under independent references


ITEMS, REFERENCES = 2000, 120_000


def zipf_references(exponent: float, count: int = REFERENCES) -> list[int]:
    return np.random.default_rng(11).choice(ITEMS, count, p=cache.zipf(ITEMS, exponent)).tolist()


@pytest.mark.parametrize("exponent", [0.6, 1.0])
@pytest.mark.parametrize("capacity", [50, 400])
def test_replay_independent_references_hit_as_the_approximations_say(exponent: float, capacity: int) -> None:
    references = zipf_references(exponent)
    p = cache.zipf(ITEMS, exponent)
    for name, oracle in (("lru", cache.lru_hit_rate), ("fifo", cache.fifo_hit_rate)):
        rate = replay(references, capacity, make_policy(name)) / REFERENCES
        assert rate == pytest.approx(oracle(p, capacity), abs=0.006)
    assert cache.lru_hit_rate(p, capacity) > cache.fifo_hit_rate(p, capacity) + 0.005  # so it tells them apart


@pytest.mark.parametrize("capacity", [50, 400])
def test_pool_independent_references_hit_as_che_says(capacity: int) -> None:
    """One-block prompts through the pool that the simulator uses."""
    references = zipf_references(0.8, 60_000)
    hits, pool = through_pool(references, capacity)
    assert hits / len(references) == pytest.approx(cache.lru_hit_rate(cache.zipf(ITEMS, 0.8), capacity), abs=0.008)
    assert pool.written_blocks == len(references) - hits
