"""What ``simkv plan`` does: checks, the search with its progress, the files, and what is printed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import typer

from simkv.cli.interrupt import INTERRUPTED
from simkv.cli.options import result_folder
from simkv.cli.progress import Progress, long
from simkv.errors import InfeasibleError, unknown
from simkv.files import replace_bytes
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from simkv.planner.answer import PlanResult, plan
from simkv.planner.emit import ENGINES
from simkv.planner.export import SCENARIO, STORE, check_folder, claim, write
from simkv.planner.space import plan_of
from simkv.scenario.load import load_text
from simkv.sweeps.simulate import Written

_LONG_S = 10.0


def carry_out(
    scenario: str,
    assignments: Sequence[str],
    observed: Path | None,
    engines: Sequence[str],
    jobs: int | None,
    cluster: str | None,
    out: Path | None,
) -> tuple[PlanResult, Path, list[str]]:
    """Return the plan, the folder that it is in, and its files; Ctrl-C keeps what is finished and exits with 130."""
    for name in engines:
        if name not in ENGINES:
            raise unknown("engine", name, ENGINES, "--emit")
    written = Written.read(scenario, assignments)
    plan_of(written)
    named = load_text(written.text, written.file, written.assignments).scenario.name
    folder = result_folder(out, named, "-plan")
    check_folder(folder, named)
    with Workers(jobs, cluster) as workers, Store(folder / STORE) as store:
        claim(store, named)
        replace_bytes(folder / SCENARIO, written.as_given.encode())
        try:
            with Progress() as shown:
                result = plan(
                    written, workers=workers, store=store, observed=str(observed) if observed is not None else None,
                    engines=engines, report=_Teller(shown),
                )  # fmt: skip
        except KeyboardInterrupt:
            typer.echo(f"interrupted: what was simulated is in {folder}; the same command goes on", err=True)
            raise typer.Exit(INTERRUPTED) from None
        return result, folder, write(result, folder)


class _Teller:
    """Shows how far a search is; says that it takes long, and once more how long when that can be told."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._start_s = time.monotonic()
        self._said: set[bool] = set()
        """Whether a run had ended then."""

    def __call__(self, doing: str, done: int, todo: int) -> None:
        """Note that ``done`` of the ``todo`` runs that are known of by now have ended."""
        self._shown(done / todo if todo else 0.0, doing)
        elapsed_s = time.monotonic() - self._start_s
        if elapsed_s > _LONG_S and done < todo and not self._said & {True, done > 0}:
            self._said.add(done > 0)
            about = f", {long(elapsed_s * (todo - done) / done)} more for these" if done else ""
            text = f"this plan takes long: {doing}, {done:,} of {todo:,} runs after {long(elapsed_s)}"
            self._shown.say(f"{text}{about}; Ctrl-C keeps what is finished")


def show(result: PlanResult, folder: Path, names: Sequence[str], engines: Sequence[str], as_json: bool) -> None:
    """Print the plan, and the flags that were asked for; exits with 3 where nothing holds the SLO."""
    if as_json:
        import json

        typer.echo(json.dumps(result.answer, indent=2, ensure_ascii=False))
    else:
        from shutil import get_terminal_size

        from simkv.cli.planned import render

        typer.echo(render(result, folder, names, get_terminal_size((100, 24)).columns))
        for name in engines:
            if name in result.emitted:
                units = result.answer["winner"]["units"]
                typer.echo(f"\n# On each of {units} units:" if units > 1 else "")
                typer.echo(result.emitted[name].text, nl=False)
    if not result.feasible:
        raise InfeasibleError(result.answer["nearest"] or "no candidate holds the plan's SLO")
