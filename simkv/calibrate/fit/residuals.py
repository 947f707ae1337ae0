"""Samples held against a fit, one row each; and samples that can't be right, where more bytes were faster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypedDict

from simkv.calibrate.fit.compute import attention_s, paged_points, step_s
from simkv.calibrate.fit.links import is_pageable, link_s, requests
from simkv.calibrate.fit.points import Point, Setting, interpolate, largest, points_of
from simkv.profile.schema import Compute, Fit, LinkFit, Sample


class ResidualRow(TypedDict):
    """One sample beside what the fit says of it; ``fitted_s`` and ``residual`` are None where it says nothing."""

    kind: str
    at: dict[str, Setting]
    measured_s: float
    """Median of the repeats."""
    fitted_s: float | None
    residual: float | None
    """Fitted over measured, less 1: above 0, the fit is too slow."""
    low_s: float
    """A quarter of the repeats were faster."""
    high_s: float
    """A quarter of them were slower."""
    spread: float
    """(high_s - low_s) over the median."""
    outliers: int
    """Repeats outside Tukey's fences; they are part of the median."""
    repeats: int


Predict = Callable[[Point], float | None]


def residual_rows(samples: Sequence[Sample], fit: Fit) -> list[ResidualRow]:
    """Return a row for every sample, in their order."""
    predict = _predictors(samples, fit)
    return [_row(sample, predict.get(sample.kind)) for sample in samples]


def _row(sample: Sample, predict: Predict | None) -> ResidualRow:
    point = Point(sample.at, sample.median_s)
    fitted = predict(point) if predict else None
    low, high = _quartiles(sample.seconds)
    return ResidualRow(
        kind=sample.kind, at=dict(sample.at), measured_s=point.seconds, fitted_s=fitted,
        residual=None if fitted is None else fitted / point.seconds - 1, low_s=low, high_s=high,
        spread=(high - low) / point.seconds, outliers=len(sample.outliers), repeats=len(sample.seconds),
    )  # fmt: skip


def _quartiles(seconds: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(seconds)
    last = len(ordered) - 1
    ranks = list(enumerate(ordered))
    return interpolate(ranks, last / 4), interpolate(ranks, 3 * last / 4)


def _predictors(samples: Sequence[Sample], fit: Fit) -> dict[str, Predict]:
    """Return, for every kind of sample that the fit says something of, what it says."""
    found: dict[str, Predict] = {}
    for kind, link, pageable in (("h2d", fit.h2d, fit.h2d_pageable), ("d2h", fit.d2h, fit.d2h_pageable)):
        found[kind] = _copy(link, pageable)
    for kind, link in (("ssd_read", fit.ssd_read), ("ssd_write", fit.ssd_write)):
        found[kind] = _request(samples, kind, link)
    rates = (("device_read", fit.memory.read_bytes_per_s, 1), ("device_copy", fit.memory.copy_bytes_per_s, 2))
    for kind, rate, passes in rates:
        found[kind] = _at_rate(largest(points_of(samples, kind), "bytes"), rate, passes)
    if fit.compute is not None:
        found |= _computing(samples, fit.compute)
    if fit.host is not None:
        host = fit.host
        found["host_step"] = lambda p: host.step_s + p.number("blocks", 0.0) * host.block_s
    return found


def _copy(link: LinkFit | None, pageable: LinkFit | None) -> Predict:
    def predict(point: Point) -> float | None:
        of = pageable if is_pageable(point) else link
        return link_s(of, point.number("bytes"), point.number("pieces")) if of else None

    return predict


def _request(samples: Sequence[Sample], kind: str, link: LinkFit | None) -> Predict:
    """Return what is said of the requests that the drive's line was made of; of others it says nothing."""
    used = [point.at for point in requests(samples, kind)[0]]

    def predict(point: Point) -> float | None:
        return link_s(link, point.number("bytes"), point.number("pieces")) if link and point.at in used else None

    return predict


def _at_rate(used: Sequence[Point], rate: float | None, passes: int) -> Predict:
    """Return what is said of the sizes that a memory's rate was made of; of those in caches it says nothing."""
    sizes = [point.number("bytes") for point in used]

    def predict(point: Point) -> float | None:
        size = point.number("bytes")
        return passes * size / rate if rate and size in sizes else None

    return predict


def _computing(samples: Sequence[Sample], compute: Compute) -> dict[str, Predict]:
    """Return what the tables say; of blocks of another size than theirs nothing."""
    paged, in_table = compute.paged, [point.at for point in paged_points(samples)]

    def through_blocks(p: Point) -> float | None:
        if paged is None or p.at not in in_table:
            return None
        return p.number("layers") * attention_s(paged, p.number("batch"), p.number("context"))

    return {
        "linear": lambda p: p.number("layers") * interpolate(compute.linear, p.number("tokens")),
        "head": lambda p: interpolate(compute.head, p.number("tokens")),
        "prefill_attention": lambda p: p.number("layers") * interpolate(compute.prefill, p.number("tokens")),
        "decode_attention": lambda p: (
            p.number("layers") * attention_s(compute.decode, p.number("batch"), p.number("context"))
        ),
        "paged_attention": through_blocks,
        "step": lambda p: step_s(compute, p),
    }


def inversions(samples: Iterable[Sample], margin: float = 0.1) -> list[tuple[Sample, Sample]]:
    """Return pairs (fewer bytes, more bytes) of equal other settings where more bytes were faster beyond noise.

    Beyond noise: three quarters of the repeats with more bytes were faster, by ``margin``, than three quarters of those
    with fewer.
    """
    groups: dict[tuple[str, tuple[tuple[str, Setting], ...]], list[Sample]] = {}
    for sample in samples:
        if "bytes" in sample.at:
            others = tuple(sorted(item for item in sample.at.items() if item[0] != "bytes"))
            groups.setdefault((sample.kind, others), []).append(sample)
    return [pair for group in groups.values() for pair in _inverted(group, margin)]


def _inverted(group: Sequence[Sample], margin: float) -> list[tuple[Sample, Sample]]:
    ordered = sorted(group, key=lambda sample: _bytes(sample.at))
    return [
        (fewer, more)
        for k, fewer in enumerate(ordered)
        for more in ordered[k + 1 :]
        if _bytes(more.at) > _bytes(fewer.at)
        and _quartiles(more.seconds)[1] * (1 + margin) < _quartiles(fewer.seconds)[0]
    ]


def _bytes(at: Mapping[str, Setting]) -> float:
    return float(at["bytes"])
