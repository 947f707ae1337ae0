"""Predictors of the next reads: what each finds, in which order, and what it can't."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.kvcache.predict import PREDICTORS, Predictor, make_predictor, stated_accuracy
from simkv.rng import stream

Array = np.ndarray[Any, np.dtype[np.int32]]

steps = st.lists(st.lists(st.integers(0, 40), unique=True, max_size=12), max_size=12)
MANY = 10**6


def array(units: Sequence[int]) -> Array:
    return np.array(units, np.int32)


def shown(name: str, reads: Sequence[Sequence[int]], groups: int = 1, lead: int = 1) -> Predictor:
    """Return a predictor that has seen ``reads`` of sequence 7, a step each."""
    predictor = make_predictor(name, groups, lead)
    for step, units in enumerate(reads):
        predictor.seen(7, step, array(units))
    return predictor


def guess(name: str, reads: Sequence[Sequence[int]], most: int = MANY, groups: int = 1, lead: int = 1) -> list[int]:
    """Return what a predictor expects ``lead`` steps after the last of ``reads``."""
    return shown(name, reads, groups, lead).predict(7, len(reads) - 1, most).tolist()


@pytest.mark.parametrize("name", PREDICTORS)
class TestContract:
    @given(reads=steps, most=st.integers(0, 15))
    def test_guess_any_history_names_each_unit_once_and_no_more_than_asked(
        self, name: str, reads: list[list[int]], most: int
    ) -> None:
        predictor = shown(name, reads)
        found = predictor.predict(7, len(reads), most)
        assert found.dtype == np.int32
        assert found.size <= most
        assert len(set(found.tolist())) == found.size
        assert (found >= 0).all()
        assert found.tolist() == predictor.predict(7, len(reads), MANY)[:most].tolist()

    @given(reads=steps)
    def test_guess_equal_histories_are_equal_whatever_other_sequences_read(
        self, name: str, reads: list[list[int]]
    ) -> None:
        alone, beside = make_predictor(name, 1), make_predictor(name, 1)
        for step, units in enumerate(reads):
            alone.seen(7, step, array(units))
            beside.seen(8, step, array(list(range(step, 3 * step, 2))))
            beside.seen(7, step, array(units))
        assert alone.predict(7, len(reads), MANY).tolist() == beside.predict(7, len(reads), MANY).tolist()

    def test_guess_of_a_stranger_or_a_forgotten_sequence_is_nothing(self, name: str) -> None:
        predictor = shown(name, [[1, 2], [2, 3]])
        assert predictor.predict(8, 1, 5).size == 0
        predictor.forget(7)
        predictor.forget(8)
        assert predictor.predict(7, 1, 5).size == 0

    def test_guess_of_the_same_again_is_the_same_again(self, name: str) -> None:
        assert sorted(guess(name, [[4, 9, 30]] * 3)) == [4, 9, 30]

    def test_what_was_seen_is_a_copy(self, name: str) -> None:
        predictor = make_predictor(name, 1)
        units = array([1, 2])
        predictor.seen(7, 0, units)
        units[:] = 9
        found = predictor.predict(7, 0, 5)
        found[:] = 8
        assert sorted(predictor.predict(7, 0, 5).tolist()) == [1, 2]


def test_last_step_repeats_in_the_order_of_reading() -> None:
    assert guess("last_step", [[9], [3, 1, 2]]) == [3, 1, 2]
    assert guess("last_step", [[9], [3, 1, 2]], 2) == [3, 1]


def test_heavy_hitters_most_read_first_then_recent_then_tail() -> None:
    reads = [[1, 2, 3, 4], [1, 2, 3, 5], [2, 6, 7], [2]]
    assert guess("heavy_hitters", reads) == [2, 3, 1, 7, 6, 5, 4]
    assert guess("heavy_hitters", reads, 2) == [2, 3]


def test_heavy_hitters_far_unit_makes_room_for_itself() -> None:
    assert guess("heavy_hitters", [[5], [5, 3000]]) == [5, 3000]


# --- stride --------------------------------------------------------------------------------------------------------


@given(start=st.integers(0, 50), shift=st.integers(-6, 6), width=st.integers(7, 40), lead=st.integers(1, 3))
def test_stride_moving_window_is_found_exactly(start: int, shift: int, width: int, lead: int) -> None:
    windows = [list(range(at, at + width)) for at in (start + 60 + shift * step for step in range(4 + lead))]
    assert sorted(guess("stride", windows[:4], lead=lead)) == windows[3 + lead]


def test_stride_window_beside_sinks_moves_and_leaves_what_only_stays() -> None:
    """Four sinks and a window of 20, moving by 5: the sinks stay, and nothing else is guessed."""
    reads = [[0, 1, 2, 3, *range(start, start + 20)] for start in (100, 105, 110, 115)]
    assert sorted(guess("stride", reads[:3])) == reads[3]


def test_stride_units_of_several_groups_move_by_whole_blocks() -> None:
    reads = [[block * 4 + group for block in range(start, start + 6) for group in (0, 2)] for start in (3, 5, 7)]
    assert sorted(guess("stride", reads[:2], groups=4)) == reads[2]


def test_stride_change_of_group_is_no_shift() -> None:
    reads = [[block * 2 for block in range(10, 16)], [block * 2 + 1 for block in range(11, 17)]]
    assert guess("stride", reads, groups=2) == reads[1]


def test_stride_walk_of_the_articles_program_is_guessed_but_for_its_far_block() -> None:
    """Of its reads {t, t−1}, and t−6 every fourth step, modulo 12, the next is guessed at every turn but the wrap."""
    reads = [
        [step % 12, (step - 1) % 12] + [(step - 6) % 12] * (step % 4 == 0 and step % 12 != 6) for step in range(48)
    ]
    predictor = make_predictor("stride", 1)
    missed = []
    for step, units in enumerate(reads):
        if step >= 2 and step % 12 not in predictor.predict(7, step - 1, 3):
            missed.append(step)
        predictor.seen(7, step, array(units))
    assert missed == [12, 24, 36]


def test_stride_sticky_selection_with_newcomers_stays_where_it_is() -> None:
    rng = np.random.default_rng(3)
    kept = rng.choice(8192, 100, replace=False)
    reads = [[*kept, *rng.choice(8192, 20, replace=False)] for _ in range(5)]
    reads = [sorted(set(map(int, units))) for units in reads]
    assert sorted(guess("stride", reads)) == reads[-1]


def test_stride_seen_every_other_step_moves_by_half() -> None:
    predictor = make_predictor("stride", 1)
    for step in (0, 2, 4):
        predictor.seen(7, step, array(range(3 * step, 3 * step + 30)))
    assert sorted(predictor.predict(7, 4, MANY).tolist()) == list(range(15, 45))
    assert sorted(predictor.predict(7, 5, MANY).tolist()) == list(range(18, 48))


def test_stride_best_first_is_what_followed_the_shift() -> None:
    window = [list(range(start, start + 8)) for start in (10, 12, 14)]
    reads = [[0, *window[0]], [0, *window[1], 500]]
    found = guess("stride", reads)
    assert sorted(found[:8]) == window[2]
    assert found[8:] == [0, 502]


# --- stated accuracy -----------------------------------------------------------------------------------------------


@given(
    true=st.lists(st.integers(0, 99), unique=True, max_size=40),
    accuracy=st.floats(0, 1),
    seed=st.integers(0, 50),
)
def test_stated_accuracy_any_share_has_as_many_units_each_once(true: list[int], accuracy: float, seed: int) -> None:
    found = stated_accuracy(array(true), 100, accuracy, stream(seed, "accuracy"))
    assert found.size == len(set(found.tolist())) == len(true)
    assert ((found >= 0) & (found < 100)).all()
    assert all(now == then for now, then in zip(found.tolist(), true, strict=True) if now in true)
    assert found.tolist() == stated_accuracy(array(true), 100, accuracy, stream(seed, "accuracy")).tolist()


@pytest.mark.parametrize("accuracy", [0.0, 0.3, 0.85, 1.0])
def test_stated_accuracy_is_the_share_that_comes_true(accuracy: float) -> None:
    true, rng = array(range(0, 8000, 4)), stream(5, "accuracy")
    right = np.isin(stated_accuracy(true, 8192, accuracy, rng), true).mean()
    deviation = (accuracy * (1 - accuracy) / true.size) ** 0.5
    assert abs(right - accuracy) <= 4 * deviation


def test_stated_accuracy_given_units_draws_wrong_ones_from_them() -> None:
    found = stated_accuracy(array([1, 2, 3]), array([2, 3, 50, 60, 70]), 0.0, stream(0, "accuracy"))
    assert sorted(found.tolist()) == [50, 60, 70]


def test_stated_accuracy_too_few_wrong_units_leaves_the_rest_out() -> None:
    found = stated_accuracy(array([0, 1, 2]), 4, 0.0, stream(0, "accuracy"))
    assert found.tolist() == [3]


# --- misuse --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accuracy", [-0.1, 1.01, float("nan")])
def test_stated_accuracy_that_is_no_share_is_refused(accuracy: float) -> None:
    with pytest.raises(InputError, match="an accuracy is a share"):
        stated_accuracy(array([1]), 5, accuracy, stream(0, "accuracy"))


def test_make_predictor_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(
        InputError, match=r"predictor = strides: .*did you mean stride\?.*last_step, stride, heavy_hitt"
    ):
        make_predictor("strides", 1)


@pytest.mark.parametrize(("groups", "lead", "name"), [(0, 1, "groups"), (1, 0, "lead")])
def test_make_predictor_without_groups_or_lead_is_refused(groups: int, lead: int, name: str) -> None:
    with pytest.raises(InputError, match=f"{name} = 0"):
        make_predictor("stride", groups, lead)
