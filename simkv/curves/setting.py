"""What all curves start from: the scenario, what kind it is, how long its sequences are, which seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simkv.curves.lengths import Lengths, mean_lengths
from simkv.scenario.build import workload_source
from simkv.scenario.offload_schema import ReplayAccess, WindowAccess
from simkv.scenario.placing import in_batches
from simkv.scenario.resolve import Resolved
from simkv.scenario.schema import InlineHardware, Scenario
from simkv.scenario.workload_schema import TraceWorkload
from simkv.sweeps.simulate import Case, Written

Kind = Literal["batches", "replay", "reuse", "dense", "sparse"]
"""Static batches; a log of accesses; no active offload; active offload by what attention reads."""

SEEDS = 3
"""Where the scenario doesn't ask for more, and something is drawn at random."""
DEFAULT_RESIDENCY = 0.5
"""p of the speedup curve where the scenario keeps all KV in VRAM."""


@dataclass(frozen=True)
class Setting:
    """A scenario whose curves are drawn."""

    written: Written
    resolved: Resolved
    kind: Kind
    lengths: Lengths
    seeds: tuple[int, ...]
    steps: int
    """Intervals that each axis is divided into."""

    @property
    def scenario(self) -> Scenario:
        """The resolved scenario."""
        return self.resolved.scenario

    @property
    def inline(self) -> bool:
        """Whether the machine is abstract: it has no memory whose speed is known."""
        return isinstance(self.scenario.hardware, InlineHardware)

    @property
    def residency(self) -> float:
        """p of the speedup curve."""
        p = self.scenario.offload.residency
        return p if 0 < p < 1 else DEFAULT_RESIDENCY

    @property
    def shares_budget(self) -> bool:
        """Whether all sequences share one area of VRAM instead of a share each."""
        return self.scenario.offload.vram_budget is not None

    @property
    def house_drawn(self) -> bool:
        """Whether anything is drawn at random where sequences are of equal length: what attention reads may be."""
        return self.kind == "sparse" and not isinstance(self.scenario.offload.access, WindowAccess)

    @property
    def house_seeds(self) -> tuple[int, ...]:
        """Seeds of sequences of equal length: one, where nothing is drawn."""
        return self.seeds if self.house_drawn else self.seeds[:1]

    @property
    def own_drawn(self) -> bool:
        """Whether anything is drawn at random in the scenario as it is: nothing, where a trace says it all."""
        workload = self.scenario.workload
        fixed = isinstance(workload, TraceWorkload) and workload.arrival is None and self.kind in ("reuse", "dense")
        return not fixed and self.kind != "replay"

    @property
    def own_seeds(self) -> tuple[int, ...]:
        """Seeds of the scenario as it is: one, where nothing is drawn."""
        return self.seeds if self.own_drawn else self.seeds[:1]

    def case(self, *assignments: str) -> Case:
        """Return the scenario with ``assignments`` over it, without baselines."""
        return Case(self.written, ("run.baselines=[]", *assignments))


def read_setting(written: Written, steps: int, seeds: int = SEEDS) -> Setting:
    """Return what the curves of ``written`` start from; raises InputError and InfeasibleError as a run does.

    ``seeds``: how many; more where the scenario asks for more, unless it is one.
    """
    resolved = Case(written).resolve()
    run = resolved.scenario.run
    first, count = run.seed, max(seeds, run.replications) if seeds > 1 else 1
    return Setting(
        written=written,
        resolved=resolved,
        kind=kind_of(resolved.scenario),
        lengths=mean_lengths(workload_source(resolved, first)),
        seeds=tuple(range(first, first + count)),
        steps=steps,
    )


def kind_of(scenario: Scenario) -> Kind:
    """Return what kind of scenario it is to curves."""
    if in_batches(scenario):
        return "batches"
    if isinstance(scenario.offload.access, ReplayAccess):
        return "replay"
    if not scenario.active:
        return "reuse"
    return "dense" if scenario.offload.access.pattern == "dense" else "sparse"
