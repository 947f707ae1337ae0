"""From a scenario with a plan to the best of what it may choose from: bounds, halving, confirmation, the front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite, nan

import numpy as np

from simkv.errors import InputError, Problem
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from simkv.planner.bounds import bounds
from simkv.planner.confirm import with_planned
from simkv.planner.finals import Finals, score
from simkv.planner.found import Confirmed, Found, Front, Nearest, NoPlan, Pruned, Rated
from simkv.planner.halving import Entry, Halved, Halving
from simkv.planner.load import check
from simkv.planner.means import Means, Report
from simkv.planner.objective import Aim
from simkv.planner.offered import offered
from simkv.planner.slo import slo_of
from simkv.planner.space import Choice, LeftOut, Space, space
from simkv.planner.types import Slo
from simkv.results.quantity import digits, seconds
from simkv.results.slo import split_key
from simkv.scenario.as_measured import Measured
from simkv.sweep.pareto import front
from simkv.sweep.simulate import Written


def search(
    written: Written,
    *,
    workers: Workers,
    store: Store | None = None,
    report: Report | None = None,
    measured: Measured | None = None,
) -> Found:
    """Return the best candidate of ``plan.vary``, with all that was found on the way.

    ``measured``: how a measured run corrects the machines' figures.
    The same scenario gives the same answer, whatever workers there are; with a ``store`` nothing is simulated twice.
    Raises InputError for a plan that asks what makes no sense, :class:`NoPlan` where no candidate will do.
    """
    there = space(written, measured)
    first = there.choices[0].resolved
    slo, load_one = slo_of(first), offered(first, first.scenario.run.seed)
    check(first, load_one)
    aim = Aim(there.plan, load_one)
    choices, left_out = _with_prices(there, written.file)
    entries, pruned = _within_bounds(choices, aim, slo)
    means = Means(workers, store, report, first.scenario.run.seed)
    finals = Finals(aim, slo, means)
    halved = _searched(Halving(aim, slo, means), finals, entries)
    failed = tuple(LeftOut(c.candidate.name, c.candidate.values, f"failed: {f.message}") for c, f in halved.failed)
    if halved.failed and not halved.rated:
        raise InputError(Problem(f"no candidate can be simulated: {failed[0].name}: {halved.failed[0][1].message}"))
    rated = with_planned(halved.rated, aim, means)
    winner, others = finals.best, finals.holding[1:]
    wrong = {one.rated.candidate.name for one in finals.refuted}
    all_pruned = (*pruned, *halved.pruned)
    found = Found(
        aim=aim,
        slo=slo,
        currency=there.currency,
        candidates=rated,
        pruned=all_pruned,
        left_out=(*there.left_out, *left_out, *failed),
        winner=winner,
        runners_up=tuple(others),
        refuted=tuple(finals.refuted),
        pareto=pareto([one for one in rated if one.candidate.name not in wrong], finals.holding, slo),
        nearest=None if winner is not None else nearest(aim, rated, all_pruned, finals.tried, there.currency),
        runs=halved.runs + sum(len(one.summaries) for one in finals.tried),
    )
    if winner is None:
        raise NoPlan(found)
    return found


def _with_prices(there: Space, file: str) -> tuple[list[Choice], list[LeftOut]]:
    """Return what can be compared, and what has no price although cost is what counts."""
    if there.plan.objective != "cost" and there.plan.budget is None:
        return list(there.choices), []
    priced = [one for one in there.choices if one.candidate.unit.price is not None]
    without = [one.candidate for one in there.choices if one.candidate.unit.price is None]
    if not priced:
        names = list(dict.fromkeys(one.unit.name for one in without))
        mend = f"give plan.prices, like {names[0]}: {{hour: 2.50, currency: USD}}, or the scenario's cost"
        raise InputError(Problem(f"nothing has a price: {', '.join(names[:5])}", mend, file, None, "plan.prices"))
    return priced, [LeftOut(one.name, one.values, "has no price: give one in plan.prices") for one in without]


def _within_bounds(choices: Sequence[Choice], aim: Aim, slo: Slo) -> tuple[list[Entry], list[Pruned]]:
    """Return what may hold the SLO at some load, and what can't at any."""
    entries, pruned = [], []
    for choice in choices:
        of_choice = bounds(choice.resolved, aim.load_one)
        missed = of_choice.misses(slo)
        if missed:
            said = "; ".join(
                f"{key} is at least {seconds(v)}, and {seconds(limit)} is asked" for key, (v, limit) in missed.items()
            )
            pruned.append(Pruned(choice, of_choice, f"even on an idle engine {said}"))
        else:
            entries.append(Entry(choice, of_choice))
    return entries, pruned


def _searched(halving: Halving, finals: Finals, entries: Sequence[Entry]) -> Halved:
    """Rate and confirm; what a score pruned that didn't hold when it was confirmed is tried after all."""
    halved = halving.run(entries)
    finals.run(halved.rated)
    pruned = list(halved.pruned)
    while True:
        cap = score(finals.best, finals.aim) if finals.best is not None else inf
        again = [Entry(one.choice, one.bounds) for one in pruned]
        again = [entry for entry in again if halving.least(entry) < cap]
        if not again:
            return replace(halved, pruned=tuple(pruned))
        names = {entry.choice.candidate.name for entry in again}
        halved = halving.run(again, cap)
        pruned = [one for one in pruned if one.choice.candidate.name not in names] + list(halved.pruned)
        finals.run(halved.rated)


# ---- the front --------------------------------------------------------------------------------


def pareto(rated: Sequence[Rated], confirmed: Sequence[Confirmed], slo: Slo) -> tuple[Front, ...]:
    """Return the candidates that no other beats in cost, in latency at the planned load and in what a unit carries."""
    by_name = {one.rated.candidate.name: one for one in confirmed}
    target = next(iter(slo.targets), None) or next(key for of in slo.classes.values() for key in of)
    metric, statistic = split_key(target)
    possible = [one for one in rated if isfinite(one.score)]
    rows = [
        (
            _score(one, by_name.get(one.candidate.name)),
            _latency_s(one, by_name.get(one.candidate.name), target, metric, statistic),
            -one.capacity.load,
        )
        for one in possible
    ]
    if not rows:
        return ()
    kept = front(np.array(rows))
    return tuple(
        Front(one, one.hour, row[1], target, one.capacity.load)
        for one, row, on in zip(possible, rows, kept, strict=True)
        if on
    )


def _score(one: Rated, confirmed: Confirmed | None) -> float:
    return one.score if confirmed is None or not one.units else one.score * confirmed.units / one.units


def _latency_s(one: Rated, confirmed: Confirmed | None, target: str, metric: str, statistic: str) -> float:
    if confirmed is not None and target in confirmed.targets:
        return confirmed.targets[target].mean
    value = ((one.planned or {}).get(f"{metric}_s") or {}).get(statistic)
    return float(value) if value is not None else nan


# ---- what is nearest --------------------------------------------------------------------------


def nearest(
    aim: Aim, rated: Sequence[Rated], pruned: Sequence[Pruned], confirmed: Sequence[Confirmed], currency: str
) -> Nearest:
    """Return what misses least where nothing will do, and what would have to give."""
    carrying = [one for one in rated if one.capacity.load > 0]
    if confirmed:
        one = min(confirmed, key=lambda each: (_excess(each), each.rated.candidate.name))
        return Nearest(one.rated, None, _says_not_confirmed(one))
    if carrying:
        of_wanted = [(aim.wanted(one.choice, one.capacity.load), one) for one in carrying]
        wanted, best = min(of_wanted, key=lambda pair: (_over_limit(aim, *pair), pair[1].candidate.name))
        return Nearest(best, None, _says_too_many(aim, best, wanted, currency))
    if rated:
        best = min(rated, key=lambda one: (_least_missed(one), one.candidate.name))
        return Nearest(best, None, _says_missed(best))
    if pruned:
        last = min(pruned, key=lambda one: (-one.bounds.load, one.choice.candidate.name))
        sentence = f"no candidate will do; nearest is {last.choice.candidate.name}, which {last.reason}"
        return Nearest(None, last, sentence)
    return Nearest(None, None, "no candidate is left to choose from")


def _excess(one: Confirmed) -> float:
    ratios = [each.mean / each.limit for each in (*one.targets.values(), *one.strained.values()) if each.limit]
    return max([*ratios, *(inf for _ in one.missed)], default=1.0)


def _says_not_confirmed(one: Confirmed) -> str:
    held = [("", one.targets), (" with no headroom left", one.strained)]
    missed = [
        f"{key} {seconds(each.mean)} instead of {seconds(each.limit)}{when}"
        for when, targets in held
        for key, each in targets.items()
        if each.limit is not None and each.mean > each.limit
    ]
    said = ", ".join([*missed, *one.missed])
    name = one.rated.candidate.name
    return (
        f"no candidate holds the SLO with other seeds; nearest is {one.units} x {name}: {said}; raise plan.headroom, "
        "relax what it misses, or allow more units"
    )


def _over_limit(aim: Aim, wanted: float, one: Rated) -> float:
    """Return how many times too many units are wanted; ``inf`` where no number of them is enough."""
    return wanted / max(aim.most_units(one.choice), 1e-9)


def _says_too_many(aim: Aim, best: Rated, wanted: float, currency: str) -> str:
    plan, choice = aim.plan, best.choice
    name, carries = best.candidate.name, f"carries {digits(best.capacity.load)} times the load"
    if not isfinite(wanted):
        enough = int(-(-1 // aim.usable(best.capacity.load))) if aim.usable(best.capacity.load) > 0 else 0
        return (
            f"no candidate carries the load; nearest is {name}, of which one unit {carries}: "
            f"{enough} are wanted, and plan.vary says {choice.units}"
        )
    said = f"no candidate will do; nearest is {int(wanted)} x {name}, of which one unit {carries}"
    hour = aim.hour(choice, wanted)
    if plan.budget is not None and hour is not None and hour > plan.budget:
        return f"{said}: {hour:.2f} {currency} an hour, and plan.budget is {plan.budget:g}; raise it, or relax the SLO"
    return f"{said}: plan.units allows {aim.most_units(choice):g}; allow more, or relax the SLO"


def _least_missed(one: Rated) -> float:
    return max((value / limit if limit else inf for value, limit in one.capacity.trials[0].misses.values()), default=0)


def _says_missed(best: Rated) -> str:
    trial = best.capacity.trials[0]
    said = ", ".join(
        f"{key} is {seconds(value)} and {seconds(limit)} is asked" if limit else key
        for key, (value, limit) in trial.misses.items()
    )
    return (
        f"no candidate holds the SLO at any load; nearest is {best.candidate.name}, where at {digits(trial.load)} "
        f"times the load {said}; relax that, or take a faster machine"
    )
