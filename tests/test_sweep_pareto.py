"""The Pareto front: nothing on it is beaten, everything else is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from simkv.errors import InputError
from simkv.sweeps.best import front_of, lines
from simkv.sweeps.pareto import Objective, costs, front, parse_objectives
from simkv.sweeps.point import Ended, Point
from simkv.sweeps.settings import Setting, settings

SMALL = st.integers(0, 6).map(float) | st.sampled_from([float("inf"), float("nan"), -1.5])


@st.composite
def clouds(draw: st.DrawFn) -> NDArray[np.float64]:
    objectives = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(SMALL, min_size=objectives, max_size=objectives), max_size=40))
    return np.array(rows, dtype=float).reshape(len(rows), objectives)


def dominates(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return bool((one <= other).all() and (one < other).any())


@given(clouds())
def test_front_holds_exactly_the_points_that_nothing_dominates(values: NDArray[np.float64]) -> None:
    chosen = front(values)
    for k, row in enumerate(values):
        if np.isnan(row).any():
            assert not chosen[k]
            continue
        beaten = any(dominates(other, row) for other in values)
        assert chosen[k] == (not beaten)


def test_front_of_equal_points_is_all_of_them() -> None:
    assert front(np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 2.0], [1.0, 2.0]])).tolist() == [True, True, False, True]


@pytest.mark.parametrize("objectives", [2, 3])
def test_front_of_many_points_over_several_blocks_equals_that_of_a_plain_search(objectives: int) -> None:
    values = np.random.default_rng(5).random((3000, objectives)).round(3)
    chosen = front(values)
    best = values[chosen]
    for row in values[~chosen]:
        assert ((best <= row).all(axis=1) & (best < row).any(axis=1)).any()
    for row in best:
        assert not ((values <= row).all(axis=1) & (values < row).any(axis=1)).any()


def test_front_where_every_point_trades_one_for_another_is_all_of_them() -> None:
    x = np.arange(5000.0)
    assert front(np.stack((x, -x, np.zeros(5000)), axis=1)).all()


def test_objectives_turn_what_should_be_large_round() -> None:
    objectives = parse_objectives("ttft_s.p95:min, output_tokens_per_s:max")
    assert objectives == (Objective("ttft_s.p95", "min"), Objective("output_tokens_per_s", "max"))
    assert costs(np.array([[1.0, 5.0]]), objectives).tolist() == [[1.0, -5.0]]


@pytest.mark.parametrize("text", ["ttft_s.p95", "ttft_s.p95:down", ":min", ""])
def test_objective_without_a_direction_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match=r"--objective.*METRIC:min or METRIC:max"):
        parse_objectives(text)


def place(**params: str) -> Setting:
    cost = 1.0 if params["p"] == "1.0" else 2.0
    point = Point(params, 0, "")
    return settings([Ended(point, "done", 1, {"makespan_s": cost, "output_tokens": 5 * cost})])[0]


def test_lines_of_equal_points_are_one_with_any_or_the_values_that_are_equal() -> None:
    axes = {"p": ["0.1", "0.5", "1.0"], "beta": ["0", "0.9"]}
    found = [place(p=p, beta=beta) for p in axes["p"] for beta in axes["beta"]]
    best = front_of(found, parse_objectives("makespan_s:min,output_tokens:max"))
    assert list(best.settings) == found
    assert [params for params, _ in lines(best, axes)] == [
        {"p": "0.1, 0.5", "beta": "any"},
        {"p": "1.0", "beta": "any"},
    ]
    some = front_of(found[:-1], parse_objectives("makespan_s:min,output_tokens:max"))
    assert {"p": "1.0", "beta": "0"} in [params for params, _ in lines(some, axes)]


def test_front_drops_objectives_that_are_the_same_everywhere_and_counts_points_without_one() -> None:
    rows = [{"itl_s": {"p95": 1.0}, "ttft_s": {"p95": 3.0}}, {"itl_s": {"p95": 2.0}, "ttft_s": {"p95": 3.0}}]
    rows += [{"itl_s": None, "ttft_s": {"p95": 3.0}}]
    ended = [Ended(Point({"p": str(k)}, 0, ""), "done", 1, row) for k, row in enumerate(rows)]
    best = front_of(settings(ended))
    assert [str(objective) for objective in best.objectives] == ["itl_s.p95:min"]
    assert [setting.params["p"] for setting in best.settings] == ["0"]
    assert best.without == 1
