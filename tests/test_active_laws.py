"""Laws of active offload that compare runs: policies, prefetch, bandwidth, who else is there."""

from __future__ import annotations

import random
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.formulas.step import ConstantStep
from simkv.kvcache.access import Dense, Recall, TopK, Window
from simkv.sim.active.earned import EarnedShare, Reads
from simkv.sim.active.measured import Measured
from simkv.sim.rundata import RunData
from simkv.workload.request import Request
from tests import active_factory as make
from tests.sim_factory import BLOCK_BYTES, RATE, column, system_config
from tests.sim_factory import run as run_plain

STICKY = TopK(32, 8, 4, 1.0, 0.7)
RANDOM = TopK(32, 4, 0, 0.0, 0.0)
"""Far blocks drawn anew and evenly in every step."""
GUESSES: list[dict[str, Any]] = [
    {"policy": "next_step", "predictor": name} for name in ("last_step", "stride", "heavy_hitters")
]
SPARSE = st.sampled_from((STICKY, RANDOM, Window(16, 4), Recall(12, 2, 0.0)))
EXAMPLES = settings(max_examples=30, deadline=None)


def _requests(count: int = 3, prompt: int = 150, output: int = 20) -> list[Request]:
    return [make.request(number, 2.0 * number, prompt + 7 * number, output) for number in range(count)]


def _same(one: RunData, two: RunData) -> None:
    for name, values in one.requests.items():
        assert np.array_equal(values, two.requests[name], equal_nan=True), name
    assert one.end_s == two.end_s
    assert one.active is not None and two.active is not None
    assert asdict(one.active) == asdict(two.active)


# ---- eviction


@pytest.mark.parametrize(("lam", "policy"), [(1.0, "lru"), (0.0, "lfu")])
@pytest.mark.parametrize("write", ["write_back", "write_through"])
def test_score_at_its_ends_runs_as_lru_and_lfu(lam: float, policy: str, write: str) -> None:
    knobs: dict[str, Any] = {"access": STICKY, "residency": 0.2, "write": write}
    score = make.run(make.active_config(eviction="score", eviction_lambda=lam, **knobs), _requests())
    _same(score, make.run(make.active_config(eviction=policy, **knobs), _requests()))
    assert score.active is not None and score.active.loads_dram > 0


def test_policies_differ_under_sparse_access() -> None:
    found = {
        policy: make.measured(make.active_config(eviction=policy, access=STICKY, residency=0.2), _requests()).hits
        for policy in ("lru", "lfu", "fifo")
    }
    assert len(set(found.values())) == 3


@pytest.mark.parametrize("policy", ["lfu", "fifo", "arc", "slru", "s3fifo", "priority"])
def test_eviction_does_nothing_under_dense_access(policy: str) -> None:
    plain = make.run(make.active_config(residency=0.3), _requests())
    _same(plain, make.run(make.active_config(residency=0.3, eviction=policy), _requests()))


# ---- everything resident


def _columns(data: RunData) -> dict[str, list[Any]]:
    return {name: column(data, name) for name in ("first_token_s", "finish_s", "preemptions", "recomputed_tokens")}


@pytest.mark.parametrize("blocks", [60, 200])
def test_all_resident_equals_the_ordinary_engine(blocks: int) -> None:
    """Step by step, in a dyadic step time: to the last digit."""
    knobs: dict[str, Any] = {"num_gpu_blocks": blocks, "prefix_caching": False, "max_num_batched_tokens": 50}
    cost = ConstantStep(0.25, 4)
    requests = _requests(4, 40, 30)
    plain = run_plain(system_config(cost, **knobs), requests)
    active = make.run(make.active_config(cost=cost, residency=1.0, write="never", dram_blocks=0, **knobs), requests)
    assert _columns(plain) == _columns(active)
    assert plain.end_s == active.end_s
    assert active.active is not None
    assert (active.active.hits, active.bytes["h2d"], active.bytes["d2h"]) == (active.active.reads, 0, 0)


@pytest.mark.parametrize("policy", ["none", "layer", "next_step", "oracle"])
def test_a_window_over_everything_reads_as_dense_access_does(policy: str) -> None:
    knobs: dict[str, Any] = {"residency": 1.0, "policy": policy, "write": "write_back"}
    dense = make.measured(make.active_config(access=Dense(), **knobs), _requests())
    window = make.measured(make.active_config(access=Window(10_000, 0), **knobs), _requests())
    for name in ("steps", "reads", "hits", "loads_dram", "step_s", "compute_s", "written_bytes"):
        assert getattr(dense, name) == getattr(window, name), name
    blocks = sum(-(-(r.prompt_tokens + step + 1) // 4) for r in _requests() for step in range(r.output_tokens - 1))
    assert dense.reads <= blocks * make.LAYERS  # those in steps that compute prompts besides are booked apart


# ---- transfers


@EXAMPLES
@given(
    st.sampled_from(("none", "layer", "next_step", "oracle")),
    st.one_of(st.just(Dense()), SPARSE),
    st.sampled_from((0.0, 0.1, 0.4)),
    st.sampled_from((0.05, 1.0)),
    st.integers(0, 3),
)
def test_bandwidth_never_lengthens_a_sequence_alone(
    policy: str, access: Any, share: float, compute_s: float, seed: int
) -> None:
    """Without write-backs on the way: then every transfer ends sooner, and each step begins sooner."""
    times = []
    for rate in (500.0, 1_000.0, 3_000.0, 1e4, 1e6):
        config = make.active_config(
            access=access, residency=share, policy=policy, h2d=rate, prefill="dram", cost=ConstantStep(compute_s, 4),
            seed=seed, write="write_through", d2h=1e9,
        )  # fmt: skip
        times.append(make.run(config, [make.request(0, 0.0, 150, 10)]).end_s)
    assert all(later <= sooner * (1 + 1e-9) for sooner, later in pairwise(times))


@EXAMPLES
@given(SPARSE, st.sampled_from((0.05, 0.2, 0.5)), st.sampled_from((0.02, 0.2, 2.0)), st.integers(0, 9))
def test_a_wasted_prefetch_never_shortens_anything(access: Any, share: float, compute_s: float, seed: int) -> None:
    """All guesses wrong, one sequence, an otherwise idle system."""
    knobs: dict[str, Any] = {
        "access": access, "residency": share, "prefill": "dram", "seed": seed, "cost": ConstantStep(compute_s, 4),
    }  # fmt: skip
    request = [make.request(0, 0.0, 200, 12)]
    without = make.run(make.active_config(**knobs), request)
    wasted = make.run(make.active_config(**knobs, policy="next_step", accuracy=0.0, chunk_bytes=1), request)
    assert wasted.active is not None and without.active is not None
    used_s = wasted.active.used / make.LAYERS * BLOCK_BYTES / RATE  # wrong for the next step, right for a later one
    assert wasted.end_s >= without.end_s - used_s - 1e-9


@EXAMPLES
@given(
    SPARSE, st.sampled_from([*GUESSES, {"policy": "oracle"}, {"policy": "next_step", "accuracy": 0.5}]),
    st.sampled_from((0.02, 0.2, 2.0)), st.integers(0, 9),
)  # fmt: skip
def test_with_free_slots_prefetch_exposes_at_most_a_chunk_a_demand(
    access: Any, prefetch: dict[str, Any], compute_s: float, seed: int
) -> None:
    """Room for everything, from DRAM, nothing resident at first: prefetch takes nobody's place and gives way."""
    knobs: dict[str, Any] = {
        "access": access, "residency": 1.0, "prefill": "dram", "seed": seed, "cost": ConstantStep(compute_s, 4),
        "chunk_bytes": 25, "write": "write_through", "d2h": 1e9,
    }  # fmt: skip
    request = [make.request(0, 0.0, 200, 16)]
    without = make.measured(make.active_config(**knobs), request)
    found = make.measured(make.active_config(**knobs, **prefetch), request)
    chunks_s = found.steps * make.LAYERS * 25 / RATE
    assert found.exposed_s <= without.exposed_s + chunks_s + 1e-9


@pytest.mark.parametrize("prefetch", [*GUESSES, {"policy": "layer"}, {"policy": "next_step", "accuracy": 0.0}])
@pytest.mark.parametrize("seed", range(3))
def test_no_prefetch_helps_where_access_is_random_and_the_link_full(prefetch: dict[str, Any], seed: int) -> None:
    """Computing takes no time, so that demand never leaves the link idle, and what was read says nothing of the next.

    A guess takes room from what has the same chance to be read. (The oracle is left out: it knows what to keep.)
    """
    knobs: dict[str, Any] = {
        "access": RANDOM, "residency": 0.2, "prefill": "dram", "seed": seed, "cost": ConstantStep(0.0, 4),
        "chunk_bytes": 25, "write": "write_through", "d2h": 1e9,
    }  # fmt: skip
    requests = [make.request(number, 0.0, 400, 60) for number in range(3)]
    without = make.run(make.active_config(**knobs), requests)
    found = make.run(make.active_config(**knobs, **prefetch), requests)
    assert found.end_s >= without.end_s * 0.995


@EXAMPLES
@given(
    st.one_of(st.just(Dense()), SPARSE), st.sampled_from(("none", "layer", "next_step", "oracle")), st.integers(0, 9)
)
def test_a_step_alone_lies_between_its_bounds(access: Any, policy: str, seed: int) -> None:
    """T_c <= T_step, the sum at least max(sum T_c, carried), and at most T_c + T_t (the bubble included)."""
    compute_s = random.Random(seed).choice((0.05, 0.3, 2.0))
    config = make.active_config(
        access=access, policy=policy, residency=0.3, prefill="dram", cost=ConstantStep(compute_s, 4), seed=seed,
        chunk_bytes=1, write="write_through", d2h=1e9,
    )  # fmt: skip
    found = make.measured(config, [make.request(0, 0.0, 150, 16)])
    assert found.step_s >= max(found.compute_s, found.carried_s) * (1 - 1e-9)
    assert found.step_s <= (found.compute_s + found.needed_s) * (1 + 1e-6) + 16 * 4 / RATE


# ---- what prefetch is told


def test_the_oracle_is_never_wrong() -> None:
    config = make.active_config(access=STICKY, residency=0.4, policy="oracle", prefill="dram")
    found = make.measured(config, [make.request(0, 0.0, 301, 3 * 30)])
    assert found.prefetched > 100
    assert (found.used, found.wasted) == (found.prefetched, 0)


@pytest.mark.parametrize("accuracy", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_a_stated_accuracy_is_what_is_measured(accuracy: float) -> None:
    """Long contexts, where a wrong guess is seldom right for a later step."""
    config = make.active_config(
        access=TopK(64, 4, 4, 0.0, 0.5), residency=0.02, policy="next_step", accuracy=accuracy, prefill="dram",
        h2d=1e6, dram_blocks=10_000, num_gpu_blocks=10_000,
    )  # fmt: skip
    found = make.measured(config, [make.request(n, 0.0, 8_000, 60) for n in range(3)])
    assert found.prefetched > 2_000
    units = found.prefetched / make.LAYERS
    spread = 4 * (max(accuracy * (1 - accuracy), 0.01) / units) ** 0.5
    assert found.used / found.prefetched == pytest.approx(accuracy, abs=spread + 0.02)


# ---- who else is there


def _reads_of(
    monkeypatch: pytest.MonkeyPatch, requests: list[Request], **knobs: Any
) -> dict[tuple[int, int], list[int]]:
    found: dict[tuple[int, int], list[int]] = {}
    original = EarnedShare.read

    def spy(self: EarnedShare, decoding: Any) -> Reads:
        reads = original(self, decoding)
        for seq, ids in reads.split(np.ones(len(reads.ids), np.bool_)):
            found[seq.live.request.id, seq.live.generated] = (ids - seq.base).tolist()
        return reads

    with monkeypatch.context() as patch:
        patch.setattr(EarnedShare, "read", spy)
        make.run(make.active_config(**knobs), requests)
    return found


@pytest.mark.parametrize("access", [STICKY, RANDOM, Recall(12, 2, 1.0)])
def test_what_a_request_reads_does_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch, access: Any) -> None:
    requests = _requests(4)
    together = _reads_of(monkeypatch, requests, access=access, residency=0.2, num_gpu_blocks=60, swap=True)
    apart: dict[tuple[int, int], list[int]] = {}
    for request in requests:
        apart |= _reads_of(monkeypatch, [request], access=access, residency=0.5, policy="oracle", groups=1)
    assert together == apart


def test_replicas_share_tiers_and_nothing_else() -> None:
    requests = _requests(4)
    alone = make.run(make.active_config(access=STICKY, residency=0.2, dram_blocks=400), requests[::2])
    both = make.run(
        make.active_config(access=STICKY, residency=0.2, dram_blocks=400, replicas=2, shared=True), requests
    )
    ids = [r.id for r in requests[::2]]
    assert column(alone, "finish_s", ids) == column(both, "finish_s", ids)


def test_a_run_twice_is_the_same_run() -> None:
    config = make.active_config(access=STICKY, residency=0.2, policy="next_step", accuracy=0.5, num_gpu_blocks=60)
    _same(make.run(config, _requests(5)), make.run(config, _requests(5)))
    assert config.active is not None
    other = replace(config, active=replace(config.active, seed=1))
    with pytest.raises(AssertionError):
        _same(make.run(config, _requests(5)), make.run(other, _requests(5)))


def test_measured_sums_of_replicas_add_up() -> None:
    one, two = Measured(steps=1, step_s=2.0, reads=3), Measured(steps=4, step_s=5.0, reads=6)
    one.add(two)
    assert (one.steps, one.step_s, one.reads) == (5, 7.0, 9)
