"""Result folders read back: a run's, a sweep's, a plan's, or curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from simkv.errors import InputError, Problem
from simkv.report.files import damaged, first_few, read_bytes, read_json, read_table, read_text, unreadable
from simkv.report.shapes import check_curves, check_plan, check_summary

if TYPE_CHECKING:
    import pandas as pd

    from simkv.sim.record.recording import Recording
    from simkv.sweeps.result import SweepResult

SUMMARY, REQUESTS, TIMESERIES, RESOLVED = (
    "summary.json", "requests.parquet", "timeseries.parquet", "scenario.resolved.yaml",
)  # fmt: skip
RECORDING, SWEEP, PLAN, CURVES = "recording.json", "sweep.sqlite", "plan.json", "curves.json"
CURVES_OF_RUN = "curves"
"""Folder below a run's with the curves of its scenario."""

_SHOWN = 5
_MEND = "name a folder that `simkv run`, `sweep`, `plan` or `curves` wrote"
_UNFINISHED = {"plan.sqlite": "plan", "runs.sqlite": "curves"}
"""What a command keeps before its answer is there."""


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
        from simkv.results.frames import DERIVED
        from simkv.sim.rundata import REQUEST_COLUMNS

        needed = [name for name in REQUEST_COLUMNS if name != "cls"]
        found = read_table(self.path / REQUESTS, [*needed, *DERIVED])
        if "class" not in found:
            raise damaged(self.path / REQUESTS, "it has no column class")
        return found

    @cached_property
    def timeseries(self) -> pd.DataFrame:
        """``timeseries.parquet``; raises InputError where it doesn't read."""
        from simkv.sim.rundata import TIMESERIES_COLUMNS

        return read_table(self.path / TIMESERIES, TIMESERIES_COLUMNS)

    @cached_property
    def resolved(self) -> str:
        """``scenario.resolved.yaml`` as text; raises InputError where it doesn't read, or is no scenario."""
        from simkv.scenario.text import parse

        file = self.path / RESOLVED
        found = read_text(file)
        try:
            problems = parse(found, str(file)).problems
        except InputError as error:
            problems = error.problems
        if problems:
            wrong = problems[0]
            what = f"isn't the scenario of a run: {wrong.what}"
            raise InputError(Problem(what, "run it again with --out", str(file), wrong.line))
        return found

    @cached_property
    def recording(self) -> Recording | None:
        """``recording.json``; None where the run kept none. Raises InputError where it doesn't read."""
        from simkv.results.recorded import from_json

        file = self.path / RECORDING
        if not file.exists():
            return None
        try:
            found: Recording = from_json(read_bytes(file), str(file))
            return found
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise damaged(file, "it is damaged, or of another version") from error

    @cached_property
    def curves(self) -> Mapping[str, Any] | None:
        """``curves/curves.json`` of the same scenario, None where there are none; raises InputError for damaged."""
        file = self.path / CURVES_OF_RUN / CURVES
        if not file.exists():
            return None
        answer = read_json(file)
        check_curves(file, answer)
        return answer if answer["scenario_hash"] == self.summary["scenario_hash"] else None


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
    names = _names(path)
    kinds = [kind for kind in _KINDS if kind in names]
    if len(kinds) > 1:
        what = f"{' and '.join(kinds)} are there: results of several commands"
        raise InputError(Problem(what, "keep each in a folder of its own", str(path)))
    if not kinds:
        raise _nothing(path, names)
    return _KINDS[kinds[0]](path)


def _run(path: Path) -> Folder:
    summary = read_json(path / SUMMARY)
    check_summary(path / SUMMARY, summary)
    return RunFolder(path, summary)


def _sweep(path: Path) -> Folder:
    from simkv.sweeps.read import read

    return SweepFolder(path, read(path))


def _plan(path: Path) -> Folder:
    answer = read_json(path / PLAN)
    check_plan(path / PLAN, answer)
    return PlanFolder(path, answer)


def _curves(path: Path) -> Folder:
    answer = read_json(path / CURVES)
    check_curves(path / CURVES, answer)
    return CurvesFolder(path, answer)


_KINDS: Mapping[str, Callable[[Path], Folder]] = {SUMMARY: _run, SWEEP: _sweep, PLAN: _plan, CURVES: _curves}
"""By the file that only that command writes."""


def _names(path: Path) -> list[str]:
    """Return what lies in the folder, sorted."""
    try:
        if not path.exists():
            raise InputError(Problem("no such folder", _MEND, str(path)))
        if not path.is_dir():
            raise InputError(Problem("that is a file", _MEND, str(path)))
        return sorted(entry.name for entry in path.iterdir())
    except (OSError, ValueError, RuntimeError) as error:  # a name with a null in it; a circle of links
        if isinstance(error, OSError):
            raise unreadable(path, error) from error
        raise InputError(Problem("no such folder", _MEND, str(path))) from error


def _nothing(path: Path, names: list[str]) -> InputError:
    for file, command in _UNFINISHED.items():
        if file in names:
            mend = f"run the same `simkv {command}` again: it goes on"
            return InputError(Problem(f"its {command} was stopped before it had an answer", mend, str(path)))
    if not names:
        return InputError(Problem("the folder is empty", _MEND, str(path)))
    what = f"no result of simkv's is there: it has {first_few(names, _SHOWN)}, and none of {', '.join(_KINDS)}"
    return InputError(Problem(what, _MEND, str(path)))
