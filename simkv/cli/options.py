"""Options that several verbs have in common, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

JobsOption = Annotated[
    int | None, typer.Option("--jobs", metavar="N", help="Processes [default: as many as there are cores].")
]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler: tcp://HOST:8786.")
]

LongOption = Annotated[
    bool, typer.Option("--long", help="Start even what will take days, or more memory than there is.")
]


def seeded(assignments: Sequence[str] | None, seed: int | None) -> list[str]:
    """Return what ``--set`` gives, and ``run.seed`` as ``--seed`` has it, which wins."""
    return [*(assignments or ()), *([f"run.seed={seed}"] if seed is not None else [])]


def listed(*texts: str) -> list[str]:
    """Return the names in ``texts``, between commas."""
    return [name for text in texts for part in text.split(",") if (name := part.strip())]


def result_folder(out: Path | None, title: str, suffix: str = "") -> Path:
    """Return where a scenario's result goes: as ``--out`` has it, else under ``reports``, called by its title."""
    from simkv.scenario.naming import folder_name

    return out if out is not None else Path("reports") / f"{folder_name(title)}{suffix}"
