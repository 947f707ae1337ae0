"""A scenario at many points as a value: a row a point, the front, a metric over what varies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkv.api import points
from simkv.api.given import Settings, StrPath, arguments_named, folder_of, plain
from simkv.api.progress import Progress, silent
from simkv.api.scenarios import Scenario, ScenarioLike, load_scenario, seeded
from simkv.api.shown import Picture, clean, page
from simkv.errors import InputError, Problem
from simkv.files import replace_bytes
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from simkv.sweeps import study
from simkv.sweeps.axes import Axis, section_axes
from simkv.sweeps.export import write
from simkv.sweeps.forecast import forecast
from simkv.sweeps.layout import lay_out, loaded
from simkv.sweeps.pareto import Objective, parse_objectives
from simkv.sweeps.read import FILE, SCENARIO, check_folder
from simkv.sweeps.result import SweepResult
from simkv.sweeps.simulate import Written

if TYPE_CHECKING:
    import pandas as pd

Grid = Mapping[str, Any]
"""Values by path: a list of them, or a text as on the command line: ``"0.1:1.0:0.1"``."""
_FEW = 5


@dataclass(frozen=True, eq=False)
class Sweep:
    """The points of one sweep; made by :func:`sweep`."""

    scenario: Scenario
    result: SweepResult = field(repr=False)
    """The points behind it."""

    @cached_property
    def points(self) -> pd.DataFrame:
        """One row a point: its values, seed and status, and every plain value of its summary by dotted name."""
        return self.result.points

    @cached_property
    def pareto(self) -> pd.DataFrame:
        """What no other point beats in latency, throughput and cost: one row a combination of values."""
        return self.result.pareto

    @property
    def summary(self) -> dict[str, Any]:
        """What ``simkv sweep show --json`` prints."""
        return self.result.summary

    @property
    def metrics(self) -> list[str]:
        """Names of everything that can be plotted or tabled."""
        return self.result.metrics

    @property
    def notes(self) -> list[str]:
        """Where an axis can't matter, in sentences."""
        return list(self.result.notes)

    @property
    def failures(self) -> list[str]:
        """Why points failed, each reason once."""
        return list(self.result.failures)

    def table(self, *metrics: str, sort: str | None = None) -> pd.DataFrame:
        """Return ``metrics`` (none: the main ones that differ) as text with intervals, a row a combination of values.

        ``sort``: an axis or a metric, a minus before it for the largest first. Raises InputError for a name that no
        point has.
        """
        import pandas as pd

        from simkv.sweeps.table import table

        with arguments_named():
            found = table(self.result, metrics, sort)
        return pd.DataFrame(found.rows, columns=list(found.head))

    def front(self, objectives: str | Sequence[Objective] | None = None) -> pd.DataFrame:
        """Return the front for other objectives, ``"ttft_s.p95:min,output_tokens_per_s:max"``."""
        import pandas as pd

        from simkv.sweeps.result import front_row

        with arguments_named():
            asked = parse_objectives(objectives) if isinstance(objectives, str) else objectives
            found = self.result.front(asked)
        rows = (front_row(setting, found.objectives) for setting in found.settings)
        return pd.DataFrame([row["params"] | row["objectives"] for row in rows])

    def plot_metric(self, metric: str, over: str | None = None) -> Picture:
        """Return ``metric`` over the axis ``over`` (None: the first), a line for each value of the others.

        Bars are 95 % intervals over seeds. Raises InputError for a name that there isn't, and for more lines than can
        be told apart.
        """
        return points.over_axis(self.result, metric, over)

    def plot_pareto(self, objectives: str | None = None) -> Picture:
        """Return all settings by two objectives, ``"ttft_s.p95:min,output_tokens_per_s:max"``, the first upwards.

        None: those of the sweep's own front. Raises InputError where there are no two that differ.
        """
        with arguments_named():
            return points.front(self.result, objectives)

    def __repr__(self) -> str:
        return f"<simkv.Sweep of {clean(self.scenario.name)!r}: {self._told()}>"

    def _repr_html_(self) -> str:
        axes = [(name, _few(values)) for name, values in self.result.axes.items()]
        return page(f"Sweep of {self.scenario.name}: {self._told()}", axes, [*self.notes, *self.failures])

    def _told(self) -> str:
        ended = self.result.ended
        failed = sum(one.status == "failed" for one in ended)
        return f"{len(ended):,} points" + (f", {failed:,} failed" if failed else "")


def _few(values: Sequence[str]) -> str:
    return ", ".join(values[:_FEW]) + (f", ... ({len(values):,})" if len(values) > _FEW else "")


def sweep(
    scenario: ScenarioLike,
    grid: Grid | None = None,
    set: Settings = (),
    *,
    sample: int | None = None,
    replications: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    out: StrPath | None = None,
    long: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Simulate a scenario at every point of ``grid`` (None: its own sweep section), in worker processes.

    ``sample``: so many points spread over the axes, not all. ``replications``: seeds of each point, the same for all.
    ``jobs``: processes (None: one a core), or a ``cluster``'s address. ``out``: a folder in which each answer is kept
    at once, so that the same call goes on where it was stopped, with the files of ``simkv sweep``. Ctrl-C raises
    KeyboardInterrupt. A point that can't be simulated has failed, with its reason in ``points``. ``progress`` is told
    first how long it will take, where that is long. Raises InputError for a scenario or a grid that is wrong as a
    whole, and, unless ``long``, where all would take more than a week, a point more than a day or more memory than
    there is.
    """
    base = seeded(load_scenario(scenario, set), seed)
    folder, tell = folder_of(out), progress or silent
    with arguments_named():
        axes, sample, seeds = _asked(base, grid, sample, replications)
        if folder is not None:
            check_folder(folder, base.name)
        with Workers(jobs, cluster) as workers:
            layout = lay_out(base.written, axes, sample=sample, replications=seeds)
            if lasting := forecast(layout, base.written, workers.size, long).told:
                tell(0.0, lasting)
            do = partial(study.carry_out, layout, workers)
            result = do(report=_reporter(tell)) if folder is None else _kept(do, folder, base.written, tell)
    return Sweep(base, result)


def _asked(
    base: Scenario, grid: Grid | None, sample: int | None, replications: int | None
) -> tuple[tuple[Axis, ...], int | None, int]:
    """Return axes, sample and seeds: what is given, and the rest from the scenario's own sweep section."""
    axes = section_axes({name: plain(values) for name, values in (grid or {}).items()}, "", "grid")
    found = loaded(base.written, axes)
    section = found.sweep
    if section is not None and not axes:
        axes = section_axes(section.grid, base.written.file, "sweep.grid")
        sample = section.sample if sample is None else sample
    if replications is None:
        replications = (section.replications if section is not None else None) or found.run.replications
    if not axes and replications == 1:
        mend = 'name what varies, like {"p": "0.1:1.0:0.1"}; or give replications for several seeds'
        raise InputError(Problem("nothing varies", mend, path="grid"))
    return axes, sample, replications


def _kept(do: Callable[..., SweepResult], folder: Path, written: Written, tell: Progress) -> SweepResult:
    """Do the sweep with its answers kept in ``folder``, and its files there at the end."""
    with Store(folder / FILE) as store:
        replace_bytes(folder / SCENARIO, written.as_given.encode())
        result = do(store=store, report=_reporter(tell))
        write(result, folder)
    return result


def _reporter(tell: Progress) -> Callable[[study.Tally], None]:
    def report(tally: study.Tally) -> None:
        ended = tally.done + tally.failed
        tell(ended / tally.runs if tally.runs else 1.0, f"{ended:,} of {tally.runs:,} runs")

    return report
