"""The points of a sweep as rows of text: what was set, and the figures that tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from simkv.results.metrics import METRICS
from simkv.results.quantity import MISSING, count, data, digits, seconds, share
from simkv.sweeps.best import Front, lines
from simkv.sweeps.leaves import HEADLINE, chosen
from simkv.sweeps.order import ordered
from simkv.sweeps.result import SweepResult
from simkv.sweeps.settings import Mean, Setting

_SHOWERS: Mapping[str, Callable[[float | None], str]] = {"s": seconds, "B": data}
_SHARES = ("hit_rate", "utilization", "slo_attainment", "kv_usage", "load_hidden")
_STATUS = "status"


@dataclass(frozen=True, slots=True)
class Table:
    """Head and rows, and what needs no column."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...]
    """Columns that are aligned at their right."""
    same: tuple[tuple[str, str], ...]
    """Metrics that have one value everywhere, and it."""
    left_out: tuple[str, ...]
    """Metrics that had no room."""


def table(result: SweepResult, metrics: Sequence[str] = (), sort: str | None = None, width: int = 100) -> Table:
    """Return one row a combination of values, the mean over its seeds with a 95 % interval.

    ``metrics``: dotted names; none: those of the main ones that differ. ``sort``: an axis or a
    metric, a minus before it for the largest first. Raises InputError for a name that no point has.
    """
    names = chosen(metrics, result.metrics, "--metric") if metrics else _main(result)
    found = ordered(result.settings, result.axes, result.metrics, sort)
    columns = {name: [cell(setting, name) for setting in found] for name in names}
    done = [k for k, setting in enumerate(found) if setting.found]
    alike = {} if metrics or len(done) < 2 else {
        name: cells[done[0]] for name, cells in columns.items() if _alike([cells[k] for k in done])
    }  # fmt: skip
    head = {axis: [setting.params[axis] for setting in found] for axis in result.axes}
    if any(not setting.found for setting in found) or any(len(setting.ended) > 1 for setting in found):
        head[_STATUS] = [_state(setting) for setting in found]
    shown = {_titled(name, result.axes): cells for name, cells in columns.items() if name not in alike}
    kept = dict(head)
    left_out = []
    for name, cells in shown.items():
        if metrics or _width(kept) + _column_width(name, cells) <= width:
            kept[name] = cells
        else:
            left_out.append(name)
    rows = tuple(tuple(cells[k] for cells in kept.values()) for k in range(len(found)))
    right = tuple(k for k, name in enumerate(kept) if name != _STATUS)
    return Table(tuple(kept), rows, right, tuple(alike.items()), tuple(left_out))


def front_table(result: SweepResult, front: Front) -> Table:
    """Return one row a place on the front; an axis that makes no difference there reads ``any``."""
    names = [objective.metric for objective in front.objectives]
    found = list(lines(front, result.axes))
    rows = tuple((*params.values(), *(cell(setting, name) for name in names)) for params, setting in found)
    head = (*result.axes, *(_titled(name, result.axes) for name in names))
    return Table(head, rows, tuple(range(len(head))), (), ())


def cell(setting: Setting, name: str) -> str:
    """Return what a setting has of a metric, with its interval where there are several seeds."""
    mean = setting.mean(name)
    if mean is None:
        return setting.text(name) or MISSING
    return shown(name, mean)


def shown(name: str, mean: Mean) -> str:
    """Return a mean as people read it."""
    first = name.partition(".")[0]
    metric = METRICS.get(first)
    unit = metric.unit if metric is not None else ""
    show = share if first in _SHARES else _SHOWERS.get(unit, _plain)
    text = show(mean.value)
    return text if mean.half is None else f"{text} ± {show(mean.half)}"


def _plain(value: float | None) -> str:
    if value is None:
        return MISSING
    return count(value) if abs(value) >= 1000 or float(value).is_integer() else digits(value)


def _main(result: SweepResult) -> tuple[str, ...]:
    """Return the main metrics that some point has."""
    has = [name for name in HEADLINE if any(s.mean(name) or s.text(name) for s in result.settings)]
    return tuple(has)


def _alike(cells: Sequence[str]) -> bool:
    return cells[0] != MISSING and all(text == cells[0] for text in cells)


def _state(setting: Setting) -> str:
    """Return how many seeds are done, and what failed."""
    if len(setting.ended) == 1:
        return setting.ended[0].status
    failed = len(setting.ended) - len(setting.found)
    return f"{len(setting.found)} done" + (f", {failed} failed" if failed else "")


def _titled(name: str, axes: Mapping[str, Sequence[str]]) -> str:
    """Return the head of a metric's column; a metric that is called as an axis is told apart."""
    return f"{name} found" if name in axes else name


def _width(kept: Mapping[str, Sequence[str]]) -> int:
    return sum(_column_width(name, cells) for name, cells in kept.items())


def _column_width(name: str, cells: Sequence[str]) -> int:
    return 2 + max([len(name), *map(len, cells)])
