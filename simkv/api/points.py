"""Pictures of a sweep that are asked for: a metric over one of its axes, and one objective against another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

from simkv.api.figures import picture
from simkv.api.shown import Picture
from simkv.errors import InputError, Problem, unknown
from simkv.plots.sweep import Along, Line, lines
from simkv.report.sweep.figures import along_of
from simkv.report.sweep.front import front_figure
from simkv.report.sweep.metrics import capital, named, values
from simkv.sweeps.leaves import chosen
from simkv.sweeps.pareto import parse_objectives
from simkv.sweeps.result import SweepResult
from simkv.sweeps.settings import Setting

_MOST_LINES = 16
_WAYS = {1: "rises with", -1: "falls with", 0: "doesn't change with"}


def over_axis(result: SweepResult, metric: str, over: str | None) -> Picture:
    """Return ``metric`` over the axis ``over`` (None: the first), a line for each combination of the others.

    Raises InputError for a metric or an axis that there isn't, and for more lines than can be told apart.
    """
    chosen([metric], result.metrics, "metric")
    axis = over if over is not None else next(iter(result.axes), "")
    if axis not in result.axes:
        raise unknown("axis", axis, tuple(result.axes), "over")
    rows, shown = values(result, metric), named(metric)
    along = along_of(result, axis, rows)
    drawn = _lines(along, rows, metric)
    if not drawn or len(drawn) > _MOST_LINES:
        what = "no point has a number there" if not drawn else f"would make {len(drawn)} lines"
        raise InputError(Problem(what, "name another metric, or sweep fewer values", path="metric", value=metric))
    by = ", ".join(name for name in result.axes if name != axis)
    return Picture(f"{capital(shown.label)} {_course(drawn, along)}", partial(lines, along, drawn, shown.scale, by))


def front(result: SweepResult, objectives: str | None) -> Picture:
    """Return all settings by two objectives (None: those of the sweep's own front), with those that nothing beats.

    Raises InputError where there are no two, or fewer than three settings.
    """
    found = result.front(parse_objectives(objectives) if objectives is not None else None)
    drawn = front_figure(result, found)
    if drawn is None:
        mend = 'name two, like "ttft_s.p95:min,output_tokens_per_s:max", of a sweep of three settings or more'
        raise InputError(Problem("has no two objectives that differ between settings", mend, path="objectives"))
    return picture(drawn)


def _lines(along: Along, rows: Sequence[tuple[Setting, float]], metric: str) -> list[Line]:
    """Return a line for each combination of what isn't drawn along, in the order of their first points."""
    place = dict(zip(along.ticks, along.places, strict=True))
    points: dict[str, list[tuple[float, float, float]]] = {}
    for setting, value in rows:
        mean = setting.mean(metric)
        half = mean.half or 0.0 if mean is not None else 0.0
        points.setdefault(_others(setting, along.name), []).append((place[setting.params[along.name]], value, half))
    columns: Mapping[str, list[tuple[float, ...]]] = {
        name: list(zip(*sorted(own), strict=True)) for name, own in points.items()
    }
    return [Line(name, xs, ys, halves) for name, (xs, ys, halves) in columns.items()]


def _others(setting: Setting, axis: str) -> str:
    return ", ".join(value for name, value in setting.params.items() if name != axis)


def _course(drawn: Sequence[Line], along: Along) -> str:
    """Say what the metric does along the axis, where all lines agree."""
    ways = {_way(line.ys) for line in drawn}
    if len(ways) == 1 and (way := ways.pop()) is not None:
        return f"{_WAYS[way]} {along.name}"
    tops = {line.xs[max(range(len(line.ys)), key=line.ys.__getitem__)] for line in drawn}
    if len(tops) != 1:
        return f"over {along.name}"
    tick = along.ticks[along.places.index(tops.pop())]
    return f"is highest at {along.name}\u00a0=\u00a0{tick}"


def _way(ys: Sequence[float]) -> int | None:
    """Return 1 where values never fall, -1 where they never rise, 0 where they do neither, None where they do both."""
    steps = {(b > a) - (b < a) for a, b in pairwise(ys)} - {0}
    return None if len(steps) > 1 else steps.pop() if steps else 0
