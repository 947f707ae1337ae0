"""One contract for every eviction policy, the laws of λ, and a brute-force scorer as oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.kvcache.eviction import POLICIES, EvictionPolicy, make_policy
from simkv.kvcache.eviction.ranks import RecencyRanks
from simkv.kvcache.replay import UnitBlock

LAM = 0.7
Pick = Callable[[Sequence[UnitBlock]], UnitBlock]
Step = tuple[str, int]

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
                entry = entries[key] = UnitBlock(key, now)
                entry.depth = key % 3
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


@pytest.mark.parametrize("name", POLICIES)
class TestContract:
    def test_policy_empty_has_no_victim(self, name: str) -> None:
        policy: EvictionPolicy[UnitBlock] = make_policy(name, LAM)
        assert policy.victim() is None
        assert len(policy) == 0

    @given(script=steps)
    def test_victim_any_history_is_a_candidate_and_stays_one(self, name: str, script: list[Step]) -> None:
        policy: EvictionPolicy[UnitBlock] = make_policy(name, LAM)

        def check(live: list[UnitBlock]) -> None:
            assert len(policy) == len(live)
            victim = policy.victim()
            assert victim is policy.victim()
            assert (victim in live) if live else (victim is None)

        drive(policy, script, check)

    @given(script=steps)
    def test_victims_same_history_are_the_same(self, name: str, script: list[Step]) -> None:
        first, second = (drive(make_policy(name, LAM), script, lambda live: None) for _ in range(2))
        assert first == second

    @given(script=steps)
    def test_victims_drained_are_every_candidate_once(self, name: str, script: list[Step]) -> None:
        policy: EvictionPolicy[UnitBlock] = make_policy(name, LAM)
        left: list[UnitBlock] = []
        drive(policy, script, lambda live: left.__setitem__(slice(None), live))
        while (victim := policy.victim()) is not None:
            policy.discard(victim)
            left.remove(victim)
        assert left == []

    def test_discard_stranger_raises(self, name: str) -> None:
        policy: EvictionPolicy[UnitBlock] = make_policy(name, LAM)
        with pytest.raises(KeyError):
            policy.discard(UnitBlock(1, 1))


PICKS: dict[str, Pick] = {
    "lru": lambda live: min(live, key=lambda e: e.last_use),
    "lfu": lambda live: min(live, key=lambda e: (e.uses, e.last_use)),
    "fifo": lambda live: min(live, key=lambda e: (e.inserted, -e.depth)),
}


@pytest.mark.parametrize("name", PICKS)
@given(script=steps)
def test_victim_any_history_is_what_the_definition_says(name: str, script: list[Step]) -> None:
    agree(make_policy(name), script, PICKS[name])


@settings(max_examples=200)
@given(script=steps, lam=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 0.8, 0.95, 1.0]))
def test_score_any_history_equals_brute_force(script: list[Step], lam: float) -> None:
    agree(make_policy("score", lam), script, by_score(lam))


@given(script=steps)
def test_score_lambda_one_orders_as_lru(script: list[Step]) -> None:
    agree(make_policy("score", 1.0), script, PICKS["lru"])


@given(script=steps)
def test_score_lambda_zero_orders_as_lfu(script: list[Step]) -> None:
    agree(make_policy("score", 0.0), script, PICKS["lfu"])


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
    head, tail = UnitBlock(0, 5), UnitBlock(1, 5)
    head.depth, tail.depth = 3, 9
    policy.add(tail)
    policy.add(head)
    assert policy.victim() is tail


def test_fifo_touched_over_and_over_keeps_its_heap_small() -> None:
    policy = POLICIES["fifo"](None)
    entries = [UnitBlock(key, key) for key in range(4)]
    for entry in entries:
        policy.add(entry)
    for _ in range(1000):
        policy.discard(entries[3])
        policy.add(entries[3])
    assert len(policy._heap) < 100  # type: ignore[attr-defined]
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
