"""Which resource binds, and why. A judgement from utilisation, room and where the time goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simkv.results.context import SummaryContext
from simkv.results.quantity import share
from simkv.results.window import arrivals_end_s, first_arrival_s, makespan_s
from simkv.sim.rundata import RunData

WRITES = ("d2h", "ssd_write")
"""Requests wait for these only where room has to be made: writes go on behind them."""
RESOURCES = ("gpu", "h2d", "d2h", "dram", "ssd_read", "ssd_write")
UPLINKS = {"h2d": "uplink_h2d", "d2h": "uplink_d2h"}
"""What the links of a direction may share."""
NAMES = {
    "gpu": "GPU", "h2d": "host-to-device link", "d2h": "device-to-host link", "dram": "DRAM bandwidth",
    "ssd_read": "SSD reads", "ssd_write": "SSD writes", "vram": "VRAM for KV", "max_num_seqs": "max_num_seqs",
    "uplink_h2d": "shared uplinks to the GPUs", "uplink_d2h": "shared uplinks from the GPUs",
}  # fmt: skip
SATURATED = 0.95
_BUSY = 0.85
_HALF = 0.5
_FULL = 0.9
_WAITS = 0.1
_STALLS = 0.05
_BATCH_SPAN = 0.1


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Name of what binds, None where nothing is near its limit, and a sentence."""

    name: str | None
    because: str


def is_batch(data: RunData) -> bool:
    """Whether nearly all arrived at once: fresh arrivals end in the first tenth of the makespan."""
    return arrivals_end_s(data) - first_arrival_s(data) < _BATCH_SPAN * makespan_s(data)


def utilization(data: RunData, resource: str) -> float | None:
    """Return the busy share of ``resource`` over the makespan; None where there is none of it, or no time passed."""
    instances, makespan = data.instances.get(resource, 0), makespan_s(data)
    return data.busy_s.get(resource, 0.0) / (instances * makespan) if instances and makespan > 0 else None


def utilization_while_arriving(data: RunData, resource: str, since: float = 0.0) -> float | None:
    """Return busy share of ``resource`` between first and last arrival; of the whole run for a batch.

    ``since`` leaves out the first part of the arrivals (0.5: the first half of their span).
    """
    whole = utilization(data, resource)
    if whole is None:
        return None
    busy, times = data.timeseries.get(f"{resource}_busy_s"), data.timeseries.get("t_s")
    if busy is None or times is None or len(times) < 2 or is_batch(data):
        return whole
    begin, end = first_arrival_s(data), min(arrivals_end_s(data), float(times[-1]))
    begin += since * (end - begin)
    if end <= begin:
        return whole
    during = np.interp([begin, end], times, busy)
    return float(during[1] - during[0]) / (data.instances[resource] * (end - begin))


def vram_pressure(data: RunData) -> float | None:
    """Return the mean share of VRAM blocks that running requests hold while others wait; None if none does."""
    waiting, capacity = data.timeseries.get("waiting"), data.tier_capacity_blocks.get("vram", 0)
    if waiting is None or not capacity or not (waiting > 0).any():
        return None
    return float(data.timeseries["vram_blocks"][waiting > 0].mean()) / capacity


def find(data: RunData, ctx: SummaryContext, breakdown: Mapping[str, float] | None) -> Bottleneck | None:
    """Return what binds; None for a run in which nothing happened."""
    if not breakdown:
        return None
    total = sum(breakdown.values()) or 1.0
    waits = (breakdown["queue"] + breakdown["preempted"] + breakdown["recompute"]) / total
    loads = (breakdown["load_dram"] + breakdown["load_ssd"]) / total
    unfelt = () if waits + loads >= _WAITS or data.refused_stores else WRITES
    felt = [name for name in RESOURCES if name not in unfelt]
    busy = _busy(data, felt)
    return (
        _busiest_link(busy, data, _while(data), _BUSY)
        or _busiest_link(_busy(data, felt, 0.5), data, "in the second half of the arrivals", SATURATED)
        or _below(data, waits)
        or _room(data, waits)
        or _seats(data, ctx, waits)
        or _loads(breakdown, loads, busy)
        or _plain_busiest(busy, breakdown, data)
    )


def _busy(data: RunData, names: Sequence[str], since: float = 0.0) -> dict[str, float]:
    shares = {name: utilization_while_arriving(data, name, since) for name in names}
    return {name: value for name, value in shares.items() if value is not None}


def _while(data: RunData) -> str:
    """Return of which time the busy shares are."""
    return "of the run" if is_batch(data) else "of the time while requests arrive"


def _busiest_link(busy: Mapping[str, float], data: RunData, when: str, least: float) -> Bottleneck | None:
    moved = {name: value for name, value in busy.items() if name != "gpu"}
    name = max(moved, key=lambda key: moved[key], default=None)
    if name is None or moved[name] < least:
        return None
    because = f"{NAMES[name]} busy {share(moved[name])} {when}"
    uplink = UPLINKS.get(name, "")
    carried = utilization_while_arriving(data, uplink) or 0.0
    if carried >= _BUSY:
        because += f"; {NAMES[uplink]} carry {share(carried)} of what they can"
    return Bottleneck(name, because)


def _below(data: RunData, waits: float) -> Bottleneck | None:
    """Active offload: sequences wait, and it is room below VRAM that they lack."""
    active = data.active
    if waits < _WAITS or active is None or active.short_below < _HALF * active.steps:
        return None
    tier = "ssd" if data.tier_capacity_blocks["ssd"] else "dram"
    why = f"room below VRAM is promised to those that run: {share(waits)} of a request's time is waiting for it"
    return Bottleneck(tier, why)


def _room(data: RunData, waits: float) -> Bottleneck | None:
    pressure = vram_pressure(data)
    if waits < _WAITS or pressure is None or pressure < _FULL:
        return None
    preempted = f" and {data.preemptions} preemptions" if data.preemptions else ""
    return Bottleneck(
        "vram",
        f"running requests hold {share(pressure)} of the KV blocks while others wait: "
        f"{share(waits)} of a request's time is waiting for room{preempted}",
    )


def _seats(data: RunData, ctx: SummaryContext, waits: float) -> Bottleneck | None:
    if not ctx.max_running or data.running_max < ctx.max_running or waits < _WAITS:
        return None
    return Bottleneck(
        "max_num_seqs",
        f"all {ctx.max_running} seats were taken and {share(waits)} of a request's time is waiting for one",
    )


def _loads(breakdown: Mapping[str, float], loads: float, busy: Mapping[str, float]) -> Bottleneck | None:
    if loads < 0.3 or loads * sum(breakdown.values()) <= breakdown["queue"]:
        return None
    name = "ssd_read" if breakdown["load_ssd"] > breakdown["load_dram"] else "h2d"
    if name not in busy:
        return None
    return Bottleneck(name, f"{share(loads)} of a request's time is waiting for loads ({NAMES[name]})")


def _plain_busiest(busy: Mapping[str, float], breakdown: Mapping[str, float], data: RunData) -> Bottleneck | None:
    name = max(busy, key=lambda key: busy[key], default=None)
    if name is None:
        return None
    when = _while(data)
    text = f"{NAMES[name]} busy {share(busy[name])} {when}"
    if name == "gpu":
        spent = {
            "decoding": breakdown["decode"],
            "prefill": breakdown["prefill"] + breakdown["recompute"],
            "waiting": breakdown["queue"] + breakdown["preempted"],
            "loading": breakdown["load_dram"] + breakdown["load_ssd"],
        }
        what = max(spent, key=lambda key: spent[key])
        text = f"the GPU runs steps {share(busy[name])} {when}; {what} is "
        text += f"{share(spent[what] / (sum(breakdown.values()) or 1.0))} of a request's time{_stalls(data)}"
    return Bottleneck(name, text) if busy[name] >= _HALF else Bottleneck(None, f"nothing is near its limit: {text}")


def _stalls(data: RunData) -> str:
    """Say what decode steps of active offload wait for KV; nothing where that is little."""
    active = data.active
    if active is None or active.exposed_s < _STALLS * active.step_s or not active.steps:
        return ""
    return f", and a decode step waits for KV {share(active.exposed_s / active.step_s)} of its time"
