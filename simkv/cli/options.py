"""Options that several verbs have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

JobsOption = Annotated[
    int | None, typer.Option("--jobs", metavar="N", help="Processes [default: as many as there are cores].")
]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler: tcp://HOST:8786.")
]


def seeded(assignments: Sequence[str] | None, seed: int | None) -> list[str]:
    """Return what ``--set`` gives, and ``run.seed`` as ``--seed`` has it, which wins."""
    return [*(assignments or ()), *([f"run.seed={seed}"] if seed is not None else [])]
