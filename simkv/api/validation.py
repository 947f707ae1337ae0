"""Predicted beside expected as a value: every figure, what is held, what misses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simkv.api.given import StrPath, arguments_named, listed
from simkv.api.progress import Progress
from simkv.api.shown import page
from simkv.jobs.workers import Workers
from simkv.validation.validate import validate as asked
from simkv.validation.words import causes, group_line, last_line

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Validation:
    """What came of asking cases; made by :func:`validate`."""

    answer: dict[str, Any] = field(repr=False)
    """What ``simkv validate --json`` prints."""

    @property
    def holds(self) -> bool:
        """Whether every target holds that could be judged."""
        return bool(self.summary["pass"])

    @property
    def summary(self) -> dict[str, Any]:
        """Targets, kinds of measurements, misses with their causes, counts."""
        found: dict[str, Any] = self.answer["summary"]
        return found

    @property
    def rows(self) -> pd.DataFrame:
        """One row an observation: group, id, predicted and expected in SI, error, whether fitted, status, warnings."""
        import pandas as pd

        rows = [{"group": group["name"], **row} for group in self.answer["groups"] for row in group["cases"]]
        return pd.DataFrame(rows)

    @property
    def targets(self) -> pd.DataFrame:
        """One row a target: its name, value, limit, and whether it holds."""
        import pandas as pd

        return pd.DataFrame(self.summary["targets"])

    @property
    def causes(self) -> dict[str, list[str]]:
        """What misses, by its cause."""
        return dict(causes(self.answer))

    def __repr__(self) -> str:
        return f"<simkv.Validation: {last_line(self.answer)}>"

    def _repr_html_(self) -> str:
        facts = [(group["title"], group_line(group)) for group in self.answer["groups"]]
        return page("Predicted beside expected", facts, list(self.causes), last_line(self.answer))


def validate(
    cases: StrPath | None = None,
    *,
    data: StrPath | None = None,
    only: Sequence[str] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Validation:
    """Return the figures that simkv predicts beside those of a file of cases (None: those that come with it).

    ``data``: the folder of traces that some cases need; without it they are skipped. ``only``: groups, kinds
    and ids of the cases that are asked. ``jobs``: processes (None: one a core). Raises InputError for everything that
    is wrong with the file.
    """
    names = None if only is None else listed(only)
    with arguments_named(), Workers(jobs) as workers:
        return Validation(asked(_text(cases), _text(data), names, workers, progress))


def _text(path: StrPath | None) -> str | None:
    return None if path is None else str(path)
