"""Pictures of a plan: every axis says where it is."""

from __future__ import annotations

import pytest

from simkv.plots.plan import _minor


@pytest.mark.parametrize(
    ("least", "most", "labels"),
    [
        (1.15, 1.66, ["1.2", "1.4", "1.6"]),
        (0.07, 2.3, ["", "", ""]),
    ],
)
def test_ticks_of_an_axis_within_a_decade_are_all_labelled(least: float, most: float, labels: list[str]) -> None:
    label = _minor(least, most)
    assert [label(value, 0) for value in (1.2, 1.4, 1.6)] == labels
    assert label(0.2, 0) == "0.2"
