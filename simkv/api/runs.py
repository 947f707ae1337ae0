"""One simulated run as a value: its summary, its requests, its pictures."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkv.api.given import Quantity, Settings, StrPath, arguments_named, listed, si
from simkv.api.progress import Progress, silent
from simkv.api.scenarios import Scenario, ScenarioLike, load_scenario
from simkv.api.shown import Picture, clean, page
from simkv.errors import InputError, Problem, unknown
from simkv.results.quantity import count, seconds
from simkv.results.result import RunResult
from simkv.results.words import LATENCIES
from simkv.units import shown

if TYPE_CHECKING:
    import pandas as pd

    from simkv.sim.record.recording import Wanted

_TOLD = ("scenario", "question", "seed", "scenario_hash", "simkv_version")
"""What a trace says of its run."""


@dataclass(frozen=True, eq=False)
class Run:
    """What came of one run; made by :func:`run`."""

    scenario: Scenario
    result: RunResult = field(repr=False)
    """The columns behind it."""

    @property
    def summary(self) -> dict[str, Any]:
        """``summary.json``: every metric, the baselines, the closed forms beside it, warnings and verdict."""
        return self.result.summary

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row a request, the columns of ``requests.parquet``; times in s."""
        return self.result.requests

    @cached_property
    def timeseries(self) -> pd.DataFrame:
        """One row a sample, the columns of ``timeseries.parquet``; times in s, sizes in blocks."""
        return self.result.timeseries

    @property
    def verdict(self) -> str:
        """Whether offloading helps, with the figures that say so."""
        return str(self.summary["verdict"]["because"])

    @property
    def offload_helps(self) -> bool | None:
        """The verdict as a value; None where there is nothing to compare with, or no telling."""
        helps: bool | None = self.summary["verdict"]["offload_helps"]
        return helps

    @property
    def warnings(self) -> list[str]:
        """What a reader must know, in sentences."""
        return [one["message"] for one in self.summary["warnings"]]

    @property
    def text(self) -> str:
        """The answer as ``simkv run`` prints it."""
        from simkv.results.text import render

        return render(self.result, None, ascii_only=False)

    @cached_property
    def latencies(self) -> pd.DataFrame:
        """Mean, quantiles and maximum of every latency (s) over finished requests after the warm-up, a row each."""
        import pandas as pd

        rows = {label: self.summary[key] for label, key in LATENCIES if self.summary[key] is not None}
        return pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "p50", "p90", "p95", "p99", "max"])

    @cached_property
    def pictures(self) -> dict[str, Picture]:
        """Every figure that a report of this run would have, by name."""
        from simkv.api.figures import of_run

        return of_run(self.result, Path(self.scenario.written.file).parent)

    def plot_latency(self, of: str = "ttft") -> Picture:
        """Return how long which share of requests takes: ``ttft itl tpot e2e queue``, beside the run without offload.

        Raises InputError for one that there isn't, or where all requests had the same.
        """
        return self._picture(f"latency-{of}")

    def plot_waterfall(self) -> Picture:
        """Return where the mean request's time goes, part after part."""
        return self._picture("waterfall")

    def plot_hits(self) -> Picture:
        """Return where prompt tokens come from, tier by tier, under the ceiling of an infinite cache."""
        return self._picture("hit-rates")

    def plot_over_time(self, what: str = "utilization") -> Picture:
        """Return ``utilization``, ``occupancy`` or ``requests`` over the time of the run."""
        return self._picture(what)

    def _picture(self, name: str) -> Picture:
        if name not in self.pictures:
            raise unknown("picture of this run", name, tuple(self.pictures), "name")
        return self.pictures[name]

    def save(self, folder: StrPath) -> Path:
        """Write the result folder of ``simkv run``, an older one of the same scenario replaced whole; return it.

        Raises InputError where something else is there, or where it can't be written.
        """
        from simkv.results.write import write_result

        place = Path(folder)
        with arguments_named():
            write_result(self.result, place)
        return place

    def save_trace(self, path: StrPath) -> Path:
        """Write what happened, event by event, for ui.perfetto.dev; return where.

        Raises InputError for a run that wasn't traced (``trace=True``), a window without anything of the run, and where
        it can't be written.
        """
        from simkv.chrometrace import is_trace, write

        place = Path(path)
        found = [one for one in self.result.data.recordings if one.rule != "latest"]
        if not found or found[-1].begin_s >= found[-1].run_end_s:
            what = "nothing of this run was traced" if not found else "the window begins when the run is over"
            raise InputError(Problem(what, "simulate it with trace=True, or another window", path="trace"))
        if place.exists() and not is_trace(place):
            what = "something that is no trace of simkv is there"
            raise InputError(Problem(what, "name another file", path="path", value=shown(str(place))))
        about = {name: self.summary[name] for name in _TOLD}
        try:
            write(found[-1], self.result.data, about, place)
        except OSError as error:
            what = f"can't be written: {error.strerror or error}"
            raise InputError(Problem(what, "name another file", path="path", value=shown(str(place)))) from error
        return place

    def report(self, folder: StrPath, formats: Sequence[str] = ("html",)) -> list[Path]:
        """Save the run to ``folder``, write a report of it there (html, md, pdf), and return the report's files.

        Raises InputError for a form that there isn't, and where something else is there.
        """
        from simkv.report.compose import document
        from simkv.report.folders import read_folder
        from simkv.report.write import check_formats, write

        with arguments_named():
            forms = check_formats(listed(formats))
            place = self.save(folder)
            return write(document([read_folder(place)]), place, forms)

    def __repr__(self) -> str:
        facts = ", ".join(f"{label} {text}" for label, text in self._facts())
        return f"<simkv.Run of {clean(self.scenario.name)!r}: {facts}>"

    def _repr_html_(self) -> str:
        return page(f"Run of {self.scenario.name}", self._facts(), self.warnings, self.verdict)

    def _facts(self) -> Sequence[tuple[str, str]]:
        found = self.summary
        facts = [("requests", count(found["requests"]["finished"]))]
        for label, name in (("TTFT", "ttft_s"), ("ITL", "itl_s"), ("E2E", "e2e_s")):
            if isinstance(one := found.get(name), dict):
                facts.append((label, f"{seconds(one['mean'])} (p95 {seconds(one['p95'])})"))
        facts.append(("output tokens/s", count(found["output_tokens_per_s"])))
        return facts


def run(
    scenario: ScenarioLike,
    set: Settings = (),
    *,
    seed: int | None = None,
    audit: bool = False,
    step_exact: bool = False,
    trace: bool | tuple[Quantity, Quantity] = False,
    long: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Simulate a scenario (or its file, or YAML text) with its baselines, and return what came of it.

    ``set``: values over the scenario's, by path. ``seed`` wins over ``run.seed``. ``audit`` checks the laws of
    INVARIANTS.md on the way; ``step_exact`` walks every engine step: slow, the same answer. ``trace`` keeps what
    happened for ``Run.save_trace``: from the start as much as 200,000 events, or of a window, ``("100s", "130s")``.
    ``progress`` is told first how long it will take, where that is long. Writes nothing: see ``Run.save``. Ctrl-C
    raises KeyboardInterrupt. Raises InputError for what is wrong with the scenario or its trace, and, unless ``long``,
    where it would take more than a day or more memory than there is; InfeasibleError where it can't work, LawError
    where an audited law doesn't hold.
    """
    from simkv.estimate import check, estimate, told
    from simkv.interrupt import Interrupt
    from simkv.sim.record.recording import PLAYER
    from simkv.simulation import run_scenario

    loaded = load_scenario(scenario, set)
    _one_seed(loaded)
    record = (PLAYER, *_traced(trace))
    tell = progress or silent
    with arguments_named(), Interrupt((signal.SIGINT,)) as interrupt:

        def progressed(share: float) -> None:
            interrupt.check()
            tell(share, "")

        found = estimate(loaded.resolved, seed, step_exact=step_exact, audit=audit or None)
        if not long:
            check(loaded.resolved, found)
        if lasting := told(found):
            tell(0.0, lasting)
        result = run_scenario(
            loaded.resolved, seed=seed, step_exact=step_exact, audit=audit or None, progress=progressed, record=record
        )
    if result.data.interrupted:
        raise KeyboardInterrupt
    result.data.steps.clear()  # summarised; a third of a long run's memory, and nothing here needs it
    return Run(loaded, result)


def _traced(trace: bool | tuple[Quantity, Quantity]) -> Iterator[Wanted]:
    """Yield what is to be recorded for a trace, if one is asked for."""
    from simkv.sim.record.recording import TRACE_ROWS, Wanted

    if trace is True:
        yield Wanted("from_start", TRACE_ROWS, blocks=False)
    elif trace:
        begin_s, end_s = (si(time, "time", "trace") for time in trace)
        if end_s <= begin_s:
            mend = "give the earlier time first"
            raise InputError(Problem("ends before it begins", mend, path="trace", value=shown(str(trace))))
        yield Wanted("asked", TRACE_ROWS, False, begin_s, end_s)


def _one_seed(scenario: Scenario) -> None:
    """Refuse a scenario of several seeds: their place is a sweep."""
    seeds = scenario.resolved.scenario.run.replications
    if seeds > 1:
        mend = "simkv.sweep runs a scenario with several; or set run.replications to 1"
        raise InputError(
            Problem("a run has one seed", mend, scenario.written.file, None, "run.replications", str(seeds))
        )
