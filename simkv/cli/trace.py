"""``simkv trace``: look at a trace, write it in simkv's own format, fetch one, fit a workload to one."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from simkv.cli import tracefile

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Look at traces of requests, convert, fetch and fit them."
)

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A trace.")]
FormatOption = Annotated[
    str | None, typer.Option("--format", metavar="NAME", help="Its format [default: by its looks].")
]
ColumnsOption = Annotated[
    str | None,
    typer.Option("--columns", metavar="NAME=COLUMN,...", help="Columns of a log of your own: arrival=ts,..."),
]
UnitOption = Annotated[
    str | None, typer.Option("--arrival-unit", metavar="UNIT", help="Its arrivals: s, ms, us, ns or datetime.")
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=1, max=1_000_000_000, help="Only the first N requests.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the file that is there.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("inspect")
def inspect_(
    file: FileArgument,
    format_: FormatOption = None,
    columns: ColumnsOption = None,
    arrival_unit: UnitOption = None,
    limit: LimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what a trace is like: lengths, arrivals, reuse, and what is odd about it."""
    from simkv.workload.inspect import inspect_requests

    source, report = tracefile.opened(file, format_, columns, arrival_unit)
    with tracefile.told(source, report) as tick:
        requests = islice(source.reader.read(file, report), limit)
        inspection = inspect_requests(requests, report, tick, closed_loop=tracefile.is_closed_loop(source))
    answer = inspection.answer()
    if as_json:
        import json

        typer.echo(json.dumps(answer, indent=2))
    else:
        from simkv.cli.inspection import render

        typer.echo(render(str(file), answer))
    if inspection.interrupted:
        from simkv.cli.interrupt import INTERRUPTED

        typer.echo(f"interrupted: these are the first {inspection.requests:,} requests", err=True)
        raise typer.Exit(INTERRUPTED)


@app.command()
def convert(
    file: FileArgument,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write it [default: NAME.simkv.jsonl here].")
    ] = None,
    format_: FormatOption = None,
    columns: ColumnsOption = None,
    arrival_unit: UnitOption = None,
    limit: LimitOption = None,
    time_scale: Annotated[float, typer.Option(metavar="X", help="Multiply arrival times: 2 is half the load.")] = 1.0,
    force: ForceOption = False,
) -> None:
    """Write a trace in simkv's own format, one request a line."""
    from simkv.workload import writer

    source, report = tracefile.opened(file, format_, columns, arrival_unit)
    target = out if out is not None else Path(tracefile.stem(file) + ".simkv.jsonl")
    with tracefile.told(source, report) as tick:
        count = writer.convert(source, report, target, limit=limit, time_scale=time_scale, force=force, tick=tick)
    typer.echo(f"wrote {target}: {count:,} requests from a trace of format {report.format}")
    for sentence in report.sentences():
        typer.echo(f"  {sentence}")


@app.command()
def fetch(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A public trace, see --list.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the traces that have a name.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Put it there instead of into the cache.")] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Fetch this file instead of one by name.")] = None,
    sha256: Annotated[str | None, typer.Option(metavar="HASH", help="What the file at --url must be.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Download a public trace, check that it is the right file, and print where it is."""
    from simkv.cli import fetching

    if list_:
        typer.echo(fetching.listing(as_json))
        return
    wanted = fetching.wanted(name, url, sha256)
    path = fetching.download(wanted, out)
    if as_json:
        import json

        typer.echo(json.dumps({"file": str(path), "url": wanted.url, "sha256": wanted.sha256}))
    else:
        typer.echo(str(path))


@app.command()
def fit(
    file: FileArgument,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write it.")] = Path("workload.json"),
    format_: FormatOption = None,
    columns: ColumnsOption = None,
    arrival_unit: UnitOption = None,
    limit: LimitOption = None,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", min=1, max=1_000_000, help="Hold at most N requests, a sample.")
    ] = 20_000,
    seed: Annotated[int, typer.Option(help="Of the sample, and of the comparison.", min=0)] = 0,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit a workload to a trace, and show how well requests drawn from it agree with the trace."""
    from simkv.workload import fitted, writer
    from simkv.workload.fitted.goodness import compare
    from simkv.workload.inspect import Inspection

    source, report = tracefile.opened(file, format_, columns, arrival_unit)
    if tracefile.is_closed_loop(source):
        raise tracefile.no_arrivals(file)
    trace = Inspection(report)
    with writer.new_file(out, force=force) as target:
        with tracefile.told(source, report) as tick:
            requests = islice(source.reader.read(file, report), limit)
            model = fitted.fit(trace.watch(requests), report, rows=rows, seed=seed, tick=tick, file=str(file))
        fitted.save(model, target)
    comparison = compare(model, trace, seed)
    if as_json:
        import json

        typer.echo(json.dumps({"file": str(out), "rows": len(model.requests.prompt_tokens), **comparison}, indent=2))
    else:
        from simkv.cli.fitting import render

        typer.echo(render(model, comparison, out))
