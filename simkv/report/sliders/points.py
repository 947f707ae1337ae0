"""Simulated points beside the closed forms: those of ``curves.json``, and the run itself on each chart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from simkv.report.sliders.ground import Row, Scene
from simkv.results.quantity import digits, seconds

Point = dict[str, Any]
"""``x``, ``y``, their intervals where there are any, the ``series`` that it is of, and ``text``, what it says."""

_TIERS = ("vram", "dram", "ssd")
_ENDS = {"lru": 1.0, "lfu": 0.0}
"""λ of policies that score has at its ends."""
NAMES = ("t_avg", "t_step", "speedup", "concurrency", "lambda")


def curve_points(scene: Scene, name: str) -> list[Point]:
    """Return the simulated points of a chart; none where there is no such curve."""
    curve = "t_avg" if name == "t_step" else name
    rows = [] if curve not in scene.curves else scene.curves[curve]["rows"]
    return list(_OF_ROWS[name](rows))


def level_lines(scene: Scene) -> list[dict[str, Any]]:
    """Return the hit rates that don't depend on λ: LRU, LFU, and a cache without limit."""
    rows = scene.curves["lambda"]["rows"] if "lambda" in scene.curves else []
    names = {"lru": "LRU", "lfu": "LFU", "ceiling": "no limit"}
    return [
        {"label": names[row["series"]], "y": row["hit_rate"]}
        for row in rows
        if row["series"] in names and row.get("hit_rate") is not None
    ]


def run_point(scene: Scene, name: str) -> Point | None:
    """Return where the run itself lies on a chart; None where it has no such figure."""
    x, y, text = _OF_RUN[name](scene)
    if x is None or y is None:
        return None
    return {"x": x, "y": y, "series": _named(scene, name), "text": f"this run: {text}"}


def _named(scene: Scene, name: str) -> str:
    """Say what a run's point is, with its sequences where the line is of another number of them."""
    of = {"t_step": scene.step_sequences, "speedup": scene.speedup_sequences}
    return "this run" if of.get(name, scene.run_sequences) == scene.run_sequences else f"this run, {_ran(scene)}"


def _ran(scene: Scene) -> str:
    return f"{scene.run_sequences} sequence{'s' if scene.run_sequences != 1 else ''}"


def _point(row: Row, x: str, y: str, series: str, text: str) -> Point:
    found: Point = {"x": row[x], "y": row[y], "series": series, "text": text}
    for axis, key in (("x", x), ("y", y)):
        for end in ("low", "high"):
            if row.get(f"{key}_{end}") is not None:
                found[f"{axis}_{end}"] = row[f"{key}_{end}"]
    return found


def _t_avg(rows: Iterable[Row]) -> Iterator[Point]:
    for row in rows:
        if row["series"] == "on demand" and row.get("t_avg_s") is not None and "p_hit" in row:
            text = f"simulated at p = {row['residency']:g}: T_avg {seconds(row['t_avg_s'])}"
            yield _point(row, "p_hit", "t_avg_s", "simulated", text)


def _t_step(rows: Iterable[Row]) -> Iterator[Point]:
    for row in rows:
        if row["series"] not in ("on demand", "prefetch") or row.get("t_step_s") is None or "p_hit" not in row:
            continue
        text = f"simulated {row['series']} at p = {row['residency']:g}: T_step {seconds(row['t_step_s'])}"
        point = _point(row, "p_hit", "t_step_s", row["series"], text)
        for end in ("low", "high"):
            if row.get(f"step_ratio_{end}") is not None and row.get("step_ratio"):
                point[f"y_{end}"] = row["t_step_s"] * row[f"step_ratio_{end}"] / row["step_ratio"]
        yield point


def _speedup(rows: Iterable[Row]) -> Iterator[Point]:
    for row in rows:
        if row["series"] in ("given β", "schedule"):
            text = f"simulated, {row['name']}: S = {digits(row['speedup'], 4)} at β = {digits(row['beta'])}"
            yield _point(row, "beta", "speedup", row["series"], text)


def _concurrency(rows: Iterable[Row]) -> Iterator[Point]:
    for row in rows:
        if row["series"] == "simulated":
            text = f"simulated at p = {row['residency']:g}: at most {row['running_max']:.0f} sequences at once"
            yield _point(row, "residency", "running_max", "simulated", text)


def _lambda(rows: Iterable[Row]) -> Iterator[Point]:
    for row in rows:
        if row["series"] == "score" and row.get("hit_rate") is not None:
            text = f"simulated at λ = {row['lambda']:g}: {100 * row['hit_rate']:.4g} % hits"
            yield _point(row, "lambda", "hit_rate", "simulated", text)


_OF_ROWS = {"t_avg": _t_avg, "t_step": _t_step, "speedup": _speedup, "concurrency": _concurrency, "lambda": _lambda}

_Found = tuple[float | None, float | None, str]


def _run_t_avg(scene: Scene) -> _Found:
    service = (scene.summary["t_avg_s"] or {}).get("service")
    return scene.summary["p_resident"], service, f"T_avg {seconds(service)}"


def _run_t_step(scene: Scene) -> _Found:
    step_s = scene.summary["t_step_s"]
    return scene.summary["p_resident"], step_s, f"T_step {seconds(step_s)} with {_ran(scene)}"


def _run_speedup(scene: Scene) -> _Found:
    gained, beta = scene.summary["speedup"]["measured"], scene.summary["beta"]
    text = "" if gained is None or beta is None else f"S = {digits(gained, 4)} at β = {digits(beta)}"
    return beta, gained, text


def _run_concurrency(scene: Scene) -> _Found:
    most = scene.summary["concurrency"]["max"]
    if most is None:
        return None, None, ""
    each = most / scene.config.replicas
    replica = " a replica" if scene.config.replicas > 1 else ""
    return 1.0 if scene.what_if else scene.p, each, f"at most {digits(each)} sequences at once{replica}"


def _run_lambda(scene: Scene) -> _Found:
    hits = run_hit_rate(scene)
    return run_lambda(scene), hits, "" if hits is None else f"{100 * hits:.4g} % hits"


def run_lambda(scene: Scene) -> float | None:
    """Return the λ that the run's eviction amounts to; None for policies that have none."""
    eviction = scene.setting.scenario.offload.eviction
    return eviction.lambda_ if eviction.policy == "score" else _ENDS.get(eviction.policy)


def run_hit_rate(scene: Scene) -> float | None:
    """Return what the curve over λ counts as hits: reads under sparse access, else prompt tokens that a tier has."""
    if scene.setting.kind in ("sparse", "replay"):
        return _share(scene.summary["p_resident"])
    rates: Mapping[str, float] | None = scene.summary["hit_rate"]
    return None if rates is None else sum(rates[tier] for tier in _TIERS)


def _share(value: Any) -> float | None:
    return None if value is None else float(value)


_OF_RUN = {
    "t_avg": _run_t_avg,
    "t_step": _run_t_step,
    "speedup": _run_speedup,
    "concurrency": _run_concurrency,
    "lambda": _run_lambda,
}
