"""Where nothing will do: which candidate misses least, and what would have to give."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite

from simkv.planner.found import Confirmed, Nearest, Pruned, Rated
from simkv.planner.objective import Aim
from simkv.results.quantity import digits, seconds


def nearest(
    aim: Aim, rated: Sequence[Rated], pruned: Sequence[Pruned], confirmed: Sequence[Confirmed], currency: str
) -> Nearest:
    """Return what misses least where nothing will do, and what would have to give."""
    carrying = [one for one in rated if one.capacity.load > 0]
    if confirmed:
        one = min(confirmed, key=lambda each: (_excess(each), each.rated.candidate.name))
        return Nearest(one.rated, None, _says_not_confirmed(one, aim))
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


def _says_not_confirmed(one: Confirmed, aim: Aim) -> str:
    held = [("", one.targets), (" with no headroom left" if aim.of_load else "", one.strained)]
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
    wanted = max(1, wanted)
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
