"""Result folders read back: a run's, a sweep's, a plan's, or curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pandas as pd

    from simkv.sim.record.recording import Recording
    from simkv.sweeps.result import SweepResult


@dataclass(frozen=True)
class RunFolder:
    """What ``simkv run`` left."""

    path: Path
    summary: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The scenario's name: anything."""
        return str(self.summary["scenario"])

    @cached_property
    def requests(self) -> pd.DataFrame:
        """``requests.parquet``; raises InputError where it doesn't read."""
        raise NotImplementedError

    @cached_property
    def timeseries(self) -> pd.DataFrame:
        """``timeseries.parquet``; raises InputError where it doesn't read."""
        raise NotImplementedError

    @cached_property
    def resolved(self) -> str:
        """``scenario.resolved.yaml`` as text."""
        raise NotImplementedError

    @cached_property
    def recording(self) -> Recording | None:
        """``recording.json``; None where the run kept none."""
        raise NotImplementedError

    @cached_property
    def curves(self) -> Mapping[str, Any] | None:
        """``curves/curves.json`` of the same scenario; None where there are none."""
        raise NotImplementedError


@dataclass(frozen=True)
class SweepFolder:
    """What ``simkv sweep`` left."""

    path: Path
    result: SweepResult

    @property
    def name(self) -> str:
        """The scenario's name: anything."""
        return self.result.scenario


@dataclass(frozen=True)
class PlanFolder:
    """What ``simkv plan`` left: ``answer`` is ``plan.json``."""

    path: Path
    answer: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The scenario's name: anything."""
        return str(self.answer["scenario"])


@dataclass(frozen=True)
class CurvesFolder:
    """What ``simkv curves`` left: ``answer`` is ``curves.json``."""

    path: Path
    answer: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The scenario's name: anything."""
        return str(self.answer["scenario"])


Folder: TypeAlias = RunFolder | SweepFolder | PlanFolder | CurvesFolder


def read_folder(path: Path) -> Folder:
    """Return what lies in ``path``; raises InputError where that is nothing of simkv's, or doesn't read."""
    raise NotImplementedError
