"""Figures of a sweep: one a main metric, over one axis, over two, or over the slice of more that the best lies in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import nan
from typing import TypeAlias

from simkv.plots.sweep import Along, Line, chart, dots, lines
from simkv.report.document import Data, Draw, Figure
from simkv.report.sweep.headline import best, effects, where
from simkv.report.sweep.metrics import Named, capital, main, of_objective, values
from simkv.report.telling import listed, thinned
from simkv.results.quantity import count
from simkv.sweeps.order import size_of
from simkv.sweeps.pareto import Objective
from simkv.sweeps.result import SweepResult
from simkv.sweeps.settings import Setting

_MOST = 6
"""Figures of metrics."""
_LINES = 6
"""Lines that can be told apart; more are a map."""
_TOLD = 24
"""Settings that an alternative text names."""
_FEWEST = 3
_WHOLE = 0.6
"""Share of a slice's combinations that must be there to draw it."""

Rows: TypeAlias = Sequence[tuple[Setting, float]]
"""Settings with what they have of a metric."""


def figures(result: SweepResult, objectives: Sequence[Objective]) -> Iterator[Figure]:
    """Yield a figure for each main metric that differs, those of the objectives first."""
    for metric in main(result, objectives, _MOST):
        yield _of_metric(result, metric, objectives)


def _of_metric(result: SweepResult, metric: Named, objectives: Sequence[Objective]) -> Figure:
    rows = values(result, metric.name)
    fixed = _fixed(result, metric, objectives)
    kept = [(setting, value) for setting, value in rows if _within(setting, fixed or {})]
    free = [axis for axis in _strongest(result, metric.name) if axis not in (fixed or {})]
    told = [axis for axis in result.axes if axis in free]
    note = ""
    if fixed is None:
        note = f"A dot is a setting; {listed(result.axes)} vary, and not every combination was simulated."
    elif fixed:
        lies = of_objective(objectives[0]).best if objectives else metric.label
        note = f"The slice at {where(fixed)}, in which {lies} lies."
    return Figure(
        name=f"sweep-{metric.name}",
        finding=_finding(metric, kept, told),
        draw=_dots(result, metric, kept, free[0]) if fixed is None else _drawn(result, metric, kept, free),
        data=_data(result, metric, rows),
        alt=_alt(metric, kept, told, note),
        note=note,
    )


def _dots(result: SweepResult, metric: Named, kept: Rows, axis: str) -> Draw:
    along = along_of(result, axis, kept)
    place = _places(along)
    return partial(dots, along, [place[s.params[axis]] for s, _ in kept], [value for _, value in kept], metric.scale)


def _drawn(result: SweepResult, metric: Named, kept: Rows, free: Sequence[str]) -> Draw:
    """Return lines along one axis, or a map where the other one has too many values for lines."""
    if len(free) == 1:
        return partial(lines, *_lines(result, metric, kept, free[0], ""), metric.scale, "")
    across, by = _across(result, free, kept)
    if len({setting.params[by] for setting, _ in kept}) <= _LINES:
        return partial(lines, *_lines(result, metric, kept, across, by), metric.scale, by)
    return partial(chart, *_cells(result, kept, across, by), metric.scale)


def _fixed(result: SweepResult, metric: Named, objectives: Sequence[Objective]) -> Mapping[str, str] | None:
    """Return the axes that a figure holds, with their values there; None: too little is there for lines or a map."""
    free = _strongest(result, metric.name)[:2]
    top = best(result, objectives[0]).setting if objectives else values(result, metric.name)[0][0]
    fixed = {axis: value for axis, value in top.params.items() if axis not in free}
    return fixed if _is_whole(result, free, fixed) else None


def _is_whole(result: SweepResult, free: Sequence[str], fixed: Mapping[str, str]) -> bool:
    """Say whether enough combinations of ``free`` are there for lines or a map."""
    there = [setting for setting in result.settings if setting.found and _within(setting, fixed)]
    sizes = [len({setting.params[axis] for setting in there}) for axis in free]
    return len(free) == 1 or (len(there) >= _FEWEST and len(there) >= _WHOLE * sizes[0] * sizes[1])


def _within(setting: Setting, fixed: Mapping[str, str]) -> bool:
    return all(setting.params[axis] == value for axis, value in fixed.items())


def _strongest(result: SweepResult, metric: str) -> list[str]:
    return [effect.axis for effect in effects(result, metric)]


def _across(result: SweepResult, free: Sequence[str], kept: Rows) -> tuple[str, str]:
    """Return along which of two axes lines go, and which tells them apart: the longer one that has distances first."""
    sizes = {axis: along_of(result, axis, kept) for axis in free}
    first = max(free, key=lambda axis: (sizes[axis].measured, len(sizes[axis].ticks)))
    return first, next(axis for axis in free if axis != first)


def along_of(result: SweepResult, axis: str, kept: Rows) -> Along:
    """Return an axis with the values that ``kept`` have there, in their order."""
    there = {setting.params[axis] for setting, _ in kept}
    ticks = [value for value in result.axes.get(axis, ()) if value in there]
    ticks += sorted(there - set(ticks))
    sizes = [size_of(axis, tick) for tick in ticks]
    numbers = [float(size) for size in sizes if isinstance(size, int | float)]
    if len(numbers) < len(ticks):
        return Along(axis, [float(k) for k in range(len(ticks))], ticks, measured=False)
    order = sorted(range(len(ticks)), key=lambda k: numbers[k])
    return Along(axis, [numbers[k] for k in order], [ticks[k] for k in order], measured=True)


def _places(along: Along) -> dict[str, float]:
    return dict(zip(along.ticks, along.places, strict=True))


def _lines(
    result: SweepResult, metric: Named, kept: Rows, across: str, by: str
) -> tuple[Along, list[Line]]:  # fmt: skip
    along = along_of(result, across, kept)
    place = _places(along)
    names = along_of(result, by, kept).ticks if by else [""]
    found = []
    for name in names:
        own = [
            (place[s.params[across]], value, _half(s, metric)) for s, value in kept if not by or s.params[by] == name
        ]
        own.sort()
        found.append(Line(name, [x for x, _, _ in own], [y for _, y, _ in own], [half for *_, half in own]))
    return along, found


def _half(setting: Setting, metric: Named) -> float:
    mean = setting.mean(metric.name)
    return mean.half or 0.0 if mean is not None else 0.0


def _cells(
    result: SweepResult, kept: Rows, across: str, by: str
) -> tuple[Along, Along, list[list[float]]]:  # fmt: skip
    x, y = (along_of(result, axis, kept) for axis in (across, by))
    at = {(setting.params[across], setting.params[by]): value for setting, value in kept}
    return x, y, [[at.get((column, row), nan) for column in x.ticks] for row in y.ticks]


def _finding(metric: Named, kept: Rows, free: Sequence[str]) -> str:
    low, high = (pick(kept, key=lambda row: row[1])[0] for pick in (min, max))
    if metric.text(low) == metric.text(high):
        makes = "makes" if len(free) == 1 else "make"
        return f"{listed(free)} {makes} no difference: {metric.label} is {metric.text(low)}"
    told = [
        f"{word}, {metric.text(setting)}, at {where({axis: setting.params[axis] for axis in free})}"
        for word, setting in (("least", low), ("most", high))
    ]
    return f"{capital(metric.label)} is {', and '.join(reversed(told) if metric.better == 'max' else told)}"


def _data(result: SweepResult, metric: Named, rows: Rows) -> Data:
    """Return every setting with the metric and its interval, those out of the slice too."""
    heads = [*result.axes, metric.head, "95 % from", "95 % to", "seeds"]
    found = []
    for setting, value in rows:
        half, seeds = _half(setting, metric), len(setting.found)
        ends = [value - half, value + half] if half else [None, None]
        found.append([*(setting.params[axis] for axis in result.axes), value, *ends, seeds])
    return Data(heads, found)


def _alt(metric: Named, kept: Rows, free: Sequence[str], note: str) -> str:
    some = thinned(kept, _TOLD)
    head = f"{capital(metric.label)} over {' and '.join(free)}"
    more = f" ({len(some)} of {count(len(kept))} settings)" if len(some) < len(kept) else ""
    told = "; ".join(f"{metric.text(s)} at {where({axis: s.params[axis] for axis in free})}" for s, _ in some)
    return f"{head}{more}: {told}. {note}".strip()
