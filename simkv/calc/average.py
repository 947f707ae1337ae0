"""T_avg: the mean time of an access over tiers (formulas/latency)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simkv.calc.answer import Answer, Line, shown
from simkv.calc.machine import descriptor_s, host_link
from simkv.errors import InputError, Problem
from simkv.formulas.kv_size import kv_bytes_per_token_per_rank
from simkv.formulas.latency import tiered_latency
from simkv.formulas.step import attention_bytes_per_s
from simkv.formulas.transfer import transfer_s
from simkv.hardware import Gpu
from simkv.model import ModelShape


class Tier(NamedTuple):
    """A tier, the share of accesses that it serves, and what one takes (s)."""

    name: str
    share: float
    time_s: float


def t_avg(tiers: Sequence[Tier], inputs: Sequence[Line] = ()) -> Answer:
    """Return the mean time of an access. Raises InputError unless the shares are fractions that sum to one."""
    if not tiers:
        raise InputError(Problem("no tier is given", 'give one like "vram=0.9:1us"', path="tier"))
    total = sum(tier.share for tier in tiers)
    if abs(total - 1) > 1e-9:
        raise InputError(Problem(f"the shares sum to {total:g}", "they must sum to 1", path="tier"))
    mean_s = tiered_latency([tier.share for tier in tiers], [tier.time_s for tier in tiers])
    fastest_s = min(tier.time_s for tier in tiers)
    given = [
        Line(tier.name, tier.time_s, tier.name, "time", f"{shown(tier.share, 'fraction')} of accesses")
        for tier in tiers
    ]
    parts = [_part(tier, mean_s) for tier in tiers]
    slower = [Line("slowdown", mean_s / fastest_s if fastest_s else None, "against the fastest", "number", "times")]
    return Answer(
        "T_avg: mean time of an access",
        "T_avg = sum of share x time over the tiers;  two tiers: p_hit T_vram + (1 - p_hit) T_mem",
        [*inputs, *given],
        parts,
        [Line("t_avg_s", mean_s, "T_avg", "time"), *slower],
        {"tiers": [tier._asdict() for tier in tiers]},
    )


def two_tiers(p_hit: float, vram_s: float, memory_s: float, inputs: Sequence[Line] = ()) -> Answer:
    """Return T_avg of the article: a share ``p_hit`` in VRAM, the rest in memory below."""
    return t_avg([Tier("vram", p_hit, vram_s), Tier("memory", 1 - p_hit, memory_s)], inputs)


def of_blocks(
    model: ModelShape, gpu: Gpu, p_hit: float, block_tokens: int = 16, tensor_parallel: int = 1, kv_dtype: str = "auto"
) -> Answer:
    """Return T_avg of reading one block of KV: from the card's memory, or over its link (one piece, idle)."""
    size = block_tokens * kv_bytes_per_token_per_rank(model, kv_dtype, tensor_parallel)
    hbm, link = attention_bytes_per_s(gpu), host_link(gpu)
    inputs = [
        Line("model", model.name, "model", "text"),
        Line("hardware", gpu.name, "hardware", "text"),
        Line("block_bytes", size, "block, one rank", "size", f"{block_tokens} tokens"),
        Line("hbm_bytes_per_s", hbm, "memory of the card", "rate", "as attention reads it"),
        Line("h2d_bytes_per_s", link.value, "host link", "rate", link.standing),
    ]
    return two_tiers(p_hit, size / hbm, transfer_s(size, link.value, 1, descriptor_s()), inputs)


def _part(tier: Tier, mean_s: float) -> Line:
    part_s = tier.share * tier.time_s if tier.share else 0.0
    note = f"{100 * part_s / mean_s:.3g} % of T_avg" if mean_s else ""
    return Line("", part_s, f"share x time, {tier.name}", "time", note)
