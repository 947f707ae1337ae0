"""From a scenario with a plan to the best of what it may choose from: bounds, halving, confirmation, the front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from simkv.errors import InputError, Problem
from simkv.jobs.store import Store
from simkv.jobs.workers import Workers
from simkv.planner.bounds import bounds
from simkv.planner.confirm import with_planned
from simkv.planner.finals import FINALISTS, Finals, score
from simkv.planner.found import Found, NoPlan, Pruned
from simkv.planner.front import pareto
from simkv.planner.halving import Entry, Halved, Halving, by_score
from simkv.planner.load import check
from simkv.planner.means import Means, Report
from simkv.planner.nearest import nearest
from simkv.planner.objective import Aim
from simkv.planner.offered import offered
from simkv.planner.slo import slo_of
from simkv.planner.space import Choice, LeftOut, Space, space
from simkv.planner.types import Slo
from simkv.results.quantity import seconds
from simkv.scenario.as_measured import Measured
from simkv.sweeps.simulate import Written


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
    rated = sorted(map(finals.rated, halved.rated), key=by_score)
    halved = replace(halved, rated=with_planned(rated, aim, means), pruned=(*pruned, *halved.pruned))
    found = _found(halved, finals, slo, there.currency, (*there.left_out, *left_out, *failed))
    if found.winner is None:
        raise NoPlan(found)
    return found


def _found(halved: Halved, finals: Finals, slo: Slo, currency: str, left_out: tuple[LeftOut, ...]) -> Found:
    """Return everything that came of the search, with the front, or with what is nearest where nothing holds."""
    aim, rated, holding, refuted = finals.aim, halved.rated, finals.holding, finals.refuted
    wrong = {one.rated.candidate.name for one in refuted}
    return Found(
        aim=aim,
        slo=slo,
        currency=currency,
        candidates=rated,
        pruned=halved.pruned,
        left_out=left_out,
        winner=finals.best,
        runners_up=tuple(holding[1:]),
        refuted=tuple(refuted),
        pareto=pareto([one for one in rated if one.candidate.name not in wrong], holding, aim, slo),
        nearest=None if holding else nearest(aim, rated, halved.pruned, finals.tried, currency),
        runs=halved.runs + sum(one.runs for one in finals.tried) + sum(one.planned is not None for one in rated),
    )


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


def _finished(halving: Halving, finals: Finals, pruned: Sequence[Pruned]) -> Halved:
    """Find out with all effort what the winner and its runners-up carry, where few requests told so far."""
    best = [one.rated for one in finals.holding[:FINALISTS]] if finals.aim.of_load else []
    halved = halving.finish(best, pruned)
    finals.know({one.candidate.name: one for one in halved.rated})
    return halved


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
            return _finished(halving, finals, pruned)
        names = {entry.choice.candidate.name for entry in again}
        halved = halving.run(again, cap)
        pruned = [one for one in pruned if one.choice.candidate.name not in names] + list(halved.pruned)
        finals.run(halved.rated)
