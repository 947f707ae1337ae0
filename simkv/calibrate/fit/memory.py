"""Bandwidth of device memory and of the host's DRAM, beyond caches: of the largest sizes that were measured."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from simkv.calibrate.fit.points import Point, largest, points_of
from simkv.profile.schema import Memory, Sample


def fit_memory(samples: Sequence[Sample]) -> tuple[Memory, list[str]]:
    """Return what was measured of both memories, and remarks."""
    copies = points_of(samples, "dram_copy")
    near = [point for point in copies if not _is_far(point)]
    threads = _best_threads(near)
    rate = _rate([p for p in near if p.number("threads") == threads], 2)
    far, notes = _far_factor(copies, near)
    return Memory(
        read_bytes_per_s=_rate(points_of(samples, "device_read"), 1),
        copy_bytes_per_s=_rate(points_of(samples, "device_copy"), 2),
        dram_copy_bytes_per_s=rate, dram_threads=threads, far_node_factor=far,
    ), notes  # fmt: skip


def _rate(points: Sequence[Point], passes: int) -> float | None:
    """Return the middle of the largest copies' rates; ``passes``: how often each byte crosses the memory's bus."""
    rates = [passes * p.number("bytes") / p.seconds for p in largest(points, "bytes")]
    return median(rates) if rates else None


def _is_far(point: Point) -> bool:
    return point.at.get("from_node", 0) != point.at.get("to_node", 0)


def _best_threads(points: Sequence[Point]) -> int | None:
    """Return the number of threads that copy most; the fewest of those that copy the same."""
    counts = sorted({int(point.number("threads")) for point in points})
    return max(counts, key=lambda n: _rate([p for p in points if p.number("threads") == n], 2) or 0.0, default=None)


def _far_factor(copies: Sequence[Point], near: Sequence[Point]) -> tuple[float | None, list[str]]:
    """Return how many times longer copies to another node take than those of as many bytes and threads within one."""
    within: dict[tuple[float, float], list[float]] = {}
    for point in near:
        within.setdefault((point.number("bytes"), point.number("threads")), []).append(point.seconds)
    factors = [
        far.seconds / median(within[key])
        for far in copies
        if _is_far(far) and (key := (far.number("bytes"), far.number("threads"))) in within
    ]
    return clamped(median(factors), "copies to another NUMA node") if factors else (None, [])


def clamped(factor: float, what: str) -> tuple[float, list[str]]:
    """Return ``factor``, at least 1, and a remark where it was less."""
    if factor >= 1.0:
        return factor, []
    return 1.0, [f"{what}: measured {factor:.3f} times as long, which noise must be; taken as 1"]
