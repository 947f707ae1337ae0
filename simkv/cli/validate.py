"""``simkv validate``: predicted beside expected, group by group."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simkv.cli.options import JobsOption, listed

FALLS_SHORT = 4
"""Exit code where a target is missed."""


def validate(
    cases: Annotated[
        Path | None, typer.Option("--cases", metavar="FILE", help="Judge these cases, not those that come with simkv.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Folder of traces that some cases need.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", metavar="NAME,...", help="Only these groups, kinds and ids of cases.")
    ] = None,
    jobs: JobsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON and nothing else.")] = False,
) -> None:
    """Check simkv against closed forms, queueing theory and published measurements.

    Exit code 4: a target is missed. docs/validation-cases.md says how to write cases of your own.
    """
    from simkv.cli.progress import Progress
    from simkv.cli.validated import render
    from simkv.jobs.workers import Workers
    from simkv.validation.answer import text_of
    from simkv.validation.validate import validate as asked

    names = listed(only) if only is not None else None
    with Workers(jobs) as workers, Progress() as shown:
        answer = asked(_text(cases), _text(data), names, workers, shown, shown.say)
    typer.echo(text_of(answer) if as_json else render(answer))
    if not answer["summary"]["pass"]:
        raise typer.Exit(FALLS_SHORT)


def _text(path: Path | None) -> str | None:
    return str(path) if path is not None else None
