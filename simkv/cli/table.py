"""Plain tables: columns as wide as they need to be, nothing else."""

from __future__ import annotations

from collections.abc import Sequence

_WIDEST = 60


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return ``rows`` under ``head`` as lines of text; columns in ``right`` end at the same place."""
    cut = [[_cut(cell) for cell in row[:-1]] + [row[-1]] for row in rows]
    widths = [max([len(title), *(len(row[k]) for row in cut)]) for k, title in enumerate(head)]
    lines = [
        _line(head, widths, right),
        _line(["-" * width if title else "" for title, width in zip(head, widths, strict=True)], widths, right),
    ]
    return "\n".join([*lines, *(_line(row, widths, right) for row in cut)])


def _cut(cell: str) -> str:
    return cell if len(cell) <= _WIDEST else cell[: _WIDEST - 3] + "..."


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    parts = [
        cell.rjust(width) if k in right else cell.ljust(width)
        for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(parts).rstrip()
