"""What is fitted to a measured run: seconds on top of each step, and one efficiency; how they change a GPU's figures.

``bandwidth`` is one factor of the efficiencies with which weights and KV are read, ``compute`` one of those of matrix
products and of attention's arithmetic. Factors are fitted as logarithms, seconds as shares of the measured time a
token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log

from simkv.hardware import Gpu
from simkv.scenario.as_measured import Measured

FIGURES: Mapping[str, tuple[str, ...]] = {
    "overhead": ("step_overhead_s",),
    "bandwidth": ("weight_bandwidth_efficiency", "attention_bandwidth_efficiency"),
    "compute": ("flops_efficiency", "flops_fp8_efficiency", "attention_flops_efficiency"),
}
"""Figures of a GPU that a parameter changes, the one that is shown first."""
LEAST_FACTOR = 0.1
MOST_STEPS = 3.0
"""Times the measured time a token: the most that comes on top of a step."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number that is fitted."""

    name: str
    low: float
    high: float
    """Bounds in its own scale, in which 0 changes nothing."""
    unit_s: float = 1.0
    """Seconds of 1, of ``overhead``."""

    def shown(self, gpu: Gpu, x: float) -> tuple[str, float, float]:
        """Return the figure that stands for it, its value at ``x`` and the catalogue's."""
        figure = FIGURES[self.name][0]
        before = gpu.value(figure)
        return figure, (before + x * self.unit_s if self.name == "overhead" else before * exp(x)), before


def parameters(gpu: Gpu, token_s: float) -> dict[str, Parameter]:
    """Return all that can be fitted; ``token_s``: the measured time a token."""
    found = {"overhead": Parameter("overhead", 0.0, MOST_STEPS, token_s)}
    for name in ("bandwidth", "compute"):
        largest = max(gpu.value(figure) for figure in FIGURES[name])
        found[name] = Parameter(name, log(LEAST_FACTOR), max(0.0, -log(largest)))
    return found


def measured_at(values: Mapping[str, float], known: Mapping[str, Parameter], source: str) -> Measured:
    """Return the corrections at ``values`` of parameters."""
    more: list[tuple[str, float]] = []
    times: list[tuple[str, float]] = []
    for name, x in values.items():
        if name == "overhead":
            more += [(figure, x * known[name].unit_s) for figure in FIGURES[name]]
        else:
            times += [(figure, exp(x)) for figure in FIGURES[name]]
    return Measured(tuple(more), tuple(times), source)
