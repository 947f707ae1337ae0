"""One point of a sweep: what is set there, which run answers it, and what became of that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from simkv.jobs.job import Failure

_NUMBER = re.compile(r"[+-]?(\d+)(\.\d+)?([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of values under one seed."""

    params: Mapping[str, str]
    """Value by axis, as written."""
    seed: int
    key: str
    """Of the run that answers it; points that differ in what can't matter share one."""
    failure: Failure | None = None
    """Why no run can answer it."""
    off: Mapping[str, str] = field(default_factory=dict)
    """Axes that can't matter there, and why."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a point."""

    point: Point
    status: Literal["done", "failed"]
    attempts: int
    """How often its run was begun."""
    summary: Mapping[str, Any] | None = None
    """As in ``summary.json``; None: failed."""
    failure: Failure | None = None
    wall_s: float = 0.0

    @property
    def values(self) -> dict[str, int | float | str]:
        """The point's parameters, numbers where they are numbers."""
        return {name: number_or_text(value) for name, value in self.point.params.items()}


def number_or_text(written: str) -> int | float | str:
    """Return a plain number as such and everything else (``400GiB``, ``nan``) as it is written."""
    found = _NUMBER.fullmatch(written)
    if found is None:
        return written
    return float(written) if found[2] or found[3] else int(written)
