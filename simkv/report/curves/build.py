"""Curves as sections of a report: a section a curve, after what they all have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simkv.curves.table import HEADS, columns, points
from simkv.report.curves.panels import Curve, figures
from simkv.report.document import Block, Cell, Details, Facts, Note, Section, Table, Text

TITLE = "About the curves"
"""Of what they have in common."""


def sections(answer: Mapping[str, Any], of_run: bool = False) -> list[Section]:
    """Return what a report says of ``answer``, a ``curves.json``; ``of_run``: the page says elsewhere of what."""
    return [
        Section("curves", TITLE, [*_opening(answer), *([] if of_run else _origin(answer))]),
        *(
            Section(f"curve-{name}".replace("_", "-"), HEADS[name], list(_curve(name, answer["curves"][name])))
            for name in HEADS
            if name in answer["curves"]
        ),
    ]


def _opening(answer: Mapping[str, Any]) -> Iterator[Block]:
    yield from (Text(text) for text in answer["about"])
    for name, curve in answer["curves"].items():
        yield from (Note("warning", f"{HEADS[name]}: {text}") for text in curve["warnings"])
    yield from (
        Note("plain", f"No curve of {_lowered(HEADS.get(name, name))}: {reason}.")
        for name, reason in answer["left_out"].items()
    )


def _origin(answer: Mapping[str, Any]) -> Iterator[Block]:
    seeds = ", ".join(str(seed) for seed in answer["seeds"])
    yield Facts([("Scenario hash", str(answer["scenario_hash"])), ("Seeds", seeds),
                 ("simkv", str(answer.get("simkv_version", "of an unknown version")))])  # fmt: skip


def _lowered(head: str) -> str:
    return head if head[:2] == "T_" else head[:1].lower() + head[1:]


def _curve(name: str, curve: Curve) -> Iterator[Block]:
    yield from figures(name, curve)
    if curve["reads"]:
        yield Text(" ".join(curve["reads"]))
    if curve["parts"]:
        yield Text(f"Closed form and simulation: {' '.join(curve['parts'])}")
    yield Details(
        "What was simulated, and every point", [*(Text(text) for text in curve["about"]), _table(name, curve)]
    )


def _table(name: str, curve: Curve) -> Table:
    shown, rows = columns(name), points(name, curve)
    return Table(
        [column.head or "point" for column in shown],
        [[Cell(column.text(row), None if column.name else row.get(column.key)) for column in shown] for row in rows],
        name=f"curve-{name}-points".replace("_", "-"),
        right=frozenset(range(1, len(shown))),
    )
