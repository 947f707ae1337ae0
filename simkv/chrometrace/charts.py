"""Charts: how many requests wait and run, how full tiers are, how busy the GPU and the lanes are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from simkv.chrometrace.events import Event, counter
from simkv.chrometrace.layout import Layout
from simkv.sim.record.recording import Recording
from simkv.sim.rundata import RunData

_COUNTS = {
    "requests": {"running": "running", "held for loads": "held", "waiting": "waiting"},
    "VRAM blocks": {"in use": "vram_blocks", "cached": "vram_cached_blocks"},
    "DRAM blocks": {"used": "dram_blocks"},
    "SSD blocks": {"used": "ssd_blocks"},
}
_BUSY = {
    "GPU busy, %": "gpu",
    "h2d busy, %": "h2d",
    "d2h busy, %": "d2h",
    "SSD read busy, %": "ssd_read",
    "SSD write busy, %": "ssd_write",
}


def charts(recording: Recording, data: RunData, layout: Layout) -> Iterator[Event]:
    """Yield the samples of the window, and the last before it; shares of time are since the sample before."""
    series = data.timeseries
    at_s = series["t_s"].tolist()
    first = max(0, bisect_right(at_s, recording.begin_s) - 1)
    last = bisect_right(at_s, recording.end_s)
    for name, parts in _COUNTS.items():
        tier = name.removesuffix(" blocks").lower()
        if tier in data.tier_capacity_blocks and not data.tier_capacity_blocks[tier]:
            continue
        for row in range(first, last):
            values = {part: float(series[column][row]) for part, column in parts.items()}
            yield counter(layout.charts, name, max(at_s[row], recording.begin_s), values)
    for name, resource in _BUSY.items():
        if not data.busy_s[resource]:
            continue
        busy_s = series[f"{resource}_busy_s"].tolist()
        for row in range(first, last - 1):
            passed_s = at_s[row + 1] - at_s[row]
            if passed_s > 0:
                share = (busy_s[row + 1] - busy_s[row]) / passed_s / data.instances[resource]
                yield counter(layout.charts, name, max(at_s[row], recording.begin_s), {"%": round(100 * share, 3)})
