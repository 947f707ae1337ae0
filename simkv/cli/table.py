"""Plain tables: columns as wide as they need to be, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

_WIDEST = 60
_NARROWEST = 30


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = (), width: int | None = None
) -> str:
    """Return ``rows`` under ``head`` as lines of text; columns in ``right`` end at the same place.

    The last column is as wide as its longest cell, or breaks its lines so that the table is ``width`` wide.
    """
    cut = [[_cut(cell) for cell in row[:-1]] + [row[-1]] for row in rows]
    if width is not None:
        before_last = sum(column + 2 for column in _widths(head, cut)[:-1])
        cut = [line for row in cut for line in _broken(row, max(_NARROWEST, width - before_last))]
    widths = _widths(head, cut)
    lines = [
        _line(head, widths, right),
        _line(["-" * width if title else "" for title, width in zip(head, widths, strict=True)], widths, right),
    ]
    return "\n".join([*lines, *(_line(row, widths, right) for row in cut)])


def _widths(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide each column is."""
    return [max([len(title), *(len(row[k]) for row in rows)]) for k, title in enumerate(head)]


def _broken(row: Sequence[str], room: int) -> Iterator[list[str]]:
    """Yield ``row`` with its last cell broken over as many lines as it takes."""
    first, *others = wrap(row[-1], room, break_long_words=False, break_on_hyphens=False) or [""]
    yield [*row[:-1], first]
    for more in others:
        yield [*("" for _ in row[:-1]), more]


def _cut(cell: str) -> str:
    return cell if len(cell) <= _WIDEST else cell[: _WIDEST - 3] + "..."


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    parts = [
        cell.rjust(width) if k in right else cell.ljust(width)
        for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(parts).rstrip()
