"""Active offload: what a decode step is made of, hits and overlap, the mean read four ways, what prefetch did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from simkv.plots.waterfall import Whole, beside, waterfall
from simkv.report.document import Block, Cell, Data, Facts, Figure, Table
from simkv.report.folders import RunFolder
from simkv.report.run.parts import parts_text
from simkv.report.run.shown import part, size, time
from simkv.results.quantity import digits, seconds, share
from simkv.results.words import WAITS, Summary

_T_AVG = (
    ("formula", "closed form: p_hit x T_vram + (1 - p_hit) x T_mem"),
    ("service", "simulated: VRAM's time and each piece's own transfer, alone on its link"),
    ("queued", "simulated: from when a piece was asked for until it was there, its queueing included"),
    ("exposed", "simulated: what of it the GPU waited for"),
)
_PREFETCH = (
    ("accuracy", "Accuracy", "prefetched and then used, of all that was prefetched", part),
    ("coverage", "Coverage", "used from prefetch, of all that wasn't resident", part),
    ("timeliness", "Timeliness", "here when needed, of all that was used", part),
    ("loaded_bytes", "Prefetched", "", size),
    ("wasted_bytes", "Wasted", "prefetched, and gone before it was used", size),
    ("wasted_link_s", "Link time wasted", "on those", time),
    ("demand_delayed_s", "Demand loads delayed", "behind other transfers, summed up", time),
)


def blocks(folder: RunFolder) -> list[Block]:
    """Return the figures of active offload and of prefetch; nothing where a run has neither."""
    summary = folder.summary
    found: list[Block] = []
    if summary["t_step_s"]:
        found += [_step(summary), *_steps_beside(summary), Facts(list(_facts(summary)))]
        found += _average(summary)
    return [*found, *_prefetch(summary)]


def step_parts(figures: Mapping[str, Any], label: str) -> Whole:
    """Return a mean decode step in parts that sum to T_step."""
    waits = figures["t_wait_s"]
    return Whole(label, [("computing", figures["t_compute_s"]), *((name, waits[key]) for name, key in WAITS)])


def _step(summary: Summary) -> Figure:
    whole = step_parts(summary, "T_step")
    total_s = whole.total_s
    waits = [(name, value) for name, value in whole.parts[1:] if value > 0]
    told = ", ".join(f"{name} {share(value / total_s)}" for name, value in waits) or "it waits for nothing"
    closed = summary["closed_form"].get("t_step_s")
    beside_it = f"; the closed form gives {seconds(closed)}" if closed is not None else ""
    return Figure(
        name="decode-step",
        finding=f"A decode step takes {seconds(total_s)}: {told}{beside_it}",
        draw=partial(waterfall, whole, "Mean decode step"),
        data=Data(("part", "mean (s)"), [*whole.parts, ("T_step", total_s)]),
        alt="A mean decode step, part after part: " + parts_text(whole) + f"; together {seconds(total_s)}{beside_it}.",
    )


def _steps_beside(summary: Summary) -> Iterator[Figure]:
    """Yield the step beside those of the baselines."""
    wholes = [step_parts(summary, "this run")]
    for name, other in summary["baselines"].items():
        if other["t_step_s"]:
            wholes.append(step_parts(other, name.replace("_", " ")))
    if len(wholes) < 2:
        return
    totals = [f"{whole.label} {seconds(whole.total_s)}" for whole in wholes]
    yield Figure(
        name="decode-step-beside",
        finding=f"Decode step: {', '.join(totals)}",
        draw=partial(beside, wholes, "Mean decode step"),
        data=Data(("run", "part", "mean (s)"), [(w.label, name, s) for w in wholes for name, s in w.parts]),
        alt=f"Mean decode steps as bars of their parts: {'; '.join(totals)}. "
        + " ".join(f"{whole.label}: {parts_text(whole)}." for whole in wholes),
        note="Without offload fewer sequences run in a step." if "no_offload" in summary["baselines"] else "",
    )


def _facts(summary: Summary) -> Iterator[tuple[str, str]]:
    told = (
        ("p_hit", "p_hit", "of the reads are in VRAM when they are needed"),
        ("p_resident", "Resident", "of the reads are in VRAM as the step begins, prefetches under way not counted"),
        ("beta", "β", "of the time that links carry needed pieces is hidden behind computing"),
    )
    for key, label, what in told:
        if summary[key] is not None:
            yield label, f"{digits(summary[key])}: {share(summary[key])} {what}"
    feasible = summary["closed_form"].get("beta_feasible")
    if feasible is not None:
        yield "β feasible", f"{digits(feasible)}: min(1, T_c / T_t), the most that a step can hide"
    yield "Needed transfers", f"{seconds(summary['t_transfer_s'])} a step"
    faster = summary["speedup"]
    if faster["measured"] is not None:
        closed = f"; closed form S(β) {digits(faster['formula'])}" if faster["formula"] is not None else ""
        most = summary["closed_form"].get("speedup_most")
        bound = f", at most {digits(most)}" if most is not None else ""
        yield "Speedup by prefetch", f"{digits(faster['measured'])} times as fast as without{closed}{bound}"


def _average(summary: Summary) -> Iterator[Table]:
    """Yield the mean time of one read, four ways."""
    average = summary["t_avg_s"]
    if average is None:
        return
    known = {name: value for name, value in average.items() if value is not None}
    if known.get("queued") == 0 and known.get("exposed"):  # of loads one at a time it isn't measured
        del known["queued"]
    rows = [(Cell(name), time(known[name]), Cell(what)) for name, what in _T_AVG if name in known]
    yield Table(("T_avg", "Mean", "Of one read of a (block, layer)"), rows, name="t-avg", right=frozenset({1}))


def _prefetch(summary: Summary) -> Iterator[Table]:
    ahead = summary["prefetch"]
    if ahead is None:
        return
    rows = [
        (Cell(label), show(ahead[key]), Cell(what))
        for key, label, what, show in _PREFETCH
        if ahead.get(key) is not None
    ]
    yield Table(("Prefetch", "", "What it is"), rows, name="prefetch", right=frozenset({1}))
