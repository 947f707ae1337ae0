"""``simkv run``: one scenario, simulated with its baselines."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simkv.cli.options import LongOption, result_folder
from simkv.cli.tracing import Trace, TraceOption, WindowOption

if TYPE_CHECKING:
    from simkv.scenario.resolve import Resolved

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Change a value by its path; may be repeated.", show_default=False
    ),
]


def run(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A scenario file (YAML).")],
    assignments: SetOption = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all random streams; wins over run.seed.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Result folder [default: reports/NAME].")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print summary.json to stdout and nothing else.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print each value, where it came from, and the memory budget; don't run.")
    ] = False,
    audit: Annotated[bool, typer.Option("--audit", help="Check the laws of INVARIANTS.md while running.")] = False,
    step_exact: Annotated[
        bool, typer.Option("--step-exact", help="Walk every engine step: slow, the same answer.")
    ] = False,
    trace_out: TraceOption = None,
    trace_window: WindowOption = None,
    insist: LongOption = False,
) -> None:
    """Simulate SCENARIO and write its result folder."""
    from simkv.cli.lasting import announce
    from simkv.estimate import estimate
    from simkv.results.write import check_out
    from simkv.scenario.resolve import resolve

    values = list(assignments or ())
    if seed is not None:
        values.append(f"run.seed={seed}")
    resolved = resolve(scenario, values)
    if explain:
        _print_explained(resolved, as_json)
        return
    _one_seed(resolved)
    folder = result_folder(out, resolved.scenario.name)
    trace = Trace(trace_out, trace_window, folder)
    check_out(folder, resolved.scenario.name)
    told = announce(estimate(resolved, step_exact=step_exact, audit=audit or None), resolved, insist)
    _simulate(resolved, folder, as_json, audit, step_exact, trace, told)


def _one_seed(resolved: Resolved) -> None:
    """Refuse a scenario of several seeds: their place is a sweep."""
    from simkv.errors import InputError, Problem

    seeds = resolved.scenario.run.replications
    if seeds > 1:
        mend = "`simkv sweep` runs a scenario with several; or --set run.replications=1"
        raise InputError(
            Problem("a run has one seed", mend, resolved.layers.file, None, "run.replications", str(seeds))
        )


def _simulate(
    resolved: Resolved, folder: Path, as_json: bool, audit: bool, step_exact: bool, trace: Trace, told: bool
) -> None:
    from simkv.cli.interrupt import INTERRUPTED, Interrupt
    from simkv.cli.lasting import Lasting
    from simkv.cli.progress import Progress
    from simkv.results.write import summary_text, write_result
    from simkv.sim.record.recording import PLAYER
    from simkv.simulation import run_scenario

    gc.freeze()  # what is loaded by now stays, and what a run makes is mostly gone when it has been looked at once
    gc.set_threshold(100_000, 20, 20)
    with Interrupt() as interrupt, Progress() as shown:
        lasting = Lasting(shown.say, told)

        def progress(fraction: float) -> None:
            interrupt.check()
            shown(fraction)
            lasting(fraction)

        record = (PLAYER, *trace.wanted)
        result = run_scenario(resolved, step_exact=step_exact, audit=audit or None, progress=progress, record=record)
    result.data.steps.clear()  # summarised; a third of a long run's memory, and no file needs it
    write_result(result, folder)
    said = trace.write(result)
    if as_json:
        typer.echo(summary_text(result.summary), nl=False)
    else:
        from simkv.results.text import render

        typer.echo(render(result, folder))
    if said is not None:
        typer.echo(said, err=as_json)
    if result.data.interrupted:
        typer.echo(f"interrupted: what was finished is in {folder}", err=True)
        raise typer.Exit(INTERRUPTED)


def _print_explained(resolved: Resolved, as_json: bool) -> None:
    from simkv.scenario.explain import budget_rows
    from simkv.scenario.explain import explain as rows_of

    values, budget = rows_of(resolved), budget_rows(resolved)
    if as_json:
        import json

        answer = {
            "scenario": resolved.scenario.name,
            "values": [row._asdict() for row in values],
            "memory_budget": [dict(zip(("line", "size", "note"), row, strict=True)) for row in budget],
            "notes": [sentence for _, sentence in resolved.notes],
        }
        typer.echo(json.dumps(answer, indent=2))
        return
    from simkv.cli.table import table

    typer.echo(table(("value", "is", "from"), values))
    if budget:
        typer.echo("\n" + table(("memory of one GPU", "size", ""), budget, right=(1,)))
    for _, sentence in resolved.notes:
        typer.echo(f"\nnote: {sentence}")
