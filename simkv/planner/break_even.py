"""Where offloading breaks even: the bandwidth above which loading beats computing, and the reuse that pays for it."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isinf
from typing import Any

from simkv import units
from simkv.results.quantity import change, share
from simkv.scenario.build import block_tokens, cost, kv_bytes_of_token, link_config
from simkv.scenario.resolve import Resolved

_FORMULA = "KV of the span / time to prefill it = alpha x prefill tokens/s"


def break_even(resolved: Resolved, planned: Mapping[str, Any] | None, judged: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bandwidth above which loading beats computing, and the reuse at which offload pays its price.

    Objective latency: one request alone, whose span is what prompts share with earlier ones, on average
    (``span_tokens``). ``bytes_per_s`` is needed; ``link`` and ``ssd`` say what there is, and how many times that.
    ``reuse``: see :func:`reuse_share`. Null where prompts share nothing, or nothing ran.
    """
    span = reused_span(planned, block_tokens(resolved))
    needed = needed_bytes_per_s(resolved, span) if span else None
    link, ssd = ways(resolved)
    reuse = reuse_share(below_share(planned), judged)
    return {
        "objective": "latency",
        "span_tokens": span,
        "bytes_per_s": needed,
        "formula": _FORMULA,
        "link": _way(link, needed),
        "ssd": None if ssd is None else _way(ssd, needed),
        "because": _even(span, needed, link, ssd) if planned is not None else "",
        "reuse": reuse,
    }


def reused_span(planned: Mapping[str, Any] | None, block: int) -> int | None:
    """Return the tokens of a mean prompt that an earlier request had too, in whole blocks; None: fewer than one."""
    if planned is None or not planned.get("hit_rate") or not planned["requests"]["finished"]:
        return None
    prompt = planned["prompt_tokens"] / planned["requests"]["finished"]
    span = int(planned["hit_rate"]["ceiling"] * prompt) // block * block
    return span or None


def needed_bytes_per_s(resolved: Resolved, span_tokens: int) -> float:
    """Return the bandwidth above which loading the span beats computing it in the engine's own steps."""
    step, most = cost(resolved), resolved.scenario.engine.max_num_batched_tokens
    starts = range(0, span_tokens, most)
    prefill_s = sum(step.mixed(0, 0, [(min(most, span_tokens - before), before)], 1) for before in starts)
    return span_tokens * kv_bytes_of_token(resolved) / prefill_s


def ways(resolved: Resolved) -> tuple[float, float | None]:
    """Return the bandwidth up to the GPUs of one replica from DRAM, and from SSD through DRAM (None: there is none)."""
    tiers, link = resolved.scenario.tiers, link_config(resolved)
    up = min(link.h2d_bytes_per_s, link.uplink_bytes_per_s, tiers.dram.bandwidth)
    if not tiers.ssd.capacity:
        return up, None
    if not up or not tiers.ssd.read:
        return up, 0.0
    each_byte_s = 1 / up + 1 / tiers.ssd.read
    return up, 1 / each_byte_s if each_byte_s else inf


def _way(bytes_per_s: float, needed: float | None) -> dict[str, Any]:
    endless = isinf(bytes_per_s)
    return {
        "bytes_per_s": None if endless else bytes_per_s,
        "times": None if endless or not needed else bytes_per_s / needed,
        "better": None if needed is None else "load" if bytes_per_s > needed else "recompute",
    }


def _even(span: int | None, needed: float | None, link: float, ssd: float | None) -> str:
    if span is None or needed is None:
        return "Prompts share nothing with earlier ones: there is nothing to load."
    known = {"the link": link, "SSD, through DRAM": ssd}
    there = [f"{name} has {units.short(rate, 'rate')}" for name, rate in known.items() if rate is not None]
    what = f"Loading a span of {span:,} tokens beats computing it above {units.short(needed, 'rate')}"
    return f"{what}; {' and '.join(there)}."


def below_share(planned: Mapping[str, Any] | None) -> float | None:
    """Return the share of prompt tokens that were found below VRAM; None without any prompt."""
    rates = (planned or {}).get("hit_rate")
    return rates["dram"] + rates["ssd"] if rates else None


def reuse_share(now: float | None, judged: Mapping[str, Any]) -> dict[str, Any]:
    """Return the share of prompt tokens found below VRAM at which what offload gains just pays its price.

    ``share`` (null: no share does, or that can't be said), ``now`` (the simulated share), ``how``. What a unit carries
    is taken as a straight line over that share, from what it carries without offload at none to what it does now.
    """
    one, other, answer = judged.get("with"), judged.get("without"), {"share": None, "now": now}
    if one is None or other is None or not now or not one["load"] or not other["load"]:
        return {
            **answer,
            "how": "Nothing to draw a line through: one of the two was not measured, or nothing is reused.",
        }
    gained = one["load"] / other["load"] - 1
    prices = one["price_per_hour"], other["price_per_hour"]
    extra = prices[0] / prices[1] - 1 if prices[0] is not None and prices[1] else 0.0
    certain = abs(gained) > (one["doubt"] or 0.0) + (other["doubt"] or 0.0)
    if extra <= 0 and (gained >= 0 or not certain):
        return {**answer, "share": 0.0, "how": "The lower tiers cost nothing more, and nothing is lost without reuse."}
    if gained <= 0 or not certain:
        return {**answer, "how": "A unit carries no more with lower tiers at the simulated reuse, so no line leads up."}
    at = now * extra / gained
    how = (
        f"A straight line: {change(gained)} load at {share(now)} found below VRAM, none at 0; the lower tiers cost "
        f"{change(extra)}."
    )
    return {**answer, "share": at if at <= 1 else None, "how": how if at <= 1 else f"{how} No share up to 1 pays that."}
