"""The Pareto front of a plan: cost, latency at the planned load, what a unit carries."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan

import numpy as np

from simkv.planner.finals import score
from simkv.planner.found import Confirmed, Front, Rated
from simkv.planner.objective import Aim
from simkv.planner.slo import measured
from simkv.planner.types import Slo
from simkv.sweeps.pareto import front


def pareto(rated: Sequence[Rated], confirmed: Sequence[Confirmed], aim: Aim, slo: Slo) -> tuple[Front, ...]:
    """Return the candidates that no other beats in cost, in latency at the planned load and in what a unit carries.

    One that is ``confirmed`` counts with the units and latency that it was confirmed with.
    """
    by_name = {one.rated.candidate.name: one for one in confirmed}
    target = next(iter(slo.limits))
    possible = [(one, by_name.get(one.candidate.name)) for one in rated if isfinite(one.score)]
    if not possible:
        return ()
    rows = [
        (one.score if held is None else score(held, aim), _latency_s(one, held, target, slo), -one.capacity.load)
        for one, held in possible
    ]
    return tuple(
        Front(
            rated=one,
            cost=one.hour if held is None else aim.hour(one.choice, held.units),
            latency_s=row[1],
            latency=target,
            carried=one.capacity.load,
        )
        for (one, held), row, on in zip(possible, rows, front(np.array(rows)), strict=True)
        if on
    )


def _latency_s(one: Rated, held: Confirmed | None, target: str, slo: Slo) -> float:
    """Return it over several seeds where that is known, else of one unit alone; nan: it has none."""
    if held is not None and target in held.targets:
        return held.targets[target].mean
    found = measured(one.planned, slo) if one.planned is not None else ()
    return next((value for key, value, _ in found if key == target), nan)
