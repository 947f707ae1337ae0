"""``simkv curves``: what p_hit, β, p and λ do to a scenario, closed forms beside simulated points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simkv.cli.options import JobsOption, LongOption, listed, result_folder, seeded
from simkv.cli.run import SetOption

if TYPE_CHECKING:
    from simkv.curves.setting import Setting

DEFAULT_STEPS = 10


def curves(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A scenario file (YAML).")],
    assignments: SetOption = None,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="NAME,...", help="t_avg, speedup, concurrency, lambda [default: all]."),
    ] = None,
    points: Annotated[
        int, typer.Option("--points", metavar="N", min=2, max=100, help="Steps that each axis is divided into.")
    ] = DEFAULT_STEPS,
    seed: Annotated[int | None, typer.Option(help="First seed; wins over run.seed.")] = None,
    jobs: JobsOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the curves [default: reports/NAME-curves].")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print curves.json to stdout and nothing else.")] = False,
    insist: LongOption = False,
) -> None:
    """Draw SCENARIO's curves over p_hit, β, p and λ: CSV, PNG and SVG each, and what can be read off."""
    from simkv.curves.folder import check_folder, text_of
    from simkv.curves.setting import read_setting
    from simkv.curves.study import NAMES, check_names
    from simkv.estimate import check_length
    from simkv.sweeps.simulate import Written

    names = NAMES if only is None else check_names(listed(only))
    setting = read_setting(Written.read(scenario, seeded(assignments, seed)), points)
    folder = result_folder(out, setting.scenario.name, "-curves")
    check_folder(folder, setting.scenario.name)
    if not insist:
        check_length(setting.resolved)
    answer = _studied(setting, names, folder, jobs)
    if as_json:
        typer.echo(text_of(answer), nl=False)
        return
    from simkv.cli.drawn import render

    typer.echo(render(answer, folder))


def _studied(setting: Setting, names: tuple[str, ...], folder: Path, jobs: int | None) -> dict[str, Any]:
    """Return the answer, written to ``folder``; Ctrl-C keeps the runs that have ended there and exits with 130."""
    from simkv.cli.interrupt import INTERRUPTED, kept_in
    from simkv.cli.lasting import Lasting
    from simkv.cli.progress import Progress
    from simkv.curves.folder import RUNS, opened, write
    from simkv.curves.study import study
    from simkv.jobs.workers import Workers

    with kept_in(folder, RUNS), Workers(jobs) as workers, opened(folder, setting.scenario.name) as store:
        try:
            with Progress() as shown:
                lasting = Lasting(shown.say, False, "these curves take")

                def progress(fraction: float, doing: str) -> None:
                    shown(fraction, doing)
                    lasting(fraction)

                answer = study(setting, names, workers, store, progress)
        except KeyboardInterrupt:
            kept = len(store.finished())
            typer.echo(f"interrupted: {kept:,} runs are kept in {folder}; the same command goes on", err=True)
            raise typer.Exit(INTERRUPTED) from None
        write(answer, folder)
    return answer
