"""Lengths, arrivals and pauses: the statistics that their parameters promise, and what is refused."""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simkv.errors import InputError
from simkv.rng import stream
from simkv.workload.arrivals import arrival_times, batch_times, think_times
from simkv.workload.draws import BATCH, indices
from simkv.workload.lengths import lengths

N = 40_000


def drawn(spec: object, n: int = N) -> np.ndarray[Any, Any]:
    return np.array(list(islice(lengths(spec, stream(1, "test"), "workload.prompt_tokens"), n)))


@pytest.mark.parametrize("spec", [700, 700.0, {"dist": "constant", "value": 700}])
def test_lengths_constant_are_the_value(spec: object) -> None:
    assert set(drawn(spec, 10)) == {700}


def test_lengths_uniform_reach_both_ends_equally() -> None:
    values, counts = np.unique(drawn({"dist": "uniform", "low": 3, "high": 7}), return_counts=True)
    assert list(values) == [3, 4, 5, 6, 7]
    assert counts == pytest.approx([N / 5] * 5, rel=0.04)


@pytest.mark.parametrize(
    ("spec", "mean", "median", "cv"),
    [
        ({"dist": "lognormal", "mean": 1000, "cv": 1.0}, 1000, 1000 / 2**0.5, 1.0),
        ({"dist": "lognormal", "mean": 1000, "sigma": 0.5}, 1000, 1000 * np.exp(-0.125), 0.533),
        ({"dist": "lognormal", "median": 800, "sigma": 0.5}, 800 * np.exp(0.125), 800, 0.533),
        ({"dist": "lognormal", "median": 800, "cv": 0.3}, 800 * 1.09**0.5, 800, 0.3),
        ({"dist": "geometric", "mean": 200}, 200, 200 * np.log(2), (1 - 1 / 200) ** 0.5),
        ({"dist": "uniform", "low": 100, "high": 300}, 200, 200, 0.29),
    ],
)
def test_lengths_have_the_mean_median_and_cv_asked_for(
    spec: dict[str, Any], mean: float, median: float, cv: float
) -> None:
    sample = drawn(spec)
    assert sample.mean() == pytest.approx(mean, rel=0.02)
    assert np.median(sample) == pytest.approx(median, rel=0.02)
    assert sample.std() / sample.mean() == pytest.approx(cv, rel=0.05)


def test_lengths_geometric_of_mean_one_is_always_one() -> None:
    assert set(drawn({"dist": "geometric", "mean": 1}, 100)) == {1}


def test_lengths_empirical_follow_weights() -> None:
    values, counts = np.unique(
        drawn({"dist": "empirical", "values": [10, 20, 30, 40], "weights": [1, 0, 2, 1]}), return_counts=True
    )
    assert list(values) == [10, 30, 40]
    assert counts / N == pytest.approx([0.25, 0.5, 0.25], abs=0.01)


def test_lengths_empirical_without_weights_are_equally_frequent() -> None:
    _, counts = np.unique(drawn({"dist": "empirical", "values": [10, 20]}), return_counts=True)
    assert counts / N == pytest.approx([0.5, 0.5], abs=0.01)


def test_lengths_empirical_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lengths.txt"
    path.write_text("\ufeff5\r\n\n7\n")
    assert set(drawn({"dist": "empirical", "path": str(path)}, 100)) == {5, 7}


@pytest.mark.parametrize("text", ["-3", "0", "4.5", "many", "9" * 40])
def test_lengths_file_with_a_bad_line_names_file_and_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lengths.txt"
    path.write_text(f"5\n{text}\n")
    with pytest.raises(InputError) as caught:
        drawn({"dist": "empirical", "path": path})
    assert f"{path}:2: {text}: is not a number of tokens" in str(caught.value)


def test_lengths_are_held_between_min_and_max() -> None:
    sample = drawn({"dist": "lognormal", "mean": 1000, "cv": 3, "min": 500, "max": 1500})
    assert (sample.min(), sample.max()) == (500, 1500)


def test_lengths_are_at_least_one_token_and_finite_at_any_spread() -> None:
    sample = drawn({"dist": "lognormal", "median": 1, "sigma": 1000}, 1000)
    assert sample.min() == 1
    assert sample.max() == 2**31 - 1


def test_lengths_are_plain_ints() -> None:
    specs: list[Any] = [5, {"dist": "uniform", "low": 1, "high": 9}, {"dist": "empirical", "values": [4]}]
    assert all(type(next(lengths(spec, stream(0, "t"), "w"))) is int for spec in specs)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"dist": "lognorm", "mean": 5}, "workload.x.dist = 'lognorm': is not known; did you mean 'lognormal'?"),
        ({}, "workload.x.dist: is missing"),
        ({"dist": "lognormal", "mean": 5}, "workload.x.cv: is missing"),
        ({"dist": "lognormal", "sigma": 1}, "workload.x.mean: is missing"),
        ({"dist": "uniform", "low": 5, "high": 4}, "workload.x.high = 4: is below low = 5"),
        ({"dist": "geometric", "mean": 0.5}, "workload.x.mean = 0.5: must be a finite number of at least 1"),
        ({"dist": "geometric", "mean": float("nan")}, "workload.x.mean = nan: must be a finite number"),
        ({"dist": "empirical", "values": []}, "workload.x.values = []: is empty"),
        ({"dist": "empirical", "values": [1, 2], "weights": [1]}, "workload.x.weights = [1]: has 1 entries for 2"),
        ({"dist": "empirical", "values": [1], "weights": [0]}, "workload.x.weights = [0]: sum to zero"),
        ({"dist": "uniform", "low": 1, "high": 9, "min": 8, "max": 7}, "workload.x.max = 7: is below min = 8"),
        (0, "workload.x = 0: must be a finite number of at least 1"),
        (2.5, "workload.x = 2.5: must be a whole number"),
        (True, "workload.x = True: is not a number"),
        ("many", "workload.x = 'many': is not a number"),
    ],
)
def test_lengths_wrong_spec_is_refused_by_path_and_value(spec: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        lengths(spec, stream(0, "t"), "workload.x")
    assert message in str(caught.value)


def gaps(spec: dict[str, Any]) -> np.ndarray[Any, Any]:
    return np.diff(list(islice(arrival_times(spec, stream(2, "test"), "workload.arrival"), N)))


@pytest.mark.parametrize(
    ("spec", "cv"),
    [
        ({"process": "poisson", "rate": 4.0}, 1.0),
        ({"process": "gamma", "rate": 4.0, "cv": 2.0}, 2.0),
        ({"process": "gamma", "rate": 4.0, "cv": 0.5}, 0.5),
        ({"process": "constant", "rate": 4.0}, 0.0),
        ({"process": "gamma", "rate": 4.0, "cv": 0}, 0.0),
    ],
)
def test_arrivals_have_the_rate_and_cv_asked_for(spec: dict[str, Any], cv: float) -> None:
    between = gaps(spec)
    assert between.mean() == pytest.approx(0.25, rel=0.03)
    assert between.std() / between.mean() == pytest.approx(cv, rel=0.03, abs=1e-9)
    assert (between >= 0).all()


def test_arrivals_poisson_counts_in_windows_have_variance_of_their_mean() -> None:
    times = np.array(list(islice(arrival_times({"process": "poisson", "rate": 10.0}, stream(3, "t"), "w"), N)))
    counts = np.bincount(times.astype(int))[:-1]
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.06)


def test_arrivals_constant_do_not_drift() -> None:
    times = list(islice(arrival_times({"process": "constant", "rate": 10.0}, stream(0, "t"), "w"), 100_001))
    assert (times[0], times[-1]) == (0.0, 10_000.0)


@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan"), 1e-300, "fast", None])
def test_arrivals_wrong_rate_is_refused(rate: object) -> None:
    with pytest.raises(InputError, match=r"workload\.arrival\.rate"):
        arrival_times({"process": "poisson", "rate": rate}, stream(0, "t"), "workload.arrival")


def test_arrivals_unknown_process_lists_the_valid_ones() -> None:
    with pytest.raises(InputError, match=r"did you mean 'poisson'.*poisson, gamma, constant"):
        arrival_times({"process": "poison", "rate": 1}, stream(0, "t"), "workload.arrival")


def test_batches_come_at_zero_and_every_interval() -> None:
    assert list(islice(batch_times(3, 10.0), 7)) == [0, 0, 0, 10, 10, 10, 20]
    assert list(batch_times(3, None)) == [0, 0, 0]


@pytest.mark.parametrize(
    ("spec", "mean", "cv"),
    [
        (3.0, 3.0, 0.0),
        (None, 0.0, 0.0),
        ({"dist": "constant", "value": 3.0}, 3.0, 0.0),
        ({"dist": "exponential", "mean": 3.0}, 3.0, 1.0),
        ({"dist": "uniform", "low": 2.0, "high": 4.0}, 3.0, 1 / 27**0.5),
        ({"dist": "lognormal", "mean": 3.0, "cv": 0.7}, 3.0, 0.7),
    ],
)
def test_pauses_have_the_mean_and_cv_asked_for(spec: object, mean: float, cv: float) -> None:
    sample = np.array(list(islice(think_times(spec, stream(4, "test"), "workload.think_time"), N)))
    assert sample.mean() == pytest.approx(mean, rel=0.02)
    assert sample.std() == pytest.approx(cv * mean, rel=0.04, abs=1e-9)


def test_indices_follow_weights_and_are_the_same_across_batches() -> None:
    sample = list(islice(indices([3.0, 1.0], stream(5, "t")), 3 * BATCH))
    assert sample.count(0) / len(sample) == pytest.approx(0.75, abs=0.01)
    whole = (stream(5, "t").random(3 * BATCH) >= 0.75).astype(int).tolist()
    assert sample == whole


def test_batch_draws_equal_one_long_draw() -> None:
    times = list(islice(arrival_times({"process": "poisson", "rate": 1.0}, stream(6, "t"), "w"), 3 * BATCH))
    expected = stream(6, "t").exponential(1.0, 3 * BATCH).tolist()
    assert [b - a for a, b in pairwise(times)] == pytest.approx(expected[1:], rel=1e-6, abs=1e-9)
