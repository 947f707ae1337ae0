"""``simkv catalog``: what scenarios can name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List what scenarios can name.")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def models(as_json: JsonOption = False) -> None:
    """List the models."""
    from simkv.cli.listing import model_rows

    _print(model_rows(), as_json)


@app.command()
def hardware(as_json: JsonOption = False) -> None:
    """List the accelerators."""
    from simkv.cli.machines import hardware_rows

    _print(hardware_rows(), as_json)


@app.command()
def instances(as_json: JsonOption = False) -> None:
    """List the machines that one can rent or buy whole."""
    from simkv.cli.machines import instance_rows

    _print(instance_rows(), as_json)


@app.command()
def storage(as_json: JsonOption = False) -> None:
    """List the drives, memory and links."""
    from simkv.cli.machines import storage_rows

    _print(storage_rows(), as_json)


@app.command()
def engines(as_json: JsonOption = False) -> None:
    """List the engine presets: what each does with KV below VRAM, and (in JSON) what it lets one choose.

    Load: hold, the request waits while others run; block, the batch waits; overlap, layer by layer under the step.
    Full tier: a store without room is offered again with the next chunk (refuse) or step (retry), cut to what
    fits (part), or left (drop).
    """
    from simkv.cli.engines import engine_rows, short_rows

    rows = engine_rows()
    _print(rows if as_json else short_rows(rows), as_json)


@app.command()
def scenarios(as_json: JsonOption = False) -> None:
    """List the scenarios in ./scenarios and those that come with simkv."""
    from simkv.cli.listing import scenario_rows

    _print(scenario_rows(), as_json)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A model, accelerator, instance, drive, memory, link or engine.")],
    as_json: JsonOption = False,
) -> None:
    """Show everything that is known of one entry, with its sources."""
    from shutil import get_terminal_size

    from simkv.cli.facts import readable
    from simkv.cli.listing import describe

    rows = describe(name)
    _print(rows if as_json else readable(rows), as_json, get_terminal_size((120, 40)).columns)


def _print(rows: Sequence[dict[str, Any]], as_json: bool, width: int | None = None) -> None:
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    from simkv.cli.listing import cell
    from simkv.cli.table import table

    head = list(rows[0]) if rows else []
    numbers = [k for k, key in enumerate(head) if any(isinstance(row[key], int | float) for row in rows)]
    titles = [key.removesuffix("_bytes").removesuffix("_bytes_per_s").replace("_", " ") for key in head]
    typer.echo(table(titles, [[cell(key, row[key]) for key in head] for row in rows], numbers, width))
