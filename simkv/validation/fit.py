"""A GPU family's figures, fitted to the step times that somebody measured on its cards.

Points are the observations of ``step`` cases that say ``fitted: true``, by the ``family`` of their case. Least squares
on relative errors. A family's other figures keep their catalogue values. Runs of many requests aren't fitted on as a
whole; a step time that was read off one (its median between tokens) is a step case like others. What comes out is
written into ``simkv/data/hardware.yaml`` by hand: ``python calibration/fit_steps.py`` prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simkv.hardware import Figure, Gpu
from simkv.validation.asks.step import Step, metrics_of, step_of
from simkv.validation.expected import expected_si
from simkv.validation.question import Question
from simkv.validation.read import Read
from simkv.validation.schema import Case, Observation

FIGURES: Mapping[str, Mapping[str, float]] = {
    "ada-geforce": {
        "flops_efficiency": 0.9, "weight_bandwidth_efficiency": 0.9, "attention_bandwidth_efficiency": 0.9,
        "attention_flops_efficiency": 0.8, "tile_fill_loss": 0.3, "sequence_overhead_s": 1e-5,
    },
    "ada": {"flops_fp8_efficiency": 0.5},
    "ampere": {"flops_efficiency": 0.7, "weight_bandwidth_efficiency": 0.8, "tile_fill_loss": 0.3},
    "ampere-gddr": {"flops_efficiency": 0.7, "weight_bandwidth_efficiency": 0.8, "tile_fill_loss": 0.3},
    "hopper": {
        "flops_efficiency": 0.7, "flops_fp8_efficiency": 0.5, "weight_bandwidth_efficiency": 0.8,
        "attention_flops_efficiency": 0.6, "layer_overhead_s": 3e-5, "host_step_overhead_s": 1e-3,
    },
}  # fmt: skip
"""What is fitted of each family, with starting values."""
TINY = 1e-12
PULL = 0.05
"""Error of a point that weighs as much as a figure that is 1 / e of what pulls at it."""


@dataclass(frozen=True, slots=True)
class Point:
    """One observation of a step case."""

    case: Case
    observation: Observation
    asked: Step
    expected: float
    folder: str

    @property
    def id(self) -> str:
        """The case and the observation."""
        return f"{self.case.id}: {self.observation.name}"

    def predict(self, figures: Mapping[str, float]) -> float:
        """Return what the step model says with ``figures`` in place of the catalogue's."""

        def tuned(gpu: Gpu) -> Gpu:
            changed = {name: Figure(value, "", "a fit", "fitted") for name, value in figures.items()}
            return gpu.with_figures(**changed)

        return metrics_of(self.asked, (self.observation.metric,), self.folder, tuned)[self.observation.metric]

    def error(self, figures: Mapping[str, float]) -> float:
        """Return predicted / expected - 1."""
        return self.predict(figures) / self.expected - 1


@dataclass(frozen=True, slots=True)
class Fitted:
    """The figures of a family, and how far off its points are with them."""

    family: str
    figures: Mapping[str, float]
    errors: Mapping[str, float]
    """By the point's id."""


def points_of(cases: Iterable[Read], wanted: Callable[[Case, Observation], bool]) -> list[Point]:
    """Return the observations of step cases that are ``wanted``, in order; those relative to another aren't points."""
    found = []
    for read in cases:
        for seen in read.case.observations if read.case.ask == "step" else ():
            if seen.relative_to is None and wanted(read.case, seen):
                asked = step_of(
                    Question(
                        read.case.id,
                        "step",
                        read.case.step,
                        tuple(seen.set.items()),
                        (seen.metric,),
                        folder=read.folder,
                    )
                )
                found.append(Point(read.case, seen, asked, expected_si(seen.expected), read.folder))
    return found


def points_to_fit(cases: Iterable[Read], family: str) -> list[Point]:
    """Return what the figures of ``family`` are fitted to."""
    return points_of(cases, lambda case, seen: seen.fitted and case.family == family)


def fit(
    family: str,
    points: Sequence[Point],
    start: Mapping[str, float] | None = None,
    near: Mapping[str, float] | None = None,
) -> Fitted:
    """Return the figures that make the squared relative errors of ``points`` least; shares stay between 0 and 1.

    ``start``: what is fitted, and from where; absent: that of ``FIGURES``. ``near``: figures that pull, so weakly that
    they decide only what the points don't.
    """
    import numpy as np
    from scipy.optimize import least_squares

    start = FIGURES[family] if start is None else start
    names, scale = list(start), np.array(list(start.values()))
    anchor = None if near is None else np.array([near[name] for name in names])

    def figures(x: Any) -> dict[str, float]:
        return {name: float(value) for name, value in zip(names, x * scale, strict=True)}

    def errors(x: Any) -> list[float]:
        found = [point.error(figures(x)) for point in points]
        if anchor is None:
            return found
        # A figure that is pulled towards nothing has no ratio: it counts in its starting values.
        off = np.where(anchor > 0, np.log(np.maximum(x * scale, TINY) / np.maximum(anchor, TINY)), x)
        return [*found, *(PULL * off)]

    upper = [1.0 / value if name.endswith("efficiency") else np.inf for name, value in start.items()]
    best = figures(least_squares(errors, np.ones(len(names)), bounds=(np.zeros(len(names)), upper)).x)
    return Fitted(family, best, {point.id: point.error(best) for point in points})
