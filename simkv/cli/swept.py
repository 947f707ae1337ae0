"""How ``simkv sweep`` shows its points: a table, what needs no column, the Pareto front, and where the files are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap

from simkv.cli.guard import printable
from simkv.cli.table import table as text_of
from simkv.sweeps.export import CSV, MEANS, PARQUET
from simkv.sweeps.pareto import Objective
from simkv.sweeps.read import FILE, SCENARIO
from simkv.sweeps.result import SweepResult
from simkv.sweeps.table import Table, front_table, table

_ROWS = 100
_WIDTH = 100


def render(
    result: SweepResult,
    folder: Path,
    metrics: Sequence[str],
    objectives: Sequence[Objective] | None,
    sort: str | None,
    width: int,
) -> str:
    """Return the points as text; raises InputError for metrics, objectives and an order that they don't have."""
    blocks = ["\n".join(_head(result))]
    if result.ended:
        found = table(result, metrics, sort, width)
        blocks += [_shown(found), *_beside(found)]
    blocks += ["\n".join(_wrapped(note)) for note in result.notes]
    blocks += [block for block in (_front(result, objectives), _files(folder)) if block]
    return "\n\n".join(blocks)


def _head(result: SweepResult) -> Iterator[str]:
    failed = sum(one.status == "failed" for one in result.ended)
    states = [(len(result.ended) - failed, "done"), (failed, "failed"), (result.pending, "not yet")]
    parts = ", ".join(f"{number:,} {what}" for number, what in states if number)
    points = len(result.ended) + result.pending
    yield printable(f"{result.scenario}: {points:,} point{'s' if points != 1 else ''}: {parts}")
    if result.elsewhere:
        runs = "run" if result.elsewhere == 1 else "runs"
        yield f"(The folder keeps {result.elsewhere:,} more {runs}, of other grids or of the scenario as it was.)"


def _shown(found: Table) -> str:
    rows = found.rows[:_ROWS]
    text = text_of(found.head, rows, found.right)
    more = len(found.rows) - len(rows)
    return f"{text}\n... and {more:,} more: {CSV} has all" if more else text


def _beside(found: Table) -> Iterator[str]:
    if found.same:
        yield "\n".join(_wrapped("The same at every point: " + " · ".join(f"{n} {v}" for n, v in found.same)))
    if found.left_out:
        yield "\n".join(_wrapped(f"No room for {', '.join(found.left_out)}: --metric NAME shows what you name."))


def _front(result: SweepResult, objectives: Sequence[Objective] | None) -> str:
    found = result.front(objectives)
    if not found.objectives:
        return ""
    shown = front_table(result, found)
    said = "\n".join(_wrapped(f"Pareto front, {', '.join(map(str, found.objectives))}: no point beats these."))
    if found.without:
        said += f"\n{found.without:,} points lack one of these figures and aren't compared."
    return f"{said}\n\n{_shown(shown)}"


def _files(folder: Path) -> str:
    names = [name for name in (FILE, CSV, PARQUET, MEANS, SCENARIO) if (folder / name).is_file()]
    return "\n".join(_wrapped(f"Files: {folder}/ ({', '.join(names)})"))


def _wrapped(text: str) -> list[str]:
    return wrap(printable(text), _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
