"""The curves of a scenario as a value: closed forms, simulated points on them, what can be read off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from simkv.api.given import Settings, StrPath, arguments_named, folder_of, listed
from simkv.api.progress import Progress
from simkv.api.scenarios import Scenario, ScenarioLike, load_scenario, seeded
from simkv.api.shown import Picture, clean, page
from simkv.curves.folder import check_folder, opened, write
from simkv.curves.setting import read_setting
from simkv.curves.study import NAMES, check_names, study
from simkv.errors import InputError, Problem, unknown
from simkv.estimate import check_length
from simkv.jobs.workers import Workers

if TYPE_CHECKING:
    import pandas as pd

_STEPS = 5
_MOST_STEPS = 100


@dataclass(frozen=True, eq=False)
class Curves:
    """T_avg over p_hit, speedup over β, concurrency over p, hit rate over λ: those with a meaning in a scenario."""

    scenario: Scenario
    summary: Mapping[str, Any] = field(repr=False)
    """``curves.json``."""

    @cached_property
    def rows(self) -> dict[str, pd.DataFrame]:
        """The points of each curve by its name, closed forms and simulated ones told apart by ``series``."""
        import pandas as pd

        return {name: pd.DataFrame(curve["rows"]) for name, curve in self._curves.items()}

    @property
    def reads(self) -> dict[str, list[str]]:
        """What can be read off each curve, in sentences."""
        return {name: list(curve["reads"]) for name, curve in self._curves.items()}

    @property
    def parts(self) -> dict[str, list[str]]:
        """Where closed form and simulation part, and why."""
        return {name: list(curve["parts"]) for name, curve in self._curves.items()}

    @property
    def left_out(self) -> dict[str, str]:
        """Curves that have no meaning here, with the reason."""
        return dict(self.summary["left_out"])

    def marks(self, name: str) -> dict[str, Any]:
        """Return the single figures of a curve, by name; raises InputError for a curve that isn't there."""
        return dict(self._curve(name)["marks"])

    def plot(self, name: str) -> Picture:
        """Return a curve as a picture; raises InputError for one that isn't there."""
        from simkv.plots.curves import draw

        curve = self._curve(name)
        return Picture(curve["title"], partial(draw, name, curve))

    def plot_t_avg(self) -> Picture:
        """Return T_avg over p_hit, and what a decode step then takes."""
        return self.plot("t_avg")

    def plot_speedup(self) -> Picture:
        """Return the speedup by overlap over β."""
        return self.plot("speedup")

    def plot_concurrency(self) -> Picture:
        """Return how many sequences run at once over p, and what that gives."""
        return self.plot("concurrency")

    def plot_lambda(self) -> Picture:
        """Return the hit rate over λ."""
        return self.plot("lambda")

    @property
    def _curves(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.summary["curves"]
        return found

    def _curve(self, name: str) -> Mapping[str, Any]:
        if name in self.left_out:
            raise InputError(Problem(f"has no curve {name}: {self.left_out[name]}", file=self.scenario.written.file))
        if name not in self._curves:
            raise unknown("curve", name, tuple(self._curves), "name")
        found: Mapping[str, Any] = self._curves[name]
        return found

    def __repr__(self) -> str:
        return f"<simkv.Curves of {clean(self.scenario.name)!r}: {', '.join(self._curves)}>"

    def _repr_html_(self) -> str:
        facts = [(name, str(curve["title"])) for name, curve in self._curves.items()]
        return page(f"Curves of {self.scenario.name}", facts)


def curves_of(
    scenario: ScenarioLike,
    set: Settings = (),
    *,
    points: int = _STEPS,
    only: Sequence[str] | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    out: StrPath | None = None,
    long: bool = False,
    progress: Progress | None = None,
) -> Curves:
    """Work out a scenario's curves, closed forms with simulated points, in worker processes.

    ``points``: steps that each axis is divided into, 2 to 100. ``only``: t_avg, speedup, concurrency, lambda.
    ``out``: a folder for the files of ``simkv curves`` and the runs behind them. Ctrl-C raises KeyboardInterrupt.
    Raises InputError where no curve has a meaning in the scenario, and, unless ``long``, where one of its runs would
    take more than a day or more memory than there is.
    """
    if not 2 <= points <= _MOST_STEPS:
        raise InputError(
            Problem("is no number of steps", f"write 2 to {_MOST_STEPS}", path="points", value=str(points))
        )
    base = seeded(load_scenario(scenario, set), seed)
    folder = folder_of(out)
    with arguments_named():
        names = NAMES if only is None else check_names(listed(only))
        setting = read_setting(base.written, points)
        if folder is not None:
            check_folder(folder, base.name)
        if not long:
            check_length(setting.resolved)
        kept = opened(folder, base.name) if folder is not None else nullcontext()
        with Workers(jobs) as workers, kept as store:
            answer = study(setting, names, workers, store, progress)
            if folder is not None:
                write(answer, folder)
    return Curves(base, answer)
