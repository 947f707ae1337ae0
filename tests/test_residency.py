"""The resident set of sparse access, against a naive one, the policies of single entries, and its own rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.kvcache.eviction import make_policy
from simkv.kvcache.eviction.base import DEFAULT_PRIORITY
from simkv.kvcache.replay import replay
from simkv.kvcache.residency import ResidentSet
from simkv.kvcache.residency.one_by_one import UnitEntry
from simkv.kvcache.residency.ranked import RANKED, lowest, ranks
from simkv.kvcache.residency.regions import Regions
from tests.naive_residency import NaiveSet
from tests.test_eviction import play as play_entries

LAMBDAS = (0.0, 0.1, 0.25, 0.5, 0.7, 0.95, 1.0)
ONE_BY_ONE = ("slru", "arc", "s3fifo")
RULES = (
    [(policy, "in_cache") for policy in RANKED]
    + [(policy, count) for policy in ("lfu", "score") for count in ("lifetime", "decayed")]
)  # fmt: skip
UNITS = 7
"""Units of each of two sequences, in tests of random histories."""

ids_of_two = st.lists(st.integers(0, 2 * UNITS - 1), unique=True, max_size=8)
histories = st.lists(
    st.tuples(
        ids_of_two,  # read
        ids_of_two,  # prefetched, or placed
        st.sampled_from(["load", "load", "load later", "prefetch", "place", "place dirty", "close", "clean"]),
        st.integers(0, 10),  # capacity
    ),
    max_size=14,
)


def array(ids: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(ids, np.int64)


def opened(policy: str, capacity: int, units: int = 12, **kwargs: Any) -> tuple[ResidentSet, int]:
    """Return a set with one sequence, and its base."""
    units_in = ResidentSet(policy, **kwargs)
    units_in.capacity_units = capacity
    return units_in, units_in.open(units)


def load(units_in: ResidentSet, ids: Sequence[int], step: int) -> list[int]:
    """Read ``ids`` in one step, all of it arriving at once; returns what was evicted."""
    read = array(ids)
    here = units_in.resident(read)
    units_in.touch(read, step)
    admitted = units_in.admit(read[~here], step, read)
    units_in.arrived(admitted.entered)
    units_in.check_integrity()
    return admitted.evicted.tolist()


# --- against the naive set -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "count"), RULES)
@settings(max_examples=60)
@given(history=histories, lam=st.sampled_from(LAMBDAS))
def test_any_history_equals_the_naive_set(policy: str, count: str, history: list[Any], lam: float) -> None:
    half_life = 2 if count == "decayed" else None
    real = ResidentSet(policy, lam, count, half_life)
    naive = NaiveSet(policy, Fraction(str(lam)), count, 2)
    priorities = [35, 20]
    bases = [real.open(UNITS, priority) for priority in priorities]
    for base, priority in zip(bases, priorities, strict=True):
        naive.open(base, UNITS, priority)
    for turn, (read, more, what, capacity) in enumerate(history):
        step = 2 * turn  # decayed counts of the naive set are whole powers of two
        real.capacity_units = naive.capacity = capacity
        trimmed = real.trim(step, array(read))
        assert (trimmed.evicted.tolist(), trimmed.evicted_dirty.tolist()) == naive.trim(read)
        missing = [i for i, here in zip(read, real.resident(array(read)), strict=True) if not here]
        real.touch(array(read), step)
        naive.touch(read, step)
        admitted = real.admit(array(missing), step, array(read))
        assert tuple(part.tolist() for part in admitted) == naive.admit(missing, step, read)
        if what != "load later":
            real.arrived(array(range(2 * UNITS)))
            naive.arrived(range(2 * UNITS))
        if what == "prefetch":
            fetched = real.admit(array(more), step, array(read))
            assert tuple(part.tolist() for part in fetched) == naive.admit(more, step, read)
        elif what.startswith("place"):
            dirty = what == "place dirty"
            placed = real.place(array(more), step, dirty, array(read))
            naive.arrived(more)
            assert tuple(part.tolist() for part in placed) == naive.admit(more, step, read + more)
            naive.arrived(more)
            for unit in (naive.units[i] for i in more):
                unit.dirty |= dirty and unit.state == "resident"
        elif what == "clean":
            real.clean(array(more))
            for i in more:
                naive.units[i].dirty = False
        elif what == "close":
            assert real.close(bases[0]) == naive.close(bases[0], UNITS)
            assert real.open(UNITS, priorities[0]) == bases[0]
            naive.open(bases[0], UNITS, priorities[0])
        states = {"resident": real.resident, "pending": real.pending}
        for state, query in states.items():
            assert query(array(range(2 * UNITS))).tolist() == [naive.units[i].state == state for i in range(2 * UNITS)]
        assert real.used_units == naive.used()
        real.check_integrity()


# --- against policies of single entries ----------------------------------------------------------------------------


def entry(key: int, now: int) -> UnitEntry:
    """Return a unit that is used for the first time."""
    unit = UnitEntry(key, key, key, DEFAULT_PRIORITY)
    unit.uses, unit.last_use, unit.inserted = 1, now, now
    return unit


@pytest.mark.parametrize("policy", RANKED)
@pytest.mark.parametrize("one_by_one", [False, True])
@given(
    references=st.lists(st.integers(0, 11), max_size=80),
    capacity=st.integers(1, 8),
    lam=st.sampled_from(LAMBDAS),
)
def test_single_reads_evict_what_a_policy_of_entries_does(
    policy: str, one_by_one: bool, references: list[int], capacity: int, lam: float
) -> None:
    units_in, base = opened(policy, capacity, lam=lam, one_by_one=one_by_one)
    gone = [unit for step, key in enumerate(references) for unit in load(units_in, [base + key], step)]
    assert gone == play_entries(make_policy(policy, lam), references, capacity, entry)


@pytest.mark.parametrize("policy", ONE_BY_ONE)
@given(references=st.lists(st.integers(0, 23), max_size=150), capacity=st.integers(1, 12))
def test_single_reads_hit_as_in_a_reference_replay(policy: str, references: list[int], capacity: int) -> None:
    units_in, base = opened(policy, capacity, units=24)
    hits = 0
    for step, key in enumerate(references):
        hits += int(units_in.resident(array([base + key]))[0])
        load(units_in, [base + key], step)
    assert hits == replay(references, capacity, make_policy(policy, capacity_blocks=capacity))


@pytest.mark.parametrize("policy", ["lru", "lfu", "fifo", "priority"])
@given(history=st.lists(ids_of_two, max_size=20), capacity=st.integers(1, 10))
def test_any_number_at_once_goes_in_the_order_of_single_choices(
    policy: str, history: list[list[int]], capacity: int
) -> None:
    """Where nothing is ranked anew, all at once and one by one are the same; the order of a step's reads is none."""
    gone = []
    for one_by_one in (False, True):
        units_in = ResidentSet(policy, one_by_one=one_by_one)
        units_in.capacity_units = capacity
        assert [units_in.open(UNITS, priority) for priority in (35, 20)] == [0, UNITS]
        gone.append([load(units_in, ids, step) for step, ids in enumerate(history)])
    assert gone[0] == gone[1]


@pytest.mark.parametrize("policy", ONE_BY_ONE)
@given(history=histories)
def test_one_by_one_any_history_keeps_the_rules(policy: str, history: list[Any]) -> None:
    units_in = ResidentSet(policy)
    bases = [units_in.open(UNITS), units_in.open(UNITS)]
    everything = array(range(2 * UNITS))
    for step, (read, more, what, capacity) in enumerate(history):
        units_in.capacity_units = capacity
        units_in.trim(step, array(read))
        assert units_in.used_units <= max(capacity, len(read) + int(units_in.pending(everything).sum()))
        units_in.touch(array(read), step)
        for wanted in (read, more):
            before = units_in.resident(everything)
            pending = units_in.pending(everything)
            admitted = units_in.admit(array(wanted), step, array(read))
            assert before[admitted.evicted].all() and not pending[admitted.evicted].any()
            assert not set(admitted.evicted.tolist()) & set(read)
            assert set(admitted.entered.tolist()) <= set(wanted)
            assert units_in.used_units <= capacity or not admitted.entered.size
            units_in.check_integrity()
        if what != "load later":
            units_in.arrived(everything)
        if what == "close":
            units_in.close(bases[1])
            assert units_in.open(UNITS) == bases[1]
        units_in.check_integrity()


# --- laws and ties -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lam", "policy"), [(1.0, "lru"), (0.0, "lfu")])
@pytest.mark.parametrize("count", ["in_cache", "lifetime", "decayed"])
@given(history=st.lists(ids_of_two, max_size=25), capacity=st.integers(1, 10))
def test_score_at_its_ends_orders_as_lru_and_lfu(
    lam: float, policy: str, count: str, history: list[list[int]], capacity: int
) -> None:
    half_life = 3.0 if count == "decayed" else None
    score, score_base = opened("score", capacity, 2 * UNITS, lam=lam, count=count, half_life=half_life)
    if policy == "lru":
        plain, base = opened("lru", capacity, 2 * UNITS)
    else:
        plain, base = opened("lfu", capacity, 2 * UNITS, count=count, half_life=half_life)
    assert base == score_base
    for step, ids in enumerate(history):
        assert load(score, ids, step) == load(plain, ids, step)


@given(
    reads=st.lists(st.permutations(range(6)), min_size=3, max_size=3), policy=st.sampled_from([*RANKED, *ONE_BY_ONE])
)
def test_order_of_a_steps_reads_decides_nothing(reads: list[list[int]], policy: str) -> None:
    gone = []
    for orders in (reads, [sorted(ids) for ids in reads]):
        units_in, _ = opened(policy, 6, lam=0.5)
        for step, ids in enumerate(orders):
            load(units_in, ids, step)
        gone.append(load(units_in, [8, 9, 10], 9))
    assert gone[0] == gone[1]


@pytest.mark.parametrize("policy", ["lru", "lfu", "score"])
def test_victims_of_one_step_go_tails_first_then_by_sequence(policy: str) -> None:
    units_in, first = opened(policy, 6, 4, lam=0.7)
    second = units_in.open(4)
    load(units_in, [first, first + 1, first + 2, second, second + 1, second + 2], 0)
    assert load(units_in, [first + 3, second + 3], 1) == [first + 2, second + 2]
    assert load(units_in, [first + 3, second + 3, first + 2], 2) == [first + 1]


def test_lfu_counts_a_prefetch_as_no_use_and_its_read_as_one() -> None:
    units_in, _ = opened("lfu", 3)
    load(units_in, [0, 1], 0)
    units_in.arrived(units_in.admit(array([2]), 0, array([0, 1])).entered)
    assert load(units_in, [3], 1) == [2]
    units_in.arrived(units_in.admit(array([2]), 1, array([0, 3])).entered)
    load(units_in, [2], 2)
    load(units_in, [0], 3)
    assert load(units_in, [4], 4) == [3]  # one use, as unit 2 has, and longer ago


def test_lfu_forgets_reads_that_brought_nothing_in() -> None:
    """A unit read in passing, without room, and prefetched later has no use yet."""
    units_in, _ = opened("lfu", 3)
    load(units_in, [0, 1], 0)
    load(units_in, [0, 1, 2, 5], 1)
    assert not units_in.resident(array([5])).any()
    units_in.capacity_units = 4
    units_in.arrived(units_in.admit(array([5]), 2, array([0, 1])).entered)
    assert load(units_in, [6], 3) == [5]


def test_lfu_forgets_what_went_even_if_it_is_back_in_the_same_step() -> None:
    units_in, _ = opened("lfu", 1)
    load(units_in, [0], 0)
    load(units_in, [0], 1)
    for unit in (1, 0):
        units_in.arrived(units_in.admit(array([unit]), 1, array([unit])).entered)
    units_in.capacity_units = 2
    assert load(units_in, [3], 2) == []
    assert load(units_in, [4], 3) == [0]


def test_decayed_count_lets_go_of_what_was_hot_long_ago() -> None:
    """Five reads at once against one: after enough half-lives the one read counts more."""
    for half_life, first_to_go in ((1.0, 0), (1000.0, 1)):
        units_in, _ = opened("lfu", 2, count="decayed", half_life=half_life)
        for step in range(5):
            load(units_in, [0], step)
        load(units_in, [1], 20)
        assert load(units_in, [2], 21) == [first_to_go]


def test_lifetime_count_survives_an_eviction() -> None:
    units_in, _ = opened("lfu", 2, count="lifetime")
    for step in range(3):
        load(units_in, [0], step)
    load(units_in, [1], 3)
    load(units_in, [1], 4)
    assert load(units_in, [2], 5) == [1]
    units_in.trim(5, array([]).astype(int))
    assert load(units_in, [1], 6) == [2]
    assert load(units_in, [3], 7) == [0]  # three reads each, and longer ago


def test_priority_lower_goes_first_whatever_its_recency() -> None:
    units_in, low = opened("priority", 3, 3)
    high = units_in.open(3, priority=80)
    load(units_in, [high, high + 1], 0)
    load(units_in, [low], 1)
    assert load(units_in, [low + 1, low + 2], 2) == [low, high + 1]


# --- room ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [*RANKED, *ONE_BY_ONE])
def test_admit_without_room_for_all_lets_in_the_first_and_evicts_none_in_vain(policy: str) -> None:
    units_in, _ = opened(policy, 4, lam=0.5)
    load(units_in, [0, 1, 2, 3], 0)
    nothing = units_in.admit(array([4, 5]), 1, array([0, 1, 2, 3]))
    assert nothing.entered.size == nothing.evicted.size == 0
    some = units_in.admit(array([6, 5, 4]), 1, array([0, 1]))
    assert some.entered.tolist() == [6, 5]
    assert sorted(some.evicted.tolist()) == [2, 3]
    units_in.check_integrity()


@pytest.mark.parametrize("policy", [*RANKED, *ONE_BY_ONE])
def test_pending_units_take_room_and_never_go(policy: str) -> None:
    units_in, first = opened(policy, 2, 1, lam=0.5)
    assert (first, units_in.open(11)) == (0, 1)
    none = array([]).astype(int)
    assert units_in.admit(array([0, 1]), 0, none).entered.tolist() == [0, 1]
    assert units_in.pending(array([0, 1, 2])).tolist() == [True, True, False]
    assert not units_in.resident(array([0, 1])).any()
    assert units_in.admit(array([2]), 1, none).entered.size == 0
    assert units_in.close(first) == 1
    assert units_in.used_units == 1
    assert units_in.admit(array([2]), 1, none).entered.tolist() == [2]
    units_in.arrived(array([0, 1]))
    assert units_in.resident(array([0, 1, 2])).tolist() == [False, True, False]
    units_in.check_integrity()


def test_admit_what_is_in_or_named_twice_changes_nothing_more() -> None:
    units_in, _ = opened("lru", 4)
    load(units_in, [0], 0)
    assert units_in.admit(array([3, 0, 2, 3]), 1, array([0])).entered.tolist() == [3, 2]
    assert units_in.used_units == 3


@pytest.mark.parametrize("policy", [*RANKED, *ONE_BY_ONE])
def test_trim_after_capacity_shrank_evicts_down_to_it_but_nothing_protected(policy: str) -> None:
    units_in, _ = opened(policy, 6, lam=0.5)
    load(units_in, [0, 1, 2, 3, 4, 5], 0)
    units_in.mark_dirty(array([5]))
    units_in.capacity_units = 3
    assert units_in.admit(array([6]), 1, array([0, 1, 2, 3, 4])).entered.size == 0
    trimmed = units_in.trim(1, array([0, 1, 2, 3]))
    assert sorted(trimmed.evicted.tolist()) == [4, 5]
    assert trimmed.evicted_dirty.tolist() == [5]
    assert units_in.used_units == 4
    units_in.trim(2, array([0]))
    assert units_in.used_units == 3
    assert units_in.trim(3, array([0])).evicted.size == 0
    units_in.check_integrity()


def test_place_makes_resident_at_once_and_dirty_if_asked() -> None:
    units_in, _ = opened("lru", 3)
    assert units_in.place(array([0, 1]), 0, dirty=True).entered.tolist() == [0, 1]
    units_in.clean(array([1]))
    placed = units_in.place(array([2, 3]), 1)
    assert placed.evicted.tolist() == [1]
    assert placed.evicted_dirty.tolist() == []
    assert units_in.resident(array([0, 2, 3])).all()
    assert units_in.place(array([4]), 2, protect=array([2, 3])).evicted_dirty.tolist() == [0]
    units_in.place(array([4]), 3, dirty=True)
    assert units_in.dirty(array([2, 3, 4])).tolist() == [False, False, True]


def test_place_more_than_fits_keeps_the_first() -> None:
    units_in, _ = opened("lru", 3)
    assert units_in.place(array([9, 8, 7, 6]), 0).entered.tolist() == [9, 8, 7]


# --- regions -------------------------------------------------------------------------------------------------------


def test_close_gives_back_room_and_the_region_comes_back_blank() -> None:
    units_in, first = opened("lfu", 8, 5)
    second = units_in.open(5)
    load(units_in, [first, first + 1, second], 0)
    units_in.admit(array([first + 2]), 0, array([]).astype(int))
    assert units_in.close(first) == 3
    assert units_in.used_units == 1
    assert units_in.open(5) == first
    assert not units_in.resident(array(range(first, first + 5))).any()
    assert not units_in.pending(array(range(first, first + 5))).any()
    with pytest.raises(KeyError):
        units_in.close(first + 1)
    units_in.check_integrity()


@pytest.mark.parametrize("policy", ["lru", "arc"])
def test_open_beyond_the_columns_keeps_what_is_there(policy: str) -> None:
    units_in, first = opened(policy, 10_000, 700)
    load(units_in, [first + 699], 0)
    second = units_in.open(3000)
    assert second == 700
    load(units_in, [second + 2999], 1)
    assert units_in.resident(array([699, 700, 3699])).tolist() == [True, False, True]
    units_in.check_integrity()


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=60))
def test_regions_any_history_never_overlap_and_waste_nothing_at_the_end(history: list[tuple[bool, int]]) -> None:
    regions = Regions()
    mine: dict[int, int] = {}
    for taking, number in history:
        if taking or not mine:
            base = regions.take(number)
            mine[base] = number
        else:
            base = sorted(mine)[number % len(mine)]
            assert regions.units(base) == mine.pop(base)
            regions.give(base)
        assert regions.open() == sorted(mine.items())
        taken = [unit for base, units in mine.items() for unit in range(base, base + units)]
        assert len(taken) == len(set(taken))
        assert regions.end == max(taken, default=-1) + 1


# --- choosing ------------------------------------------------------------------------------------------------------


@given(
    values=st.lists(st.one_of(st.integers(-50, 50), st.integers(-(10**9), 10**9)), min_size=1, max_size=60),
    as_floats=st.booleans(),
)
def test_ranks_any_values_are_how_many_are_lower(values: list[int], as_floats: bool) -> None:
    column = np.array(values, np.float64 if as_floats else np.int64)
    assert ranks(column).tolist() == [sum(other < value for other in values) for value in values]


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(-(10**12), 10**12)), max_size=40),
    most=st.integers(0, 45),
)
def test_lowest_any_keys_are_the_first_of_all_sorted(rows: list[tuple[int, int]], most: int) -> None:
    first, second = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    ids = np.arange(len(rows))
    found = lowest(ids, most, (lambda i: first[i], lambda i: second[i], lambda i: i))
    assert found.tolist() == sorted(range(len(rows)), key=lambda i: (*rows[i], i))[:most]


# --- the article's program -----------------------------------------------------------------------------------------

READS = ((0, 11, 6), (0, 1), (1, 2), (2, 3), (10, 3, 4), (4, 5), (5, 6), (6, 7), (8, 2, 7), (8, 9), (9, 10), (10, 11))
"""What the program's steps read, t modulo 12, in the order in which CPython hands out its small sets."""


@dataclass
class Toy:
    """What 240 steps of the program come to."""

    total: float = 0.0
    loads: int = 0
    own_victims: int = 0


def play(prefetch: bool, incoming: str = "candidate") -> Toy:
    """Play the program's 240 steps: VRAM of 3 blocks, CPU of 8 (1 to load), SSD (1.5), bandwidth 2, compute 1."""
    units_in, _ = opened("lru", 3, 12, incoming=incoming)
    toy, cpu = Toy(), set[int]()

    def fetch(moved: Any) -> float:
        missed, evicted = moved.missed.tolist(), moved.evicted.tolist()
        cost, filling = 0.0, len(missed) - len(evicted)
        for at, unit in enumerate(missed):
            cost += 1.0 if unit in cpu else 1.5
            cpu.discard(unit)
            victim = evicted[at - filling] if at >= filling else None
            if victim is not None and len(cpu) < 8:
                cpu.add(victim)
            toy.own_victims += victim == unit
        toy.loads += len(missed)
        return cost

    for step in range(240):
        transfer = fetch(units_in.read_in_order(array(READS[step % 12]), step))
        if prefetch:
            transfer += fetch(units_in.prefetch_in_order(array([(step + 1) % 12])))
        toy.total += max(1.0, transfer / 2) if prefetch else 1.0 + transfer / 2
        units_in.check_integrity()
    return toy


def test_reads_in_order_reproduce_the_articles_program() -> None:
    without, ahead = play(False), play(True)
    assert (without.total, ahead.total) == (527.0, 288.0)
    assert (without.loads, without.own_victims) == (539, 298)


def test_reads_in_order_with_protected_incoming_evict_nobody_incoming() -> None:
    without, ahead = play(False, "protected"), play(True, "protected")
    assert without.own_victims == ahead.own_victims == 0
    assert without.loads < 539
    assert 1.6 < without.total / ahead.total < 1.7


@given(references=st.lists(st.integers(0, 9), max_size=60), capacity=st.integers(1, 6))
def test_reads_in_order_protected_are_lru(references: list[int], capacity: int) -> None:
    units_in, _ = opened("lru", capacity, 10)
    moved = units_in.read_in_order(array(references), 0)
    assert moved.evicted.tolist() == play_entries(make_policy("lru"), references, capacity, entry)
    assert len(references) - moved.missed.size == replay(references, capacity, make_policy("lru"))


@pytest.mark.parametrize("incoming", ["protected", "candidate"])
def test_reads_in_order_without_any_room_pass_through(incoming: str) -> None:
    units_in, _ = opened("lru", 0, incoming=incoming)
    moved = units_in.read_in_order(array([3, 3]), 0)
    assert moved.missed.tolist() == moved.evicted.tolist() == [3, 3]
    assert units_in.used_units == 0


def test_place_in_order_lets_the_incoming_go_and_reports_the_dirty() -> None:
    units_in, _ = opened("lru", 2, incoming="candidate")
    units_in.read_in_order(array([0, 1]), 0)
    units_in.mark_dirty(array([0, 1]))
    placed = units_in.place(array([2]), 1)
    assert (placed.entered.tolist(), placed.evicted.tolist()) == ([], [2])
    moved = units_in.read_in_order(array([2]), 2)
    assert (moved.missed.tolist(), moved.evicted.tolist(), moved.evicted_dirty.tolist()) == ([2], [0], [0])
    assert units_in.place(array([2]), 3, dirty=True).entered.size == 0
    assert units_in.dirty(array([0, 1, 2])).tolist() == [False, True, True]
    units_in.check_integrity()


# --- misuse --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"policy": "lur"}, r"eviction = lur: .*did you mean lru"),
        ({"policy": "score"}, "needs a λ"),
        ({"policy": "score", "lam": 1.5}, "lambda = 1.5: λ is not a share"),
        ({"policy": "score", "lam": 0.1234567891}, "at most nine decimals"),
        ({"policy": "lfu", "count": "ever"}, "count = ever: .*in_cache, lifetime, decayed"),
        ({"policy": "lfu", "count": "decayed"}, "half-life"),
        ({"policy": "lfu", "count": "decayed", "half_life": 0.0}, "half_life = 0.0"),
        ({"policy": "lfu", "half_life": 2.0}, "count in_cache has no half-life"),
        ({"policy": "lru", "count": "lifetime"}, "lru doesn't go by a count; .*lfu or score"),
        ({"policy": "lfu", "incoming": "candidate"}, "policy = lfu: only lru"),
        ({"policy": "lru", "incoming": "guest"}, "incoming = guest: .*protected, candidate"),
    ],
)
def test_resident_set_with_what_does_not_fit_says_the_mend(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ResidentSet(**kwargs)


def test_sets_go_by_steps_or_by_reads_not_by_both() -> None:
    units_in, _ = opened("lru", 3)
    units_in.touch(array([1]), 0)
    with pytest.raises(AssertionError, match="not by both"):
        units_in.read_in_order(array([1]), 1)
    with pytest.raises(AssertionError, match="not by both"):
        opened("lru", 3, incoming="candidate")[0].admit(array([1]), 0, array([1]))
    with pytest.raises(InputError, match="only lru"):
        opened("fifo", 3)[0].read_in_order(array([1]), 1)


def test_steps_never_go_back() -> None:
    units_in, _ = opened("lru", 3)
    units_in.touch(array([1]), 5)
    with pytest.raises(AssertionError, match="step 4 after step 5"):
        units_in.admit(array([1]), 4, array([1]))


@pytest.mark.parametrize("fault", ["used", "dirty", "ghost", "order", "marks"])
def test_mutant_is_seen_by_check_integrity(fault: str) -> None:
    units_in, _ = opened("arc", 4)
    load(units_in, [0, 1, 2], 0)
    faults = {
        "used": lambda: setattr(units_in, "used_units", 2),
        "dirty": lambda: units_in._units.dirty.__setitem__(5, True),
        "ghost": lambda: (units_in._units.state.__setitem__(900, 2), setattr(units_in, "used_units", 4)),
        "order": lambda: units_in._order._held.__setitem__(1, False),  # type: ignore[attr-defined]
        "marks": lambda: units_in._units.scratch.__setitem__(3, True),
    }
    faults[fault]()
    with pytest.raises(AssertionError):
        units_in.check_integrity()


# --- speed ---------------------------------------------------------------------------------------------------------


@pytest.mark.speed
@pytest.mark.parametrize(("policy", "most_s"), [("lru", 0.005), ("score", 0.005), ("arc", 0.015)])
def test_step_of_32_sequences_takes_milliseconds(policy: str, most_s: float) -> None:
    """4,096 reads of 262,144 units, 30 % of them resident; the best of several steps, in CPU time."""
    units_in = ResidentSet(policy, 0.7)
    bases = [units_in.open(8192) for _ in range(32)]
    units_in.capacity_units = 32 * 8192 * 3 // 10
    for base in bases:
        units_in.place(np.arange(base + 8192 - 2457, base + 8192), 0)
    rng = np.random.default_rng(1)
    took = []
    rows = [rng.choice(8192, 128, replace=False) for _ in bases]
    for step in range(1, 15):
        for row in rows:  # a fifth of the last step's reads make way for others
            row[:26] = rng.choice(np.setdiff1d(np.arange(8192), row), 26, replace=False)
            rng.shuffle(row)
        read = np.concatenate([base + row for base, row in zip(bases, rows, strict=True)])
        start = process_time()
        here = units_in.resident(read)
        units_in.touch(read, step)
        units_in.arrived(units_in.admit(read[~here], step, read).entered)
        took.append(process_time() - start)
    assert min(took) < most_s
