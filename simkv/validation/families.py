"""How far the step model is off on what its figures weren't fitted to: a case left out, and a whole GPU family.

*Case left out*: a family's figures are fitted again without a case (where it has one alone: without one observation
after the other), and what was left out is predicted with them. *Family left out*: each fitted figure is the mean of
those that the other families' fits give, as it would be for a GPU that nobody has measured. Shares of the peak of
cards that multiply at half rate aren't taken for others: they reach nearly all of it, where power limits the others. A
figure that no other family is fitted for is that of its like (``LIKE``), and without one that of a perfect card: the
whole peak, no overhead, no loss.
What the observations that are kept don't determine stays near that mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from simkv.validation.fit import FIGURES, Fitted, Point, fit, points_of
from simkv.validation.read import Read

LIKE: Mapping[str, str] = {
    "flops_fp8_efficiency": "flops_efficiency",
    "attention_flops_efficiency": "flops_efficiency",
    "attention_bandwidth_efficiency": "weight_bandwidth_efficiency",
}
"""Where no other family is fitted for a figure: which other share stands for it."""

HALF_RATE = ("ada-geforce",)
"""Families whose tensor cores accumulate in 32 bits at half rate."""

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Family:
    """A family's fit, what it was fitted to, and all that was measured of its cards."""

    fitted: Fitted
    points: Sequence[Point]
    """What it was fitted to."""
    measured: Sequence[Point]
    """Those and the ones that no constant was set with."""


def leave_one_out(cases: Iterable[Read]) -> list[dict[str, Any]]:
    """Return a row for each family that ``cases`` have points of: sizes of its errors as fitted and left out.

    A row has ``family``, ``cards``, ``cases``, ``observations`` (all that was measured of its cards),
    and ``median`` and ``largest`` of the absolute errors ``_fitted``, ``_case_left_out`` and ``_family_left_out``.
    """
    found = families(list(cases))
    return [_row(name, found) for name in found]


def families(cases: Sequence[Read]) -> dict[str, Family]:
    """Return each family with its figures fitted to ``cases``, in the order of ``fit.FIGURES``."""
    every = points_of(cases, lambda case, seen: case.family in FIGURES)
    found = {}
    for name in FIGURES:
        measured = [point for point in every if point.case.family == name]
        points = [point for point in measured if point.observation.fitted]
        if points:
            found[name] = Family(fit(name, points), points, measured)
    return found


def of_others(name: str, fits: Mapping[str, Figures]) -> dict[str, float]:
    """Return the figures of family ``name`` as the fits of the other families in ``fits`` have them."""
    others = {family: figures for family, figures in fits.items() if family != name}
    return {figure: _mean(figure, others) for figure in FIGURES[name]}


def _mean(figure: str, others: Mapping[str, Figures]) -> float:
    known = [
        figures[figure]
        for family, figures in others.items()
        if figure in figures and not ("flops" in figure and family in HALF_RATE)
    ]
    if known:
        return fmean(known)
    if figure in LIKE:
        return _mean(LIKE[figure], others)
    return 1.0 if figure.endswith("efficiency") else 0.0


def case_left_out(name: str, points: Sequence[Point], otherwise: Figures) -> Iterator[float]:
    """Yield the error of each of ``points`` with figures fitted without its case, near those of ``otherwise``.

    Where all are of one case, each observation is left out by itself.
    """
    ids = [point.case.id for point in points]
    folds = ids if len(set(ids)) > 1 else [point.id for point in points]
    for fold in dict.fromkeys(folds):
        out = [point for point, its in zip(points, folds, strict=True) if its == fold]
        kept = [point for point, its in zip(points, folds, strict=True) if its != fold]
        figures = fit(name, kept, near=otherwise).figures if kept else otherwise
        yield from (point.error(figures) for point in out)


def _row(name: str, found: Mapping[str, Family]) -> dict[str, Any]:
    family = found[name]
    others = of_others(name, {other: its.fitted.figures for other, its in found.items()})
    errors = {
        "fitted": list(family.fitted.errors.values()),
        "case_left_out": list(case_left_out(name, family.points, others)),
        "family_left_out": [point.error(others) for point in family.measured],
    }
    row: dict[str, Any] = {
        "family": name,
        "cards": ", ".join(dict.fromkeys(point.asked.hardware for point in family.measured)),
        "cases": len({point.case.id for point in family.measured}),
        "observations": len(family.measured),
    }
    for what, values in errors.items():
        sizes = [abs(value) for value in values]
        row |= {f"median_{what}": median(sizes), f"largest_{what}": max(sizes)}
    return row
