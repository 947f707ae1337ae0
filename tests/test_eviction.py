"""One contract for every eviction policy on plain entries, the laws of λ, and brute force as an oracle.

The contract on extents of a prefix index is in ``test_eviction_index.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log2
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.kvcache.eviction import COUNT_MODES, DEFAULT_PRIORITY, POLICIES, CountMode, EvictionPolicy, make_policy
from simkv.kvcache.eviction.counts import DECAY_STEPS
from simkv.kvcache.eviction.ranks import RecencyRanks
from simkv.kvcache.replay import UnitBlock

LAM = 0.7
Pick = Callable[[Sequence[UnitBlock]], UnitBlock]
Step = tuple[str, int]


class Block(UnitBlock):
    """A block of some depth and priority."""

    __slots__ = ("depth", "priority")

    def __init__(self, key: int, now: int, depth: int = 0, priority: int = DEFAULT_PRIORITY) -> None:
        super().__init__(key, now)
        self.depth = depth
        self.priority = priority


@dataclass(frozen=True)
class Made:
    """A policy with parameters, by a name for the test's id."""

    name: str
    policy: str
    capacity_blocks: int | None = None
    count: CountMode = "in_cache"

    def __call__(self) -> EvictionPolicy[Any]:
        half_life = 5.0 if self.count == "decayed" else None
        return make_policy(
            self.policy, LAM, capacity_blocks=self.capacity_blocks, count=self.count, half_life_uses=half_life
        )


SIZED = ("slru", "arc", "s3fifo")
EVERY = [
    *(Made(name, name) for name in POLICIES),
    *(Made(f"{name} of 8", name, 8) for name in SIZED),
    *(Made(f"{name}, {count}", name, None, count) for name in ("lfu", "score") for count in COUNT_MODES[1:]),
]
"""Every policy, those that go by the capacity with and without it, and every way to count uses."""

steps = st.lists(st.tuples(st.sampled_from(["use", "use", "use", "pin", "evict"]), st.integers(0, 11)), max_size=120)


def drive(policy: EvictionPolicy[Any], script: list[Step], check: Callable[[list[UnitBlock]], None]) -> list[int]:
    """Play ``script`` on twelve entries as a cache would; ``check`` sees the candidates, oldest first.

    ``use`` inserts or touches, ``pin`` takes a candidate out without an eviction. Returns the evicted keys.
    """
    entries: dict[int, UnitBlock] = {}
    live: list[UnitBlock] = []
    evicted = []
    for now, (verb, key) in enumerate(script):
        entry = entries.get(key)
        if verb == "use":
            if entry is None:
                if policy.remembers:
                    policy.coming(key)
                entry = entries[key] = Block(key, now, key % 3, 10 * (key % 2))
            else:
                if entry in live:
                    policy.discard(entry)
                    live.remove(entry)
                entry.uses += 1
                entry.last_use = now
            policy.add(entry)
            live.append(entry)
        elif verb == "pin" and entry in live:
            policy.discard(entry)
            live.remove(entry)
        elif verb == "evict" and live:
            victim = policy.victim()
            assert victim is not None
            evicted.append(victim.key)
            policy.discard(victim)
            policy.evicted(victim)
            live.remove(victim)
            del entries[victim.key]
        check(live)
    return evicted


def agree(policy: EvictionPolicy[Any], script: list[Step], pick: Pick) -> None:
    """Assert that ``policy`` evicts what ``pick`` picks, at every moment of ``script``."""

    def check(live: list[UnitBlock]) -> None:
        expected = pick(live).key if live else None
        victim = policy.victim()
        assert (victim.key if victim else None) == expected

    drive(policy, script, check)


def by_score(lam: float) -> Pick:
    """Return the definition of ``score``, word for word, in exact arithmetic."""

    def pick(live: Sequence[UnitBlock]) -> UnitBlock:
        share, scale = Fraction(str(lam)), max(len(live) - 1, 1)

        def score(e: UnitBlock) -> Fraction:
            recency = Fraction(sum(o.last_use < e.last_use for o in live), scale)
            freq = Fraction(sum(o.uses < e.uses for o in live), scale)
            return share * recency + (1 - share) * freq

        return min(live, key=lambda e: (score(e), e.last_use, -e.depth))

    return pick


@pytest.mark.parametrize("made", EVERY, ids=lambda made: made.name)
class TestContract:
    def test_policy_empty_has_no_victim(self, made: Made) -> None:
        assert made().victim() is None
        assert len(made()) == 0

    @given(script=steps)
    def test_victim_any_history_is_a_candidate_and_stays_one(self, made: Made, script: list[Step]) -> None:
        policy = made()

        def check(live: list[UnitBlock]) -> None:
            assert len(policy) == len(live)
            victim = policy.victim()
            assert victim is policy.victim()
            assert (victim in live) if live else (victim is None)

        drive(policy, script, check)

    @given(script=steps)
    def test_victims_same_history_are_the_same(self, made: Made, script: list[Step]) -> None:
        first, second = (drive(made(), script, lambda live: None) for _ in range(2))
        assert first == second

    @given(script=steps)
    def test_victim_asked_at_every_step_changes_nothing(self, made: Made, script: list[Step]) -> None:
        watched = made()
        asked = drive(watched, script, lambda live: watched.victim())
        assert asked == drive(made(), script, lambda live: None)

    @given(script=steps)
    def test_victims_drained_are_every_candidate_once(self, made: Made, script: list[Step]) -> None:
        policy = made()
        left: list[UnitBlock] = []
        drive(policy, script, lambda live: left.__setitem__(slice(None), live))
        while (victim := policy.victim()) is not None:
            policy.discard(victim)
            policy.evicted(victim)
            left.remove(victim)
        assert left == []

    def test_discard_stranger_raises(self, made: Made) -> None:
        with pytest.raises(KeyError):
            made().discard(UnitBlock(1, 1))

    def test_discard_twice_raises(self, made: Made) -> None:
        policy, block = made(), UnitBlock(1, 1)
        policy.add(block)
        policy.discard(block)
        with pytest.raises(KeyError):
            policy.discard(block)

    def test_evicted_never_added_is_forgotten(self, made: Made) -> None:
        """What left before its first use ended has no place, and gets a new one when it comes back."""
        policy, block = made(), UnitBlock(1, 1)
        policy.evicted(block)
        policy.add(block)
        assert policy.victim() is block and len(policy) == 1

    def test_split_pinned_gives_the_upper_part_a_place(self, made: Made) -> None:
        """Both parts of a pinned entry are candidates in the end, and go once each."""
        policy, lower, upper = made(), Block(1, 1, depth=2), Block(2, 1, depth=1)
        policy.add(lower)
        policy.discard(lower)
        policy.split(lower, upper)
        policy.add(lower)
        policy.add(upper)
        gone = []
        while (victim := policy.victim()) is not None:
            policy.discard(victim)
            policy.evicted(victim)
            gone.append(victim)
        assert sorted(e.key for e in gone) == [1, 2]


PICKS: dict[str, Pick] = {
    "lru": lambda live: min(live, key=lambda e: e.last_use),
    "lfu": lambda live: min(live, key=lambda e: (e.uses, e.last_use)),
    "fifo": lambda live: min(live, key=lambda e: (e.inserted, -e.depth)),
    "priority": lambda live: min(live, key=lambda e: (e.priority, e.last_use)),
}


@pytest.mark.parametrize("name", PICKS)
@given(script=steps)
def test_victim_any_history_is_what_the_definition_says(name: str, script: list[Step]) -> None:
    agree(make_policy(name), script, PICKS[name])


@settings(max_examples=200)
@given(script=steps, lam=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 0.8, 0.95, 1.0]))
def test_score_any_history_equals_brute_force(script: list[Step], lam: float) -> None:
    agree(make_policy("score", lam), script, by_score(lam))


def same_victims(lam: float, other: str, count: CountMode, script: list[Step]) -> None:
    """Assert that ``score`` picks at every moment what another policy with the same counter does."""
    half_life = 3.0 if count == "decayed" else None
    score: EvictionPolicy[Any] = make_policy("score", lam, count=count, half_life_uses=half_life)
    reference: EvictionPolicy[Any] = make_policy(other, count=count, half_life_uses=half_life)
    seen, expected = [], []
    drive(score, script, lambda live: seen.append(victim.key if (victim := score.victim()) else None))
    drive(reference, script, lambda live: expected.append(victim.key if (victim := reference.victim()) else None))
    assert seen == expected


@pytest.mark.parametrize("count", COUNT_MODES)
@given(script=steps)
def test_score_lambda_one_orders_as_lru(count: CountMode, script: list[Step]) -> None:
    same_victims(1.0, "lru", count, script)


@pytest.mark.parametrize("count", COUNT_MODES)
@given(script=steps)
def test_score_lambda_zero_orders_as_lfu(count: CountMode, script: list[Step]) -> None:
    same_victims(0.0, "lfu", count, script)


@pytest.mark.parametrize("count", ["lifetime", "decayed"])
@given(script=steps)
def test_lfu_counts_as_defined(count: CountMode, script: list[Step]) -> None:
    """Every use is listed, and the count summed up anew each time."""
    half_life = 4.0
    uses: dict[int, list[int]] = {}  # key → the numbers of its uses
    now = 0

    def pick(live: Sequence[UnitBlock]) -> UnitBlock:
        def worth(e: UnitBlock) -> float:
            times = uses[e.key][-e.uses :] if count == "decayed" else uses[e.key]
            if count == "lifetime":
                return float(len(times))
            return round(DECAY_STEPS * log2(sum(2.0 ** (t / half_life) for t in times)))

        return min(live, key=lambda e: (worth(e), e.last_use))

    policy: EvictionPolicy[Any] = make_policy("lfu", count=count, half_life_uses=half_life)
    add = policy.add

    def counted(e: UnitBlock) -> None:
        nonlocal now
        now += 1
        uses.setdefault(e.key, []).append(now)
        add(e)

    agree(_Watched(policy, counted), [step for step in script if step[0] != "pin"], pick)


class _Watched:
    """A policy whose adds are seen; all else is its own."""

    def __init__(self, policy: EvictionPolicy[Any], add: Callable[[Any], None]) -> None:
        self._policy = policy
        self.add = add

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)


def play(
    policy: EvictionPolicy[Any], keys: Sequence[int], room: int, entry: Callable[[int, int], Any] = UnitBlock
) -> list[int]:
    """Use ``keys`` in order in a cache of ``room`` entries, made of key and time; return what is evicted."""
    here: dict[int, Any] = {}
    gone = []
    for now, key in enumerate(keys):
        block = here.get(key)
        if block is not None:
            policy.discard(block)
            block.uses += 1
            block.last_use = now
        else:
            policy.coming(key)
            if len(here) == room:
                victim = policy.victim()
                policy.discard(victim)
                policy.evicted(victim)
                assert victim is not None
                del here[victim.key]
                gone.append(victim.key)
            block = here[key] = entry(key, now)
        policy.add(block)
    return gone


def test_slru_used_again_outlives_newcomers() -> None:
    policy = make_policy("slru", capacity_blocks=8)
    gone = play(policy, [1, 1, 1, *range(10, 40)], 8)
    assert gone[:2] == [10, 11] and 1 not in gone


def test_arc_scan_leaves_the_often_used_alone() -> None:
    policy = make_policy("arc", capacity_blocks=4)
    gone = play(policy, [1, 2, 1, 2, *range(10, 30)], 4)
    assert 1 not in gone and 2 not in gone


def test_arc_ghost_that_comes_back_is_often_used_and_moves_the_target() -> None:
    policy: Any = make_policy("arc", capacity_blocks=4)
    play(policy, [1, 1, 10, 11, 12, 13, 10], 4)  # 10 went to make room for 13, and was missed
    assert policy._target == 1.0
    assert {e.key for e in policy._queues[2]} == {1, 10}


def test_s3fifo_one_hit_wonders_go_through_the_small_queue() -> None:
    """Two uses in the small queue earn a place in the main one; one doesn't."""
    policy = make_policy("s3fifo", capacity_blocks=20)
    gone = play(policy, [1, 1, 1, 2, 2, *range(100, 130)], 20)
    assert 2 in gone and 1 not in gone


def test_s3fifo_ghost_comes_back_into_the_main_queue() -> None:
    policy: Any = make_policy("s3fifo", capacity_blocks=20)
    assert play(policy, list(range(30)), 20)[0] == 0
    back = UnitBlock(0, 99)
    policy.coming(0)
    policy.add(back)
    assert back in policy._main and 0 not in policy._ghosts.members


@given(script=steps)
def test_priority_all_equal_orders_as_lru(script: list[Step]) -> None:
    even = [(verb, 2 * key) for verb, key in script]
    assert drive(make_policy("priority"), even, lambda live: None) == drive(make_policy("lru"), even, lambda live: None)


def test_score_tie_goes_to_the_less_recent() -> None:
    """At λ = 1/2, an old entry used twice and a newer one used once score the same."""
    policy: EvictionPolicy[UnitBlock] = make_policy("score", 0.5)
    old, new = UnitBlock(0, 0), UnitBlock(1, 1)
    old.uses = 2
    policy.add(old)
    policy.add(new)
    assert policy.victim() is old


def test_fifo_same_insertion_takes_the_deeper() -> None:
    policy: EvictionPolicy[UnitBlock] = make_policy("fifo")
    head, tail = Block(0, 5, depth=3), Block(1, 5, depth=9)
    policy.add(tail)
    policy.add(head)
    assert policy.victim() is tail


@pytest.mark.parametrize("name", ["fifo", "priority"])
def test_heap_touched_over_and_over_stays_small(name: str) -> None:
    policy: Any = make_policy(name)
    entries = [UnitBlock(key, key) for key in range(4)]
    for entry in entries:
        policy.add(entry)
    for now in range(10, 1000):
        policy.discard(entries[3])
        entries[3].last_use = now
        policy.add(entries[3])
    assert len(policy._heap) < 100
    assert policy.victim() is entries[0]


def test_recency_ranks_over_many_chunks_equal_positions() -> None:
    ranks: RecencyRanks[UnitBlock] = RecencyRanks()
    entries = [UnitBlock(key, key) for key in range(9000)]
    for entry in entries:
        ranks.append(entry)
    for entry in entries[:8000]:
        ranks.remove(entry)
        if entry.key % 4 == 0:
            ranks.append(entry)
    order = entries[8000:] + [e for e in entries[:8000] if e.key % 4 == 0]
    assert list(ranks.slot_of) == order
    for position in (0, 1, 511, 512, 999, 1000, 1500, 2999):
        assert ranks.rank(ranks.slot_of[order[position]]) == position


def test_make_policy_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(
        InputError, match=r"eviction = lur: .*did you mean lru\?.*lru, lfu, fifo, slru, arc, s3fifo, score, priority"
    ):
        make_policy("lur")


@pytest.mark.parametrize("lam", [None, -0.1, 1.5, float("nan")])
def test_make_policy_score_without_a_share_is_refused(lam: float | None) -> None:
    with pytest.raises(InputError):
        make_policy("score", lam)


@pytest.mark.parametrize("half_life", [None, 0.0, -1.0, float("inf"), float("nan")])
def test_make_policy_decayed_without_a_half_life_is_refused(half_life: float | None) -> None:
    with pytest.raises(InputError, match="half life"):
        make_policy("lfu", count="decayed", half_life_uses=half_life)


def test_make_policy_unknown_count_lists_the_valid_ones() -> None:
    with pytest.raises(InputError, match="in_cache, lifetime, decayed"):
        make_policy("score", 0.5, count="ever")  # type: ignore[arg-type]
