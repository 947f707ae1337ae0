"""Transfers: ``setup + pieces * latency + bytes / bandwidth``, of a link in one direction or of a drive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import numpy as np

from simkv.calibrate.fit.points import Pairs, Point, points_of, residual_of, table
from simkv.calibrate.fit.robust import Array, nonnegative_fit, separable
from simkv.formulas.transfer import transfer_s
from simkv.profile.schema import LinkFit, Sample
from simkv.units import short

KV_PIECES_BYTES = (16 * 1024, 8 * 1024 * 1024)
"""What KV moves: blocks of one layer to blocks of all. The fit is to be nearest there."""
_OUTSIDE = 0.3
"""Weight of pieces outside that range."""
_NEAR, _FAR = 2.5, 0.3
"""Pieces within such a factor of those that a model's KV has count in full, others of the range with this weight."""
_DEPARTS = 0.15
"""Share by which transfers of one size are off where the note says so."""
_SHOWS = 0.05
"""Least share of some transfer's time that its bytes must take for a bandwidth to be told."""


def link_s(fit: LinkFit, piece_bytes: float, pieces: float = 1) -> float:
    """Seconds of one transfer of ``pieces`` pieces."""
    return fit.setup_s + transfer_s(pieces * piece_bytes, fit.bytes_per_s, pieces, fit.latency_s)


def fit_links(samples: Sequence[Sample], near_bytes: float | None = None) -> dict[str, LinkFit]:
    """Return what was measured of ``h2d d2h h2d_pageable d2h_pageable ssd_read ssd_write``.

    ``near_bytes``: the size of piece that the lines are to be nearest at; None: all that KV may have.
    """
    found: dict[str, LinkFit | None] = {}
    for kind in ("h2d", "d2h"):
        points, remarks = host_copies(samples, kind)
        found[kind] = fit_link(points, remarks, near_bytes)
        found[f"{kind}_pageable"] = fit_link([p for p in points_of(samples, kind) if is_pageable(p)], (), near_bytes)
    for kind in ("ssd_read", "ssd_write"):
        points, remarks = requests(samples, kind)
        found[kind] = fit_link(points, [*remarks, *_deep(points_of(samples, kind), points)], near_bytes)
    return {name: fit for name, fit in found.items() if fit is not None}


def is_pageable(point: Point) -> bool:
    """Say whether a copy's host memory isn't pinned."""
    return point.at.get("memory") == "pageable"


def host_copies(samples: Iterable[Sample], kind: str) -> tuple[list[Point], list[str]]:
    """Return the points that stand for a link: those of pinned memory, where there are any; and what to say of it."""
    points = points_of(samples, kind)
    pinned = [point for point in points if not is_pageable(point)]
    return (pinned, []) if pinned or not points else (points, ["copies of pageable memory"])


def requests(samples: Iterable[Sample], kind: str) -> tuple[list[Point], list[str]]:
    """Return the points that stand for a drive, and what to say of it.

    Requests one after another, as a thread that loads pieces makes them; past the page cache, where that was measured.
    """
    points = points_of(samples, kind)
    direct = [point for point in points if point.at.get("direct", True)]
    remarks = [] if direct or not points else ["through the page cache: O_DIRECT wasn't measured"]
    chosen = direct or points
    depth = min((point.number("depth") for point in chosen), default=1.0)
    if depth > 1:
        remarks.append(f"{depth:g} requests at a time: one after another wasn't measured")
    return [point for point in chosen if point.number("depth") == depth], remarks


def _deep(points: Sequence[Point], chosen: Sequence[Point]) -> list[str]:
    """Return the best rate of more requests at a time than ``chosen`` has, in words."""
    if not chosen:
        return []
    direct, depth = chosen[0].at.get("direct", True), chosen[0].number("depth")
    deeper = [p for p in points if p.at.get("direct", True) == direct and p.number("depth") > depth]
    if not deeper:
        return []
    best = max(deeper, key=lambda p: _moved(p) / p.seconds)
    rate, size = short(_moved(best) / best.seconds, "rate"), short(best.number("bytes"), "size")
    return [f"best with more requests at a time: {rate} ({best.number('depth'):g} of {size})"]


def fit_link(points: Sequence[Point], remarks: Sequence[str] = (), near_bytes: float | None = None) -> LinkFit | None:
    """Return the line through ``points`` (settings ``bytes`` of one piece and ``pieces``); None without any.

    ``remarks`` begin its note, which also says what couldn't be told apart, and where pieces of some size depart.
    """
    if not points:
        return None
    sizes = np.array([point.number("bytes") for point in points])
    pieces = np.array([point.number("pieces") for point in points])
    seconds = np.array([point.seconds for point in points])
    weights = _weights(sizes, near_bytes)
    terms, notes = _terms(sizes, pieces, seconds)
    solution = dict(zip(terms, nonnegative_fit(np.column_stack(list(terms.values())), seconds, weights), strict=True))
    fitted = _sum(terms, solution)
    if np.max(solution["bytes"] * terms["bytes"] / fitted) < _SHOWS:
        solution = _bounded(terms, seconds, weights)
        fitted = _sum(terms, solution)
        notes.append("no piece is large enough to show the bandwidth, which is the best rate seen")
    notes += _departures(sizes, pieces, seconds / fitted)
    return LinkFit(
        setup_s=float(solution.get("setup", 0.0)), latency_s=float(solution.get("latency", 0.0)),
        bytes_per_s=float(1 / solution["bytes"]), smallest_bytes=float(sizes.min()), largest_bytes=float(sizes.max()),
        residual=residual_of(fitted, seconds), note="; ".join([*remarks, *notes]),
    )  # fmt: skip


def _weights(sizes: Array, near_bytes: float | None) -> Array:
    low, high = KV_PIECES_BYTES
    weights = np.where((sizes >= low) & (sizes <= high), 1.0, _OUTSIDE)
    near = None if near_bytes is None else (sizes <= near_bytes * _NEAR) & (sizes >= near_bytes / _NEAR)
    return weights if near is None or not near.any() else np.where(near, 1.0, _FAR * weights)


def _terms(sizes: Array, pieces: Array, seconds: Array) -> tuple[dict[str, Array], list[str]]:
    """Return what each unknown is multiplied by, only as many as can be told apart, and what to say of the others."""
    terms, notes = {"bytes": sizes * pieces}, []
    missing = {
        "latency": "latency can't be told from bandwidth, which takes all: pieces of one size only",
        "setup": "setup can't be told from latency, which takes all: transfers differ in too little",
    }
    for name, term in (("latency", pieces), ("setup", np.ones_like(pieces))):
        if separable(np.column_stack([*terms.values(), term]) / seconds[:, None]):
            terms[name] = term
        else:
            notes.append(missing[name])
    if (pieces == pieces[0]).all() and "latency" in terms:
        notes[-1] = f"setup can't be told from latency, which takes all: every transfer has {pieces[0]:g} piece(s)"
    return terms, notes[:1]


def _sum(terms: dict[str, Array], solution: dict[str, float]) -> Array:
    fitted: Array = np.column_stack(list(terms.values())) @ np.array([solution[name] for name in terms])
    return fitted


def _bounded(terms: dict[str, Array], seconds: Array, weights: Array) -> dict[str, float]:
    """Return the other unknowns where bytes take no longer than at the best rate seen."""
    least = float(np.min(seconds / terms["bytes"]))
    others = {name: term for name, term in terms.items() if name != "bytes"}
    if not others:
        return {"bytes": least}
    rest = nonnegative_fit(np.column_stack(list(others.values())), seconds, weights, least * terms["bytes"])
    return {"bytes": least, **{name: float(value) for name, value in zip(others, rest, strict=True)}}


def _departures(sizes: Array, pieces: Array, ratios: Array) -> list[str]:
    """Say from (or up to) which size on all pieces take longer or less long than the line, ``ratios`` times as long.

    The same of whole transfers, which leave caches where their pieces don't.
    """
    by_size, by_total = (table(zip(keys.tolist(), ratios.tolist(), strict=True)) for keys in (sizes, sizes * pieces))
    ends = [("pieces from {}", by_size[::-1]), ("pieces up to {}", by_size)]
    if len(set(pieces.tolist())) > 1:
        ends.append(("transfers from {} in all", by_total[::-1]))
    return [
        f"{what.format(short(run[-1][0], 'size'))} take {median(ratio for _, ratio in run):.2f} times as long as this"
        for what, points in ends
        if 0 < len(run := _run(points)) < len(points)
    ]


def _run(points: Pairs) -> Pairs:
    """Return the first of ``points`` that are off, all in the same direction."""
    side = 1 if points[0][1] > 1 else -1
    length = next((k for k, (_, ratio) in enumerate(points) if side * (ratio - 1) <= _DEPARTS), len(points))
    return points[:length]


def duplex_bytes_per_s(samples: Iterable[Sample]) -> float | None:
    """Return what both directions carry together, by the largest transfers, of pinned memory if there are any."""
    points, _ = host_copies(samples, "duplex")
    most = max((_moved(point) for point in points), default=0.0)
    return median([2 * _moved(p) / p.seconds for p in points if _moved(p) >= most / 4]) if points else None


def by_buffer(samples: Iterable[Sample], kind: str) -> Pairs | None:
    """Return (bytes of the host's buffer, B/s) of ``h2d_buffer`` or ``d2h_buffer``."""
    points, _ = host_copies(samples, kind)
    return table((p.number("buffer_bytes"), p.number("bytes") / p.seconds) for p in points) or None


def _moved(point: Point) -> float:
    return point.number("bytes") * point.number("pieces")
