"""``simkv sweep``: one scenario at many points; ``simkv sweep show`` reads what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from simkv.cli.options import ClusterOption, JobsOption, LongOption, listed, result_folder, seeded
from simkv.cli.run import SetOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simkv.sweeps.pareto import Objective
    from simkv.sweeps.result import SweepResult

SHOW = "show"
_SWEEP = "sweep"


class ShowOrSweep(TyperGroup):
    """``show`` in the first place is its own verb; whatever else stands there belongs to the sweep itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the hidden name of the sweep's own command before its arguments."""
        return super().parse_args(ctx, args if args[:1] == [SHOW] else [_SWEEP, *args])


class OfGroup(TyperCommand):
    """A command that goes by its group's name: its help and errors say ``simkv sweep``."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return a context in the place of the group's."""
        return super().make_context(parent.info_name, args, parent.parent, **extra)


app = typer.Typer(cls=ShowOrSweep, rich_markup_mode=None, help="Simulate a scenario at many points, in parallel.")

MetricOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", metavar="NAME", help="A column of the table: ttft_s.p95; may be repeated.", show_default=False
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print points and Pareto front as JSON.")]


@app.command(
    _SWEEP,
    cls=OfGroup,
    hidden=True,
    epilog="`simkv sweep show DIR` prints table and Pareto front of a sweep, also while it runs. The same command "
    "again goes on where it was stopped.",
)
def sweep(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A scenario file (YAML).")],
    assignments: SetOption = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="PATH=VALUES",
            help="An axis: p=0.1:1.0:0.1, tiers.dram.capacity=100GiB,200GiB; may be repeated.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", metavar="N", help="So many points spread over the axes, not all of them.")
    ] = None,
    replications: Annotated[
        int | None,
        typer.Option(
            "--replications", metavar="N", min=1, max=1000, help="Seeds of each point, the same for all points."
        ),
    ] = None,
    jobs: JobsOption = None,
    cluster: ClusterOption = None,
    seed: Annotated[int | None, typer.Option(help="First seed; wins over run.seed.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the answers [default: reports/NAME-sweep].")
    ] = None,
    metric: MetricOption = None,
    as_json: JsonOption = False,
    insist: LongOption = False,
) -> None:
    """Simulate SCENARIO at every point of a grid; what is finished is kept, whatever happens."""
    from simkv.cli.sweeping import asked, carry_out, exit_where_all_failed, say_failures

    what = asked(scenario, seeded(assignments, seed), grid or (), sample, replications)
    folder = result_folder(out, what.name, "-sweep")
    result = carry_out(what, folder, jobs, cluster, insist)
    _print(result, folder, _names(metric), None, None, as_json)
    say_failures(result)
    exit_where_all_failed(result)


@app.command(SHOW)
def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a sweep.")],
    metric: MetricOption = None,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            metavar="METRIC:min,...",
            help="What the Pareto front is about: ttft_s.p95:min,output_tokens_per_s:max.",
        ),
    ] = None,
    sort: Annotated[
        str | None, typer.Option("--sort", metavar="NAME", help="Order of the rows: an axis or a metric; -NAME: down.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the points of the last sweep in DIR and their Pareto front, while it runs too."""
    from simkv.cli.sweeping import say_failures
    from simkv.sweeps.pareto import parse_objectives
    from simkv.sweeps.read import read

    objectives = parse_objectives(objective) if objective is not None else None
    result = read(folder)
    _print(result, folder, _names(metric), objectives, sort, as_json)
    say_failures(result)


def _names(metric: list[str] | None) -> list[str]:
    """Return the metrics that are asked for, one by one."""
    return listed(*(metric or ()))


def _print(
    result: SweepResult,
    folder: Path,
    metrics: list[str],
    objectives: Sequence[Objective] | None,
    sort: str | None,
    as_json: bool,
) -> None:
    if as_json:
        import json

        typer.echo(json.dumps(result.as_dict(metrics, objectives, sort), indent=2, ensure_ascii=False))
    else:
        from shutil import get_terminal_size

        from simkv.cli.swept import render

        typer.echo(render(result, folder, metrics, objectives, sort, get_terminal_size((100, 24)).columns))
