"""What a sweep comes to, in sentences: the best settings, what can't be told from them, what differs, what moves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from simkv.report.sweep.metrics import Named, capital, main, named, of_objective, values
from simkv.report.telling import listed
from simkv.results.quantity import count, digits
from simkv.sweeps.best import ANY, lines
from simkv.sweeps.leaves import HEADLINE, leaf, number
from simkv.sweeps.pareto import Objective
from simkv.sweeps.result import SweepResult
from simkv.sweeps.settings import Mean, Setting, half_width
from simkv.sweeps.table import shown

_MANY = len(HEADLINE)


def where(params: Mapping[str, str]) -> str:
    """Return a setting in words; axes that take every value there aren't named."""
    told = [f"{axis} = {value}" for axis, value in params.items() if value != ANY]
    return ", ".join(told) or "every setting"


class Best(NamedTuple):
    """The best settings for one objective, one that stands for them, and how many others do as well elsewhere."""

    metric: Named
    params: Mapping[str, str]
    setting: Setting
    others: int


def best(result: SweepResult, objective: Objective) -> Best:
    """Return what is best for ``objective``, which some setting has a number for."""
    found = list(lines(result.front([objective]), result.axes))
    return Best(of_objective(objective), *found[0], len(found) - 1)


def answer(result: SweepResult, objectives: Sequence[Objective]) -> str:
    """Return the best setting for each objective in a sentence; settings that are best for several come once."""
    done = [setting for setting in result.settings if setting.found]
    if not done:
        return "No point has an answer."
    if not objectives:
        what = "latency, throughput and cost are the same" if len(done) > 1 else "one setting was simulated"
        return f"Nothing is best: {what}{' at all ' + count(len(done)) + ' settings' if len(done) > 1 else ''}."
    groups: dict[str, list[Best]] = {}
    for objective in objectives:
        one = best(result, objective)
        groups.setdefault(where(one.params), []).append(one)
    return "; ".join(_of_group(at, group) for at, group in groups.items()) + "."


def _of_group(at: str, group: Sequence[Best]) -> str:
    has = [
        f"{one.metric.best} ({one.metric.text(one.setting)}"
        + (f", as {count(one.others)} more" if one.others else "")
        + ")"
        for one in group
    ]
    return f"{at} has {listed(has)}"


def doubts(result: SweepResult, objectives: Sequence[Objective]) -> Iterator[str]:
    """Yield what can't be told from the best over several seeds, which all settings have in common."""
    for objective in objectives:
        top = best(result, objective)
        alike = [
            setting
            for setting in result.settings
            if setting.params != top.setting.params and _alike(top.setting, setting, objective.metric)
        ]
        if alike:
            so_many = _so_many(len(alike), len(result.settings) - 1)
            yield (
                f"In {top.metric.label} {so_many} be told from the best with {len(top.setting.found)} seeds: the 95 % "
                "interval of the difference, seed by seed, holds 0."
            )


def _so_many(alike: int, others: int) -> str:
    if alike == others:
        return "no other setting can"
    return "1 other setting can't" if alike == 1 else f"{count(alike)} of {count(others)} other settings can't"


def _alike(one: Setting, other: Setting, metric: str) -> bool:
    """Say whether two settings differ, seed by seed, by no more than their interval; one seed tells nothing."""
    theirs = _by_seed(other, metric)
    gaps = [value - theirs[seed] for seed, value in _by_seed(one, metric).items() if seed in theirs]
    half = half_width(gaps)
    return half is not None and abs(fmean(gaps)) <= half


def _by_seed(setting: Setting, metric: str) -> dict[int, float]:
    found = ((one.point.seed, number(leaf(one.summary, metric))) for one in setting.ended if one.summary is not None)
    return {seed: value for seed, value in found if value is not None}


def differing(result: SweepResult, objectives: Sequence[Objective]) -> str:
    """Return which main metric differs most between settings, and between which; empty where none does."""
    found = []
    for metric in main(result, objectives, _MANY):
        rows = values(result, metric.name)
        low, high = min(rows, key=_value), max(rows, key=_value)
        if low[1] > 0:
            found.append((high[1] / low[1], metric, low[0], high[0]))
    if not found:
        return ""
    ratio, metric, low_at, high_at = max(found, key=lambda row: row[0])
    times = f"{digits(ratio)} times as much" if ratio < 1000 else f"{count(ratio)} times as much"
    return (
        f"{capital(metric.label)} differs most: {metric.text(low_at)} at {where(low_at.params)}, {times} "
        f"({metric.text(high_at)}) at {where(high_at.params)}."
    )


def _value(row: tuple[Setting, float]) -> float:
    return row[1]


class Effect(NamedTuple):
    """What an axis does to a metric by itself: its mean over all else at the value where it is least, and most."""

    axis: str
    low_at: str
    low: float
    high_at: str
    high: float


def effects(result: SweepResult, metric: str) -> list[Effect]:
    """Return what each axis does to ``metric``, the strongest first."""
    found = []
    for axis in result.axes:
        groups: dict[str, list[float]] = {}
        for setting, value in values(result, metric):
            groups.setdefault(setting.params[axis], []).append(value)
        means = {at: fmean(group) for at, group in groups.items()}
        if means:
            low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
            found.append(Effect(axis, low, means[low], high, means[high]))
    return sorted(found, key=lambda one: one.low - one.high)


def moving(result: SweepResult, objectives: Sequence[Objective]) -> str:
    """Return which axis moves which objective most; empty where there is one axis."""
    if len(result.axes) < 2:
        return ""
    told = []
    for objective in objectives:
        first = effects(result, objective.metric)[0]
        if first.low < first.high:
            low, high = (shown(objective.metric, Mean(value, None, 1)) for value in (first.low, first.high))
            what = f"{named(objective.metric).label} is moved most by {first.axis}"
            told.append(f"{what}: from {low} at {first.low_at} to {high} at {first.high_at}")
    return f"On average over all other axes, {'; '.join(told)}." if told else ""
