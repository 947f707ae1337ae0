"""What is fitted to a measured run: one efficiency, or seconds a step beside one.

Judged by the slopes of what was measured over each parameter: the choice that explains the measurement best, one
parameter where a second explains little more, and never two that move everything alike. (In a decoding step the weights
are read once, whatever is in it: that takes so many seconds, too.)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from simkv.planner.observed.parameters import Parameter

Vector = NDArray[np.float64]
EFFICIENCIES = ("bandwidth", "compute")
_SAID = {"bandwidth": "the efficiency of memory", "compute": "the efficiency of compute"}
CONDITION = 8.0
"""Condition number of two slopes, each scaled to length 1, above which they can't be told apart."""
SHARE = 0.2
"""Of the larger slope of the efficiencies: one below it isn't fitted."""
MORE = 2.0
"""How many times the squares have to shrink for a second parameter."""
GOOD = 0.01
"""Root mean square of relative errors at which one parameter is enough in any case."""


def choose(base: Vector, slopes: Mapping[str, Vector], parameters: Mapping[str, Parameter]) -> tuple[list[str], str]:
    """Return the names of the parameters to fit and why there is one alone, if so; none where nothing moves anything.

    ``base``: relative errors at the catalogue's figures; ``slopes``: of each, over every parameter.
    """
    lengths = {name: float(np.linalg.norm(slope)) for name, slope in slopes.items()}
    most = max(lengths[name] for name in EFFICIENCIES)
    able = [name for name in EFFICIENCIES if most and lengths[name] >= SHARE * most]
    if not able:
        return [], ""
    left = {name: _left(base, [name], slopes, parameters) for name in able}
    one = min(able, key=lambda name: left[name])
    if len(base) < 2 or not lengths["overhead"]:
        return [one], "one parameter is fitted: there is one figure to fit to"
    apart = [name for name in able if condition(slopes["overhead"], slopes[name]) <= CONDITION]
    pairs = {name: _left(base, ["overhead", name], slopes, parameters) for name in apart}
    best = min(pairs, key=lambda name: pairs[name]) if pairs else None
    if best is not None and left[one] > max(MORE * pairs[best], len(base) * GOOD**2):
        return ["overhead", best], ""
    number = condition(slopes["overhead"], slopes[one])
    if number > CONDITION:
        why = f"seconds a step and {_SAID[one]} move what was measured alike (condition number {number:.0f})"
        return [one], f"one parameter is fitted: {why}; prompts of many lengths would tell more"
    return [one], f"one parameter is fitted: beside {_SAID[one]}, seconds a step explain little more"


def condition(a: Vector, b: Vector) -> float:
    """Return the condition number of two columns, each scaled to length 1."""
    return float(np.linalg.cond(np.stack([a / np.linalg.norm(a), b / np.linalg.norm(b)], axis=1)))


def _left(base: Vector, names: list[str], slopes: Mapping[str, Vector], parameters: Mapping[str, Parameter]) -> float:
    """Return the squares that are left where ``names`` explain what they can, by their slopes."""
    from scipy.optimize import lsq_linear

    matrix = np.stack([slopes[name] for name in names], axis=1)
    low = np.array([parameters[name].low for name in names]) - 1e-12
    high = np.array([parameters[name].high for name in names]) + 1e-12
    return float(2 * lsq_linear(matrix, -base, (low, high)).cost)
