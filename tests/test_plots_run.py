"""Figures of runs: whatever they are given is drawn, the same each time, with no label over another."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import pairwise
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simkv.plots.hits import hit_shares, hits_over_time
from simkv.plots.labels import spread, tick_time, time_unit
from simkv.plots.quantiles import Curve, Limit, quantiles, tail
from simkv.plots.timeline import Line, timeline
from simkv.plots.waterfall import PART_COLOURS, Whole, beside, parts_seen, waterfall

Draw = Callable[[BinaryIO, str], None]
RATES = {"vram": 0.5, "dram": 0.2, "ssd": 0.0, "miss": 0.3, "ceiling": 0.8}
CURVE = Curve("this run", [(0.01, 1e-3), (0.5, 0.02), (0.95, 0.3), (0.99, 2.0)], "#0072B2", named=True)
WHOLE = Whole("all", [("queue", 0.1), ("prefill", 0.0), ("decode", 3.0)])


def drawn(draw: Draw, form: str = "svg") -> bytes:
    """Return what ``draw`` writes."""
    file = io.BytesIO()
    draw(file, form)
    return file.getvalue()


DRAWS: dict[str, Draw] = {
    "hit_shares": lambda file, form: hit_shares([("this run", RATES), ("no offload", RATES)], file, form),
    "hits_over_time": lambda file, form: hits_over_time(
        [0.0, 10.0, 40.0], {key: [0.1, 0.2] for key in ("vram", "dram", "ssd", "ceiling")}, file, form
    ),
    "quantiles": lambda file, form: quantiles([CURVE], [Limit("SLO p95", 0.5, 0.95)], "TTFT", file, form),
    "timeline": lambda file, form: timeline(
        [0.0, 1.0, 2.0], [Line("a", [1.0, 2.0], "#0072B2", bold=True)], "Requests", None, 0.5, file, form
    ),
    "waterfall": lambda file, form: waterfall(WHOLE, "Time", file, form),
    "beside": lambda file, form: beside([WHOLE, Whole("none", [("queue", 0.0)])], "Time", file, form),
}


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_figures_are_drawn_the_same_twice_and_as_png(name: str) -> None:
    assert drawn(DRAWS[name]) == drawn(DRAWS[name])
    assert drawn(DRAWS[name], "png")[:4] == b"\x89PNG"


def test_labels_with_mathematics_in_them_are_drawn_as_they_are() -> None:
    hostile = [Curve("$\\frac{1$", CURVE.points, "#0072B2"), Curve("<b>&$x^$", CURVE.points, "#D55E00")]
    assert b"<svg" in drawn(lambda file, form: quantiles(hostile, [Limit("SLO $a_", 1.0)], "TTFT", file, form))


@given(st.lists(st.tuples(st.floats(0, 0.9999), st.floats(1e-7, 1e6)), min_size=1, max_size=8))
@settings(max_examples=8)
def test_quantiles_of_any_positive_times_are_drawn(points: list[tuple[float, float]]) -> None:
    curve = Curve("this run", sorted(points), "#0072B2", named=True)
    assert b"<svg" in drawn(lambda file, form: quantiles([curve], [], "TTFT", file, form))


@given(st.dictionaries(st.sampled_from(sorted(PART_COLOURS)), st.floats(1e-9, 1e5), min_size=1))
@settings(max_examples=8)
def test_waterfall_of_any_parts_is_drawn(parts: dict[str, float]) -> None:
    whole = Whole("sum", list(parts.items()))
    assert b"<svg" in drawn(lambda file, form: waterfall(whole, "Time", file, form))
    assert b"<svg" in drawn(lambda file, form: beside([whole, WHOLE], "Time", file, form))


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.01, 0.2))
def test_spread_keeps_labels_apart_in_order_and_inside_if_they_fit(places: list[float], gap: float) -> None:
    found = spread(sorted(places), gap)
    assert len(found) == len(places)
    assert all(later - earlier >= gap - 1e-9 for earlier, later in pairwise(found))
    if len(places) * gap <= 0.9:
        assert all(-1e-9 <= place <= 1 + 1e-9 for place in found)


def test_spread_leaves_what_is_apart_where_it_is() -> None:
    assert spread([0.1, 0.5, 0.9], 0.1) == [0.1, 0.5, 0.9]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.2, "200 ms"), (100.0, "100 s"), (2e-6, "2 µs"), (0.0025, "2.5 ms"), (2e4, "20,000 s")],
)
def test_tick_times_carry_their_unit(value: float, text: str) -> None:
    assert tick_time(value) == text


@pytest.mark.parametrize(("span", "unit"), [(0.002, "ms"), (5.0, "s"), (179.0, "s"), (180.0, "min"), (4e4, "h")])
def test_time_unit_holds_a_span_a_few_times(span: float, unit: str) -> None:
    assert time_unit(span)[1] == unit
    assert time_unit(1800.0, minutes=False)[1] == "s"


def test_tail_gives_each_nine_as_much_room() -> None:
    assert [tail(q) for q in (0.0, 0.9, 0.99)] == pytest.approx([0.0, 1.0, 2.0])


def test_parts_too_small_to_be_seen_are_not_named() -> None:
    assert parts_seen([WHOLE, Whole("x", [("queue", 1e-6), ("load SSD", 1e-6)])]) == ["queue", "decode"]
