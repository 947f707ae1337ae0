"""``simkv hitrate``: how often blocks of a trace are found, policy by policy, over capacity."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simkv.cli import tracefile
from simkv.cli.calc import KvDtype
from simkv.cli.given import measured
from simkv.cli.trace import ColumnsOption, ForceOption, FormatOption, JsonOption, LimitOption, UnitOption
from simkv.errors import InputError, Problem, unknown

if TYPE_CHECKING:
    from simkv.hitrate import Capacities, References, Rules

_ORDERS = ("forward", "reverse")


def hitrate(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A trace whose prompts say what they share.")],
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="NAME,...", help="lru,arc,... [default: all].")
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option("--capacity", metavar="N,...", help="In blocks of the trace, or sizes with --model: 80GiB,1TiB."),
    ] = None,
    order: Annotated[
        str, typer.Option("--order", metavar="ORDER", help="How a prompt touches its blocks: forward or reverse.")
    ] = "forward",
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Whose KV it is, to have capacities in bytes.")
    ] = None,
    kv_dtype: KvDtype = None,
    block_tokens: Annotated[
        int | None, measured("--block-tokens", "tokens", "Block size, where the trace has none [default: 16].", 1)
    ] = None,
    lam: Annotated[
        float | None, measured("--lambda", "fraction", "Of score: 1 orders as lru, 0 as lfu [default: 0.7].")
    ] = None,
    count: Annotated[
        str | None,
        typer.Option(
            "--count",
            metavar="MODE",
            help="Uses that score and lfu go by: in_cache, lifetime, decayed [default: in_cache].",
        ),
    ] = None,
    half_life: Annotated[
        float | None, measured("--half-life", "number", "Of decayed: uses until one counts half.", 1)
    ] = None,
    format_: FormatOption = None,
    columns: ColumnsOption = None,
    arrival_unit: UnitOption = None,
    limit: LimitOption = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the rows there.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw them: .png or .svg.")] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Hit rate over capacity for every policy, between the ceiling and Belady's bound; no timing."""
    from simkv.cli.guard import printable
    from simkv.hitrate import CHOICES

    _check_files(trace, csv, plot, force)
    names = CHOICES if policy is None else tuple(part.strip() for part in policy.split(","))
    rules = _rules(names, lam, count, half_life)
    capacities = _capacities(capacity, model, kv_dtype)
    references, told = _references(trace, (format_, columns, arrival_unit), _order(order), block_tokens, limit)
    answer = {"trace": str(trace), **told, **_study(references, names, capacities, rules)}
    for path, write in ((csv, _write_csv), (plot, _write_plot)):
        if path is not None:
            write(answer, path, force)
            typer.echo(printable(f"wrote {path}"), err=True)
    if as_json:
        import json

        typer.echo(json.dumps(answer, indent=2))
    else:
        from simkv.cli.hitrates import render

        typer.echo(render(answer))


def _check_files(trace: Path, csv: Path | None, plot: Path | None, force: bool) -> None:
    """Refuse files that can't be written, or that others would be lost to, before the work is done."""
    from simkv.plots.style import FORMATS
    from simkv.workload.writer import check_new

    if plot is not None and plot.suffix.lower()[1:] not in FORMATS:
        mend = f"end its name in {' or '.join('.' + form for form in FORMATS)}"
        raise InputError(Problem("is no kind of picture that is drawn", mend, path="--plot", value=str(plot)))
    taken = {os.path.realpath(trace): "the trace"}
    for option, path in (("--csv", csv), ("--plot", plot)):
        if path is None:
            continue
        if (other := taken.get(os.path.realpath(path))) is not None:
            raise InputError(Problem(f"is {other} itself", "give another name", path=option, value=str(path)))
        taken[os.path.realpath(path)] = f"the file of {option}"
        check_new(path, force=force)


def _rules(names: tuple[str, ...], lam: float | None, count: str | None, half_life: float | None) -> Rules:
    """Return what policies go by; raises InputError for an option that none of ``names`` looks at."""
    from simkv.hitrate import Rules
    from simkv.hitrate.study import checked
    from simkv.kvcache.eviction import COUNT_MODES, COUNTING, DEFAULT_LAMBDA

    for option, value, readers in (("--lambda", lam, ("score",)), ("--count", count, COUNTING)):
        if value is not None and not set(readers) & set(names):
            what = f"does nothing without policy {' or '.join(readers)}"
            raise InputError(Problem(what, "leave it out, or name the policy", path=option))
    mode = next((mode for mode in COUNT_MODES if mode == (count or "in_cache")), None)
    if mode is None:
        raise unknown("way to count uses", str(count), COUNT_MODES, "--count")
    if (mode == "decayed") != (half_life is not None):
        what = "is missing" if half_life is None else f"does nothing with --count {mode}"
        mend = "say after how many uses of anything a use counts half" if half_life is None else "leave it out"
        raise InputError(Problem(what, mend, path="--half-life"))
    rules = Rules(DEFAULT_LAMBDA if lam is None else lam, mode, half_life)
    checked(names, rules)
    return rules


def _order(order: str) -> Any:
    if order not in _ORDERS:
        mend = f"write {' or '.join(_ORDERS)}"
        raise InputError(Problem("is no order of blocks", mend, path="--order", value=order))
    return order


def _capacities(capacity: str | None, model: str | None, kv_dtype: str | None) -> Capacities:
    from simkv.hitrate import Capacities

    texts = () if capacity is None else tuple(capacity.split(","))
    if model is None:
        if kv_dtype is not None:
            raise InputError(Problem("does nothing without --model", "name the model", path="--kv-dtype"))
        return Capacities(texts)
    from simkv.catalog import load_model

    return Capacities(texts, load_model(model), kv_dtype or "auto")


def _references(
    trace: Path, as_told: tuple[str | None, str | None, str | None], order: Any, block_tokens: int | None,
    limit: int | None,
) -> tuple[References, dict[str, Any]]:  # fmt: skip
    from simkv.hitrate import load

    source, report = tracefile.opened(trace, *as_told)
    with tracefile.told(source, report) as tick:
        references = load(source, report, order, block_tokens, limit, tick)
    return references, {"format": report.format, "irregularities": report.sentences()}


def _study(references: References, names: tuple[str, ...], capacities: Capacities, rules: Rules) -> dict[str, Any]:
    from simkv.cli.progress import Progress
    from simkv.hitrate import study

    with Progress() as shown:
        return study(references, names, capacities, rules, shown)


def _write_csv(answer: dict[str, Any], path: Path, force: bool) -> None:
    from csv import DictWriter
    from io import StringIO

    from simkv.workload.writer import new_file

    text = StringIO()
    writer = DictWriter(text, list(answer["rows"][0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(answer["rows"])
    with new_file(path, force=force) as file:
        file.write(text.getvalue().encode())


def _write_plot(answer: dict[str, Any], path: Path, force: bool) -> None:
    from simkv.cli.hitrates import finding
    from simkv.plots.hitrate import hit_rate_over_capacity
    from simkv.workload.writer import new_file

    with new_file(path, force=force) as file:
        hit_rate_over_capacity(answer, finding(answer), file, path.suffix.lower()[1:])
