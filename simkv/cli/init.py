"""``simkv init``: a commented scenario to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(
    path: Annotated[str, typer.Argument(metavar="[PATH]", help="Where to write it; - is stdout.")] = "scenario.yaml",
) -> None:
    """Write a commented starter scenario that runs as it is."""
    from importlib.resources import files

    text = files("simkv.scenario").joinpath("starter.yaml").read_text("utf-8")
    if path == "-":
        typer.echo(text, nl=False)
        return
    _write(Path(path), text)
    typer.echo(f"wrote {path}; now: simkv run {path}")


def _write(path: Path, text: str) -> None:
    from simkv.errors import InputError, Problem

    try:
        with path.open("x", encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
            except OSError:
                path.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise InputError(Problem("is there already", "give another name", str(path))) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(Problem(f"can't be written: {reason}", "give another name", str(path))) from None
