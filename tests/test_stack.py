"""Stack distances against their definition, and LRU's curve against replays."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simkv.kvcache.eviction import make_policy
from simkv.kvcache.replay import replay
from simkv.kvcache.stack import FIRST_USE, LruCurve, earlier_and_larger, last_uses, stack_distances

traces = st.lists(st.integers(0, 12), max_size=80)


def by_definition(references: list[int]) -> list[int]:
    """How many different blocks lie between each reference and the last use of its block."""
    found = []
    for now, block in enumerate(references):
        before = [then for then in range(now) if references[then] == block]
        found.append(len(set(references[before[-1] + 1 : now])) if before else FIRST_USE)
    return found


@given(references=traces)
def test_distances_any_trace_equal_their_definition(references: list[int]) -> None:
    assert stack_distances(references).tolist() == by_definition(references)


@given(references=traces)
def test_curve_every_capacity_equals_a_replay(references: list[int]) -> None:
    curve = LruCurve(stack_distances(references))
    for capacity in range(15):
        policy: Any = make_policy("lru")
        assert curve.hits(capacity) == replay(references, capacity, policy)


@given(references=traces)
def test_curve_ends_where_only_first_uses_miss(references: list[int]) -> None:
    curve = LruCurve(stack_distances(references))
    assert curve.infinite_hits == len(references) - len(set(references))
    assert curve.hits(curve.enough_blocks) == curve.infinite_hits
    if curve.infinite_hits:
        assert curve.hits(curve.enough_blocks - 1) < curve.infinite_hits


@given(references=traces, share=st.floats(0.01, 1.0))
def test_capacity_for_hits_is_the_smallest(references: list[int], share: float) -> None:
    curve = LruCurve(stack_distances(references))
    wanted = round(share * curve.infinite_hits)
    capacity = curve.capacity_for(wanted)
    assert curve.hits(capacity) >= wanted
    assert capacity == 0 or curve.hits(capacity - 1) < wanted


@given(values=st.lists(st.integers(0, 1000), unique=True, max_size=200))
def test_earlier_and_larger_any_values_equal_a_count(values: list[int]) -> None:
    expected = [sum(other > value for other in values[:k]) for k, value in enumerate(values)]
    assert earlier_and_larger(np.array(values, np.int64)).tolist() == expected


def test_last_uses_are_places_and_minus_one() -> None:
    assert last_uses(np.array([5, 7, 5, 5, 7], np.int64)).tolist() == [-1, -1, 0, 2, 1]
