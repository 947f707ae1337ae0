"""Where a request's time goes, on average and for the slowest, to its first token and to its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from simkv.plots.waterfall import Whole, beside, waterfall
from simkv.report.document import Block, Cell, Data, Figure, Table
from simkv.report.folders import RunFolder
from simkv.report.run.shown import capital, part, time
from simkv.report.run.window import window
from simkv.report.telling import listed
from simkv.results.quantity import seconds, share
from simkv.results.words import PARTS, WAITS, Summary

if TYPE_CHECKING:
    import pandas as pd

_TO_FIRST_TOKEN = ("queue", "load_dram", "load_ssd", "prefill")
"""Parts that come before the first token, in order."""
_REST = ("decode", "decode or preempted")
"""What of the time to the first token is in none of them, where nothing is preempted and where something is."""
_ROUNDING = 1e-12
"""Of a time: what subtracting its parts leaves of it where nothing is left."""
_SLOW = 0.95
_FEWEST_SLOW = 3
_TOLD = 0.005
_DECODE = "decode"
_WAITS_NOTE = "Waits in decoding: as they are in the mean decode step."
_LABELS = {key: label for label, key in PARTS}


def blocks(folder: RunFolder) -> list[Block]:
    """Return the parts of the mean request's time as a staircase, then beside the slowest and the baseline."""
    summary = folder.summary
    mean = summary["time_breakdown_s"]
    if not mean or sum(mean.values()) <= 0:
        return []
    frame = window(folder)
    found: list[Block] = [_staircase(summary)]
    first = [*_first_token(frame, summary), *_first_token_without(summary)]
    ends = [*_to_the_end(frame, summary), *_without(summary)]
    found += _compared("time-to-first-token", "TTFT", first)
    found += _compared("time-to-end", "E2E", ends)
    found.append(_table(ends))
    return found


def mean_parts(summary: Summary) -> Whole:
    """Return the mean time of a request, in parts that sum to the mean E2E."""
    mean = summary["time_breakdown_s"]
    return Whole("mean E2E", with_waits([(label, mean[key]) for label, key in PARTS], summary))


def with_waits(parts: Sequence[tuple[str, float]], figures: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return ``parts`` with decoding under active offload split as its mean step is: computing, then each wait."""
    step_s, waits = figures["t_step_s"], figures["t_wait_s"]
    if not step_s or not waits:
        return list(parts)
    found = []
    for name, value in parts:
        shares = [(wait, waits[key] / step_s) for wait, key in WAITS] if name == _DECODE else []
        found.append((name, value * (1.0 - sum(share for _, share in shares))))
        found += [(wait, value * share) for wait, share in shares]
    return found


def _staircase(summary: Summary) -> Figure:
    whole = mean_parts(summary)
    total_s = whole.total_s
    largest = sorted(whole.parts, key=lambda one: -one[1])
    told = [f"{name} {share(value / total_s)}" for name, value in largest if value >= _TOLD * total_s][:3]
    return Figure(
        name="waterfall",
        finding=f"Of a request's {seconds(total_s)}: {listed(told)}",
        draw=partial(waterfall, whole, "Mean time of a request"),
        data=Data(("part", "mean (s)"), [*whole.parts, ("sum", total_s)]),
        alt="The mean request's time from arrival to its last token, part after part: "
        + parts_text(whole)
        + f"; together {seconds(total_s)}.",
        note=_WAITS_NOTE if summary["t_step_s"] else "",
    )


def _compared(name: str, label: str, wholes: Sequence[Whole]) -> Iterator[Figure]:
    """Yield the bars of ``wholes`` under each other; nothing where there is one alone, or no time in them."""
    wholes = [whole for whole in wholes if whole.total_s > 0]
    if len(wholes) < 2:
        return
    totals = [f"{whole.label} {seconds(whole.total_s)}" for whole in wholes]
    yield Figure(
        name=name,
        finding=f"Mean {label}: {_most(wholes)}",
        draw=partial(beside, wholes, f"Mean {label}"),
        data=Data(("requests", "part", "mean (s)"), [(w.label, part, s) for w in wholes for part, s in w.parts]),
        alt=f"Mean {label} as bars of its parts: {'; '.join(totals)}. " + " ".join(_said(whole) for whole in wholes),
    )


def _most(wholes: Sequence[Whole]) -> str:
    """Say of each bar what most of it is."""
    told = []
    for whole in wholes:
        name, value = max(whole.parts, key=lambda one: one[1])
        told.append(f"{whole.label} {seconds(whole.total_s)}, {share(value / whole.total_s)} of it {name}")
    return "; ".join(told)


def _said(whole: Whole) -> str:
    return f"{capital(whole.label)}: {parts_text(whole)}."


def parts_text(whole: Whole) -> str:
    """Return the parts that took any time: ``queue 12 ms, prefill 90 ms``."""
    return ", ".join(f"{name} {seconds(value)}" for name, value in whole.parts if value > 0)


def _first_token(frame: pd.DataFrame, summary: Summary) -> Iterator[Whole]:
    """Yield what the time to the first token is made of, for all and for the slowest."""
    parts = first_token_parts(frame, bool(summary["preemptions"]))
    for label, rows in _groups(frame, "ttft_s"):
        yield Whole(label, [(name, float(values[rows].mean())) for name, values in parts])


def first_token_parts(frame: pd.DataFrame, preempted: bool) -> list[tuple[str, np.ndarray]]:
    """Return each request's time to its first token in parts that sum to it; ``preempted``: some request was.

    What a preemption added to a part later than the first token isn't counted.
    """
    left = frame["ttft_s"].to_numpy(dtype=np.float64).copy()
    found = []
    for key in _TO_FIRST_TOKEN:
        taken = np.minimum(frame[f"{key}_time_s"].to_numpy(dtype=np.float64), left)
        left = np.maximum(left - taken, 0.0)
        found.append((_LABELS[key], taken))
    rounding = _ROUNDING * frame["ttft_s"].to_numpy(dtype=np.float64)
    return [*found, (_REST[preempted], np.where(left > rounding, left, 0.0))]


def _groups(frame: pd.DataFrame, by: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield all requests, and those slower than 95 % of them, where those are enough."""
    values = frame[by].to_numpy(dtype=np.float64)
    yield "all requests", np.ones(len(values), dtype=bool)
    slow = values > np.quantile(values, _SLOW)
    if slow.sum() >= _FEWEST_SLOW:
        yield "slowest 5 %", slow


def _to_the_end(frame: pd.DataFrame, summary: Summary) -> Iterator[Whole]:
    for label, rows in _groups(frame, "e2e_s"):
        parts = [(name, float(frame[f"{key}_time_s"].to_numpy()[rows].mean())) for name, key in PARTS]
        yield Whole(label, with_waits(parts, summary))


def _without(summary: Summary) -> Iterator[Whole]:
    plain = summary["baselines"].get("no_offload")
    if plain and plain["time_breakdown_s"]:
        parts = [(label, plain["time_breakdown_s"][key]) for label, key in PARTS]
        yield Whole("no offload", with_waits(parts, plain))


def _first_token_without(summary: Summary) -> Iterator[Whole]:
    """Yield the mean time to the first token without offload; only where its parts are known to be all of it."""
    plain = summary["baselines"].get("no_offload")
    if not plain or not plain["time_breakdown_s"] or not plain["ttft_s"]:
        return
    parts, mean_s = plain["time_breakdown_s"], plain["ttft_s"]["mean"]
    known = [(_LABELS[key], parts[key]) for key in _TO_FIRST_TOKEN]
    rest_s = mean_s - sum(value for _, value in known)
    if not plain["preemptions"] and rest_s >= -1e-9 * mean_s:
        yield Whole("no offload", [*known, (_REST[False], max(0.0, rest_s))])


def _table(wholes: Sequence[Whole]) -> Table:
    heads = ["Part of E2E"]
    for whole in wholes:
        heads += [whole.label, "share"]
    named = [dict(whole.parts) for whole in wholes]
    rows = []
    for name in dict.fromkeys(name for parts in named for name in parts):
        values = [parts.get(name, 0.0) for parts in named]
        if any(values):
            cells = [Cell(name)]
            for whole, value in zip(wholes, values, strict=True):
                cells += [time(value), part(value / whole.total_s if whole.total_s else None)]
            rows.append(cells)
    total = [Cell("E2E")]
    for whole in wholes:
        total += [time(whole.total_s), part(1.0)]
    return Table(heads, [*rows, total], name="time-goes-to", right=frozenset(range(1, len(heads))))
