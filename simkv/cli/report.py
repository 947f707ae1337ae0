"""``simkv report``: result folders as one page, in one form or several."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simkv.cli.options import JobsOption, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simkv.report.folders import Folder, RunFolder


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Folders of runs, sweeps, plans or curves.", show_default=False),
    ],
    formats: Annotated[str, typer.Option("--format", metavar="NAME,...", help="html, md, pdf.")] = "html",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the report goes [default: into the first folder].")
    ] = None,
    with_curves: Annotated[
        bool | None,
        typer.Option(
            "--curves/--no-curves",
            help="Simulate the curves of a run's scenario where its folder has none [default: for one run alone].",
            show_default=False,
        ),
    ] = None,
    points: Annotated[
        int | None,
        typer.Option(
            "--points",
            metavar="N",
            min=2,
            max=100,
            show_default=False,
            help="Steps of each axis of those curves, drawn anew [default: those that are there, else 5].",
        ),
    ] = None,
    jobs: JobsOption = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title [default: the scenario's name].")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print which files were written, as JSON.")] = False,
) -> None:
    """Write DIR/report.html: what a run, sweep or plan found; of several, how they differ."""
    from simkv.jobs.workers import Workers
    from simkv.report.compose import document
    from simkv.report.folders import read_folder
    from simkv.report.write import check_formats, write

    names = check_formats(listed(formats))
    Workers(jobs)
    _check_apart(folders)
    found: list[Folder] = [read_folder(path) for path in folders]
    found, why_not = _with_curves(found, with_curves, points, jobs)
    place = out if out is not None else folders[0]
    files = write(document(found, title, why_not), place, names)
    _print(files, as_json)
    _tell_of_older(place, names)


def _check_apart(folders: Sequence[Path]) -> None:
    """Raise InputError where one folder is named twice: held against itself, nothing differs."""
    from simkv.errors import InputError, Problem

    places = [os.path.realpath(folder) for folder in folders]
    for number, folder in enumerate(folders):
        if places[number] in places[:number]:
            raise InputError(Problem("this folder is named twice", "name each folder once", str(folder)))


def _with_curves(
    folders: Sequence[Folder], asked: bool | None, points: int | None, jobs: int | None
) -> tuple[list[Folder], str | None]:
    """Return ``folders`` with curves in those of a run, or why there are none.

    ``asked``: whether they are wanted, None: for one run alone. Raises InputError where they, or ``points`` of them,
    are asked for and there isn't one run that they would be of.
    """
    from simkv.errors import InputError, Problem
    from simkv.report.folders import RunFolder

    runs = [folder for folder in folders if isinstance(folder, RunFolder)]
    for option, given in (("--curves", asked), ("--points", points)):
        if given and len(runs) != 1:
            what = f"these are curves of one run, and {len(runs)} are here"
            raise InputError(Problem(what, f"name one run, or leave {option} out", path=option))
    if len(runs) != 1 or (runs[0].curves is not None and points is None):
        return list(folders), None
    if not (len(folders) == 1 if asked is None else asked):
        return list(folders), "Curves weren't simulated: `simkv report --curves` does that, once."
    drawn, why_not = _simulated(runs[0], points, jobs)
    return [drawn if folder is runs[0] else folder for folder in folders], why_not


def _simulated(run: RunFolder, points: int | None, jobs: int | None) -> tuple[Folder, str | None]:
    """Return ``run`` read again, with curves beside it now; or as it was, and why there are none."""
    from simkv.cli.guard import printable
    from simkv.cli.interrupt import kept_in
    from simkv.cli.progress import Progress
    from simkv.curves.folder import RUNS
    from simkv.errors import SimkvError
    from simkv.report.curves import curves_for
    from simkv.report.folders import CURVES_OF_RUN, read_folder

    try:
        with kept_in(run.path / CURVES_OF_RUN, RUNS), Progress() as shown:
            shown.say("simulating the curves of this scenario, once; --no-curves leaves them out")
            curves_for(run, points, jobs, shown)
    except SimkvError as error:
        reasons = _reasons(error)
        print(printable(f"no curves: {reasons}"), file=sys.stderr)
        return run, f"Curves can't be drawn of this run: {reasons}."
    return read_folder(run.path), None


def _reasons(error: Exception) -> str:
    """Return what an error says in one line; the file that all of several problems are in isn't named again."""
    from simkv.errors import InputError

    if not isinstance(error, InputError) or len(error.problems) == 1:
        return str(error)
    told = (f"{problem.path} {problem.what}".strip() for problem in error.problems)
    return "; ".join(dict.fromkeys(told))


def _tell_of_older(place: Path, names: Sequence[str]) -> None:
    """Say on stderr which forms of an earlier report are still in ``place``: they may tell something else."""
    from simkv.cli.guard import printable
    from simkv.report.write import FORMATS, NAME

    older = [f"{NAME}.{form}" for form in FORMATS if form not in names and (place / f"{NAME}.{form}").is_file()]
    if older:
        text = f"still of an earlier report: {' and '.join(older)} in {place}"
        print(printable(text), file=sys.stderr)


def _print(files: Sequence[Path], as_json: bool) -> None:
    sizes = {str(path): path.stat().st_size for path in files}
    if as_json:
        import json

        typer.echo(json.dumps({"files": list(sizes), "bytes": sum(sizes.values())}, indent=2))
        return
    from simkv.cli.guard import printable
    from simkv.units import short

    beside = [path for path in files if path.parent != files[0].parent]
    for path in files:
        if path not in beside:
            typer.echo(f"{printable(str(path))}  {short(sizes[str(path)], 'size')}")
    if beside:
        size = short(sum(sizes[str(path)] for path in beside), "size")
        typer.echo(f"{printable(str(beside[0].parent))}/  {len(beside)} files, {size}")
