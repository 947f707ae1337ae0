"""The pool against a model of single blocks: room, private blocks, commits, stores."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simkv.kvcache.node import Extent, Node, unpinned_blocks
from simkv.kvcache.pool import UNBOUNDED_BLOCKS, KVPool
from simkv.workload.request import Spans
from tests.test_index import BlockModel, draw_spans

randoms = st.randoms(use_true_random=False)


class Pair:
    """A pool and a model of its blocks, driven together."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.bt = rng.choice((1, 2, 4))
        self.pool = KVPool(rng.randint(4, 40), self.bt, "lru", merge=rng.random() < 0.7)
        self.model = BlockModel(self.bt)
        self.private = 0
        self.written = 0
        self.held: list[tuple[Node, Spans, int]] = []
        """Handle, content, private blocks."""
        self.coming: list[tuple[Node, Spans, int]] = []
        self.transfers = 0

    @property
    def free(self) -> int:
        return self.pool.capacity_blocks - self.private - len(self.model.pins)

    @property
    def available(self) -> int:
        return self.free + len(self.model.order)

    def check(self) -> None:
        pool = self.pool
        pool.check_integrity()
        assert pool.private_blocks == self.private
        assert pool.index.resident_blocks == len(self.model.pins)
        assert pool.index.evictable_blocks == len(self.model.order)
        assert (pool.free_blocks, pool.available_blocks) == (self.free, self.available)
        assert pool.used_blocks == pool.capacity_blocks - self.free
        assert pool.written_blocks == self.written

    def take(self, blocks: int) -> None:
        taken: list[Extent] = []
        self.pool.take(blocks, taken)
        gone = self.model.evict(max(0, blocks - self.free))
        assert [key for s, a, b, _ in taken for key in reversed(self.model.path(s, b)[a:])] == gone
        self.private += blocks
        self.written += blocks

    def admit(self) -> None:
        spans = draw_spans(self.rng)
        full = sum(span[2] for span in spans) // self.bt
        index = self.pool.index
        match = index.match(spans, full)
        end, pending = self.model.match(spans, full)
        assert (match.end, match.pending) == (end, pending)
        room = self.pool.available_blocks - unpinned_blocks(match)
        if pending or full - end > room:
            return
        handle = index.pin(match)
        for key in self.model.path(spans, end):
            self.model.pin(key)
        self.take(full - end)
        self.held.append((handle, spans, full - end))

    def commit(self) -> None:
        if not self.held:
            return
        which = self.rng.randrange(len(self.held))
        handle, spans, private = self.held[which]
        end = handle.end + self.rng.randint(0, private)
        path = self.model.path(spans, end)[handle.end :]
        if any(key in self.model.pending for key in path):
            return
        new = sum(key not in self.model.pins for key in path)
        handle, added = self.pool.commit(handle, spans, end)
        assert added == new
        for key in path:
            self.model.pin(key)
        self.private -= len(path)
        self.held[which] = handle, spans, private - len(path)

    def leave(self) -> None:
        if self.held:
            handle, spans, private = self.held.pop(self.rng.randrange(len(self.held)))
            path = self.model.path(spans, handle.end)
            self.pool.give(private)
            self.pool.index.unpin(handle)
            self.private -= private
            self.model.unpin(path)

    def store(self) -> None:
        """Reserve room for what is lacking; a refusal leaves all blocks where they are."""
        spans = draw_spans(self.rng)
        end = sum(span[2] for span in spans) // self.bt
        path = self.model.path(spans, end)
        here, _ = self.model.match(spans, end)
        lacking = [key for key in path if key not in self.model.pins]
        known = [key for key in path if key in self.model.pins]
        idle = sum(not self.model.pins[key] for key in known)
        self.transfers += 1
        taken: list[Extent] = []
        reserved = self.pool.store(spans, here, end, self.transfers, taken)
        if len(lacking) > self.available - idle:
            assert reserved is None and not taken
            for key in path[:here]:
                self.model.pin(key)
            self.model.unpin(path[:here])
            return
        assert reserved is not None
        handle, added = reserved
        assert added == len(lacking) and handle.end == end
        for key in known:
            self.model.pin(key)
        gone = self.model.evict(max(0, added - self.free))
        assert sum(b - a for _, a, b, _ in taken) == len(gone)
        for key in lacking:
            self.model.pin(key)
            self.model.pending[key] = self.transfers
        self.written += added
        self.coming.append((handle, spans, self.transfers))

    def arrive(self) -> None:
        if self.coming:
            handle, spans, transfer = self.coming.pop(0)
            path = self.model.path(spans, handle.end)
            self.pool.index.arrived(handle, spans, transfer)
            self.pool.index.unpin(handle)
            for key in [key for key, by in self.model.pending.items() if by == transfer]:
                del self.model.pending[key]
            self.model.unpin(path)

    def run(self, steps: int) -> None:
        choices = (self.admit, self.admit, self.commit, self.commit, self.leave, self.store, self.arrive)
        for _ in range(steps):
            self.rng.choice(choices)()
            self.check()
        while self.coming:
            self.arrive()
        while self.held:
            self.leave()
        self.check()
        assert self.pool.available_blocks == self.pool.capacity_blocks


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(randoms)
def test_pool_agrees_with_a_model_of_blocks(rng: Random) -> None:
    Pair(rng).run(rng.randint(1, 50))


@pytest.mark.parametrize("seed", range(40))
def test_pool_over_long_runs(seed: int) -> None:
    Pair(Random(seed)).run(300)


def test_store_counts_only_what_is_lacking() -> None:
    pool = KVPool(4, 1, "lru")
    spans = ((1, 0, 4),)
    assert pool.store(spans, 0, 4, 1) is not None
    again = pool.store(spans, 0, 4, 2)
    assert again is not None and again[1] == 0
    assert pool.store(((2, 0, 1),), 0, 1, 3) is None
    pool.check_integrity()


def test_store_of_a_tail_alone() -> None:
    pool = KVPool(4, 1, "lru")
    spans = ((1, 0, 6),)
    reserved = pool.store(spans, 3, 6, 1)
    assert reserved is not None and reserved[1] == 3
    assert pool.index.match(spans, 6, 3).pending == 1
    pool.index.arrived(reserved[0], spans, 1)
    pool.index.unpin(reserved[0])
    assert pool.index.match(spans, 6, 3).end == 6
    pool.check_integrity()


def test_unbounded_pool_never_evicts() -> None:
    pool = KVPool(UNBOUNDED_BLOCKS, 1, "lru")
    for stream in range(100):
        reserved = pool.store(((stream, 0, 1000),), 0, 1000, 1)
        assert reserved is not None
        pool.index.arrived(reserved[0], ((stream, 0, 1000),), 1)
        pool.index.unpin(reserved[0])
    assert pool.index.resident_blocks == 100_000
    assert pool.index.evictions == 0


def filled(whole: bool = False) -> tuple[KVPool, Node]:
    """Return a pool of ten blocks: four that somebody holds, and four of another prefix that may go."""
    pool = KVPool(10, 1, "lru", whole=whole)
    held, _ = pool.store(((1, 0, 4),), 0, 4, 1) or (None, 0)
    loose, _ = pool.store(((2, 0, 4),), 0, 4, 2) or (None, 0)
    assert held is not None and loose is not None
    pool.index.arrived(held, ((1, 0, 4),), 1)
    pool.index.arrived(loose, ((2, 0, 4),), 2)
    pool.index.unpin(loose)
    return pool, held


@pytest.mark.parametrize(("blocks", "stored"), [(5, 5), (6, 6), (7, 6), (20, 6)])
def test_store_of_a_part_takes_the_leading_blocks_that_fit(blocks: int, stored: int) -> None:
    pool, _ = filled()
    content = ((3, 0, blocks),)
    refused = pool.store(content, 0, blocks, 3) if blocks > 6 else None
    assert refused is None and pool.index.resident_blocks == 8
    handle, added = pool.store(content, 0, blocks, 3, part=True) or (None, 0)
    assert handle is not None and (handle.end, added) == (stored, stored)
    pool.check_integrity()


def test_store_of_a_part_counts_what_is_held_already() -> None:
    pool, held = filled()
    content = ((1, 0, 12),)
    handle, added = pool.store(content, 0, 12, 3, part=True) or (None, 0)
    assert handle is not None and (handle.end, added) == (10, 6)
    assert pool.index.match(content, 12).end == 4  # the rest is on its way
    pool.index.unpin(held)
    pool.check_integrity()


def test_store_of_a_part_of_nothing_is_refused() -> None:
    pool = KVPool(4, 1, "lru")
    assert pool.store(((1, 0, 4),), 0, 4, 1) is not None
    assert pool.store(((2, 0, 4),), 0, 4, 2, part=True) is None
    assert pool.index.match(((2, 0, 4),), 4).end == 0
    pool.check_integrity()


@pytest.mark.parametrize(("whole", "left"), [(False, 3), (True, 0)])
def test_whole_nodes_go_as_they_came(whole: bool, left: int) -> None:
    pool, _ = filled(whole)
    pool.make_room(3)  # one block short
    assert pool.index.match(((2, 0, 4),), 4).end == left
    pool.check_integrity()


def test_whole_nodes_are_what_single_commits_added() -> None:
    pool = KVPool(10, 1, "lru", whole=True)
    content = ((1, 0, 8),)
    pool.take(8)
    handle, _ = pool.commit(pool.index.pin(pool.index.match(content, 8)), content, 5)
    handle, _ = pool.commit(handle, content, 8)
    pool.index.unpin(handle)
    pool.make_room(3)
    assert pool.index.match(content, 8).end == 5
    pool.check_integrity()


@pytest.mark.parametrize("policy", ["slru", "arc", "s3fifo"])
def test_pool_tells_its_policy_the_capacity(policy: str) -> None:
    """With room for 8 blocks: four segments of two; a target of at most 8; a small queue of none."""
    pool = KVPool(8, 1, policy)
    for stream in range(1, 9):
        pool.take(1)
        pool.index.unpin(pool.commit(pool.index.root, ((stream, 0, 1),), 1)[0])
    places = [node.queue for node in pool.index.root.children.values()]
    assert places == {"slru": [1, 1, 2, 2, 3, 3, 4, 4], "arc": [1] * 8, "s3fifo": [2] * 8}[policy]


def test_pool_lifetime_counts_outlive_evictions() -> None:
    """What was used most before it was evicted stays longer when it is back."""
    pool = KVPool(2, 1, "lfu", count="lifetime")

    def use(stream: int) -> None:
        spans = ((stream, 0, 1),)
        handle = pool.index.pin(pool.index.match(spans, 1))
        if not handle.end:
            pool.take(1)
            handle, _ = pool.commit(handle, spans, 1)
        pool.index.unpin(handle)

    for stream in (1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 1, 4):  # 1 goes for 3, 2 for 1, 1 for 4
        use(stream)
    assert [pool.index.match(((stream, 0, 1),), 1).end for stream in (1, 2, 3, 4)] == [0, 0, 1, 1]
