"""What a sweep found, for people (tables), programs (JSON) and notebooks (data frames)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simkv.sweeps.best import Front, front_of
from simkv.sweeps.leaves import HEADLINE, chosen, columns, nested
from simkv.sweeps.order import ordered
from simkv.sweeps.pareto import Objective
from simkv.sweeps.point import Ended, number_or_text
from simkv.sweeps.rows import PARAMS, point_rows
from simkv.sweeps.settings import Setting, settings

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SweepResult:
    """The points of one sweep that have ended, in the order of its grid."""

    scenario: str
    axes: Mapping[str, Sequence[str]]
    """Every value of each axis, as written."""
    ended: tuple[Ended, ...]
    pending: int = 0
    """Points that were not answered yet."""
    elsewhere: int = 0
    """Runs that are kept beside them, for other points."""
    notes: tuple[str, ...] = field(default=())
    """Where an axis can't matter, in sentences."""

    @cached_property
    def settings(self) -> list[Setting]:
        """The points with the seeds of each combination of values together."""
        return settings(self.ended)

    @cached_property
    def metrics(self) -> list[str]:
        """Names of every plain value that a point has, in the order of ``summary.json``."""
        return columns(setting.found for setting in self.settings)

    @cached_property
    def failures(self) -> dict[str, list[Ended]]:
        """The points that failed, by what went wrong."""
        found: dict[str, list[Ended]] = {}
        for one in self.ended:
            if one.status == "failed":
                found.setdefault(one.failure.message if one.failure is not None else "", []).append(one)
        return found

    def front(self, objectives: Sequence[Objective] | None = None) -> Front:
        """Return what nothing beats; raises InputError for an objective that no point has."""
        return front_of(self.settings, objectives)

    @property
    def points(self) -> pd.DataFrame:
        """One row a point: its values, seed and status, and every plain value of its summary by dotted name."""
        return point_rows(list(self.axes), self.metrics, self.ended)

    @property
    def pareto(self) -> pd.DataFrame:
        """The front for latency, throughput and cost: one row a combination of values."""
        import pandas as pd

        found = self.front()
        rows = (front_row(setting, found.objectives) for setting in found.settings)
        return pd.DataFrame(
            [{f"{PARAMS}{name}": value for name, value in row["params"].items()} | row["objectives"] for row in rows]
        )

    @property
    def summary(self) -> dict[str, Any]:
        """What ``simkv sweep show --json`` prints."""
        return self.as_dict()

    def as_dict(
        self,
        metrics: Sequence[str] = (),
        objectives: Sequence[Objective] | None = None,
        sort: str | None = None,
    ) -> dict[str, Any]:
        """Return plain data; ``metrics`` (dotted names): of summaries only these; ``sort``: as in a table.

        Raises InputError for a metric, an objective or an order that no point has.
        """
        found = self.front(objectives)
        metrics = chosen(metrics, self.metrics, "--metric")
        ended = self.ended
        if sort is not None:
            ended = tuple(o for each in ordered(self.settings, self.axes, self.metrics, sort) for o in each.ended)
        answer: dict[str, Any] = {"scenario": self.scenario, "points": [_point(one, metrics) for one in ended]}
        if any(len(setting.ended) > 1 for setting in self.settings):
            answer["means"] = [_means(setting, metrics or HEADLINE) for setting in self.settings]
        answer["objectives"] = [str(objective) for objective in found.objectives]
        answer["pareto"] = [front_row(setting, found.objectives) for setting in found.settings]
        return answer | {"pending": self.pending, "elsewhere": self.elsewhere, "notes": list(self.notes)}


def front_row(setting: Setting, objectives: Sequence[Objective]) -> dict[str, Any]:
    """Return where a setting of the front is, and what it has there."""
    found = ((objective.metric, setting.mean(objective.metric)) for objective in objectives)
    return {"params": _values(setting.params)} | {"objectives": {name: mean.value for name, mean in found if mean}}


def _values(params: Mapping[str, str]) -> dict[str, Any]:
    return {name: number_or_text(value) for name, value in params.items()}


def _point(one: Ended, metrics: Sequence[str]) -> dict[str, Any]:
    point = one.point
    row: dict[str, Any] = {"params": one.values, "seed": point.seed, "status": one.status, "attempts": one.attempts}
    row["key"] = point.key or None
    if one.failure is not None:
        row["error"] = {"kind": one.failure.kind, "message": one.failure.message}
    summary = one.summary
    if summary is not None and metrics:
        summary = nested(metrics, summary)
    return row | {"summary": summary}


def _means(setting: Setting, metrics: Sequence[str]) -> dict[str, Any]:
    rows = {}
    for name in metrics:
        mean = setting.mean(name)
        if mean is not None:
            interval = None if mean.half is None else [mean.value - mean.half, mean.value + mean.half]
            rows[name] = {"mean": mean.value, "ci95": interval, "seeds": mean.seeds}
    return {"params": _values(setting.params), "metrics": rows}
