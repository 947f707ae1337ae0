"""The Pareto front of a sweep as a figure: latency against cost or throughput, with what nothing beats."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from simkv.plots.sweep import Spot, front
from simkv.report.document import Data, Figure
from simkv.report.sweep.headline import where
from simkv.report.sweep.metrics import Named, capital, of_objective, values
from simkv.report.telling import listed
from simkv.results.quantity import count
from simkv.sweeps.best import Front, lines
from simkv.sweeps.result import SweepResult
from simkv.sweeps.settings import Setting

_FEWEST = 3
_NUMBERED = 12
"""Settings of the front that are named."""
_LATENCIES = ("ttft_s", "itl_s", "tpot_s", "e2e_s", "t_step_s")


def front_figure(result: SweepResult, found: Front) -> Figure | None:
    """Return latency against cost, or what comes of it; None where fewer than two objectives differ."""
    if len(found.objectives) < 2 or len(result.settings) < _FEWEST:
        return None
    across, up = _pair(found)
    ups = {id(setting): value for setting, value in values(result, up.name)}
    both = [(setting, x, ups[id(setting)]) for setting, x in values(result, across.name) if id(setting) in ups]
    named = {id(setting): where(params) for params, setting in list(lines(found, result.axes))[:_NUMBERED]}
    on = {id(setting) for setting in found.settings}
    numbers = {key: str(number) for number, key in enumerate(named, start=1)}
    told = "; ".join(f"{at}, {_found(key, both, across, up)}" for key, at in named.items())
    key_to = "; ".join(f"{numbers[key]}: {at}" for key, at in named.items())
    note = _note(found, across, up)
    much = "1 setting is" if len(on) == 1 else f"{count(len(on))} of {count(len(both))} settings are"
    return Figure(
        name="sweep-pareto",
        finding=f"{much} beaten by none in {listed(of_objective(one).label for one in found.objectives)}",
        draw=partial(
            front, [Spot(x, y, numbers.get(id(s), ""), id(s) in on) for s, x, y in both], across.scale, up.scale
        ),
        data=Data(
            [*result.axes, across.head, up.head, "on the front"],
            [[*(s.params[axis] for axis in result.axes), x, y, id(s) in on] for s, x, y in both],
        ),
        alt=f"{capital(up.label)} over {across.label}, a mark a setting. On the front: {told}. {note}".strip(),
        note=f"{key_to}. {note}".strip(),
    )


def _found(key: int, both: Sequence[tuple[Setting, float, float]], across: Named, up: Named) -> str:
    return next(f"{across.label} {across.text(s)}, {up.label} {up.text(s)}" for s, *_ in both if id(s) == key)


def _pair(found: Front) -> tuple[Named, Named]:
    """Return what is drawn sideward and upward: cost, or else what comes of it, and a latency."""
    latencies = [one for one in found.objectives if one.metric.partition(".")[0] in _LATENCIES]
    up = latencies[0] if latencies else found.objectives[0]
    others = [one for one in found.objectives if one != up]
    across = min(others, key=lambda one: (not one.metric.startswith("cost"), one in latencies))
    return of_objective(across), of_objective(up)


def _note(found: Front, across: Named, up: Named) -> str:
    more = [of_objective(one).label for one in found.objectives if one.metric not in (across.name, up.name)]
    texts = [f"The front is also about {listed(more)}, which isn't drawn."] if more else []
    if found.without:
        texts.append(f"{found.without:,} settings lack one of these figures and aren't compared.")
    return " ".join(texts)
