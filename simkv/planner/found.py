"""What a search has found, as it is: candidates with what they carry and cost, what was left out, and the winner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simkv.errors import InfeasibleError
from simkv.planner.bounds import Bounds
from simkv.planner.objective import Aim
from simkv.planner.space import Choice, LeftOut
from simkv.planner.types import Candidate, Capacity, Effort, Slo
from simkv.sweeps.simulate import Case


@dataclass(frozen=True, slots=True)
class Rated:
    """A candidate that was simulated."""

    choice: Choice
    bounds: Bounds
    capacity: Capacity
    effort: Effort
    """Of the last search for its capacity."""
    units: int | None
    """How many the plan takes; None: no number of them will do."""
    score: float
    """What is minimised; ``inf``: it is no plan."""
    best_score: float
    """The same, were its capacity where the first load is that it doesn't carry."""
    hour: float | None
    """What an hour of them costs."""
    per_million: float | None
    """What a million output tokens cost at the planned load."""
    planned: Mapping[str, Any] | None = None
    """Summary of one unit at the planned load; None: it isn't planned with."""

    @property
    def candidate(self) -> Candidate:
        """One unit of it."""
        return self.choice.candidate


@dataclass(frozen=True, slots=True)
class Pruned:
    """A candidate that a bound shows to be none, so that nothing was simulated."""

    choice: Choice
    bounds: Bounds
    reason: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure over several seeds."""

    mean: float
    half: float | None
    """Half width of the 95 % interval by Student's t."""
    values: tuple[float, ...]
    limit: float | None = None
    """What it is held to."""

    @property
    def upper(self) -> float:
        """The end of the interval that a limit is held against."""
        return self.mean + (self.half or 0.0)


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A candidate at its planned number of units and load, with several seeds."""

    rated: Rated
    units: int
    load: float
    """Of what was simulated, times the scenario's own."""
    whole: bool
    """Whether all units were simulated together, else one with its share of the load."""
    case: Case
    targets: Mapping[str, Estimate]
    figures: Mapping[str, Estimate]
    """Further figures, by their dotted names in the summary."""
    summaries: tuple[Mapping[str, Any], ...]
    missed: tuple[str, ...]
    """``stationary`` or ``served``, where a seed misses them."""
    strained: Mapping[str, Estimate] = field(default_factory=dict)
    """Targets with the headroom used up; where the most is planned for, and where none is kept, not asked."""
    runs: int = 0
    """Simulations that this rests on."""

    @property
    def holds(self) -> bool:
        """Whether all targets hold on average, with the headroom used up too."""
        held = (*self.targets.values(), *self.strained.values())
        return not self.missed and all(one.limit is None or one.mean <= one.limit for one in held)

    @property
    def surely(self) -> bool:
        """Whether they hold, at the planned load to the ends of their intervals."""
        return self.holds and all(one.limit is None or one.upper <= one.limit for one in self.targets.values())


@dataclass(frozen=True, slots=True)
class Front:
    """One point of the Pareto front."""

    rated: Rated
    cost: float | None
    """Of the plan, an hour."""
    latency_s: float
    """``latency`` at the planned load: of all units over several seeds where it was confirmed, else of one unit."""
    latency: str
    """Which: the SLO's first target."""
    carried: float
    """Load that one unit carries."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """Where nothing will do: what misses least."""

    rated: Rated | None
    pruned: Pruned | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that a search knows."""

    aim: Aim
    slo: Slo
    currency: str
    candidates: tuple[Rated, ...]
    """The best first."""
    pruned: tuple[Pruned, ...]
    left_out: tuple[LeftOut, ...]
    winner: Confirmed | None
    """None: nothing will do."""
    runners_up: tuple[Confirmed, ...]
    """The best first."""
    refuted: tuple[Confirmed, ...]
    """Those that didn't hold with several seeds, though the search thought so."""
    pareto: tuple[Front, ...]
    nearest: Nearest | None
    runs: int
    """Simulations that the answer rests on."""


class NoPlan(InfeasibleError):
    """No candidate will do; ``found`` has what was found out nevertheless."""

    def __init__(self, found: Found) -> None:
        self.found = found
        super().__init__(found.nearest.sentence if found.nearest is not None else "no candidate holds the plan's SLO")
