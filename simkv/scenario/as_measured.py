"""A resolved scenario on the machine as a measured run showed it: a GPU's figures, corrected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from simkv.errors import InputError, Problem
from simkv.hardware import Figure, Gpu
from simkv.scenario import calibrated
from simkv.scenario.resolve import Resolved


@dataclass(frozen=True, slots=True)
class Measured:
    """By how much a measured run corrects a GPU's figures; carried over to every GPU that it is asked of."""

    more: tuple[tuple[str, float], ...] = ()
    """Figures and what comes on top of them, in their unit."""
    times: tuple[tuple[str, float], ...] = ()
    """Figures and the factor that they are multiplied with; a share stays at most 1."""
    source: str = ""
    """What was measured."""


def as_measured(resolved: Resolved, measured: Measured) -> Resolved:
    """Return ``resolved`` with its GPU's figures corrected, their standing ``fitted``; they decide its hash.

    Raises InputError for a machine without such figures: an abstract one, or one whose step times were measured.
    """
    if resolved.gpu is None:
        _refuse(resolved, "is an abstract machine: its steps take what hardware.step_time says", "name a GPU")
    if calibrated.step_times(resolved.profile, resolved.scenario, resolved.model):
        _refuse(resolved, "has measured step times already (a calibration profile)", "name the GPU alone")
    assert resolved.gpu is not None
    changed = dict(_corrected(resolved.gpu, measured))
    return replace(resolved, gpu=resolved.gpu.with_figures(**changed))


def _corrected(gpu: Gpu, measured: Measured) -> Iterator[tuple[str, Figure]]:
    for name, more in measured.more:
        figure = gpu.figure(name)
        yield name, _fitted(figure, figure.value + more, measured)
    for name, factor in measured.times:
        figure = gpu.figure(name)
        value = figure.value * factor
        yield name, _fitted(figure, min(value, 1.0) if figure.unit == "1" else value, measured)


def _fitted(figure: Figure, value: float, measured: Measured) -> Figure:
    return Figure(value, figure.unit, f"fitted to {measured.source}, from {figure.value:g} ({figure.source})", "fitted")


def _refuse(resolved: Resolved, what: str, mend: str) -> None:
    raise InputError(Problem(what, f"{mend}, to plan from a measured run", resolved.layers.file, None, "hardware"))
