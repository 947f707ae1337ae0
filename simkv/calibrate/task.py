"""One measurement of a session: what it is called, about how long it takes, and how it is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from simkv.calibrate.backend import Backend
from simkv.model import ModelShape
from simkv.profile.schema import Sample

TURNS = 3
"""How often every measurement is taken.

A machine that others share is slower for some seconds now and then: turns are far enough from one another that the
middle of all repeats is what it does otherwise.
"""


@dataclass(frozen=True)
class Bench:
    """What is measured, and how thoroughly."""

    backend: Backend
    model: ModelShape
    """Whose shapes are computed."""
    quick: bool
    ssd_path: Path | None = None
    """A folder on the drive to measure; None: no drive."""
    hot_pool_bytes: int = 0
    """CPU: the bounded pool that stands for device memory."""

    @property
    def budget_s(self) -> float:
        """Return about how long the repeats of one turn of a measurement may take."""
        return 0.03 if self.quick else 0.1


@dataclass(frozen=True)
class Task:
    """A measurement that yields one or a few samples; ``key`` is the same in every session that asks for it."""

    key: str
    """Such as ``h2d/pinned/65536x16``."""
    estimate_s: float
    run: Callable[[], Iterable[Sample]]
