"""What ``simkv sweep`` does: what was asked for, the runs with their progress, and the files at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from simkv.cli.guard import OURS, printable
from simkv.cli.interrupt import INTERRUPTED, kept_in
from simkv.cli.progress import Progress, long
from simkv.errors import InfeasibleError, InputError, LawError, Problem
from simkv.files import replace_bytes
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from simkv.results.quantity import seconds
from simkv.sweeps.axes import GRID, Axis, parse_axes, section_axes
from simkv.sweeps.export import write
from simkv.sweeps.forecast import forecast
from simkv.sweeps.layout import Layout, lay_out, loaded
from simkv.sweeps.read import FILE, SCENARIO, check_folder, read
from simkv.sweeps.result import SweepResult
from simkv.sweeps.simulate import Written
from simkv.sweeps.study import Tally
from simkv.sweeps.study import carry_out as run_all

_EXAMPLE = f"name what varies, like {GRID} p=0.1:1.0:0.1 or {GRID} tiers.dram.capacity=100GiB,200GiB"
_TOLD = 3
_SHORT_S = 5.0
_LONG_S = 3600.0
_ASKED = 200
_CODES = {kind.__name__: kind.exit_code for kind in (InputError, InfeasibleError, LawError)}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line and the scenario ask for."""

    written: Written
    name: str
    axes: tuple[Axis, ...]
    sample: int | None
    replications: int


def asked(
    scenario: str, assignments: Sequence[str], grid: Sequence[str], sample: int | None, replications: int | None
) -> Asked:
    """Return what a sweep is about: the command line, and what it leaves open from the scenario's ``sweep`` section.

    Raises InputError for what is wrong with either, and where nothing varies.
    """
    written = Written.read(scenario, assignments)
    axes = parse_axes(grid)
    found = loaded(written, axes)
    section = found.sweep
    if section is not None and not axes:
        axes = section_axes(section.grid, scenario, "sweep.grid")
        sample = section.sample if sample is None else sample
    if replications is None:
        of_section = section.replications if section is not None else None
        replications = of_section or found.run.replications
    if not axes and replications == 1:
        raise InputError(Problem("nothing varies", f"{_EXAMPLE}; or --replications N for several seeds", scenario))
    return Asked(written, found.name, axes, sample, replications)


def carry_out(what: Asked, folder: Path, jobs: int | None, cluster: str | None, insist: bool = False) -> SweepResult:
    """Do the sweep into ``folder``, with progress on stderr; Ctrl-C keeps what is finished and exits with 130."""
    check_folder(folder, what.name)
    with kept_in(folder, FILE), Workers(jobs, cluster) as workers:
        with Progress() as shown:
            layout = lay_out(
                what.written,
                what.axes,
                sample=what.sample,
                replications=what.replications,
                report=lambda share: shown(share, "laying out the points"),
            )
        before = forecast(layout, what.written, workers.size, insist).told
        with Store(folder / FILE) as store:
            replace_bytes(folder / SCENARIO, what.written.as_given.encode())
            _say_before(layout, store, workers.size, cluster, before)
            try:
                with Progress() as shown:
                    result = run_all(layout, workers, store, _Teller(shown, workers.size))
            except KeyboardInterrupt:
                _stopped(folder, len(layout.points))
                raise typer.Exit(INTERRUPTED) from None
            write(result, folder)
    return result


class _Teller:
    """Tells how far a sweep is: a bar on a terminal, and once for all what it will take."""

    def __init__(self, shown: Progress, size: int) -> None:
        self._shown = shown
        self._size = size
        self._said = False

    def __call__(self, tally: Tally) -> None:
        if not self._said and tally.own:
            self._said = True
            said = estimate(tally.wall_s / tally.own, tally.left, self._size)
            if said:
                self._shown.say(said)
        todo = tally.runs - tally.kept
        self._shown(tally.own / todo if todo else 1.0, counts(tally))


def counts(tally: Tally) -> str:
    """Return how many runs ended, and how."""
    failed = tally.failed + tally.unfit
    named = ((tally.done, "done"), (failed, "failed"), (tally.kept, "kept from before"), (tally.shared, "shared"))
    parts = ", ".join(f"{number:,} {what}" for number, what in named if number)
    return f"{tally.done + tally.failed:,}/{tally.runs:,} runs" + (f" ({parts})" if parts else "")


def _say_before(layout: Layout, store: Store, size: int, cluster: str | None, before: str) -> None:
    """Say what there is to do, and, where some of it was done before, how long the rest will take."""
    finished = store.finished()
    kept = [job.key for job in layout.jobs if job.key in finished]
    points, runs = len(layout.points), len(layout.jobs)
    shared = points - layout.unfit - runs
    parts = [f"{points:,} point{'s' if points > 1 else ''}"]
    parts += [f"{shared:,} of them answered by another's run"] if shared else []
    parts += [f"{layout.unfit:,} that can't be simulated"] if layout.unfit else []
    parts += [f"{len(kept):,} of {runs:,} runs kept from before"] if kept else []
    where = f"{size} process{'es' if size > 1 else ''}" if cluster is None else f"{size} threads of {cluster}"
    typer.echo(f"{', '.join(parts)}; on {where}", err=True)
    walls = [found.wall_s for key in kept[:_ASKED] if (found := store.get(key)) is not None]
    if walls and len(kept) < runs:
        said = estimate(sum(walls) / len(walls), runs - len(kept), size)
        if said:
            typer.echo(said, err=True)
    elif before and not kept:
        typer.echo(before, err=True)


def estimate(each_s: float, left: int, size: int) -> str:
    """Return how long ``left`` more runs of ``each_s`` seconds will take and, where that is long, what to do about it.

    Empty where nobody would mind.
    """
    left_s = each_s * left / min(size, max(1, left))
    if left_s < _SHORT_S:
        return ""
    text = f"about {long(left_s)} for {left:,} more run{'s' if left > 1 else ''} of {_each(each_s)} each"
    if left_s > _LONG_S:
        text += "; Ctrl-C stops it and keeps what is finished, --sample N takes fewer points, --cluster more machines"
    return text


def _each(each_s: float) -> str:
    return seconds(each_s) if each_s < 1 else long(each_s)


def _stopped(folder: Path, points: int) -> None:
    """Write what is finished, and say how to go on."""
    try:
        result = read(folder)
    except InputError:  # it had not come to its first point
        typer.echo(f"interrupted: none of {points:,} points is done", err=True)
        return
    write(result, folder)
    ended = len(result.ended)
    typer.echo(f"interrupted: {ended:,} of {points:,} points are in {folder}; the same command goes on", err=True)


def exit_where_all_failed(result: SweepResult) -> None:
    """Exit with the code of the first error where no point is done."""
    if result.ended and all(one.status == "failed" for one in result.ended):
        failure = result.ended[0].failure
        raise typer.Exit(_CODES.get(failure.kind, OURS) if failure is not None else OURS)


def say_failures(result: SweepResult) -> None:
    """Tell of points that failed, the first errors in words."""
    by_message = result.failures
    failed = sum(map(len, by_message.values()))
    if not failed:
        return
    typer.echo(f"{failed:,} of {len(result.ended):,} points failed:", err=True)
    for message, ones in list(by_message.items())[:_TOLD]:
        where = ", ".join(f"{name}={value}" for name, value in ones[0].point.params.items())
        more = f" (and {len(ones) - 1:,} more)" if len(ones) > 1 else ""
        typer.echo(f"  {printable(f'{where}{more}: {message}')}", err=True)
    if len(by_message) > _TOLD:
        typer.echo(f"  and {len(by_message) - _TOLD:,} other errors in points.csv", err=True)
