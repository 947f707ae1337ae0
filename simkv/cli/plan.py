"""``simkv plan``: the cheapest configuration that holds the SLO, why, and the flags to set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simkv.cli.options import ClusterOption, JobsOption, listed, seeded
from simkv.cli.run import SetOption


def plan(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A scenario file (YAML) with a plan section.")],
    assignments: SetOption = None,
    observed: Annotated[
        Path | None,
        typer.Option(
            "--observed",
            metavar="FILE",
            help="What was measured of the scenario's configuration: a result of vllm bench serve or "
            "sglang.bench_serving, or a log of requests; the machine is fitted to it first.",
        ),
    ] = None,
    emit: Annotated[
        list[str] | None,
        typer.Option(
            "--emit",
            metavar="ENGINE",
            help="Print the winner's flags or config file: vllm, sglang, lmcache, tensorrt-llm; may be repeated.",
            show_default=False,
        ),
    ] = None,
    jobs: JobsOption = None,
    cluster: ClusterOption = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the search; wins over run.seed.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the answer [default: reports/NAME-plan].")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print plan.json to stdout and nothing else.")] = False,
) -> None:
    """Find the best configuration that SCENARIO's plan allows; exit code 3 where none holds the SLO."""
    from simkv.cli.planning import carry_out, show

    engines = list(dict.fromkeys(listed(*(emit or ()))))
    result, folder, names = carry_out(scenario, seeded(assignments, seed), observed, engines, jobs, cluster, out)
    show(result, folder, names, engines, as_json)
