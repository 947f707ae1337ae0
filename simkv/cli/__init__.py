"""The command line: one file a verb, no arithmetic, and nothing heavy imported before a verb needs it."""

from __future__ import annotations

import io
import os
import sys

import typer

from simkv.cli import calc, calibrate, catalog, curves, hitrate, init, plan, report, run, schema, sweep, trace, validate
from simkv.cli.guard import Guarded

app = typer.Typer(
    cls=Guarded,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Simulate KV-cache offloading in an LLM server: what it buys, what it costs, and why.",
    epilog="Exit code 0 done, 2 bad input, 3 infeasible, 4 a target of validate is missed, 130 interrupted (what was "
    "finished is written), 1 our fault.",
)


def _version(asked: bool) -> None:
    if asked:
        from simkv import __version__

        typer.echo(f"simkv {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


app.command("run")(run.run)
app.command("curves")(curves.curves)
app.add_typer(sweep.app, name="sweep")
app.add_typer(calc.app, name="calc")
app.add_typer(catalog.app, name="catalog")
app.add_typer(trace.app, name="trace")
app.command("plan")(plan.plan)
app.command("report")(report.report)
app.command("hitrate")(hitrate.hitrate)
app.command("calibrate")(calibrate.calibrate)
app.command("validate")(validate.validate)
app.command("schema")(schema.schema)
app.command("init")(init.init)


def _open_streams() -> None:
    """Put nothing where an output was closed, so that no file that is opened later takes its place."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be text


def main() -> None:
    """Run the command line; ends the process."""
    _open_streams()
    app(prog_name="simkv")
