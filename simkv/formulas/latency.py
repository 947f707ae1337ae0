"""Mean time of one KV access over tiers.

Source: the article, T_avg = p_hit * T_vram + (1 - p_hit) * T_mem; over more tiers the weighted sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from simkv.errors import InputError, Problem


def average_latency(hit_rate: float, vram_s: float, memory_s: float) -> float:
    """T_avg of two tiers in seconds. Raises :class:`InputError` for a hit rate outside 0..1."""
    return tiered_latency([hit_rate, 1.0 - hit_rate], [vram_s, memory_s])


def tiered_latency(shares: Sequence[float], latencies_s: Sequence[float]) -> float:
    """T_avg = sum of share * latency in seconds; shares are of accesses and sum to one (within 1e-9).

    A tier without accesses may be infinitely slow. Raises :class:`InputError` otherwise.
    """
    if len(shares) != len(latencies_s):
        raise InputError(Problem(f"{len(shares)} shares for {len(latencies_s)} latencies", "give one of each a tier"))
    if any(not 0 <= share <= 1 for share in shares) or not math.isclose(sum(shares), 1.0, abs_tol=1e-9):
        raise InputError(Problem("are not shares that sum to one", path="shares", value=str(list(shares))))
    return math.fsum(share * latency for share, latency in zip(shares, latencies_s, strict=True) if share)
