"""What a summary needs to know about the scenario that the run itself does not tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class SummaryContext:
    """Names, targets and prices of one scenario; plain data in SI units."""

    scenario: str
    scenario_hash: str
    seed: int
    version: str
    question: str = ""
    slo: Mapping[str, float] = field(default_factory=dict)
    """``ttft_p95: 2.0`` judges the run; ``ttft: 2.0`` (no statistic) judges each request."""
    classes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """SLO of each request class, same keys; empty where a class has none."""
    cost: Mapping[str, float | str] | None = None
    """``gpu_hour``, ``dram_gib_hour``, ``ssd_tib_hour``, ``currency``, ``source``; None: no prices given."""
    gpus: int = 1
    dram_gib: float = 0.0
    ssd_tib: float = 0.0
    warm_up: Literal["auto"] | float = "auto"
    """Seconds after the first arrival whose arrivals are left out of the latencies."""
    closed_form: Mapping[str, object] = field(default_factory=dict)
    """First-order answers by the name of the summary key that they stand beside."""
    notes: tuple[str, ...] = ()
    """Sentences shown with the result (``quality not modelled``)."""
    warnings: tuple[tuple[str, str], ...] = ()
    """``(code, sentence)`` found outside the figures: ``not_realisable``, ``trace_rows``, ..."""
    concurrency_formula: float | None = None
    baselines: Mapping[str, tuple[Mapping[str, object], float | None]] = field(default_factory=dict)
    """By baseline: its ``closed_form`` and its ``concurrency_formula``; the run's own where it has none here."""
    max_running: int | None = None
    """Seats: max_num_seqs times replicas; None: unknown."""
    block_bytes: int = 0
    tiers: tuple[str, ...] = ("vram",)
    """Tiers present: of ``vram``, ``dram``, ``ssd``."""

    @property
    def offloads(self) -> bool:
        """Whether there is a tier below VRAM."""
        return len(self.tiers) > 1

    def has(self, resource: str) -> bool:
        """Whether the scenario gives ``resource`` a meaning: links and DRAM serve lower tiers only."""
        if resource.startswith("ssd"):
            return "ssd" in self.tiers
        return resource == "gpu" or self.offloads

    def for_baseline(self, name: str) -> SummaryContext:
        """Return the context of the same scenario's baseline ``name``."""
        closed_form, most = self.baselines.get(name, (self.closed_form, self.concurrency_formula))
        own = replace(self, closed_form=closed_form, concurrency_formula=most)
        return replace(own, tiers=("vram",), dram_gib=0.0, ssd_tib=0.0) if name == "no_offload" else own
