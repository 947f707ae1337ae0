"""Access patterns: what each step reads, and that it depends on seed, request and step alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import ceil, expm1
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.kvcache.access import (
    PATTERNS,
    AccessPattern,
    AccessSpec,
    Dense,
    Recall,
    Replay,
    TopK,
    Window,
    make_pattern,
    recall,
    topk,
)
from simkv.kvcache.access.forward import KEPT, Forward
from simkv.kvcache.access.units import MOST_UNITS, Numbering
from simkv.scenario.active import access_spec
from simkv.scenario.offload_schema import (
    DenseAccess,
    Eviction,
    Offload,
    Prefetch,
    RecallAccess,
    TopkAccess,
    WindowAccess,
)

DRAWN = (Dense(), Window(40, 5), TopK(200, 30, 5), Recall(40, 3), Recall(40, 3, 1.0))


def reads(pattern: AccessPattern, steps: int, prompt: int = 500, request: int = 0) -> list[list[int]]:
    """Return the units of the first steps."""
    sequence = pattern.open(request, prompt, steps)
    return [sequence.reads(step).tolist() for step in range(steps)]


def blocks(units: list[int], groups: int, group: int) -> list[int]:
    """Return the blocks that one layer group reads."""
    return [unit // groups for unit in units if unit % groups == group]


def holding(first: int, end: int, block_tokens: int) -> set[int]:
    """Return the blocks of tokens ``first`` to ``end``, one by one."""
    return {token // block_tokens for token in range(max(0, first), end)}


@st.composite
def specs(draw: st.DrawFn) -> AccessSpec:
    tokens = st.integers(1, 120)
    skew = st.sampled_from([0.0, 0.7, 1.0, 1.5, 4.0, 10.0])
    kind = draw(st.sampled_from(["dense", "window", "topk", "recall"]))
    if kind == "window":
        return Window(draw(tokens), draw(st.integers(0, 40)))
    if kind == "topk":
        sticky = draw(st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]))
        return TopK(draw(st.integers(40, 120)), draw(st.integers(1, 20)), draw(st.integers(0, 9)), draw(skew), sticky)
    return Recall(draw(tokens), draw(st.integers(1, 7)), draw(skew)) if kind == "recall" else Dense()


@settings(max_examples=150, deadline=None)
@given(specs(), st.integers(1, 9), st.integers(1, 4), st.integers(0, 400), st.integers(1, 90), st.integers(0, 3))
def test_any_pattern_reads_each_unit_once_in_range_and_within_the_bound(
    spec: AccessSpec, block_tokens: int, groups: int, prompt: int, steps: int, request: int
) -> None:
    pattern = make_pattern(spec, block_tokens, groups, seed=5)
    for step, units in enumerate(reads(pattern, steps, prompt, request)):
        tokens = prompt + step + 1
        end = ceil(tokens / block_tokens) * groups
        assert units == sorted(set(units))
        assert units[0] >= 0 and units[-1] == end - 1, "the last block holds the token that is computed"
        assert len(units) <= pattern.most_units(tokens) <= end
        assert len({len(blocks(units, groups, g)) for g in range(groups)}) == 1


@settings(max_examples=60, deadline=None)
@given(specs(), st.integers(1, 3), st.integers(0, 200), st.randoms(use_true_random=False))
def test_any_pattern_asked_in_any_order_gives_the_same(
    spec: AccessSpec, groups: int, prompt: int, order: random.Random
) -> None:
    steps = 2 * KEPT + 20
    expected = reads(make_pattern(spec, 8, groups, seed=1), steps, prompt, 7)
    looking_ahead = make_pattern(spec, 8, groups, seed=1).open(7, prompt, 3)
    for step in range(steps):
        assert looking_ahead.reads(min(step + 8, steps - 1)).tolist() == expected[min(step + 8, steps - 1)]
        assert looking_ahead.reads(step).tolist() == expected[step]
    anyhow = make_pattern(spec, 8, groups, seed=1).open(7, prompt, steps)
    for step in order.sample(range(steps), 6):
        assert anyhow.reads(step).tolist() == expected[step]


@pytest.mark.parametrize("spec", DRAWN, ids=lambda spec: type(spec).__name__)
def test_sequences_read_in_turns_or_apart_give_the_same(spec: AccessSpec) -> None:
    pattern = make_pattern(spec, 16, 2, seed=3)
    together = [pattern.open(request, 500 + 40 * request, 50) for request in range(4)]
    turns = [[sequence.reads(step).tolist() for sequence in together] for step in range(50)]
    for request in range(4):
        alone = reads(make_pattern(spec, 16, 2, seed=3), 50, 500 + 40 * request, request)
        assert [row[request] for row in turns] == alone


@pytest.mark.parametrize("chunk", [1, 3, 50])
@pytest.mark.parametrize("skew", [0.0, 1.0, 4.0])
def test_topk_drawn_in_chunks_of_any_size_is_the_same(chunk: int, skew: float, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = TopK(200, 30, 5, skew)
    expected = reads(make_pattern(spec, 4, 3, seed=2), 120, prompt=90)
    monkeypatch.setattr(topk, "CHUNK_STEPS", chunk)
    assert reads(make_pattern(spec, 4, 3, seed=2), 120, prompt=90) == expected


@pytest.mark.parametrize("spec", [TopK(200, 30, 5), Recall(40, 1)], ids=["topk", "recall"])
def test_draws_differ_by_seed_request_and_layer_group(spec: AccessSpec) -> None:
    pattern = make_pattern(spec, 8, 2, seed=1)
    one = reads(pattern, 30)
    assert one != reads(pattern, 30, request=1)
    assert one != reads(make_pattern(spec, 8, 2, seed=2), 30)
    assert [blocks(units, 2, 0) for units in one] != [blocks(units, 2, 1) for units in one]


def test_reads_handed_out_cannot_be_changed() -> None:
    for spec in DRAWN:
        units = make_pattern(spec, 16, 1, 0).open(0, 5000, 10).reads(0)
        with pytest.raises(ValueError, match="read-only"):
            units[0] = 1


def test_patterns_say_what_they_are() -> None:
    assert list(PATTERNS) == ["dense", "window", "topk", "recall", "replay"]
    dense, *sparse = (make_pattern(spec, 16, 3, 0) for spec in DRAWN)
    assert (dense.sparse, dense.approximate, dense.groups) == (False, False, 3)
    assert all((p.sparse, p.approximate, p.groups) == (True, True, 3) for p in sparse)


def test_dense_reads_all_blocks_and_a_new_one_when_the_last_is_full() -> None:
    assert reads(make_pattern(Dense(), 4, 2, 0), 3, prompt=6) == [list(range(4)), list(range(4)), list(range(6))]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 100), st.integers(0, 30), st.integers(1, 20), st.integers(0, 200))
def test_window_reads_exactly_the_blocks_of_its_tokens(window: int, sinks: int, block_tokens: int, prompt: int) -> None:
    for step, units in enumerate(reads(make_pattern(Window(window, sinks), block_tokens, 1, 0), 40, prompt)):
        tokens = prompt + step + 1
        newest = holding(tokens - window, tokens, block_tokens)
        assert units == sorted(newest | holding(0, min(sinks, tokens), block_tokens))


def test_window_grows_and_then_slides() -> None:
    counts = [len(units) for units in reads(make_pattern(Window(32, 4), 4, 1, 0), 100, prompt=0)]
    assert counts[:36] == [ceil((step + 1) / 4) for step in range(36)]
    assert set(counts[36:]) == {9, 10}, "the sink, and 8 blocks or 9 where the window lies across"
    assert make_pattern(Window(32, 4), 4, 1, 0).most_units(10**6) == 10


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 60), st.integers(1, 60), st.integers(0, 30), st.integers(1, 9), st.integers(0, 300),
    st.sampled_from([0.0, 1.0, 4.0]), st.sampled_from([0.0, 0.5, 1.0]),
)  # fmt: skip
def test_topk_spends_its_budget_exactly_and_always_reads_recent_and_sinks(
    budget_blocks: int, recent: int, sinks: int, block_tokens: int, prompt: int, skew: float, sticky: float
) -> None:
    spec = TopK(budget_blocks * block_tokens, recent, sinks, skew, sticky)
    for step, units in enumerate(reads(make_pattern(spec, block_tokens, 2, 0), 50, prompt)):
        tokens = prompt + step + 1
        always = holding(tokens - recent, tokens, block_tokens) | holding(0, min(sinks, tokens), block_tokens)
        for group in range(2):
            chosen = blocks(units, 2, group)
            assert always <= set(chosen)
            assert len(set(chosen)) == len(chosen)
            assert len(chosen) == min(ceil(tokens / block_tokens), max(budget_blocks, len(always)))


@pytest.mark.parametrize("skew", [0.0, 1.0, 2.0, 6.0])
@pytest.mark.parametrize("stickiness", [0.0, 0.5, 0.9])
def test_topk_reads_no_block_twice(skew: float, stickiness: float) -> None:
    for units in reads(make_pattern(TopK(256, 16, 4, skew, stickiness), 4, 3, 0), 100, prompt=600):
        assert len(units) == len(set(units)) == 64 * 3


def test_topk_budget_of_part_of_a_block_is_rounded_up() -> None:
    assert len(reads(make_pattern(TopK(161, 16, 0), 16, 1, 0), 1, prompt=1007)[0]) == 11


def far_picks(spec: TopK, steps: int, prompt: int, request: int = 0, seed: int = 0) -> list[set[int]]:
    """Return the blocks beside recent ones and sinks, at blocks of one token."""
    found = reads(make_pattern(spec, 1, 1, seed), steps, prompt, request)
    return [set(units[spec.sink_tokens : -spec.recent_tokens]) for units in found]


@pytest.mark.parametrize("stickiness", [0.0, 0.25, 0.5, 0.77, 0.95])
@pytest.mark.parametrize("picked", [100, 7])
def test_topk_stickiness_is_the_share_that_is_kept(stickiness: float, picked: int) -> None:
    """Uniform picks of so many blocks hardly come back by themselves."""
    picks = far_picks(TopK(picked + 10, 8, 2, 0.0, stickiness), 2000, prompt=100_000)
    kept = [len(a & b) / picked for a, b in pairwise(picks)]
    assert float(np.mean(kept)) == pytest.approx(stickiness, abs=0.004)


def test_topk_stickiness_one_never_changes_its_picks() -> None:
    picks = far_picks(TopK(60, 8, 2, 1.0, 1.0), 300, prompt=1000)
    assert all(p == picks[0] for p in picks)


def test_topk_keeps_any_pick_as_likely_as_another() -> None:
    """How long a pick stays is geometric: it doesn't depend on how long it has been there."""
    picks = far_picks(TopK(110, 8, 2, 0.0, 0.5), 2000, prompt=1_000_000)
    ages: dict[int, int] = {}
    left, stayed = [0] * 4, [0] * 4
    for before, after in pairwise(picks):
        for block in before:
            age = min(ages.get(block, 0), 3)
            (stayed if block in after else left)[age] += 1
        ages = {block: ages.get(block, 0) + 1 if block in before else 0 for block in after}
    assert [s / (s + g) for s, g in zip(stayed, left, strict=True)] == pytest.approx([0.5] * 4, abs=0.02)


def share_of_heaviest(skew: float, stickiness: float = 0.0) -> float:
    """Return the share of picks that goes to the tenth of blocks that are picked most."""
    counts = np.zeros(2000)
    for request in range(5):
        own = np.zeros(2000)
        for picks in far_picks(TopK(30, 8, 2, skew, stickiness), 400, 1000, request):
            own[list(picks)] += 1
        counts += np.sort(own)[::-1]
    return float(counts[:100].sum() / counts.sum())


@pytest.mark.parametrize("stickiness", [0.0, 0.5])
def test_topk_more_skew_makes_heavy_hitters_heavier(stickiness: float) -> None:
    shares = [share_of_heaviest(skew, stickiness) for skew in (0.0, 0.5, 1.0, 1.5, 2.5)]
    assert all(a + 0.03 < b for a, b in pairwise(shares)), shares


def test_topk_blocks_that_leave_the_recent_window_are_picked_as_others_are() -> None:
    """Uniform weights: at the end, those decoded meanwhile have their part of the picks."""
    new = total = 0
    for request in range(8):
        for step, picks in enumerate(far_picks(TopK(40, 8, 2, 0.0, 0.0), 900, 300, request)):
            if step >= 600:
                new += sum(block >= 293 for block in picks)
                total += len(picks)
    middle = 300 + 750
    assert new / total == pytest.approx((middle - 293) / middle, abs=0.02)


@pytest.mark.parametrize("every", [1, 2, 4, 5])
def test_recall_looks_one_far_block_up_at_every_nth_step(every: int) -> None:
    seen = set()
    for step, units in enumerate(reads(make_pattern(Recall(32, every), 16, 1, 0), 200, prompt=1000)):
        tokens = 1001 + step
        newest = sorted(holding(tokens - 32, tokens, 16))
        assert units[-len(newest) :] == newest
        far = units[: -len(newest)]
        assert len(far) == (step % every == 0)
        assert all(block < newest[0] for block in far)
        seen.update(far)
    mean, draws = 66, 200 / every  # far blocks on average, and what so many draws find of them
    assert len(seen) == pytest.approx(mean * -expm1(-draws / mean), rel=0.15)


def test_recall_with_skew_prefers_some_blocks() -> None:
    def commonest(skew: float) -> int:
        found = [units[0] for units in reads(make_pattern(Recall(16, 1, skew), 1, 1, 0), 400, prompt=1000)]
        return max(map(found.count, found))

    assert commonest(0.0) < 8 < 25 < commonest(1.0)


def test_recall_without_far_blocks_reads_the_window() -> None:
    assert reads(make_pattern(Recall(1000, 1), 16, 1, 0), 20, prompt=10) == reads(
        make_pattern(Dense(), 16, 1, 0), 20, prompt=10
    )


@pytest.mark.parametrize(
    ("spec", "path", "what"),
    [
        (Window(0), "window_tokens", "whole number"),
        (Window(sink_tokens=-1), "sink_tokens", "whole number"),
        (Window(window_tokens=2**31), "window_tokens", "whole number"),
        (TopK(budget_tokens=0), "budget_tokens", "whole number"),
        (TopK(budget_tokens=True), "budget_tokens", "whole number"),
        (TopK(recent_tokens=0), "recent_tokens", "whole number"),
        (TopK(skew=-0.1), "skew", "exponent"),
        (TopK(skew=float("nan")), "skew", "exponent"),
        (TopK(skew=float("inf")), "skew", "exponent"),
        (TopK(stickiness=1.01), "stickiness", "share"),
        (Recall(every=0), "every", "whole number"),
        (Recall(skew=11), "skew", "exponent"),
    ],
)
def test_parameters_out_of_range_are_named(spec: AccessSpec, path: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        make_pattern(spec, 16, 1, 0)
    (problem,) = caught.value.problems
    assert problem.path == f"offload.access.{path}"
    assert what in problem.what and problem.mend and problem.value


def test_parameters_out_of_range_are_named_all_at_once() -> None:
    with pytest.raises(InputError) as caught:
        make_pattern(TopK(budget_tokens=0, skew=-1, stickiness=2), 16, 1, 0)
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("spec", DRAWN, ids=lambda spec: type(spec).__name__)
def test_sequence_of_more_units_than_numbers_is_refused(spec: AccessSpec) -> None:
    with pytest.raises(InputError, match="larger blocks"):
        make_pattern(spec, 1, 2, 0).open(0, MOST_UNITS // 2, 1)


def test_run_of_units_grown_later_stays_as_it_was() -> None:
    numbering = Numbering(16, 3)
    small = numbering.run(1, 3)
    assert numbering.run(0, 10_000)[-1] == 29_999
    assert small.tolist() == [3, 4, 5, 6, 7, 8]


def test_forward_makes_each_step_once_while_asked_in_order() -> None:
    made = []

    def start() -> Iterator[np.ndarray]:
        for step in range(10_000):
            made.append(step)
            yield np.array([step], dtype=np.int32)

    forward = Forward(start)
    for step in range(500):
        assert forward.reads(step + 8)[0] == step + 8
        assert forward.reads(max(0, step + 8 - KEPT))[0] == max(0, step + 8 - KEPT)
    assert made == list(range(508))
    assert forward.reads(3)[0] == 3
    assert len(made) == 508 + 4, "so far back everything starts anew"


def test_recall_far_blocks_only_start_when_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sequence within its window draws nothing, so a run of many short ones stays quick."""
    monkeypatch.setattr(recall, "FarBlocks", None)
    assert len(reads(make_pattern(Recall(1000, 1), 16, 1, 0), 900, prompt=10)) == 900


def test_replay_log_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        make_pattern(Replay(tmp_path / "none.jsonl"), 16, 1, 0)


def test_spec_defaults_are_in_range() -> None:
    for spec in (Dense(), Window(), TopK(), Recall()):
        make_pattern(replace(spec), 16, 1, 0)


@pytest.mark.parametrize(
    ("section", "spec"),
    [(DenseAccess(), Dense()), (WindowAccess(pattern="window"), Window()), (TopkAccess(pattern="topk"), TopK()),
     (RecallAccess(pattern="recall"), Recall())],
    ids=["dense", "window", "topk", "recall"],
)  # fmt: skip
def test_spec_defaults_are_those_of_scenarios(section: Any, spec: Any) -> None:
    prefetch, eviction = Prefetch(policy="none"), Eviction(policy="lru")
    assert access_spec(Offload(access=section, eviction=eviction, write="never", prefetch=prefetch)) == spec
