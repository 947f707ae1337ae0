"""The prefix index against a model that keeps one entry a block, under random operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simkv.kvcache.eviction import make_policy
from simkv.kvcache.index import PrefixIndex
from simkv.kvcache.node import Node, held_below, unpinned_blocks
from simkv.workload.request import Spans

randoms = st.randoms(use_true_random=False)
quiet = settings(max_examples=150, suppress_health_check=list(HealthCheck))


class BlockModel:
    """Every block by its content from the root on: pins, transfer on its way, place in the order of eviction."""

    def __init__(self, bt: int) -> None:
        self.bt = bt
        self.pins: dict[tuple[tuple[int, int], ...], int] = {}
        self.pending: dict[tuple[tuple[int, int], ...], int] = {}
        self.order: dict[tuple[tuple[int, int], ...], None] = {}

    def path(self, spans: Spans, end: int) -> list[tuple[tuple[int, int], ...]]:
        tokens = [(stream, start + i) for stream, start, length in spans for i in range(length)]
        return [tuple(tokens[: (i + 1) * self.bt]) for i in range(end)]

    def match(self, spans: Spans, limit: int, start: int = 0) -> tuple[int, int]:
        """How far ``spans`` are here from block ``start`` on, and the transfer that brings what is next."""
        most = min(limit, sum(span[2] for span in spans) // self.bt)
        for end, key in enumerate(self.path(spans, most)):
            if key not in self.pins:
                return end, 0
            if key in self.pending and end >= start:
                return end, self.pending[key]
        return most, 0

    def pin(self, key: tuple[tuple[int, int], ...]) -> None:
        self.pins[key] = self.pins.get(key, 0) + 1
        self.order.pop(key, None)

    def unpin(self, path: list[tuple[tuple[int, int], ...]]) -> None:
        for key in reversed(path):
            self.pins[key] -= 1
            if not self.pins[key]:
                self.order[key] = None

    def evict(self, blocks: int) -> list[tuple[tuple[int, int], ...]]:
        gone = list(self.order)[:blocks]
        for key in gone:
            del self.order[key], self.pins[key]
        return gone


def draw_spans(rng: Random) -> Spans:
    """One to four runs of few streams, so that prompts share, part in the middle of blocks and meet again."""
    spans: list[tuple[int, int, int]] = []
    for _ in range(rng.randint(1, 4)):
        stream, start, length = rng.randint(1, 3), rng.choice((0, 0, 4, 7)), rng.randint(1, 14)
        if spans and spans[-1][0] == stream and sum(spans[-1][1:]) == start:
            continue
        spans.append((stream, start, length))
    return tuple(spans)


class Pair:
    """An index and the model, driven together."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.bt = rng.choice((1, 2, 4))
        self.index = PrefixIndex(self.bt, make_policy("lru"), rng.random() < 0.6)
        self.model = BlockModel(self.bt)
        self.held: list[tuple[Node, Spans]] = []
        self.coming: list[tuple[Node, Spans, int]] = []
        self.transfers = 0

    def check(self) -> None:
        index, model = self.index, self.model
        index.check_integrity()
        assert index.resident_blocks == len(model.pins)
        assert index.evictable_blocks == len(model.order)

    def draw(self) -> tuple[Spans, int]:
        spans = draw_spans(self.rng)
        if self.held and self.rng.random() < 0.4:
            spans = self.rng.choice(self.held)[1]
        return spans, self.rng.randint(0, sum(span[2] for span in spans) // self.bt)

    def match(self) -> None:
        spans, limit = self.draw()
        start = self.rng.randint(0, limit) if self.rng.random() < 0.5 else 0
        found = self.index.match(spans, limit, start)
        end, pending = self.model.match(spans, limit, start)
        assert found.pending == pending
        assert max(found.end, start) == max(end, start)
        if not found.pending:
            unpinned = sum(not self.model.pins[key] for key in self.model.path(spans, found.end))
            assert unpinned_blocks(found) == unpinned

    def hold(self) -> None:
        """Pin what matches and extend it, as a request that computes its prompt."""
        spans, end = self.draw()
        found = self.index.match(spans, end)
        assert (found.end, found.pending) == self.model.match(spans, end)
        if found.pending:
            return
        handle = self.index.pin(found, use=self.rng.random() < 0.7)
        for key in self.model.path(spans, found.end):
            self.model.pin(key)
        assert handle.end == found.end
        self.held.append((handle, spans))
        if self.rng.random() < 0.8:
            self.extend(len(self.held) - 1, end)

    def extend(self, which: int, end: int) -> None:
        handle, spans = self.held[which]
        path = self.model.path(spans, max(end, handle.end))[handle.end :]
        new = sum(key not in self.model.pins for key in path)
        if any(key in self.model.pending for key in path):
            return
        handle, added = self.index.extend(handle, spans, end)
        assert added == new and handle.end >= end
        for key in path:
            self.model.pin(key)
        self.held[which] = handle, spans

    def grow(self) -> None:
        if self.held:
            which = self.rng.randrange(len(self.held))
            most = sum(span[2] for span in self.held[which][1]) // self.bt
            self.extend(which, self.rng.randint(0, most))

    def release(self) -> None:
        if self.held:
            handle, spans = self.held.pop(self.rng.randrange(len(self.held)))
            path = self.model.path(spans, handle.end)
            self.index.unpin(handle)
            self.model.unpin(path)

    def bring(self) -> None:
        """Pin what is known and enter the rest as on its way."""
        spans, end = self.draw()
        handle = self.index.pin(self.index.match(spans, end))
        path = self.model.path(spans, end)
        lacking = [key for key in path if key not in self.model.pins]
        held = sum(self.model.pins.get(key, 0) > 0 for key in path[handle.end :])
        assert held_below(handle, spans, end, self.index.block_tokens) == held
        self.transfers += 1
        handle, added = self.index.extend(handle, spans, end, pending=self.transfers)
        assert added == len(lacking)
        for key in path:
            self.model.pin(key)
        for key in lacking:
            self.model.pending[key] = self.transfers
        self.coming.append((handle, spans, self.transfers))

    def arrive(self) -> None:
        """The oldest transfer is through."""
        if self.coming:
            handle, spans, transfer = self.coming.pop(0)
            path = self.model.path(spans, handle.end)
            self.index.arrived(handle, spans, transfer)
            for key in [key for key, by in self.model.pending.items() if by == transfer]:
                del self.model.pending[key]
            self.index.check_integrity()
            self.index.unpin(handle)
            self.model.unpin(path)

    def evict(self) -> None:
        blocks = self.rng.randint(1, 6)
        taken: list = []  # type: ignore[type-arg]
        went = self.index.evict(blocks, taken)
        gone = self.model.evict(blocks)
        assert went == len(gone)
        named = [key for spans, start, end, _ in taken for key in reversed(self.model.path(spans, end)[start:])]
        assert named == gone

    def remove(self) -> None:
        """Blocks that moved away: the unpinned tail of a path."""
        spans, limit = self.draw()
        end, pending = self.model.match(spans, limit)
        path = self.model.path(spans, end)
        if pending or not path or any(key[: len(path[-1])] == path[-1] and key != path[-1] for key in self.model.pins):
            return  # what hangs below would lose its parent
        start = self.rng.randint(0, end)
        tail = path[start:]
        others = [key for key in self.model.pins if key not in path]
        if any(len(a) < len(b) and b[: len(a)] == a for a in tail for b in others):
            return
        expected = [key for key in tail if not self.model.pins[key]]
        assert self.index.remove(spans, start, end) == len(expected)
        for key in reversed(path):  # the path was held while it was taken apart
            if not self.model.pins[key]:
                del self.model.order[key]
                self.model.order[key] = None
        for key in expected:
            del self.model.pins[key], self.model.order[key]

    def walk(self, steps: Sequence[Callable[[], None]], count: int) -> None:
        """Take ``count`` of ``steps`` by chance, checking after each, then let everything go."""
        for _ in range(count):
            self.rng.choice(steps)()
            self.check()
        self.finish()

    def finish(self) -> None:
        while self.coming:
            self.arrive()
        while self.held:
            self.release()
        self.check()
        total = len(self.model.pins)
        assert self.index.evictable_blocks == total == self.index.evict(total + 5)
        self.index.check_integrity()
        assert not self.index.root.children


@quiet
@given(randoms)
def test_index_agrees_with_a_model_of_blocks(rng: Random) -> None:
    pair = Pair(rng)
    steps = (pair.match, pair.hold, pair.hold, pair.grow, pair.release, pair.bring, pair.arrive, pair.evict)
    pair.walk(steps, rng.randint(1, 50))


@pytest.mark.parametrize("seed", range(40))
def test_index_over_long_runs(seed: int) -> None:
    rng = Random(seed)
    pair = Pair(rng)
    steps = (pair.match, pair.hold, pair.hold, pair.grow, pair.release, pair.bring, pair.arrive, pair.evict)
    pair.walk(steps, 300)


@pytest.mark.parametrize("seed", range(40))
def test_index_without_transfers_loses_moved_blocks(seed: int) -> None:
    rng = Random(seed)
    pair = Pair(rng)
    steps = (pair.match, pair.hold, pair.hold, pair.grow, pair.release, pair.release, pair.evict, pair.remove)
    pair.walk(steps, 200)


@pytest.mark.parametrize("policy", ["lru", "lfu", "fifo", "score"])
@pytest.mark.parametrize("seed", range(8))
def test_every_policy_keeps_the_index_whole(policy: str, seed: int) -> None:
    """Whatever goes first: counters hold, nothing pinned goes, and in the end all of it can."""
    rng = Random(seed)
    index = PrefixIndex(2, make_policy(policy, 0.3), policy == "lru")
    held: list[Node] = []
    for _ in range(200):
        kind = rng.random()
        if kind < 0.5:
            spans = draw_spans(rng)
            end = sum(span[2] for span in spans) // 2
            handle, _ = index.extend(index.pin(index.match(spans, end)), spans, end)
            assert index.match(spans, end).end == end
            held.append(handle)
        elif kind < 0.8 and held:
            index.unpin(held.pop(rng.randrange(len(held))))
        else:
            pinned = index.resident_blocks - index.evictable_blocks
            index.evict(rng.randint(1, 8))
            assert index.resident_blocks - index.evictable_blocks == pinned
        index.check_integrity()
    while held:
        index.unpin(held.pop())
    index.evict(index.resident_blocks)
    index.check_integrity()
    assert not index.root.children and not index.resident_blocks


def test_pending_node_that_parts_before_the_start_is_no_obstacle() -> None:
    index = PrefixIndex(1, make_policy("lru"), True)
    ours, theirs = ((1, 0, 2), (2, 0, 5)), ((1, 0, 2), (3, 0, 5))
    handle, _ = index.extend(index.root, theirs, 7, pending=9)
    assert index.match(ours, 7, 2)[1:] == (2, 0)
    assert index.match(ours, 7, 1)[1:] == (0, 9)
    assert index.match(theirs, 7, 2).pending == 9
    index.arrived(handle, theirs, 9)
    assert index.match(ours, 7)[1:] == (2, 0)
    assert index.match(theirs, 7)[1:] == (7, 0)


def test_path_to_a_tail_without_its_head() -> None:
    """A tier that took only a tail knows the head as a ghost, and forgets it with the tail."""
    index = PrefixIndex(1, make_policy("lru"), True)
    spans = ((1, 0, 6),)
    handle, _ = index.extend(index.root, spans, 4, resident=False)
    handle, added = index.extend(handle, spans, 6)
    assert added == 2 and index.resident_blocks == 2
    assert index.match(spans, 6).end == 0
    assert index.match(spans, 6, 4).end == 6
    index.unpin(handle)
    index.check_integrity()
    assert index.evict(6) == 2
    assert not index.root.children
