"""How ``simkv curves`` says what it found: a table a curve, then what can be read off, and where the two part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from simkv.cli.table import table
from simkv.curves.table import HEADS, Row, columns, points

_WIDTH = 100
_MOST_ROWS = 20


def render(answer: Mapping[str, Any], folder: Path) -> str:
    """Return ``answer`` (``curves.json``) as text; ``folder``: where the files are."""
    parts = ["\n".join([f"Curves of {answer['scenario']}", *(_wrapped(text, "- ") for text in answer["about"])])]
    parts += ["\n".join(_curve(name, curve)) for name, curve in answer["curves"].items()]
    parts += [_wrapped(f"No curve {name}: {reason}.", "") for name, reason in answer["left_out"].items()]
    parts.append(f"{', '.join(f'{name}.csv .png .svg' for name in answer['curves'])} and curves.json are in {folder}")
    return "\n\n".join(parts)


def _curve(name: str, curve: Row) -> Iterator[str]:
    yield _wrapped(f"{HEADS[name]}: {curve['title']}.", "")
    yield ""
    shown = columns(name)
    cells = [[column.text(row) for column in shown] for row in _thinned(points(name, curve))]
    yield table([column.head for column in shown], cells, right=range(1, len(shown)))
    for head, key in (("warning: ", "warnings"), ("", "reads"), ("", "parts"), ("", "about")):
        if curve[key]:
            yield ""
        for text in curve[key]:
            yield _wrapped(head + text, "- ")


def _wrapped(text: str, mark: str) -> str:
    return "\n".join(wrap(text, _WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark)))


def _thinned(rows: Sequence[Row]) -> list[Row]:
    """Return a selection of at most about 20 of ``rows``, the first and the last among them."""
    every = -(-len(rows) // _MOST_ROWS)
    kept = [row for k, row in enumerate(rows) if k % every == 0]
    return kept if not rows or kept[-1] is rows[-1] else [*kept, rows[-1]]
