"""What is said of axes that don't matter: those that can't, known before, and those that turned out not to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simkv.sweeps.axes import Axis
from simkv.sweeps.inert import effective

_NAMES = ("scenario_hash", "seed", "warnings", "simkv_version", "question", "scenario")
"""Keys of a summary that say which run it is of, or what to think of it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One point: its values, the axes that can't matter there with their reasons, and what came of it."""

    params: Mapping[str, str]
    inert: Mapping[str, str]
    summary: Mapping[str, Any] | None = None
    """None: not run, or failed."""
    seed: int = 0


def summary_of_inert(axes: Sequence[Axis], points: Sequence[Seen]) -> list[str]:
    """Return a sentence for each set of axes that can't matter somewhere: which, where, why, and how much it spares."""
    groups: dict[str, dict[str, list[Seen]]] = {}
    for point in points:
        by_reason: dict[str, list[str]] = {}
        for axis in axes:
            if axis.name in point.inert:
                by_reason.setdefault(point.inert[axis.name], []).append(axis.name)
        for reason, names in by_reason.items():
            groups.setdefault(reason, {}).setdefault("\0".join(names), []).append(point)
    return [
        _sentence(axes, points, names.split("\0"), reason, group)
        for reason, found in groups.items() for names, group in found.items()
    ]  # fmt: skip


def unfelt(axes: Sequence[Axis], points: Sequence[Seen]) -> list[str]:
    """Return a sentence for each axis along which no summary changed (but for names and warnings), and for where.

    Only points at which it could have mattered count, compared with those that differ from them in nothing else.
    """
    told = []
    for axis in axes:
        still = moved = 0
        where: list[Seen] = []
        for row in _rows(axis, points):
            changed = not all(same_figures(one.summary, row[0].summary) for one in row[1:])
            moved += changed
            still += not changed
            where += [] if changed else row
        if still and not moved:
            told.append(f"{axis.name} could have mattered, and changed nothing: every value gave the same figures.")
        elif still:
            others = [other for other in axes if other is not axis]
            told.append(f"{axis.name} changed nothing {_where(others, points, where)}, and did elsewhere.")
    return told


def _rows(axis: Axis, points: Sequence[Seen]) -> Iterator[list[Seen]]:
    """Yield points that differ along ``axis`` alone and were all run where it could matter: two or more."""
    rows: dict[tuple[object, ...], list[Seen]] = {}
    for point in points:
        if point.summary is not None and axis.name in point.params and axis.name not in point.inert:
            others = tuple((name, value) for name, value in point.params.items() if name != axis.name)
            rows.setdefault((point.seed, *others), []).append(point)
    return (row for row in rows.values() if len({point.params[axis.name] for point in row}) > 1)


def _figures(value: Any) -> Any:
    """Return a summary without names, hashes and warnings, those inside it too."""
    if not isinstance(value, Mapping):
        return value
    return {key: _figures(inner) for key, inner in value.items() if key not in _NAMES}


def same_figures(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Say whether two summaries have the same figures, whatever they are called."""
    return bool(_figures(one) == _figures(other))


def _sentence(
    axes: Sequence[Axis], points: Sequence[Seen], names: list[str], reason: str, group: list[Seen]
) -> str:  # fmt: skip
    others = [axis for axis in axes if axis.name not in names]
    runs = {(*effective(point.params, axes, point.inert).values(), point.seed) for point in group}
    text = f"{_listed(names)} can't matter {_where(others, points, group)}: {reason}"
    count = f"{len(group)} of {len(points)} points"
    spared = f"{count} share {len(runs)} run{'s' if len(runs) > 1 else ''}" if len(runs) < len(group) else count
    return f"{text} ({spared})."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _where(others: Sequence[Axis], points: Sequence[Seen], group: Sequence[Seen]) -> str:
    """Describe ``group`` among ``points`` by values of ``others``: exactly, or by how many and an example."""
    if len(group) == len(points):
        return "at any point"
    chosen: dict[str, list[str]] = {}
    for axis in others:
        here = list(dict.fromkeys(point.params[axis.name] for point in group))
        everywhere = dict.fromkeys(point.params[axis.name] for point in points)
        if len(here) < len(everywhere):
            chosen[axis.name] = here
    fitting = sum(all(point.params[name] in values for name, values in chosen.items()) for point in points)
    if chosen and fitting == len(group):
        return "at " + ", ".join(f"{name} = {_values(values)}" for name, values in chosen.items())
    example = ", ".join(f"{name} = {value}" for name, value in group[0].params.items())
    return f"at {len(group)} points, such as {example}"


def _values(values: Sequence[str]) -> str:
    return " or ".join(values) if len(values) <= 3 else f"{values[0]}, {values[1]}, ... {values[-1]}"
