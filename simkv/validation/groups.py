"""The groups of cases: what each is about, how its errors count, and what it is held to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GroupName = Literal[
    "formulas", "queueing", "hit_counts", "tiered_serving", "serving_trace", "compute", "batch_offload",
    "hit_curves", "cross_check",
]  # fmt: skip
MEASURED = 0.12
"""Largest median error of all published measurements together, of cases that no constant was fitted on."""
ANY_KIND = 0.25
"""Largest median error of one kind of published measurements."""


@dataclass(frozen=True, slots=True)
class Group:
    """One group, held either to the median of its errors (``target``) or case by case (``each``)."""

    name: GroupName
    title: str
    target: float | None = None
    """Largest median absolute error of its cases that aren't fitted."""
    measured: bool = False
    """Whether its cases are published measurements."""
    difference: bool = False
    """Whether errors are differences of shares; else predicted / expected - 1."""
    each: bool = False
    """Whether every case must keep to its own tolerance."""
    every: float | None = None
    """The tolerance of cases that have none of their own; None, and ``each``: they must have one."""

    def tolerance(self, own: float | None) -> float | None:
        """Return how far a case may be off: its ``own`` tolerance, the group's, or the target of its median."""
        return next((one for one in (own, self.every, self.target) if one is not None), None)


GROUPS: tuple[Group, ...] = (
    Group("formulas", "Closed forms and the article's figures", each=True, every=1e-9),
    Group("queueing", "Degenerate scenarios against queueing theory", each=True),
    Group("hit_counts", "Exact hits of a real trace", each=True, every=0.0),
    Group("tiered_serving", "Serving with KV in DRAM and on SSD", 0.10, measured=True),
    Group("serving_trace", "A measured run, request by request", 0.05, measured=True),
    Group("compute", "Prefill and decode times", ANY_KIND, measured=True),
    Group("batch_offload", "Offloading for throughput: FlexGen, ZeRO-Inference", ANY_KIND, measured=True),
    Group("hit_curves", "Hit rate over capacity and over turns", 0.04, measured=True, difference=True),
    Group("cross_check", "Another simulator's predictions", 0.15),
)
BY_NAME = {group.name: group for group in GROUPS}
