"""The planner's nouns: units, candidates, what a unit carries, what a plan says. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simkv.sweeps.simulate import Case


@dataclass(frozen=True, slots=True)
class Price:
    """What an hour of one unit costs."""

    hour: float
    currency: str
    source: str
    date: str | None


@dataclass(frozen=True, slots=True)
class Unit:
    """What is rented or bought at once: a whole instance with all its GPUs, or a replica of bare GPUs."""

    name: str
    """The instance or the GPU, by its catalogue name."""
    gpus: int
    replicas: int
    """Engines of one unit."""
    price: Price | None
    """None: nobody says what it costs."""


@dataclass(frozen=True, slots=True)
class Slo:
    """Targets that must hold, by METRIC_STATISTIC in seconds; of all requests, and of each class."""

    targets: Mapping[str, float]
    classes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def limits(self) -> dict[str, float]:
        """Return all of them; a class's as ``NAME.TARGET``."""
        of_classes = {f"{name}.{key}": limit for name, of in self.classes.items() for key, limit in of.items()}
        return {**self.targets, **of_classes}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One choice of everything that may vary, as one unit of it."""

    name: str
    """Short: ``p5.48xlarge tp 4 dram 800GiB``."""
    values: Mapping[str, str]
    """By axis, as written."""
    case: Case
    """One unit of it, at the scenario's own load."""
    unit: Unit


@dataclass(frozen=True, slots=True)
class Trial:
    """One simulated load."""

    load: float
    """Times the scenario's own."""
    misses: Mapping[str, tuple[float, float]]
    """Targets that don't hold: ``(value, limit)``; ``stationary`` and ``served`` where the queue grows or some were
    turned away. Empty: the load is carried."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The largest load that one unit carries within the SLO, found by bisection."""

    load: float
    """Times the scenario's own; 0: not even an idle unit holds the SLO."""
    over: float
    """The smallest load tried that it doesn't carry; ``inf``: none was found."""
    trials: tuple[Trial, ...]
    summary: Mapping[str, Any]
    """Of the run at ``load`` (at the least load tried, where nothing is carried)."""
    binds: str
    """Target that fails first above ``load``: ``ttft_p95``, ``stationary``, ..."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work finding a capacity may be."""

    requests: int
    """Simulated at each load."""
    precision: float
    """Relative: the answer lies within it below the first load that isn't carried."""
    seed: int = 0
