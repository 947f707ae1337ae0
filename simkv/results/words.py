"""What the figures of a summary are called where people read them, the terminal's summary and reports alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from simkv.results.quantity import count, data, digits, seconds, share

Summary = Mapping[str, Any]

LATENCIES = (("TTFT", "ttft_s"), ("ITL", "itl_s"), ("TPOT", "tpot_s"), ("E2E", "e2e_s"), ("queue", "queue_s"))
PARTS = (
    ("queue", "queue"), ("load DRAM", "load_dram"), ("load SSD", "load_ssd"), ("prefill", "prefill"),
    ("decode", "decode"), ("recompute", "recompute"), ("preempted", "preempted"),
)  # fmt: skip
"""Of a request's time."""
TIERS = (("VRAM", "vram"), ("DRAM", "dram"), ("SSD", "ssd"))
RESOURCES = (
    ("GPU", "gpu"), ("H2D link", "h2d"), ("D2H link", "d2h"), ("DRAM", "dram"), ("SSD reads", "ssd_read"),
    ("SSD writes", "ssd_write"),
)  # fmt: skip
WAITS = (
    ("waiting for loads", "loads"), ("waiting for write-backs", "writes"), ("waiting for the CPU", "cpu"),
    ("computing slowed", "contention"),
)  # fmt: skip
"""Of a decode step of active offload."""

MORE_OF: Mapping[str, str] = {
    "vram": "VRAM",
    "compute": "compute",
    "memory_bandwidth": "memory bandwidth of the GPUs",
    "link": "bandwidth of the host links",
    "dram": "DRAM",
    "dram_bandwidth": "DRAM bandwidth",
    "ssd": "SSD capacity",
    "ssd_bandwidth": "SSD bandwidth",
}
"""Of which a machine may have more, in a sentence."""

_CLOSED_LABELS = {"speedup_most": "speedup at most", "speedup_most_article": "the article's bound 1 + T_t / T_c ="}
_UNIT_SUFFIX = re.compile(r"(_bytes)?(_per)?_s$|_bytes$")


def closed_label(key: str) -> str:
    """Return what the closed form under ``key`` is called."""
    plain = _UNIT_SUFFIX.sub("", key).replace("_", " ")
    return _CLOSED_LABELS.get(key) or plain.replace("published", "FlexGen's formula:")


def quantity(key: str, value: float) -> str:
    """Return ``value`` in the unit that the name of its key ends in."""
    if key.endswith("_bytes_per_s"):
        return f"{digits(value / 1e9)} GB/s"
    if key.endswith("_per_s"):
        return f"{count(value)}/s"
    if key.endswith("_s"):
        return seconds(value)
    return data(value) if key.startswith("bytes") or key.endswith("_bytes") else count(value)


def target_texts(attained: Mapping[str, Any]) -> list[tuple[str, bool | None]]:
    """Return each target of ``slo_attainment`` with its value, and whether it holds."""
    return [
        (
            f"{name.replace('_', ' ')} {seconds(target['value'])} "
            f"{'<=' if target['met'] else 'MISSES'} {seconds(target['limit'])}",
            target["met"],
        )
        for name, target in attained["targets"].items()
        if target["value"] is not None
    ]


def attainment_texts(summary: Summary) -> list[str]:
    """Return which share of the requests meets the SLO, by class too, and the goodput; nothing without an SLO."""
    attained = summary["slo_attainment"]
    if not attained:
        return []
    found = [f"{share(attained['overall'])} of requests meet it"]
    found += [f"{name} {share(value)}" for name, value in attained["classes"].items()]
    if summary["goodput_requests_per_s"] is not None:
        found.append(f"goodput {digits(summary['goodput_requests_per_s'])} requests/s")
    return found


def preemption_text(summary: Summary) -> str:
    """Return how often requests were thrown out of VRAM and what that cost; nothing where that never happened."""
    if not summary["preemptions"]:
        return ""
    text = f"{summary['preemptions']:,} preemptions, {count(summary['recomputed_tokens'])} tokens recomputed"
    swap = summary["swap"]
    return f"{text}, {data(swap['out_bytes'])} swapped out and {data(swap['in_bytes'])} back" if swap else text
