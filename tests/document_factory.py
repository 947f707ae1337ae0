"""A document with every kind of block, around a name that may be anything."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from simkv.plots.style import INK, PALETTE, clean, figure
from simkv.report.document import (
    Cell,
    Code,
    Data,
    Details,
    Document,
    Facts,
    Figure,
    Note,
    Section,
    Table,
    Text,
    Widget,
)
from simkv.report.drawing import Drawings

ROWS = [[0.1, 1 / 3, 7, "a"], [2e-9, -0.25, 12_345_678_901, "b"], [1.0, math.pi, 0, "c, d"]]
HEADS = ["time (s)", "share", "bytes (B)", "what"]


def _draw(label: str, file: BinaryIO, form: str) -> None:
    with figure("", file, form, (5.6, 3.6)) as axes:
        axes.plot([0, 1, 2], [1, 4, 2], color=PALETTE[0])
        axes.annotate(clean(label), (1, 4), color=INK)
        axes.set_xlabel("Time (s)")
        axes.set_ylabel("Requests")


def picture(name: str, label: str = "line", **more: Any) -> Figure:
    """Return a figure of a few points with ``label`` on it."""
    return Figure(
        name, f"{label} rises, then falls", partial(_draw, label), Data(HEADS, ROWS), f"A line, {label}.", **more
    )


def table(name: str, label: str = "row") -> Table:
    """Return a table whose cells show less than their exact values."""
    rows = [
        [Cell(label), Cell("0.333", 1 / 3), Cell("fast", tone="good")],
        [Cell("other"), Cell("2e-09", 2e-9), Cell("slow", tone="bad")],
    ]
    return Table([label, "share", "so"], rows, name, f"Shares of {label}", frozenset({1}))


AGAIN, WIDE = picture("latency", "again"), picture("timeline", "wide", wide=True)
DRAWINGS = Drawings()
"""Keeps what was drawn, from one test to the next."""


def document(name: str = "A chatbot", widgets: tuple[Widget, ...] = ()) -> Document:
    """Return every kind of block, with ``name`` wherever a text stands."""
    first = [
        Text(f"Offloading {name} saves 0.528 s of 0.630 s.", lead=True),
        Text(f"The question: {name}"),
        *(Note(tone, f"{tone}: {name}", name) for tone in ("good", "bad", "warning", "plain")),
        Facts([("Model", "llama-3.1-8b"), (name, name)]),
    ]
    second = [
        picture("latency", name, note=f"A note on {name}"),
        AGAIN,
        WIDE,
        table("shares", name),
        *widgets,
    ]
    third = [
        Code(f"simkv run x\n  --set 'name={name}'", f"To run {name} again"),
        Details(name, [Text(name), table("more")]),
    ]
    return Document(name, f"About {name}", [
        Section("answer", "The answer", first), Section("seen", f"What is seen of {name}", second),
        Section("answer", name, third),
    ])  # fmt: skip


def noisy(name: str, points: int) -> Figure:
    """Return a figure of very many lines, with as much data behind it."""

    def draw(file: BinaryIO, form: str) -> None:
        values = np.random.default_rng(0).normal(size=(points, 2))
        with figure("", file, form, (5.6, 3.6)) as axes:
            axes.scatter(values[:, 0], values[:, 1], s=1)

    rows = [[k, k / 7, k / 11] for k in range(points)]
    return Figure(name, f"{points} points", draw, Data(["k", "x", "y"], rows), "Points in a cloud.")
