"""Bandwidth over transfer size to latency and bandwidth: what a tool's few points tell, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from simkv.profile.schema import LinkFit, Residual

Point = tuple[float, float]
"""(bytes of one transfer, B/s)."""


@dataclass(frozen=True, slots=True)
class Range:
    """Which sizes tell what."""

    flat_bytes: float
    """From here on, or from a quarter of the largest size, bandwidth is the link's."""
    small_bytes: float
    """Below this the cost of one piece shows."""


COPIES = Range(16e6, 4e6)
REQUESTS = Range(1 << 20, 256 << 10)


def link_of(points: Sequence[Point], sizes: Range, note: str, first_s: float = 0.0) -> LinkFit:
    """Return the link through ``points``, sizes rising.

    Bandwidth is the median over large transfers; a piece's latency is the median of what small ones take beyond
    that, 0 where there are none. ``first_s``: what a lone transfer takes beyond both.
    """
    flat = min(points[-1][0] / 4, sizes.flat_bytes)
    rate = median(bytes_per_s for size, bytes_per_s in points if size >= flat)
    beyond = [size / bytes_per_s - size / rate for size, bytes_per_s in points if size < min(flat, sizes.small_bytes)]
    latency_s = max(0.0, median(beyond)) if beyond else 0.0
    off = [abs((latency_s + size / rate) * bytes_per_s / size - 1) for size, bytes_per_s in points]
    latency = f"latency of a piece from {len(beyond)} small sizes" if beyond else "latency of a piece isn't measured"
    return LinkFit(
        setup_s=first_s,
        latency_s=latency_s,
        bytes_per_s=rate,
        smallest_bytes=points[0][0],
        largest_bytes=points[-1][0],
        residual=Residual(points=len(points), median=median(off), largest=max(off)),
        note=f"imported, {note}; {latency}"[:2000],
    )
