"""Where prompt tokens come from: hit rates by tier under the ceiling of an infinite cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from simkv.plots.hits import NAMES, hit_shares, hits_over_time
from simkv.report.document import Block, Cell, Data, Figure, Table, Text
from simkv.report.folders import RunFolder
from simkv.report.run.shown import part
from simkv.report.run.window import finished, first_arrival_s
from simkv.report.telling import listed
from simkv.results.quantity import share
from simkv.results.words import TIERS, Summary

_BINS = 48
_FEWEST = 5
"""Requests a bin of time has on average; without twice as many there is no figure over time."""
_ROUNDING = 1e-9
_ABOVE = (
    "The ceiling has requests in the order in which they arrive. Where they are served in another, one that came "
    "first hits what a later one brought, and hits lie above it for a while; over the whole run they don't."
)
_KEYS = (*NAMES, "ceiling")
_HEADS = ("VRAM", "DRAM", "SSD", "computed", "ceiling (infinite cache)")


def blocks(folder: RunFolder) -> list[Block]:
    """Return hit rates as a figure, a table and over time; nothing where no prompt was served."""
    summary = folder.summary
    rates = summary["hit_rate"]
    if not rates:
        return []
    if rates["miss"] == 1 and rates["ceiling"] == 0:
        return [Text("No prompt begins like an earlier one, as far as the workload says: there is nothing to cache.")]
    rows = [("this run", rates)]
    plain = summary["baselines"].get("no_offload")
    if plain and plain["hit_rate"]:
        rows.append(("no offload", plain["hit_rate"]))
    table = Table(
        ("Prompt tokens from", *_HEADS),
        [(Cell(label), *(part(one[key]) for key in _KEYS)) for label, one in rows],
        name="hit-rates-by-tier",
        right=frozenset(range(1, 6)),
    )
    figure = Figure(
        name="hit-rates",
        finding=_finding(summary),
        draw=partial(hit_shares, rows),
        data=Data(("run", *_HEADS), [(label, *(one[key] for key in _KEYS)) for label, one in rows]),
        alt="Shares of prompt tokens by where they came from. "
        + " ".join(f"{label.capitalize()}: {_said(one)}." for label, one in rows),
    )
    return [figure, *_over_time(folder), table]


def _finding(summary: Summary) -> str:
    rates, plain = summary["hit_rate"], summary["baselines"].get("no_offload")
    named = [f"{label} {share(rates[key])}" for label, key in TIERS if rates[key]]
    if not named:
        return f"All prompt tokens were computed; an infinite cache would have saved {share(rates['ceiling'])}"
    text = f"{share(1 - rates['miss'])} of prompt tokens come from cache ({listed(named)})"
    if plain and plain["hit_rate"]:
        mine, theirs = share(1 - rates["miss"]), share(1 - plain["hit_rate"]["miss"])
        text += f" instead of {theirs}" if mine != theirs else ", as without offload"
    return f"{text}; an infinite cache would reach {share(rates['ceiling'])}"


def _said(rates: dict[str, float]) -> str:
    return ", ".join(f"{label} {share(rates[key])}" for label, key in zip(_HEADS, _KEYS, strict=True))


@dataclass(frozen=True)
class Bins:
    """Prompt tokens by arrival time: those of each span, and which share of them came from where."""

    edges_s: list[float]
    prompt_tokens: list[int]
    shares: dict[str, list[float]]


def bins_over_time(folder: RunFolder) -> Bins | None:
    """Return hit rates by when requests arrived, since the first; None where they are too few or came at once."""
    frame = finished(folder)
    count = min(_BINS, len(frame) // _FEWEST)
    if count < 2:
        return None
    arrival = frame["arrival_s"].to_numpy() - first_arrival_s(folder)
    if arrival[-1] <= arrival[0]:
        return None
    edges = np.linspace(0.0, arrival[-1], count + 1)
    place = np.clip(np.searchsorted(edges, arrival, side="right") - 1, 0, count - 1)
    columns = {key: f"hit_{key}_tokens" for _, key in TIERS} | {"ceiling": "ceiling_tokens"}
    prompt = np.bincount(place, frame["prompt_tokens"], count)
    there = np.flatnonzero(prompt)
    shares = {key: np.bincount(place, frame[name], count)[there] / prompt[there] for key, name in columns.items()}
    begins = [float(edges[k]) for k in there]
    return Bins(
        [*begins, float(edges[-1])],
        [int(prompt[k]) for k in there],
        {key: [float(value) for value in values] for key, values in shares.items()},
    )


def _over_time(folder: RunFolder) -> Iterator[Figure]:
    bins = bins_over_time(folder)
    if bins is None or len(bins.prompt_tokens) < 2:
        return
    ceiling = bins.shares["ceiling"]
    hit = [sum(values) for values in zip(*(bins.shares[key] for _, key in TIERS), strict=True)]
    half = len(hit) // 2
    early, late = (_mean(hit[side], bins.prompt_tokens[side]) for side in (slice(0, half), slice(half, None)))
    columns = (bins.edges_s[:-1], bins.prompt_tokens, *(bins.shares[key] for key in ("vram", "dram", "ssd", "ceiling")))
    yield Figure(
        name="hit-rates-over-time",
        finding=f"{share(early)} of prompt tokens hit in the first half of the arrivals, {share(late)} in the second",
        draw=partial(hits_over_time, bins.edges_s, bins.shares),
        data=Data(
            ("arrival from (s)", "prompt tokens", "VRAM", "DRAM", "SSD", "ceiling"), list(zip(*columns, strict=True))
        ),
        alt=f"Share of prompt tokens from VRAM, DRAM and SSD over when requests arrived, in {len(hit)} spans of time: "
        f"{share(hit[0])} at first, {share(hit[-1])} at last, {share(min(hit))} at least, {share(max(hit))} at most; "
        f"the ceiling of an infinite cache is {share(bins.shares['ceiling'][-1])} at last.",
        note=_ABOVE if any(mine > most + _ROUNDING for mine, most in zip(hit, ceiling, strict=True)) else "",
    )


def _mean(values: list[float], weights: list[int]) -> float:
    return float(np.average(values, weights=weights))
