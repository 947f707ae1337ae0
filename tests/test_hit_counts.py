"""Reference replays against published counts, and the laws of replay on random traces."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.kvcache.eviction import POLICIES, EvictionPolicy, make_policy
from simkv.kvcache.replay import Order, UnitBlock, belady, flatten, replay

EXACT = ("lru", "fifo", "lfu", "slru", "arc", "s3fifo", "belady")
ORDERS: tuple[Order, ...] = ("forward", "reverse")

traces = st.lists(st.integers(0, 9), max_size=60)


def hits(name: str, references: Sequence[int], capacity: int) -> int:
    """Replay under a policy, or Belady, by name."""
    if name == "belady":
        return belady(references, capacity)
    policy: EvictionPolicy[UnitBlock] = make_policy(name, 0.7, capacity_blocks=capacity)
    return replay(references, capacity, policy)


@cache
def conversation(shared: Path, order: Order) -> list[int]:
    """Return the references of the Mooncake conversation trace."""
    with (shared / "traces" / "mooncake" / "conversation_trace.jsonl").open() as lines:
        return flatten([json.loads(line)["hash_ids"] for line in lines], order)


@pytest.mark.shared
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", EXACT)
def test_hits_conversation_equal_the_published_counts(shared: Path, name: str, order: Order) -> None:
    with (shared / "published" / "hit_counts_conversation.csv").open() as rows:
        published = [row for row in csv.DictReader(rows) if (row["policy"], row["order"]) == (name, order)]
    assert len(published) == 6
    references = conversation(shared, order)
    for row in published:
        assert len(references) == int(row["references"])
        assert hits(name, references, int(row["capacity_blocks"])) == int(row["hits"]), row


@given(references=traces)
def test_hits_lru_never_fall_with_capacity(references: list[int]) -> None:
    curve = [hits("lru", references, capacity) for capacity in range(12)]
    assert curve == sorted(curve)


@pytest.mark.parametrize("name", POLICIES)
@given(references=traces, capacity=st.integers(0, 12))
def test_hits_no_policy_beats_belady(name: str, references: list[int], capacity: int) -> None:
    assert hits(name, references, capacity) <= belady(references, capacity)


@pytest.mark.parametrize("name", [*POLICIES, "belady"])
@given(references=traces)
def test_hits_unbounded_cache_are_all_but_first_uses(name: str, references: list[int]) -> None:
    assert hits(name, references, 10) == len(references) - len(set(references))


@given(references=st.lists(st.integers(0, 4), max_size=8), capacity=st.integers(1, 3))
def test_belady_small_trace_equals_the_best_of_all_schedules(references: list[int], capacity: int) -> None:
    """Forced insertion, every choice of victim tried."""
    best: dict[frozenset[int], int] = {frozenset(): 0}
    for key in references:
        after: dict[frozenset[int], int] = {}
        for state, count in best.items():
            if key in state:
                follow = [(state, count + 1)]
            elif len(state) < capacity:
                follow = [(state | {key}, count)]
            else:
                follow = [((state - {out}) | {key}, count) for out in state]
            for new, total in follow:
                after[new] = max(total, after.get(new, 0))
        best = after
    assert belady(references, capacity) == max(best.values())


def test_hits_no_room_are_none() -> None:
    for name in [*POLICIES, "belady"]:
        assert hits(name, [1, 1, 1], 0) == 0


def test_flatten_reverse_turns_each_request_around() -> None:
    assert flatten([[1, 2, 3], [4, 5]], "reverse") == [3, 2, 1, 5, 4]
    assert flatten([[1, 2, 3], [4, 5]]) == [1, 2, 3, 4, 5]
