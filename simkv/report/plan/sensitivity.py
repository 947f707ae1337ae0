"""What 10 % more of each resource would buy the winner: bars, the figures, and what can't be measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from simkv.planner.export import moving
from simkv.plots.plan import bars, moved
from simkv.report.document import Block, Cell, Data, Details, Figure, Table, Text
from simkv.report.run.shown import capital, cell, part
from simkv.results.quantity import change, share
from simkv.results.words import MORE_OF

_COLUMNS = {
    "load_change": "load that holds the SLO",
    "doubt": "±",
    "cost_change": "cost of a million tokens",
    "ttft_p95_change": "TTFT p95",
    "tpot_p95_change": "TPOT p95",
}


def sensitivity(answer: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the bars, each resource with its figures, and why others have none; nothing where nothing was weighed."""
    found = answer["sensitivity"]
    if not found:
        return
    rows = list(reversed(moved(answer)))
    if rows:
        yield _figure(answer, rows)
    still = [MORE_OF.get(name, name) for name, one in rows if not one["measurable"]]
    if still and len(still) < len(rows):
        yield Text(f"Nothing that can be told from chance: {', '.join(still)}.")
    absent = [f"{_capital(name)}: {one['because']}" for name, one in found.items() if one["load_change"] is None]
    yield from (Text(text) for text in absent)
    yield Details("Every resource", [_table(found)])


def _figure(answer: Mapping[str, Any], rows: list[tuple[str, Mapping[str, Any]]]) -> Figure:
    told = "; ".join(f"{MORE_OF.get(name, name)} {_with_doubt(one)}" for name, one in rows)
    felt = [one for _, one in rows if one["measurable"]]
    finding = moving(answer)
    if felt:
        finding += f": {_with_doubt(felt[0])} load"
    return Figure(
        name="plan-sensitivity",
        finding=finding,
        draw=partial(bars, answer),
        data=Data(
            ["10 % more", "change of the load (share)", "doubt (share)", "measurable", "change of cost (share)",
             "change of TTFT p95 (share)", "change of TPOT p95 (share)"],
            [[MORE_OF.get(name, name), one["load_change"], one["doubt"], one["measurable"], one["cost_change"],
              one["ttft_p95_change"], one["tpot_p95_change"]] for name, one in rows],
        ),
        alt=f"Bars: the change of the load that holds the SLO with 10 % more of each resource, with its doubt. {told}.",
    )  # fmt: skip


def _with_doubt(one: Mapping[str, Any]) -> str:
    return change(one["load_change"]) + (f" ± {share(one['doubt'])}" if one["doubt"] is not None else "")


def _table(found: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [
        [
            Cell(_capital(name)),
            *(cell(one[key], change) if key != "doubt" else part(one[key]) for key in _COLUMNS),
            Cell(one["because"]),
        ]
        for name, one in found.items()
    ]
    heads = ["10 % more", *_COLUMNS.values(), "in words"]
    return Table(heads, rows, "sensitivity", right=frozenset(range(1, len(heads) - 1)))


def _capital(name: str) -> str:
    return capital(MORE_OF.get(name, name.replace("_", " ")))
