"""Law L46: what is recorded of a whole run adds up to what the run counted; L47: recording changes nothing."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.scenario.resolve import resolve
from simkv.sim.fabric import Lane
from simkv.sim.record.recording import PLAYER, Wanted
from simkv.sim.record.windows import Windows
from simkv.sim.rundata import RunData
from simkv.simulation import run_scenario
from tests import test_tiers
from tests.record_factory import WHOLE, check_shape, check_whole, recorded

ROOT = Path(__file__).parents[1]
SPARSE = "offload.access={pattern: topk, budget: 512, stickiness: 0.5}"
FEW_STEPS = ("workload.requests=2", "workload.output_tokens=60")
SCENARIOS: dict[str, tuple[str, tuple[str, ...], bool]] = {
    # file, what is set, and whether the GPU isn't busy while a step waits
    "chatbot": ("chatbot", ("workload.requests=150",), False),
    "chatbot with SSD": ("chatbot", ("workload.requests=300", "tiers.dram.capacity=8GiB"), False),
    "tensor parallel": ("chatbot", ("workload.requests=150", "replicas.tensor_parallel=2"), False),
    "two replicas": ("chatbot", ("workload.requests=200", "replicas.count=2"), False),
    "agent sessions": ("agent-sessions", (), False),
    "two classes": ("qos-two-classes", ("run.duration=60s",), False),
    "active": ("long-context-active", FEW_STEPS, True),
    "active, sparse": ("long-context-active", (*FEW_STEPS, SPARSE, "offload.prefetch={policy: oracle}"), True),
    "the article's program": ("article-toy", (), True),
    "static batches": ("flexgen-opt-30b-t4", ("workload.size=48", "engine.gpu_batch_size=16"), True),
}  # fmt: skip


def scenario(name: str, **changes: Any) -> RunData:
    """Run a scenario without its baselines, recorded."""
    file, assignments, _ = SCENARIOS[name]
    resolved = resolve(str(ROOT / "scenarios" / f"{file}.yaml"), [*assignments, "run.baselines=[]"])
    return run_scenario(resolved, record=(WHOLE,), **changes).data


@pytest.mark.parametrize("name", SCENARIOS)
def test_whole_window_adds_up_to_what_the_run_counted(name: str) -> None:
    check_whole(scenario(name), steps_wait=SCENARIOS[name][2])


@pytest.mark.parametrize("name", ["chatbot", "two replicas", "two classes"])
def test_whole_window_of_single_steps_adds_up_too(name: str) -> None:
    data, walked = scenario(name), scenario(name, step_exact=True)
    check_whole(walked)
    assert len(walked.recordings[0].steps["steps"]) == walked.steps_total > len(data.recordings[0].steps["steps"])
    assert walked.recordings[0].slices == data.recordings[0].slices


@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
def test_any_system_adds_up(rng: Random) -> None:
    """Tiers, replicas, uplinks, priorities, write-backs that steps wait for: whatever there is, law L46 holds."""
    config, requests = test_tiers.random_case(rng)
    data = recorded(config, requests)
    if data.live == 0:
        check_whole(data)


@settings(max_examples=30)
@given(st.randoms(use_true_random=False))
def test_any_window_is_in_order_and_bounded(rng: Random) -> None:
    config, requests = test_tiers.random_case(rng)
    most = rng.randint(1, 60)
    begin_s = rng.choice((0.0, rng.uniform(0, 60)))
    wanted = [
        Wanted("from_start", most, blocks=rng.random() < 0.5),
        Wanted("latest", most, blocks=rng.random() < 0.5),
        Wanted("asked", 10**6, False, begin_s, begin_s + rng.uniform(0, 40)),
    ]
    data = recorded(config, requests, WHOLE, *wanted)
    for recording in data.recordings:
        check_shape(recording)
    assert_same(data, recorded(config, requests))


def test_recording_changes_no_byte_of_the_run() -> None:
    for name in ("chatbot with SSD", "two classes", "active, sparse", "static batches"):
        file, assignments, _ = SCENARIOS[name]
        resolved = resolve(str(ROOT / "scenarios" / f"{file}.yaml"), [*assignments, "run.baselines=[]"])
        plain = run_scenario(resolved)
        told = run_scenario(resolved, record=(WHOLE, PLAYER, Wanted("asked", 500, True, 1.0, 5.0)))
        assert len(told.data.recordings) == 3 and plain.data.recordings == ()
        assert plain.summary == told.summary
        assert_same(plain.data, told.data)


def assert_same(one: RunData, other: RunData) -> None:
    """Two runs are equal to the last bit, wall time and recordings aside."""
    for field in fields(RunData):
        if field.name in ("wall_s", "recordings"):
            continue
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, dict) and mine and isinstance(next(iter(mine.values())), np.ndarray):
            assert list(mine) == list(theirs)
            assert all(mine[name].tobytes() == theirs[name].tobytes() for name in mine), field.name
        else:
            assert mine == theirs, field.name


# ---- wrong recordings must be seen


def forgets_who_gave_way(self: Lane, log: Any, transfer: Any, over: bool) -> None:
    if over:
        original_tell(self, log, transfer, over)


def tells_from_submission(self: Lane, log: Any, transfer: Any, over: bool) -> None:
    self.served_since_s = transfer.submitted_s
    original_tell(self, log, transfer, over)


original_tell = Lane._tell


@pytest.mark.parametrize("wrong", [forgets_who_gave_way, tells_from_submission])
def test_mutant_of_what_lanes_tell_is_seen(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lane, "_tell", wrong)
    with pytest.raises(AssertionError):
        check_whole(scenario("two classes"))


def test_mutant_that_schedules_its_own_events_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    tick = Windows.tick

    def busy(self: Windows, now: float, next_s: float) -> None:
        self.system.clock.at(next_s, 5, lambda timer: None)
        tick(self, now, next_s)

    monkeypatch.setattr(Windows, "tick", busy)
    with pytest.raises(AssertionError):
        test_recording_changes_no_byte_of_the_run()
