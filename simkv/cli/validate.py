"""``simkv validate``: predicted beside expected, group by group."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simkv.cli.options import JobsOption, listed


def validate(
    cases: Annotated[
        Path | None, typer.Option("--cases", metavar="FILE", help="Judge these cases, not those that come with simkv.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Folder of traces that some cases need.")
    ] = None,
    only: Annotated[str | None, typer.Option("--only", metavar="GROUP,...", help="Only these groups.")] = None,
    jobs: JobsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON and nothing else.")] = False,
) -> None:
    """Check simkv against closed forms, queueing theory and published measurements."""
    from simkv.cli.progress import Progress
    from simkv.jobs.workers import Workers
    from simkv.validation.answer import answer_of, text_of
    from simkv.validation.read import own_cases, read_cases
    from simkv.validation.study import study

    read = own_cases() if cases is None else read_cases(str(cases))
    if only is not None:
        read = [one for one in read if one.case.group in listed(only)]
    with Workers(jobs) as workers, Progress() as shown:
        rows = study(read, str(data) if data is not None else None, workers, shown)
    answer = answer_of(rows)
    if as_json:
        typer.echo(text_of(answer))
        return
    for group in answer["groups"]:
        typer.echo(f"{group['title']}: {group['summary']}")
        for row in group["cases"]:
            error = "" if row["error"] is None else f"{row['error']:+.1%}"
            figures = f"{row['expected']:12.5g} {row['predicted'] or 0:12.5g}"
            typer.echo(f"  {row['id']:70s} {figures} {error} {row['skipped'] or ''}")
