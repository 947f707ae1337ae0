"""Speedup over β: what hiding transfers behind computing gives, and what real schedules hide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor
from typing import Any

from simkv.curves import words
from simkv.curves.ask import Answers, Ask, Runs, at
from simkv.curves.estimate import Estimate, estimate
from simkv.curves.house import LAYER, NONE
from simkv.curves.kind import IN_BATCHES, Curve, Ground, Kind, Row
from simkv.curves.setting import DEFAULT_RESIDENCY, Setting
from simkv.errors import InfeasibleError, SimkvError
from simkv.formulas.overlap import feasible_beta, speedup, speedup_bounds
from simkv.results.quantity import digits

NOTHING_AHEAD = "none"
_LINE_POINTS = 100
_MOST_SPARSE = 32
_NEAR = 0.01
_ROUNDING = 1e-9

_DENSE = {"layer": LAYER, "next_step": "{policy: next_step}"}
_SPARSE = {
    "layer": LAYER,
    "next_step last_step": "{policy: next_step, predictor: last_step}",
    "next_step stride": "{policy: next_step, predictor: stride}",
    "next_step heavy_hitters": "{policy: next_step, predictor: heavy_hitters}",
    "oracle": "{policy: oracle}",
}
_REPLAY = {
    **_SPARSE,
    "next_step replay": "{policy: next_step, predictor: replay}",
    "next_step replay beside computing": "{policy: next_step, predictor: replay, demand: overlaps}",
}
_SCHEDULES = {"dense": _DENSE, "reuse": _DENSE, "sparse": _SPARSE, "replay": _REPLAY}


def _why_not(setting: Setting) -> str | None:
    if setting.kind == "batches":
        return f"{IN_BATCHES}β to give, engine.overlap is on or off"
    return None


def _residency(ground: Ground) -> float | None:
    """Return p, or None where the scenario stays as it is."""
    setting = ground.setting
    if setting.shares_budget or setting.kind == "replay":
        return None
    return setting.residency


def house_size(ground: Ground) -> int:
    """Return how many sequences the house has: those that fit at its p; 0 for those of a log."""
    if ground.setting.kind == "replay":
        return 0
    residency = _residency(ground)
    fits = max(1, ground.full.staged(ground.setting.residency if residency is None else residency))
    return min(fits, _MOST_SPARSE) if ground.setting.kind == "sparse" else fits


def _ask(ground: Ground, name: str, prefetch: str) -> Ask | None:
    """Return the question, or None where the scenario's accesses don't allow such a prefetch."""
    case = ground.full.case(_residency(ground), house_size(ground), prefetch)
    try:
        case.resolve()
    except SimkvError:
        return None
    return Ask(name, case, ground.setting.house_seeds)


def _first(ground: Ground) -> Sequence[Ask]:
    without = Ask(
        NOTHING_AHEAD, ground.full.case(_residency(ground), house_size(ground), NONE), ground.setting.house_seeds
    )
    schedules = (_ask(ground, name, text) for name, text in _SCHEDULES[ground.setting.kind].items())
    return [without, *(ask for ask in schedules if ask is not None)]


def _then(ground: Ground, answers: Answers) -> Sequence[Ask]:
    """Ask for β from 0 to what is feasible, and for 1 where that is less."""
    times = _times(answers)
    if times is None:
        return ()
    feasible = feasible_beta(*times)
    betas = [floor(1e6 * feasible * k / ground.setting.steps) / 1e6 for k in range(ground.setting.steps + 1)]
    betas += [1.0] if feasible < 1 else []
    asks = (_ask(ground, f"β = {beta:g}", f"{{policy: fixed_overlap, beta: {beta}}}") for beta in betas)
    return [ask for ask in asks if ask is not None]


def _times(answers: Answers) -> tuple[float, float] | None:
    """Return T_c and T_t of a step without prefetch (s); None where it wasn't simulated, or moves nothing."""
    runs = answers[NOTHING_AHEAD]
    compute_s, transfer_s = runs.value(at("t_compute_s")), runs.value(at("t_transfer_s"))
    return None if not compute_s or not transfer_s else (compute_s, transfer_s)


def _draw(ground: Ground, answers: Answers) -> Curve:
    times = _times(answers)
    if times is None:
        failure = answers[NOTHING_AHEAD].failure
        raise InfeasibleError(failure or "no step moves anything, so that there is nothing to hide")
    rows = [*_line(*times), *_simulated(answers, times)]
    marks = _marks(ground, *times, rows)
    return Curve(
        name="speedup",
        title=_title(marks),
        about=tuple(_about(ground, answers, times)),
        reads=tuple(_reads(marks, rows)),
        parts=tuple(_parts(rows, answers)),
        rows=tuple(rows),
        marks=marks,
    )


def _line(compute_s: float, transfer_s: float) -> Iterator[Row]:
    feasible = feasible_beta(compute_s, transfer_s)
    betas = sorted({k / _LINE_POINTS for k in range(_LINE_POINTS + 1)} | {feasible})
    for beta in betas:
        yield {
            "series": "closed form",
            "beta": beta,
            "speedup": speedup(compute_s, transfer_s, beta),
            "feasible": beta <= feasible,
        }


def _simulated(answers: Answers, times: tuple[float, float]) -> Iterator[Row]:
    without = answers[NOTHING_AHEAD]
    given_first = sorted(answers.items(), key=lambda pair: not pair[0].startswith("β"))
    for name, runs in given_first:
        if not runs or name == NOTHING_AHEAD:
            continue
        gained, beta = _gained(runs, without), runs.over(at("beta"))
        if gained is None or beta is None:
            continue
        asked = float(name.split("= ")[1]) if name.startswith("β") else None
        yield {
            "series": "schedule" if asked is None else "given β",
            "name": _named(asked, beta.mean) if asked is not None else name,
            "asked": asked,
            **beta.row("beta"),
            **gained.row("speedup"),
            "closed": speedup(*times, _within(beta.mean)),
            "t_step_s": runs.value(at("t_step_s")),
            "t_transfer_s": runs.value(at("t_transfer_s")),
        }


def _named(asked: float, given: float) -> str:
    return f"β = {given:.3g}" if abs(asked - given) < _NEAR else f"β = {asked:.3g}, cut"


def _gained(runs: Runs, without: Runs) -> Estimate | None:
    """Return the speedup against the same run without prefetch, seed by seed."""
    pairs = zip(runs.summaries, without.summaries, strict=True)
    return estimate([other["t_step_s"] / one["t_step_s"] if one["t_step_s"] else None for one, other in pairs])


def _marks(ground: Ground, compute_s: float, transfer_s: float, rows: Sequence[Row]) -> dict[str, Any]:
    bounds = speedup_bounds(compute_s, transfer_s)
    schedules = [row for row in rows if row["series"] == "schedule"]
    best = max(schedules, key=lambda row: row["speedup"], default=None)
    return {
        "residency": _residency(ground),
        "t_compute_s": compute_s,
        "t_transfer_s": transfer_s,
        "beta_feasible": feasible_beta(compute_s, transfer_s),
        "speedup_most": bounds.value,
        "speedup_most_article": bounds.article,
        "binding": bounds.binding,
        "best": None if best is None else {key: best[key] for key in ("name", "beta", "speedup")},
    }


def _title(marks: dict[str, Any]) -> str:
    most, best = marks["speedup_most"], marks["best"]
    bound = f"Overlap can give at most {words.times(most)} times the speed"
    if best is None:
        return bound
    return f"{bound}; the best schedule, {best['name']}, gives {words.times(best['speedup'])} (β = {best['beta']:.2g})"


def _about(ground: Ground, answers: Answers, times: tuple[float, float]) -> Iterator[str]:
    setting = ground.setting
    size = answers[NOTHING_AHEAD].summaries[0]["requests"]["finished"]
    yield from words.of_house(ground.full, words.sequences(size))
    yield words.of_seeds(setting.house_seeds, setting.house_drawn)
    if setting.shares_budget:
        yield f"offload.vram_budget is the scenario's, {setting.scenario.offload.vram_budget:g}."
    elif setting.kind != "replay":
        own = 0 < setting.scenario.offload.residency < 1
        why = "the scenario's" if own else f"{DEFAULT_RESIDENCY:g}, as the scenario keeps all KV in VRAM"
        yield f"p is {why}" + (f", {setting.residency:g}." if own else ".")
    yield (
        f"The line is S(β) = (T_c + T_t) / (T_c + (1 - β) T_t) with T_c = {words.time(times[0])} and T_t = "
        f"{words.time(times[1])} of a step without prefetch."
    )


def _reads(marks: dict[str, Any], rows: Sequence[Row]) -> Iterator[str]:
    feasible, article = marks["beta_feasible"], digits(marks["speedup_most_article"])
    times = f"A step computes for {words.time(marks['t_compute_s'])} and moves for {words.time(marks['t_transfer_s'])}"
    if feasible < 1:
        yield (
            f"{times}: it can hide at most β = min(1, T_c / T_t) = {feasible:.2g} of that, and be "
            f"{words.times(marks['speedup_most'])} times as fast. The article's bound 1 + T_t / T_c = {article} would "
            "need β = 1."
        )
    else:
        yield (
            f"{times}: computing is long enough to hide all of it, and the article's bound 1 + T_t / T_c = {article} "
            "is the limit."
        )
    landed = [f"{row['name']} β = {row['beta']:.2g}, S = {words.times(row['speedup'])}" for row in rows
              if row["series"] == "schedule"]  # fmt: skip
    if landed:
        yield f"Where schedules land: {'; '.join(landed)}."
    idle = [row["name"] for row in rows if row["series"] == "schedule" and abs(row["speedup"] - 1) < 1e-3]
    if idle:
        gain = "gains" if len(idle) == 1 else "gain"
        yield f"Of these {', '.join(idle)} {gain} nothing: what is foreseen is in VRAM already."


def _parts(rows: Sequence[Row], answers: Answers) -> Iterator[str]:
    times = _times(answers)
    assert times is not None, "there is a curve"
    given = [(row["speedup"] / row["closed"] - 1, row) for row in rows
             if row["series"] == "given β"]  # fmt: skip
    if given:
        gap, row = max(given, key=lambda pair: abs(pair[0]))
        near = "Where β is given, points lie on the line to " + (
            f"{abs(100 * gap):.1g} %" if abs(gap) > _ROUNDING else "rounding"
        )
        yield f"{near}." if abs(gap) < _NEAR else f"{near} (at β = {row['beta']:.2g}): {_apart(answers)}."
    else:
        yield "No points of a given β: these accesses don't allow fixed_overlap."
    for row in rows:
        if row["series"] != "schedule":
            continue
        gap = row["speedup"] / row["closed"] - 1
        if abs(gap) >= _NEAR:
            where = "above" if gap > 0 else "below"
            yield f"{row['name']} lies {abs(100 * gap):.1f} % {where} the line{_why(row, times)}."
    if any(row.get("asked") == 1.0 for row in rows) and feasible_beta(*times) < 1:
        yield "β = 1 was asked for, too: it is cut to what is feasible."


def _apart(answers: Answers) -> str:
    waits = answers[NOTHING_AHEAD].summaries[0]["t_wait_s"]
    contended = waits["contention"] > _NEAR * answers[NOTHING_AHEAD].summaries[0]["t_step_s"]
    if contended:
        return "without prefetch, computing is slowed by copies and after waits, which T_c leaves out"
    return "steps differ, and the line takes their mean"


def _within(beta: float) -> float:
    return min(1.0, max(0.0, beta))


def _why(row: Row, times: tuple[float, float]) -> str:
    """Say that a schedule moves more or less than what a step needs, where it does."""
    moved_s = row["t_transfer_s"]
    if moved_s is None or abs(moved_s / times[1] - 1) < _NEAR:
        return ": what it waits for isn't spread over steps as T_t is"
    more = "more" if moved_s > times[1] else "less"
    return f": it has needed transfers carried for {words.time(moved_s)} a step, {more} than T_t"


def _later(ground: Ground) -> int:
    return (ground.setting.steps + 2) * len(ground.setting.house_seeds)


SPEEDUP = Kind("speedup", True, _why_not, _first, _then, _draw, _later)
