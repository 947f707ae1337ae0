"""A plan as a value: what to run, why, what would change it."""

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
from simkv.errors import InfeasibleError, unknown
from simkv.files import replace_bytes
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from simkv.planner import answer as planning
from simkv.planner.answer import PlanResult
from simkv.planner.emit import ENGINES
from simkv.planner.export import SCENARIO, STORE, check_folder, claim, finding, moving, write
from simkv.planner.means import Report
from simkv.planner.space import plan_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Plan:
    """What came of a plan, a winner or none; made by :func:`plan`."""

    scenario: Scenario
    result: PlanResult = field(repr=False)
    """The search behind it."""

    @property
    def summary(self) -> dict[str, Any]:
        """``plan.json``: objective, SLO, load, candidates with what each carries, why, sensitivity, verdict."""
        return self.result.answer

    @property
    def feasible(self) -> bool:
        """Whether anything holds the SLO."""
        return self.result.feasible

    @property
    def winner(self) -> Mapping[str, Any]:
        """The best candidate: values, units, cost, what it carries. Raises InfeasibleError where nothing holds."""
        found: Mapping[str, Any] | None = self.summary["winner"]
        if found is None:
            raise InfeasibleError(self.nearest or "no candidate holds the plan's SLO")
        return found

    @property
    def nearest(self) -> str:
        """What misses least, where nothing holds the SLO; otherwise empty."""
        return self.summary["nearest"] or ""

    @property
    def why(self) -> list[str]:
        """Why the winner wins, in sentences."""
        return list(self.summary["why"])

    @property
    def verdict(self) -> str:
        """Whether offload pays here, and from where on; empty without a winner."""
        found = self.summary["verdict"]
        return str(found["because"]) if found else ""

    @property
    def flags(self) -> dict[str, str]:
        """The winner's command line or configuration by engine."""
        return {name: one.text for name, one in self.result.emitted.items()}

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """One row a candidate, those that were never simulated with the reason: ``candidates.csv``."""
        from io import StringIO

        import pandas as pd

        from simkv.planner.export import candidates_csv

        return pd.read_csv(StringIO(candidates_csv(self.summary)))

    @cached_property
    def sensitivity(self) -> pd.DataFrame:
        """What more of each resource would buy the winner, a row a resource; empty without a winner."""
        import pandas as pd

        return pd.DataFrame.from_dict(self.summary["sensitivity"], orient="index").rename_axis("resource")

    def plot_pareto(self) -> Picture:
        """Return the candidates by cost and latency, with the front and the winner; InfeasibleError without one."""
        from simkv.plots.plan import cost_against_latency

        _ = self.winner
        title = finding(self.summary)
        return Picture(title, partial(cost_against_latency, self.summary, title))

    def plot_sensitivity(self) -> Picture:
        """Return what more of each resource would buy as bars; raises InfeasibleError without a winner."""
        from simkv.plots.plan import sensitivity_bars

        _ = self.winner
        title = moving(self.summary)
        return Picture(title, partial(sensitivity_bars, self.summary, title))

    def __repr__(self) -> str:
        return f"<simkv.Plan of {clean(self.scenario.name)!r}: {clean(self._told())}>"

    def _repr_html_(self) -> str:
        found = self.summary["winner"] or {}
        facts = [(label, str(found[key])) for label, key in _FACTS if found.get(key) is not None]
        return page(f"Plan of {self.scenario.name}", facts, self.why, self._told())

    def _told(self) -> str:
        return finding(self.summary) if self.feasible else self.nearest or "nothing holds the SLO"


_FACTS = (
    ("winner", "name"), ("units", "units"), ("GPUs", "gpus"), ("cost an hour", "cost_per_hour"),
    ("cost a million output tokens", "cost_per_million_output_tokens"),
)  # fmt: skip


def plan(
    scenario: ScenarioLike,
    set: Settings = (),
    *,
    seed: int | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    out: StrPath | None = None,
    observed: StrPath | None = None,
    emit: Sequence[str] = (),
    progress: Progress | None = None,
) -> Plan:
    """Find the best configuration that the scenario's plan section allows, in worker processes.

    ``observed``: what a benchmark of an engine wrote; the machine is fitted to it first. ``emit``: engines whose flags
    are wanted beside the winner's own. ``out``: a folder in which simulations are kept at once, so that the same call
    goes on where it was stopped, with the files of ``simkv plan``. A plan that nothing satisfies is an answer too,
    with ``feasible`` False. Ctrl-C raises KeyboardInterrupt. Raises InputError for a plan, a file or an engine that
    makes no sense.
    """
    engines = listed(emit)
    for name in engines:
        if name not in ENGINES:
            raise unknown("engine", name, ENGINES, "emit")
    base = seeded(load_scenario(scenario, set), seed)
    folder = folder_of(out)
    with arguments_named():
        plan_of(base.written)
        if folder is not None:
            check_folder(folder, base.name)
        kept = Store(folder / STORE) if folder is not None else nullcontext()
        with Workers(jobs, cluster) as workers, kept as store:
            if store is not None and folder is not None:
                claim(store, base.name)
                replace_bytes(folder / SCENARIO, base.written.as_given.encode())
            result = planning.plan(
                base.written, workers=workers, store=store, engines=engines, report=_report(progress),
                observed=str(observed) if observed is not None else None,
            )  # fmt: skip
            if folder is not None:
                write(result, folder)
    return Plan(base, result)


def _report(progress: Progress | None) -> Report | None:
    if progress is None:
        return None
    return lambda doing, done, todo: progress(done / todo if todo else 0.0, doing)
