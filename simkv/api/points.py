"""Pictures of a sweep: a metric over one of its axes, and one objective against another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

from simkv import units
from simkv.api.shown import Picture
from simkv.errors import InputError, Problem, unknown
from simkv.plots import points as plots
from simkv.results.metrics import METRICS
from simkv.sweeps.leaves import chosen
from simkv.sweeps.names import path_of
from simkv.sweeps.pareto import Objective, parse_objectives
from simkv.sweeps.paths import quantity_at
from simkv.sweeps.result import SweepResult
from simkv.sweeps.settings import Setting

_MOST_LINES = 16
_UNITS = {"s": "s", "B": "bytes"}
_WAYS = {1: "rises with", -1: "falls with", 0: "doesn't change with"}


def over_axis(result: SweepResult, metric: str, over: str | None) -> Picture:
    """Return ``metric`` over the axis ``over`` (None: the first), a line for each combination of the others.

    Raises InputError for a metric or an axis that there isn't, and for more lines than can be told apart.
    """
    chosen([metric], result.metrics, "metric")
    name = over if over is not None else next(iter(result.axes), "")
    if name not in result.axes:
        raise unknown("axis", name, tuple(result.axes), "over")
    sizes, measured = _sizes(name, result)
    lines: dict[str, list[plots.Place]] = {}
    for setting in result.settings:
        mean = setting.mean(metric)
        if mean is not None:
            place = plots.Place(sizes[setting.params[name]], mean.value, mean.half)
            lines.setdefault(_others(setting, name), []).append(place)
    if not lines or len(lines) > _MOST_LINES:
        what = "no point has a number there" if not lines else f"would make {len(lines)} lines"
        raise InputError(Problem(what, "name another metric, or sweep fewer values", path="metric", value=metric))
    for line in lines.values():
        line.sort(key=lambda place: place.at)
    axis = plots.Axis(name, {at: value for value, at in sizes.items()}, words=not measured)
    label = _labelled(metric)
    title = f"{metric} {_course(lines, name, axis.ticks)}"
    return Picture(title, lambda file, form: plots.over_axis(axis, lines, label, file, form))


def front(result: SweepResult, objectives: str | None) -> Picture:
    """Return all points by two objectives (None: those of the sweep's own front), the first one upwards.

    Raises InputError where there are no two.
    """
    asked = parse_objectives(objectives) if objectives is not None else None
    found = result.front(asked)
    if len(found.objectives) < 2:
        mend = 'name two, like "ttft_s.p95:min,output_tokens_per_s:max"'
        raise InputError(Problem("has no two objectives that differ between points", mend, path="objectives"))
    up, along = found.objectives[:2]
    best = result.front((up, along)).settings
    places = {setting.keys: at for setting in result.settings if (at := _at(setting, along, up)) is not None}
    line = sorted(places[setting.keys] for setting in best if setting.keys in places)
    beaten = [at for at in places.values() if at not in line]
    title = f"Of {len(places)} settings no other beats {len(line)} (blue) in both {up.metric} and {along.metric}"
    labels = _labelled(along.metric), _labelled(up.metric)
    return Picture(title, lambda file, form: plots.against(beaten, line, labels, file, form))


def _at(setting: Setting, along: Objective, up: Objective) -> tuple[float, float] | None:
    x, y = setting.mean(along.metric), setting.mean(up.metric)
    return None if x is None or y is None else (x.value, y.value)


def _others(setting: Setting, name: str) -> str:
    return ", ".join(f"{key} = {value}" for key, value in setting.params.items() if key != name)


def _sizes(name: str, result: SweepResult) -> tuple[dict[str, float], bool]:
    """Return where each value of an axis stands, and whether that is what it measures; words stand side by side."""
    values = list(dict.fromkeys(setting.params[name] for setting in result.settings))
    quantity = quantity_at(path_of(name))
    if quantity is not None:
        with suppress(units.QuantityError):
            return {value: float(units.parse(value, quantity.dimension)) for value in values}, True
    return {value: float(k) for k, value in enumerate(values)}, False


def _labelled(metric: str) -> str:
    """Return a metric with its unit."""
    known = METRICS.get(metric.partition(".")[0])
    unit = _UNITS.get(known.unit, known.unit) if known is not None else ""
    return f"{metric} ({unit})" if unit else metric


def _course(lines: Mapping[str, list[plots.Place]], name: str, ticks: Mapping[float, str]) -> str:
    """Say what the metric does along the axis ``name``, where all lines agree."""
    ways = {_way([place.value for place in line]) for line in lines.values()}
    if len(ways) == 1 and (way := ways.pop()) is not None:
        return f"{_WAYS[way]} {name}"
    tops = {max(line, key=lambda place: place.value).at for line in lines.values()}
    return f"is highest at {name}\u00a0=\u00a0{ticks[tops.pop()]}" if len(tops) == 1 else f"over {name}"


def _way(values: Sequence[float]) -> int | None:
    """Return 1 where values never fall, -1 where they never rise, 0 where they do neither, None where they do both."""
    steps = {(b > a) - (b < a) for a, b in pairwise(values)} - {0}
    return None if len(steps) > 1 else steps.pop() if steps else 0
