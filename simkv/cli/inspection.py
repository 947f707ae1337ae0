"""How ``simkv trace inspect`` says what a trace is like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simkv import units
from simkv.cli.table import table

_LENGTHS = ("mean", "p50", "p95", "p99", "max", "total")


def render(name: str, answer: dict[str, Any]) -> str:
    """Return ``answer`` (of ``workload.inspect``) about the file ``name`` as text."""
    parts = (_facts(name, answer), _lengths(answer), _arrivals(answer), _reuse(answer), _odd(answer))
    return "\n\n".join(part for part in parts if part)


def _facts(name: str, answer: dict[str, Any]) -> str:
    block_tokens = answer["infinite_cache"]["block_tokens"]
    blocks = f", hashed in blocks of {block_tokens} tokens" if block_tokens else ""
    dropped = sum(answer["dropped"].values())
    lines = {
        "format": answer["format"] + blocks,
        "requests": f"{answer['requests']:,}" + (f" ({dropped:,} rows left out, see below)" if dropped else ""),
        "span": units.short(answer["span_s"], "time") + (" as recorded" if answer["closed_loop"] else ""),
    }
    return "\n".join([name, *_aligned(lines)])


def _lengths(answer: dict[str, Any]) -> str:
    if not answer["requests"]:
        return ""
    rows = [
        [key.replace("_", " "), *(f"{answer[key][figure]:,.0f}" for figure in _LENGTHS)]
        for key in ("prompt_tokens", "output_tokens")
    ]
    return table(("lengths", "mean", "median", *_LENGTHS[2:]), rows, range(1, 1 + len(_LENGTHS)))


def _arrivals(answer: dict[str, Any]) -> str:
    figures = answer["arrivals"]
    if answer["closed_loop"]:
        return "\n".join(
            _aligned({"arrivals": "in a closed loop: a turn waits for the answers before it, then pauses"})
        )
    if figures["rate_per_s"] is None:
        return ""
    times = (
        f", at {figures['distinct_times']:,} distinct times" if figures["distinct_times"] < answer["requests"] else ""
    )
    gaps = f"mean {units.short(figures['gap_mean_s'], 'time')}, longest {units.short(figures['gap_max_s'], 'time')}"
    lines = {
        "arrivals": units.short(figures["rate_per_s"], "request_rate") + times,
        "gaps": f"{gaps}, coefficient of variation {figures['gap_cv']:.2f} (Poisson: 1)",
    }
    counted = [c for c in figures["counts"] if c["mean"] is not None]
    if not counted:
        return "\n".join(_aligned(lines))
    rows = [
        [
            units.short(c["window_s"], "time"),
            f"{c['mean']:,.0f}" if c["mean"] >= 100 else f"{c['mean']:.3g}",
            f"{c['peak']:,}",
            f"{c['peak_to_mean']:.2f}",
            f"{c['index_of_dispersion']:.2f}",
        ]
        for c in counted
    ]
    head = ("arrivals in", "mean", "peak", "peak / mean", "variance / mean (Poisson: 1)")
    return "\n".join([*_aligned(lines), "", table(head, rows, range(1, 5))])


def _reuse(answer: dict[str, Any]) -> str:
    reuse, cache = answer["reuse"], answer["infinite_cache"]
    lines = {}
    if reuse["sessions"]:
        turns = reuse["turns"]
        lines["sessions"] = f"{reuse['sessions']:,}, {turns['mean']:.1f} turns on average, at most {turns['max']:,}"
    if cache["token_hit_rate"] is None:
        lines["reuse"] = "unknown: the format says nothing of content that prompts share"
        return "\n".join(_aligned(lines))
    blocks = f", {cache['block_hit_rate']:.2%} of blocks" if cache["block_hit_rate"] is not None else ""
    lines["infinite cache"] = f"{cache['token_hit_rate']:.2%} of prompt tokens{blocks} seen before, as a leading run"
    if cache["unique_blocks"] is not None:
        lines["unique blocks"] = f"{cache['unique_blocks']:,} of {cache['block_references']:,}"
    lines["with reuse"] = f"{reuse['requests']:,} of {answer['requests']:,} requests"
    return "\n".join(_aligned(lines))


def _odd(answer: dict[str, Any]) -> str:
    if not answer["irregularities"]:
        return "\n".join(_aligned({"irregularities": "none"}))
    head = ("irregularity", "rows", "", "first", "what")
    rows = [
        [o["code"], f"{o['count']:,}", "left out" if o["dropped"] else "kept", o["first"], o["what"]]
        for o in answer["irregularities"]
    ]
    return table(head, rows, (1,))


def _aligned(lines: dict[str, str]) -> Iterator[str]:
    return (f"{key:<15} {text}" for key, text in lines.items())
