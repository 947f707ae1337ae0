"""Concurrency, throughput and inter-token latency over p: what smaller shares buy, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from simkv.curves import words
from simkv.curves.ask import Answers, Ask, at
from simkv.curves.estimate import Summary
from simkv.curves.house import residencies
from simkv.curves.kind import IN_BATCHES, Curve, Ground, Kind, Row, nothing_more
from simkv.curves.setting import Setting
from simkv.errors import InfeasibleError
from simkv.results.quantity import digits

_LINE_POINTS = 90
_WAVES = 2
"""Sequences over those that fit: somebody always waits, until the last wave."""
_SAME = 0.02


def _why_not(setting: Setting) -> str | None:
    if setting.kind == "batches":
        return f"{IN_BATCHES}p, and engine.gpu_batch_size says how many run at once"
    if setting.kind == "replay":
        return "attention's reads are a log of the sequences that it names: more of them can't be simulated"
    return None


def _first(ground: Ground) -> Sequence[Ask]:
    house, prefetch = ground.full, ground.full.own_prefetch()
    return [
        Ask(f"p = {p:g}", house.case(p, _WAVES * max(1, house.staged(p)), prefetch), ground.setting.house_seeds)
        for p in residencies(ground.setting)
    ]


def _draw(ground: Ground, answers: Answers) -> Curve:
    rows = [*_line(ground), *_simulated(ground, answers)]
    points = [row for row in rows if row["series"] == "simulated"]
    if len(points) < 2:
        raise InfeasibleError(next((runs.failure for runs in answers.values() if runs.failure), "no sequence fits"))
    marks = _marks(ground, points)
    return Curve(
        name="concurrency",
        title=_title(marks),
        about=tuple(_about(ground)),
        reads=tuple(_reads(marks, points)),
        parts=tuple(_parts(ground, points, answers)),
        rows=tuple(rows),
        marks=marks,
    )


def _line(ground: Ground) -> Iterator[Row]:
    """Yield C_max and what fits with staging; between the points, too: both are stairs."""
    steps, house = ground.setting.steps, ground.full
    lowest = 1 / steps
    between = {lowest + (1 - lowest) * k / _LINE_POINTS for k in range(_LINE_POINTS + 1)}
    for p in sorted({float(f"{p:.4g}") for p in between} | set(residencies(ground.setting))):
        yield {"series": "closed form", "residency": p, "c_max": house.c_max(p), "staged": house.staged(p)}


def _simulated(ground: Ground, answers: Answers) -> Iterator[Row]:
    for p in residencies(ground.setting):
        runs = answers[f"p = {p:g}"]
        most, mean = runs.over(at("concurrency", "max")), runs.over(at("concurrency", "mean"))
        rate, itl = runs.over(at("output_tokens_per_s")), runs.over(at("itl_s", "p95"))
        if not runs or most is None or mean is None or rate is None or itl is None:
            continue
        step_s, fits = runs.value(at("closed_form", "t_step_s")), ground.full.staged(p)
        yield {
            "series": "simulated",
            "residency": p,
            "c_max": ground.full.c_max(p),
            "staged": fits,
            "seats": ground.full.seats,
            "formula": runs.value(at("concurrency", "formula")),
            "running_max": most.mean,
            **mean.row("running_mean"),
            **rate.row("output_tokens_per_s"),
            **itl.row("itl_p95_s"),
            "itl_mean_s": runs.value(at("itl_s", "mean")),
            "closed_step_s": step_s,
            "closed_tokens_per_s": fits / step_s if step_s else None,
        }


def _marks(ground: Ground, points: Sequence[Row]) -> dict[str, Any]:
    best = max(points, key=lambda row: row["output_tokens_per_s"])
    whole = next((row for row in points if row["residency"] == 1.0), None)
    limit_s = ground.setting.scenario.slo.get("itl_p95")
    holding = [row for row in points if limit_s is not None and row["itl_p95_s"] <= limit_s]
    most = max(holding, key=lambda row: (row["running_max"], row["residency"]), default=None)
    keys = ("residency", "running_max", "output_tokens_per_s", "itl_p95_s")
    return {
        "best": {key: best[key] for key in keys},
        "all_resident": None if whole is None else {key: whole[key] for key in keys},
        "least": {key: points[0][key] for key in keys},
        "fastest": {key: min(points, key=lambda row: row["itl_p95_s"])[key] for key in keys},
        "itl_p95_slo_s": limit_s,
        "within_slo": None if most is None else {key: most[key] for key in keys},
        "seats": ground.full.seats,
    }


def _title(marks: dict[str, Any]) -> str:
    best, whole = marks["best"], marks["all_resident"]
    rate = f"{digits(best['output_tokens_per_s'])} tokens/s"
    if whole is None:
        return f"Throughput is highest at p = {best['residency']:g}, {rate} with {best['running_max']:.0f} sequences"
    if best["residency"] == 1.0:
        least = marks["least"]
        return (
            f"Low p doesn't pay: {least['running_max']:.0f} sequences at p = {least['residency']:g} make "
            f"{digits(least['output_tokens_per_s'])} tokens/s, {whole['running_max']:.0f} at p = 1 make {rate}"
        )
    gain = best["output_tokens_per_s"] / whole["output_tokens_per_s"]
    slower = best["itl_p95_s"] / whole["itl_p95_s"]
    return (
        f"p = {best['residency']:g} makes the most tokens, {digits(gain)} times those of p = 1, "
        f"with ITL p95 {words.longer(slower, 'there')}"
    )


def _about(ground: Ground) -> Iterator[str]:
    house = ground.full
    yield from words.of_house(house, f"at each p {_WAVES} waves of as many sequences as fit, each")
    yield words.of_seeds(ground.setting.house_seeds, ground.setting.house_drawn)
    yield (
        "C_max = floor((M_VRAM - M_model) / (p S_seq)), S_seq the KV of a whole sequence; what fits has whole blocks, "
        f"staging buffers and the engine's seats (max_num_seqs {house.seats}). The lines of throughput and ITL are of "
        "what fits and of the closed form of a step."
    )


def _reads(marks: dict[str, Any], points: Sequence[Row]) -> Iterator[str]:
    best, whole, fastest = marks["best"], marks["all_resident"], marks["fastest"]
    at_best = (
        f"p = {best['residency']:g}: {digits(best['output_tokens_per_s'])} tokens/s with {best['running_max']:.0f} at "
        f"once, ITL p95 {words.time(best['itl_p95_s'])}"
    )
    if whole is not None and best["residency"] < 1:
        gain = best["output_tokens_per_s"] / whole["output_tokens_per_s"]
        yield f"Offline, where throughput counts, low p pays: most at {at_best}; {digits(gain)} times p = 1."
    elif whole is not None:
        yield (
            f"Offline, where throughput counts, low p doesn't pay here: most at {at_best}. More sequences fit below, "
            "but moving their KV takes longer than they bring."
        )
    else:
        yield f"Offline, where throughput counts, take {at_best}."
    yield (
        f"Online, where each token's time counts, high p pays: ITL p95 is shortest at p = {fastest['residency']:g}, "
        f"{words.time(fastest['itl_p95_s'])}, with {fastest['running_max']:.0f} at once."
    )
    yield _of_slo(marks)


def _of_slo(marks: dict[str, Any]) -> str:
    limit_s, within = marks["itl_p95_slo_s"], marks["within_slo"]
    if limit_s is None:
        return "The scenario has no slo.itl_p95: with --set slo.itl_p95=50ms this says how many sequences hold it."
    if within is None:
        return f"With a full house no p holds slo.itl_p95, {words.time(limit_s)}."
    return (
        f"slo.itl_p95, {words.time(limit_s)}, holds with at most {within['running_max']:.0f} at once, at p = "
        f"{within['residency']:g} ({words.time(within['itl_p95_s'])})."
    )


def _parts(ground: Ground, points: Sequence[Row], answers: Answers) -> Iterator[str]:
    staged = [row for row in points if row["staged"] < min(row["c_max"], row["seats"])]
    if staged:
        row = max(staged, key=lambda row: min(row["c_max"], row["seats"]) / row["staged"])
        yield (
            f"Fewer fit than C_max, most at p = {row['residency']:g}: {row['staged']} instead of {row['c_max']}. A "
            "sequence also needs buffers to stream the rest through, and whole blocks."
        )
    seated = [row for row in points if row["c_max"] > row["seats"]]
    if seated:
        p = max(row["residency"] for row in seated)
        yield f"Up to p = {p:g} the engine's seats bind, max_num_seqs {points[0]['seats']}: VRAM would hold more."
    yield from _of_running(points, answers)
    yield from _of_steps(points, answers)


def _of_running(points: Sequence[Row], answers: Answers) -> Iterator[str]:
    fewer = [row for row in points if row["running_max"] < row["staged"]]
    if not fewer:
        yield "As many run at once as fit by the closed form with staging."
        return
    row = max(fewer, key=lambda row: row["staged"] / max(1.0, row["running_max"]))
    full = words.dram_full(answers[f"p = {row['residency']:g}"].summaries[0])
    why = "DRAM has no room for the rest of more" if full else "growing sequences need room, too"
    yield (
        f"At p = {row['residency']:g} at most {row['running_max']:.0f} run where {row['staged']} fit by the closed "
        f"form: {why}."
    )


def _of_steps(points: Sequence[Row], answers: Answers) -> Iterator[str]:
    """Say where throughput parts most from what fits over the closed form of a step."""
    compared = [row for row in points if row["closed_tokens_per_s"]]
    if not compared:
        return
    row = max(compared, key=lambda row: abs(_gap(row)))
    if abs(_gap(row)) < _SAME:
        yield f"Throughput is what the closed forms give, to {100 * abs(_gap(row)):.1g} %."
        return
    run: Summary = answers[f"p = {row['residency']:g}"].summaries[0]
    note = words.step_note(run)
    text = f"Throughput parts most from the closed forms at p = {row['residency']:g}, by {100 * _gap(row):+.0f} %"
    yield f"{text}. {note}" if note else f"{text}: waves begin and end with fewer sequences."


def _gap(row: Row) -> float:
    return float(row["output_tokens_per_s"] / row["closed_tokens_per_s"] - 1)


CONCURRENCY = Kind("concurrency", True, _why_not, _first, nothing_more, _draw)
