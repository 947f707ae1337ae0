"""The contract of eviction policies on extents: a prefix index under pins, whatever the policy."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simkv.kvcache.eviction import POLICIES, EvictionPolicy, make_policy
from simkv.kvcache.eviction.queued import Queued
from simkv.kvcache.index import PrefixIndex
from simkv.kvcache.node import Extent, Node, held_below
from simkv.workload.request import Spans
from tests.test_index import draw_spans

CAPACITY_BLOCKS = 24
COUNTED = [("lfu", "lifetime"), ("lfu", "decayed"), ("score", "lifetime"), ("score", "decayed")]
EVERY = [*((name, "in_cache") for name in POLICIES), *COUNTED]

randoms = st.randoms(use_true_random=False)
quiet = settings(max_examples=25, suppress_health_check=list(HealthCheck))
every_policy = pytest.mark.parametrize("name, count", EVERY)


def made(name: str, count: Any) -> EvictionPolicy[Node]:
    """Return a policy for a cache of some blocks."""
    half_life = 20.0 if count == "decayed" else None
    return make_policy(name, 0.7, capacity_blocks=CAPACITY_BLOCKS, count=count, half_life_uses=half_life)


class Cache:
    """Requests that hold prefixes for a while in a cache of limited room."""

    def __init__(self, rng: Random, policy: EvictionPolicy[Node], peek: bool = False) -> None:
        self.rng = rng
        self.index = PrefixIndex(1, policy, merge=False)
        self.peek = peek
        self.held: list[tuple[Node, Spans]] = []
        self.gone: list[Extent] = []

    def run(self, steps: int) -> list[Extent]:
        for _ in range(steps):
            if self.held and self.rng.random() < 0.4:
                self.index.unpin(self.held.pop(self.rng.randrange(len(self.held)))[0])
            else:
                self.hold(draw_spans(self.rng))
            self.check()
        return self.gone

    def hold(self, spans: Spans) -> None:
        """Pin what is here, make room for the rest and bring it in, where that can be done."""
        index, end = self.index, sum(span[2] for span in spans)
        use = self.rng.random() < 0.8
        handle = index.pin(index.match(spans, end), use=use)
        need = end - handle.end - held_below(handle, spans, end, index.block_tokens)
        over = index.resident_blocks + need - CAPACITY_BLOCKS
        if over > index.evictable_blocks:
            index.unpin(handle)
            return
        if over > 0:
            self.evict(over)
        handle, _ = index.extend(handle, spans, end, priority=self.rng.choice([None, 20, 60]))
        self.held.append((handle, spans))

    def evict(self, blocks: int) -> None:
        """Evict in pieces, and see that no pinned block and no head before its tail went."""
        taken: list[Extent] | None = [] if self.rng.random() < 0.5 else None
        while blocks > 0:
            gone = self.index.evict(self.rng.randint(1, blocks), taken)
            assert gone, "something can be evicted"
            blocks -= gone
        self.gone += taken or []
        self.check()

    def check(self) -> None:
        self.index.check_integrity()
        assert self.index.resident_blocks <= CAPACITY_BLOCKS
        assert _heads_without_holes(self.index)
        for handle, spans in self.held:
            assert self.index.match(spans, handle.end).end == handle.end, "a pinned block was evicted"
        policy = self.index.policy
        if isinstance(policy, Queued):
            sizes = [sum(node.blocks for node in queue) for queue in policy._queues]
            assert sizes == policy._blocks, "sizes of segments"
        if self.peek:
            policy.victim()


def _heads_without_holes(index: PrefixIndex) -> bool:
    """Return whether every resident block's whole prefix is resident: tails went before heads."""
    stack = [index.root]
    while stack:
        node = stack.pop()
        if not node.resident:
            return False
        stack.extend(node.children.values())
    return True


@every_policy
@quiet
@given(rng=randoms)
def test_index_random_requests_keeps_pins_and_prefixes_whole(name: str, count: str, rng: Random) -> None:
    Cache(rng, made(name, count)).run(60)


@every_policy
@pytest.mark.parametrize("seed", range(2))
def test_index_long_run_evicts_the_same_again_and_whether_peeked_at_or_not(name: str, count: str, seed: int) -> None:
    runs = [Cache(Random(seed), made(name, count), peek).run(250) for peek in (False, False, True)]
    assert runs[0] and runs[0] == runs[1] == runs[2]


@every_policy
def test_index_drained_is_empty(name: str, count: str) -> None:
    cache = Cache(Random(1), made(name, count))
    cache.run(200)
    for handle, _ in cache.held:
        cache.index.unpin(handle)
    while cache.index.resident_blocks:
        assert cache.index.evict(1) == 1
    assert len(cache.index.policy) == 0 and not cache.index.root.children


@pytest.mark.parametrize("name", POLICIES)
def test_index_one_long_prefix_loses_its_tail_block_by_block(name: str) -> None:
    index = PrefixIndex(1, made(name, "in_cache"), merge=False)
    handle, _ = index.extend(index.root, ((1, 0, 8),), 4)
    handle, _ = index.extend(handle, ((1, 0, 8),), 8)
    index.unpin(handle)
    for left in range(7, -1, -1):
        index.evict(1)
        assert index.match(((1, 0, 8),), 8).end == left


def test_index_low_priority_goes_before_what_was_used_longer_ago() -> None:
    index = PrefixIndex(1, made("priority", "in_cache"), merge=False)
    for stream, priority in ((1, 60), (2, None), (3, 20)):
        handle, _ = index.extend(index.root, ((stream, 0, 2),), 2, priority=priority)
        index.unpin(handle)
    order = []
    for _ in range(3):
        taken: list[Extent] = []
        index.evict(2, taken)
        order += [extent.spans[0][0] for extent in taken]
    assert order == [3, 2, 1]


def test_index_priority_given_with_a_pin_counts_from_then_on() -> None:
    index = PrefixIndex(1, made("priority", "in_cache"), merge=False)
    for stream in (1, 2):
        index.unpin(index.extend(index.root, ((stream, 0, 2),), 2)[0])
    index.unpin(index.pin(index.match(((1, 0, 2),), 2), priority=90))
    index.unpin(index.pin(index.match(((2, 0, 2),), 2)))
    index.evict(2)
    assert index.match(((1, 0, 2),), 2).end == 2


def test_index_arc_end_of_a_prefix_that_comes_back_counts_as_regretted() -> None:
    """The ghost is found by the content at which the evicted end began."""
    policy: Any = make_policy("arc", capacity_blocks=8)
    index = PrefixIndex(1, policy, merge=False)
    kept, _ = index.extend(index.root, ((9, 0, 1),), 1)
    index.unpin(index.pin(index.match(((9, 0, 1),), 1)))
    index.unpin(kept)  # used twice: T2, so that T1 doesn't fill the cache alone
    index.unpin(index.extend(index.root, ((1, 0, 6),), 6)[0])
    index.evict(2)
    handle = index.pin(index.match(((1, 0, 6),), 6))
    handle, added = index.extend(handle, ((1, 0, 6),), 6)
    index.unpin(handle)
    assert added == 2 and handle.queue == 2
    assert policy._target > 0


@pytest.mark.parametrize("name, place", [("arc", 2), ("s3fifo", 2)])
def test_index_extent_that_was_evicted_whole_comes_back_as_a_ghost(name: str, place: int) -> None:
    """Into T2, or into the main queue."""
    index = PrefixIndex(1, made(name, "in_cache"), merge=False)
    kept, _ = index.extend(index.root, ((9, 0, 1),), 1)
    index.unpin(kept)
    index.unpin(index.extend(index.root, ((1, 0, 1),), 1)[0])
    index.evict(2)
    node, _ = index.extend(index.root, ((1, 0, 1),), 1)
    index.unpin(node)
    assert node.queue == place


def test_index_slru_part_of_an_extent_that_is_used_rises_alone() -> None:
    index = PrefixIndex(1, made("slru", "in_cache"), merge=False)
    lower, _ = index.extend(index.root, ((1, 0, 4),), 4)
    index.unpin(lower)
    index.unpin(index.pin(index.match(((1, 0, 4),), 4)))
    upper = index.pin(index.match(((1, 0, 4),), 2))
    index.unpin(upper)
    assert (upper.blocks, upper.queue, lower.blocks, lower.queue) == (2, 3, 2, 2)


def test_index_slru_pin_without_use_lifts_nothing() -> None:
    index = PrefixIndex(1, made("slru", "in_cache"), merge=False)
    node, _ = index.extend(index.root, ((1, 0, 2),), 2)
    index.unpin(node)
    index.unpin(index.pin(index.match(((1, 0, 2),), 2), use=False))
    assert node.queue == 1
    index.unpin(index.pin(index.match(((1, 0, 2),), 2)))
    assert node.queue == 2
