"""Hit rate over λ: how recency and frequency are weighed against each other. No closed form exists."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from simkv.curves import words
from simkv.curves.ask import Answers, Ask, Runs, at
from simkv.curves.estimate import Estimate, Figure, Summary, against
from simkv.curves.kind import IN_BATCHES, Curve, Ground, Kind, Row, nothing_more
from simkv.curves.setting import Setting
from simkv.errors import InfeasibleError
from simkv.scenario.active_idle import keeps_prefixes

ARTICLE = (0.5, 0.8)
"""Where the article would have λ."""
_TIERS = ("vram", "dram", "ssd")
_COUNTING = ("lfu", "score")
_LITTLE = 0.005
"""Less of a hit rate is next to nothing."""
_NAMED = 4
"""Of equally good λ, so many are named one by one."""
_ROUNDING = 1e-9
"""Less than this is what sums of floating-point numbers are apart."""


def _why_not(setting: Setting) -> str | None:
    scenario = setting.scenario
    if setting.kind == "batches":
        return f"{IN_BATCHES}eviction that λ could weigh"
    if scenario.offload.eviction.incoming == "candidate":
        return "offload.eviction.incoming candidate goes with lru alone: λ isn't asked"
    if _of_reads(setting):
        return None
    reuses = scenario.engine.prefix_caching and (setting.kind == "reuse" or keeps_prefixes(scenario))
    if not reuses and setting.kind == "dense":
        return "under dense access the resident share is pinned: nothing is evicted by score, and λ can't matter"
    if not reuses:
        return "engine.prefix_caching is false: nothing is found again, and λ can't matter"
    return None


def _of_reads(setting: Setting) -> bool:
    """Say whether hits are attention's reads (and not prompt tokens)."""
    return setting.kind in ("sparse", "replay")


def _lambdas(setting: Setting) -> list[float]:
    return [float(f"{k / setting.steps:.4g}") for k in range(setting.steps + 1)]


def _first(ground: Ground) -> Sequence[Ask]:
    setting = ground.setting
    policies = [(f"λ = {lam:g}", {"policy": "score", "lambda": lam}) for lam in _lambdas(setting)]
    policies += [("lru", {"policy": "lru"}), ("lfu", {"policy": "lfu"})]
    return [Ask(name, setting.case(*_eviction(setting, policy)), setting.own_seeds) for name, policy in policies]


def _eviction(setting: Setting, policy: dict[str, Any]) -> Iterator[str]:
    """Yield what sets ``policy``, with the scenario's own way to count uses where it counts them."""
    own = setting.scenario.offload.eviction
    keys: list[tuple[str, object]] = [("unit", own.unit)] if setting.kind == "reuse" else []
    if policy["policy"] in _COUNTING:
        keys += [("count", own.count), ("half_life", own.half_life)]
    yield f"offload.eviction={json.dumps(policy | {key: value for key, value in keys if value is not None})}"
    for name, cls in setting.scenario.classes.items():
        if cls.retention is not None:
            yield f"classes.{name}.retention=null"


def _hits(setting: Setting) -> Figure:
    return at("p_resident") if _of_reads(setting) else _found


def _found(summary: Summary) -> float | None:
    """Return the share of prompt tokens that some tier had."""
    rates = summary["hit_rate"]
    return None if rates is None else float(sum(rates[tier] for tier in _TIERS))


def _draw(ground: Ground, answers: Answers) -> Curve:
    setting, hits = ground.setting, _hits(ground.setting)
    points = [(lam, answers[f"λ = {lam:g}"]) for lam in _lambdas(setting)]
    points = [(lam, runs) for lam, runs in points if runs.over(hits) is not None]
    if len(points) < 2:
        raise InfeasibleError(next((runs.failure for runs in answers.values() if runs.failure), "nothing was read"))
    rows = list(_rows(setting, points, answers))
    marks = _marks(setting, points, answers)
    return Curve(
        name="lambda",
        title=_title(marks),
        about=tuple(_about(setting, marks)),
        reads=tuple(_reads(setting, marks, points)),
        parts=("No closed form of the hit rate over λ exists: its ends are LRU (λ = 1) and LFU (λ = 0), the lines.",),
        rows=tuple(rows),
        marks=marks,
        warnings=tuple(_cold(points)),
    )


Points = Sequence[tuple[float, Runs]]


def _rows(setting: Setting, points: Points, answers: Answers) -> Iterator[Row]:
    hits = _hits(setting)
    for lam, runs in points:
        yield {"series": "score", "lambda": lam, **_row(runs, hits), **_tiers(setting, runs)}
    for name in ("lru", "lfu"):
        if answers[name]:
            yield {"series": name, "lambda": None, **_row(answers[name], hits), **_tiers(setting, answers[name])}
    if not _of_reads(setting):
        yield {"series": "ceiling", "lambda": None, **_row(points[0][1], at("hit_rate", "ceiling"))}


def _row(runs: Runs, hits: Figure) -> dict[str, float]:
    found = runs.over(hits)
    return found.row("hit_rate") if found is not None else {}


def _tiers(setting: Setting, runs: Runs) -> dict[str, float | None]:
    if _of_reads(setting):
        return {"p_hit": runs.value(at("p_hit")), "t_step_s": runs.value(at("t_step_s"))}
    return {tier: runs.value(at("hit_rate", tier)) for tier in _TIERS} | {
        "ttft_mean_s": runs.value(at("ttft_s", "mean"))
    }


def _marks(setting: Setting, points: Points, answers: Answers) -> dict[str, Any]:
    hits = _hits(setting)
    rates = {lam: runs.over(hits) for lam, runs in points}
    alike = _alike(rates, max)
    best = next((lam for lam in alike if _in_article(lam)), alike[0])
    worst = _alike(rates, min)[0]
    inside = {lam: rate for lam, rate in rates.items() if _in_article(lam)}
    article = _alike(inside, max)[0] if inside else None
    runs = dict(points)

    def gain(over: Runs | None) -> dict[str, float] | None:
        found = against(runs[best].summaries, over.summaries, hits) if over else None
        return None if found is None else found.row("gain")

    return {
        "unit": "reads" if _of_reads(setting) else "prompt tokens",
        "of": "reads that are in VRAM as a step begins" if _of_reads(setting) else "prompt tokens that a tier has",
        "best": {"lambda": best, "hit_rate": _mean(rates[best]), "alike": alike},
        "worst": {"lambda": worst, "hit_rate": _mean(rates[worst])},
        "article": None if article is None else {"lambda": article, "hit_rate": _mean(rates[article])},
        "lru": _mean(answers["lru"].over(hits)),
        "lfu": _mean(answers["lfu"].over(hits)),
        "ceiling": None if _of_reads(setting) else points[0][1].value(at("hit_rate", "ceiling")),
        "best_over_lru": gain(answers["lru"]),
        "best_over_article": gain(runs.get(article)) if article is not None else None,
        "best_over_worst": gain(runs[worst]),
        "spread": _mean(rates[best]) - _mean(rates[worst]),  # type: ignore[operator]
    }


def _in_article(lam: float) -> bool:
    return ARTICLE[0] <= lam <= ARTICLE[1]


def _alike(rates: Mapping[float, Estimate | None], most: Callable[[Iterable[float]], float]) -> list[float]:
    """Return the λ whose rate is the highest, or lowest, but for rounding."""
    means = {lam: rate.mean for lam, rate in rates.items() if rate is not None}
    end = most(means.values())
    return [lam for lam, mean in means.items() if abs(mean - end) < _ROUNDING]


def _mean(found: Estimate | None) -> float | None:
    return None if found is None else found.mean


def _inert(marks: dict[str, Any]) -> bool:
    return bool(marks["spread"] < _ROUNDING and abs(marks["lru"] - marks["best"]["hit_rate"]) < _ROUNDING)


def _title(marks: dict[str, Any]) -> str:
    best, worst = marks["best"], marks["worst"]
    if _inert(marks):
        return f"λ makes no difference: {words.percent(best['hit_rate'])} whatever it is"
    if not _tells(marks["best_over_worst"]):
        return f"λ hardly matters: from {words.percent(worst['hit_rate'])} to {words.percent(best['hit_rate'])}"
    return (
        f"{_hit_most(best)}, {words.percent(best['hit_rate'])}; "
        f"LRU {words.percent(marks['lru'])}, LFU {words.percent(marks['lfu'])}"
    )


def _hit_most(best: Mapping[str, Any]) -> str:
    """``λ = 0.6 hits most``, or all of those that do."""
    alike = best["alike"]
    if len(alike) > _NAMED:
        return f"{len(alike)} λ between {alike[0]:g} and {alike[-1]:g} hit most"
    *others, last = (f"{lam:g}" for lam in alike)
    return f"λ = {', '.join(others)} and {last} hit most" if others else f"λ = {last} hits most"


def _tells(gain: dict[str, float] | None) -> bool:
    """Say whether a difference is beyond its interval."""
    return gain is not None and gain["gain_low"] > 0


def _about(setting: Setting, marks: dict[str, Any]) -> Iterator[str]:
    yield f"The scenario as it is, with eviction policy score. Hits are {marks['of']}."
    yield words.of_seeds(setting.own_seeds, setting.own_drawn)
    if len(setting.own_seeds) > 1:
        yield "All λ have the same random numbers, and differences between them are taken seed by seed."
    if not _of_reads(setting):
        yield "The ceiling is what a cache without limit would hit."


def _reads(setting: Setting, marks: dict[str, Any], points: Points) -> Iterator[str]:
    if _inert(marks):
        yield _why_inert(marks, points)
        return
    best, worst = marks["best"], marks["worst"]
    yield (
        f"{_hit_most(best)}, {words.percent(best['hit_rate'])}, λ = {worst['lambda']:g} least, "
        f"{words.percent(worst['hit_rate'])}: {_points(marks['best_over_worst'])} between them. LRU hits "
        f"{words.percent(marks['lru'])}, LFU {words.percent(marks['lfu'])}"
        + (f", a cache without limit {words.percent(marks['ceiling'])}." if marks["ceiling"] is not None else ".")
    )
    yield _of_article(marks)


def _of_article(marks: dict[str, Any]) -> str:
    article, gap = marks["article"], marks["best_over_article"]
    if article is None:
        return "No point lies in the article's 0.5 to 0.8: give more --points."
    if _in_article(marks["best"]["lambda"]):
        lies = "the best lies in it" if len(marks["best"]["alike"]) == 1 else "none is better"
        return f"The article's 0.5 to 0.8 holds here: {lies} ({_over_lru(marks['best_over_lru'])})."
    best_of_it = f"its best, λ = {article['lambda']:g} with {words.percent(article['hit_rate'])}"
    if not _tells(gap):
        return f"The article's 0.5 to 0.8 does no harm: {best_of_it}, is as good as any, within the interval."
    small = gap is not None and gap["gain"] < _LITTLE
    much = "costs next to nothing here" if small else "isn't best here"
    return f"The article's 0.5 to 0.8 {much}: {best_of_it}, lies {_points(gap)} below λ = {marks['best']['lambda']:g}."


def _over_lru(gain: dict[str, float] | None) -> str:
    return "as good as LRU" if gain is not None and abs(gain["gain"]) < _ROUNDING else f"{_points(gain)} over LRU"


def _points(gain: dict[str, float] | None) -> str:
    """Return a difference of hit rates in percentage points, with its interval."""
    if gain is None:
        return "?"
    half = 100 * (gain["gain_high"] - gain["gain"])
    return f"{100 * gain['gain']:.2g}" + (f" ± {half:.2g}" if half else "") + " points"


def _why_inert(marks: dict[str, Any], points: Points) -> str:
    run: Summary = points[0][1].summaries[0]
    rate, ceiling = marks["best"]["hit_rate"], marks["ceiling"]
    if ceiling == 0:
        return "λ can't matter: no two prompts share anything."
    full = [tier for tier, usage in (run["kv_usage"] or {}).items() if usage and (usage["max"] or 0) >= 0.999]
    if not full and ceiling is not None:
        return "λ can't matter: no tier is ever full, so that nothing has to be evicted."
    if ceiling is not None and abs(rate - ceiling) < 1e-12:
        return "λ can't matter: what is evicted isn't asked for again, and every λ reaches the ceiling."
    return "λ makes no difference: recency and frequency put what is evicted into the same order."


def _cold(points: Points) -> Iterator[str]:
    """Yield the first warning that hit rates are of caches that have yet to fill."""
    for _, runs in points:
        for summary in runs.summaries:
            for warning in summary["warnings"]:
                if warning["code"] == "cold_cache":
                    yield str(warning["message"])
                    return


LAMBDA = Kind("lambda", False, _why_not, _first, nothing_more, _draw)
