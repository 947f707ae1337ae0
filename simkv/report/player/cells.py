"""Cells: runs of blocks that always move together in the window, and which of them are drawn."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from simkv.report.player.ground import COMING, HERE, USED, Row

MOST_CELLS = 400


@dataclass(frozen=True, slots=True)
class Cells:
    """All cells, label by label and from the beginning of each to its end; and the index that a drawn one has."""

    label: Sequence[int]
    first: Sequence[int]
    end: Sequence[int]
    drawn: Sequence[int]
    """By cell: its index among the drawn, or -1."""
    _starts: dict[int, tuple[int, list[int]]]
    """By label: its first cell, and where its cells begin."""

    def of(self, row: Row) -> range:
        """Return the cells that ``row`` is about."""
        base, starts = self._starts[row.label]
        return range(base + bisect_left(starts, row.first), base + bisect_left(starts, row.end))

    def shown(self) -> list[int]:
        """Return the cells that are drawn, in the order of their indices."""
        return [cell for cell, index in enumerate(self.drawn) if index >= 0]


def cut(rows: Sequence[Row], most: int = MOST_CELLS) -> Cells:
    """Cut every label's blocks wherever a row begins or ends, and choose at most ``most`` cells to draw."""
    edges: dict[int, dict[int, None]] = {}
    for row in rows:
        edges.setdefault(row.label, {}).update({row.first: None, row.end: None})
    label: list[int] = []
    first: list[int] = []
    end: list[int] = []
    starts: dict[int, tuple[int, list[int]]] = {}
    for name in sorted(edges):
        cuts = sorted(edges[name])
        starts[name] = (len(label), cuts)
        label += [name] * (len(cuts) - 1)
        first += cuts[:-1]
        end += cuts[1:]
    whole = Cells(label, first, end, [], starts)
    touched = [0] * len(label)
    covered = bytearray(len(label))
    for row in rows:
        for cell in whole.of(row):
            covered[cell] = 1
            touched[cell] += row.what in (COMING, HERE, USED)
    chosen = _choose(label, [e - f for f, e in zip(first, end, strict=True)], touched, covered, most)
    return Cells(label, first, end, chosen, starts)


def _choose(
    label: Sequence[int], size: Sequence[int], touched: Sequence[int], covered: bytearray, most: int
) -> list[int]:
    """Return each cell's index among the drawn, or -1: labels that come and are used most, whole where they fit, and
    in what room is left the cells that do."""
    heard: dict[int, tuple[int, int]] = {}
    members: dict[int, list[int]] = {}
    for cell, name in enumerate(label):
        if covered[cell]:
            rows, blocks = heard.get(name, (0, 0))
            heard[name] = rows + touched[cell], blocks + size[cell]
            members.setdefault(name, []).append(cell)
    order = sorted(heard, key=lambda name: (-heard[name][0], -heard[name][1], name))
    picked: dict[int, None] = {}
    left: list[int] = []
    for name in order:
        if len(picked) + len(members[name]) <= most:
            picked.update(dict.fromkeys(members[name]))
        else:
            left += members[name]
    left.sort(key=lambda cell: (-touched[cell], -size[cell], cell))
    picked.update(dict.fromkeys(left[: most - len(picked)]))
    index = [-1] * len(label)
    for number, cell in enumerate(sorted(picked)):
        index[cell] = number
    return index
