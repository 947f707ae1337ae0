"""Percentiles, intervals, inter-token intervals and warm-up, against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simkv.results.intervals import itl
from simkv.results.stats import batch_means, distribution, half_width
from simkv.results.warmup import mser5, warm_up_s
from simkv.sim.rundata import STEP_COLUMNS, RunData
from tests.results_factory import make_run

PERCENTS = (50, 90, 95, 99)
ROW = st.tuples(
    st.floats(0, 100),  # start
    st.floats(1e-5, 10),  # first
    st.floats(0, 0.1),  # growth
    st.integers(1, 400),  # count
    st.integers(0, 50),  # decodes
)


def run_of_steps(rows: list[tuple[float, float, float, int, int]], gaps: list[tuple[float, float]] = []) -> RunData:  # noqa: B006
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(STEP_COLUMNS)
    steps = {name: np.array(values, dtype) for (name, dtype), values in zip(STEP_COLUMNS.items(), columns, strict=True)}
    ends, lengths = ([g[0] for g in gaps], [g[1] for g in gaps])
    return replace(make_run(10), steps=steps, gaps={"end_s": np.array(ends, "f8"), "gap_s": np.array(lengths, "f8")})


def expanded(data: RunData, from_s: float = -np.inf) -> np.ndarray:
    """Every interval of every sequence, walked step by step."""
    values = []
    for start, first, growth, count, decodes in zip(*data.steps.values(), strict=True):
        for k in range(count):
            if start + k * first + growth * k * (k - 1) / 2 >= from_s - 1e-9:
                values += [first + k * growth] * decodes
    for end, gap in zip(data.gaps["end_s"], data.gaps["gap_s"], strict=True):
        values += [gap] if end - gap >= from_s else []
    return np.array(values)


@given(st.lists(ROW, min_size=1, max_size=12), st.lists(st.tuples(st.floats(5, 9), st.floats(0, 5)), max_size=3))
def test_itl_of_macro_steps_equals_that_of_every_interval(
    rows: list[tuple[float, float, float, int, int]], gaps: list[tuple[float, float]]
) -> None:
    data = run_of_steps(rows, gaps)
    values = expanded(data)
    found = itl(data, -np.inf)
    if not len(values):
        assert found is None
        return
    assert found is not None
    assert found["mean"] == pytest.approx(values.mean(), rel=1e-9)
    assert found["max"] == pytest.approx(values.max(), rel=1e-12)
    for percent in PERCENTS:
        exact = np.percentile(values, percent, method="inverted_cdf")
        neighbours = np.sort(values)[[max(0, int(len(values) * percent / 100 - 1e-6) - 1),
                                      min(len(values) - 1, int(len(values) * percent / 100 + 1e-6))]]  # fmt: skip
        low, high = min(exact, neighbours[0]), max(exact, neighbours[1])
        assert low * (1 - 1e-3) - 1e-7 <= found[f"p{percent}"] <= high * (1 + 1e-3) + 1e-7


@given(st.lists(ROW, min_size=1, max_size=6), st.floats(0, 300))
def test_itl_after_warm_up_leaves_out_steps_that_began_before(
    rows: list[tuple[float, float, float, int, int]], from_s: float
) -> None:
    data = run_of_steps(rows)
    begins = [start + k * first + growth * k * (k - 1) / 2 for start, first, growth, n, _ in rows for k in range(n)]
    assume(min(abs(begin - from_s) for begin in begins) > 1e-6)
    values, found = expanded(data, from_s), itl(data, from_s)
    if found is None or not len(values):
        assert found is None and not len(values)
    else:
        assert found["mean"] == pytest.approx(values.mean(), rel=1e-6)


def test_itl_of_equal_steps_is_exact() -> None:
    found = itl(run_of_steps([(float(i), 0.03, 0.0, 1000, 8) for i in range(200)]), -np.inf)
    assert found is not None
    assert [found[key] for key in ("mean", "p50", "p99", "max")] == pytest.approx([0.03] * 4, rel=1e-12)
    assert found["ci95"] == pytest.approx([0.03, 0.03])


def test_itl_of_wide_series_and_huge_counts_stays_exact_and_small() -> None:
    found = itl(run_of_steps([(0.0, 0.01, 1e-6, 20_000_000, 256)] * 30), -np.inf)
    assert found is not None
    for percent in PERCENTS:
        assert found[f"p{percent}"] == pytest.approx(0.01 + 1e-6 * 20_000_000 * percent / 100, rel=1e-3)


def test_itl_of_no_steps_is_none() -> None:
    assert itl(run_of_steps([]), -np.inf) is None


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200))
def test_distribution_equals_numpy_and_is_ordered(values: list[float]) -> None:
    found = distribution(np.array(values))
    assert found is not None
    for percent in PERCENTS:
        assert found[f"p{percent}"] == np.percentile(values, percent)
    assert found["p50"] <= found["p90"] <= found["p95"] <= found["p99"] <= found["max"]


def test_distribution_of_nothing_is_none_and_of_few_has_no_interval() -> None:
    assert distribution(np.empty(0)) is None
    few = distribution(np.arange(9.0))
    assert few is not None and few["ci95"] is None


def test_interval_covers_the_mean_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        values = rng.exponential(1.0, 500)
        half = half_width(batch_means(values))
        assert half is not None
        covered += abs(values.mean() - 1) <= half
    assert 365 <= covered <= 395


def test_t_quantiles_equal_those_of_scipy() -> None:
    from scipy.stats import t

    for batches in range(5, 21):
        means = np.arange(float(batches))
        expected = t.ppf(0.975, batches - 1) * means.std(ddof=1) / np.sqrt(batches)
        assert half_width(means) == pytest.approx(expected, rel=1e-4)


def test_mser5_of_a_transient_cuts_it_and_little_more() -> None:
    rng = np.random.default_rng(2)
    series = np.concatenate([np.linspace(10, 1, 300), np.ones(1700)]) + rng.normal(0, 0.3, 2000)
    assert 200 <= mser5(series) <= 400


@pytest.mark.parametrize(
    ("series", "why"),
    [
        (np.linspace(10, 1, 90), "too short"),
        (np.linspace(0, 100, 1000), "grows to the end"),
        (np.ones(1000), "has no transient"),
        (np.empty(0), "is empty"),
    ],
)
def test_mser5_of_a_series_without_a_clear_transient_cuts_nothing(series: np.ndarray, why: str) -> None:
    assert mser5(series) == 0, why


@given(st.lists(st.floats(0, 1e3), max_size=400))
def test_mser5_never_cuts_more_than_half(values: list[float]) -> None:
    assert mser5(np.array(values)) <= len(values) / 2


def test_warm_up_given_as_time_is_used_and_one_that_leaves_nothing_is_not() -> None:
    arrivals = 100 + np.arange(50.0)
    assert warm_up_s(10.0, arrivals, ()) == 10.0
    assert warm_up_s(1000.0, arrivals, ()) == 0.0
    assert warm_up_s(10.0, np.empty(0), ()) == 0.0
