"""A calibration profile named as hardware: the values that it brings, the step times that it has, its limits."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from simkv import units
from simkv.formulas.interpolated import Table
from simkv.model import ModelShape
from simkv.profile.schema import LANES, LinkFit, Profile
from simkv.scenario.base import locate
from simkv.scenario.batch_schema import BATCH_PRESETS
from simkv.scenario.faults import Fault, Given
from simkv.scenario.quantity import SI
from simkv.scenario.schema import Scenario
from simkv.scenario.text import Path
from simkv.sim.config import SystemConfig

CALIBRATION = "calibration"
"""Starts the origin of a value that a profile brings."""
CODE = "outside_calibration"
KERNELS: Path = ("engine", "attention_kernels")
_SIXTEEN_BITS = ("bf16", "fp16")
_UNSAID = ("residual", "note", "notes", "model")
"""Keys of a fit that decide nothing."""

Row = tuple[Path, object, str]
"""A path of the scenario, its value, and where it is from."""
Filled = tuple[str, object, str]
"""The same with the path as text."""
Note = tuple[str, str]
"""A code and a sentence."""


def profile_file(name: str, folder: str) -> str:
    """Return where a profile named in a scenario is, from the working directory."""
    return os.path.normpath(locate(name, folder).path)


def origin(profile: Profile, standing: str) -> str:
    """Return where a value comes from, for people."""
    return f"{CALIBRATION} {profile.name}, {standing}"


def is_calibrated(origin: str) -> bool:
    """Say whether a value of that origin is a profile's own."""
    return origin.startswith(f"{CALIBRATION} ")


def rows(profile: Profile) -> Iterator[Row]:
    """Yield what a profile brings beside its card: latencies, drives, host memory, contention, CPU time of a step."""
    fit = profile.fit
    fitted, measured = origin(profile, "fitted"), origin(profile, "measured")
    link = fit.h2d or fit.d2h
    if link is not None:
        yield ("link", "latency"), SI(link.latency_s), fitted
        yield ("link", "setup"), SI(link.setup_s), fitted
    if fit.ssd_read is not None:
        yield ("tiers", "ssd", "read"), SI(fit.ssd_read.bytes_per_s), fitted
    if fit.ssd_write is not None:
        yield ("tiers", "ssd", "write"), SI(fit.ssd_write.bytes_per_s), fitted
    drive = fit.ssd_read or fit.ssd_write
    if drive is not None:
        yield ("tiers", "ssd", "latency"), SI(drive.setup_s), fitted
        yield ("tiers", "ssd", "request_latency"), SI(drive.latency_s), fitted
    if fit.memory.dram_copy_bytes_per_s is not None:
        yield ("tiers", "dram", "bandwidth"), SI(fit.memory.dram_copy_bytes_per_s), measured
    for key in ("compute_during", "during_compute"):
        for lane, factor in getattr(fit.contention, key).items():
            yield ("contention", key, lane), SI(factor), measured
    if fit.contention.after_wait > 1.0:
        yield ("contention", "after_wait"), SI(fit.contention.after_wait), measured
    if fit.host is not None:
        yield ("offload", "host_cost_per_step"), SI(fit.host.step_s), fitted
        yield ("offload", "host_cost_per_block"), SI(fit.host.block_s), fitted


def unmeasured_links(profile: Profile, known: Mapping[str, Any], written: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield a fault for a link that neither the profile's card nor the scenario has a bandwidth of."""
    link = written.get("link")
    given = link if isinstance(link, Mapping) else {}
    for key in ("h2d", "d2h", "duplex"):
        if f"{key}_bytes_per_s" not in known and given.get(key) is None:
            mend = f"measure it (simkv calibrate), give link.{key}, or name a card as the profile's device.base"
            yield Fault(("link", key), f"isn't in calibration profile {profile.name}", mend)


def shape_of(model: ModelShape) -> dict[str, int] | None:
    """Return what tells a model from another as profiles do; None for one that they can't measure."""
    if len(model.attention) != 1 or model.moe is not None or not model.uniform or model.mlp_matrices != 3:
        return None
    (kind,) = model.attention
    if kind.mla is not None or kind.shared_cache_layers or kind.layers != model.layers:
        return None
    return {
        "layers": model.layers, "hidden": model.hidden, "heads": kind.heads, "kv_heads": kind.kv_heads,
        "head_dim": kind.head_dim, "intermediate": model.intermediate, "vocab": model.vocab,
    }  # fmt: skip


def measured_dtype(profile: Profile | None, model: ModelShape | None) -> str | None:
    """Return the dtype that the profile measured ``model`` in; None where it didn't."""
    compute = profile.fit.compute if profile is not None else None
    if compute is None or model is None or shape_of(model) != compute.shape:
        return None
    return compute.dtype


def why_not(profile: Profile, scenario: Scenario, model: ModelShape) -> str:
    """Return why step times of the scenario aren't the profile's measured ones; empty where they are."""
    compute = profile.fit.compute
    if compute is None:
        return f"{profile.name} has no step times"
    dtype = measured_dtype(profile, model)
    if dtype is None:
        return f"step times of {model.name} were not measured in {profile.name}, those of {compute.model} were"
    asked = (scenario.engine.weight_dtype, scenario.engine.kv_dtype)
    for name, given in zip(("weights", "KV"), asked, strict=True):
        if given not in ("auto", dtype) and not (given in _SIXTEEN_BITS and dtype in _SIXTEEN_BITS):
            return f"step times with {given} {name} were not measured in {profile.name}, {dtype} was"
    ranks = scenario.replicas.tensor_parallel
    if ranks > 1:
        return f"step times of {ranks} ranks were not measured in {profile.name}"
    return ""


def step_times(profile: Profile | None, scenario: Scenario, model: ModelShape | None) -> bool:
    """Say whether the scenario's step times are the profile's measured ones."""
    if profile is None or model is None or scenario.engine.preset in BATCH_PRESETS:
        return False
    return not why_not(profile, scenario, model)


def kernels_fault(
    profile: Profile | None, scenario: Scenario, model: ModelShape | None, given: Given
) -> Iterator[Fault]:
    """Yield a fault where attention's kernels are chosen that nothing was measured of."""
    kernels = scenario.engine.attention_kernels
    if kernels is None or not given(KERNELS):
        return
    if not step_times(profile, scenario, model):
        what = "does nothing where step times aren't those of a calibration profile"
        yield Fault(KERNELS, what, "leave it out, or name a profile of this model and dtype as hardware")
        return
    assert profile is not None and profile.fit.compute is not None
    if kernels == "paged" and profile.fit.compute.paged is None:
        yield Fault(KERNELS, f"wasn't measured in {profile.name}", "write contiguous, or measure again")


def notes(profile: Profile | None, scenario: Scenario, model: ModelShape | None, given: Given) -> Iterator[Note]:
    """Yield a note where step times aren't measured ones, and for what the measured ones don't know."""
    if profile is None or model is None or scenario.engine.preset in BATCH_PRESETS:
        return
    reason = why_not(profile, scenario, model)
    if reason:
        base = profile.device.base
        rates = "its measured rates" if profile.fit.rates is not None else f"the rates of {base}"
        yield CODE, f"{reason[0].upper()}{reason[1:]}: they are a roofline's with {rates}."
    elif given(("engine", "enforce_eager")):
        sentence = "engine.enforce_eager does nothing: step times are those that were measured, without captured graphs"
        yield CODE, f"{sentence}."


def dtypes(profile: Profile | None, scenario: Scenario, model: ModelShape | None) -> Iterator[Filled]:
    """Yield the dtypes that the scenario leaves open, where the profile measured its model."""
    dtype = measured_dtype(profile, model)
    if dtype is None or profile is None:
        return
    for key in ("weight_dtype", "kv_dtype"):
        if getattr(scenario.engine, key) == "auto":
            yield f"engine.{key}", dtype, origin(profile, "measured")


def filled(
    profile: Profile, scenario: Scenario, model: ModelShape | None, origin_of: Callable[[Path], str]
) -> tuple[list[Filled], list[Note]]:
    """Return what depends on the rest of the scenario, and notes where that goes beyond what was measured.

    Attention's kernels, and the bandwidth of links from and to buffers as large as DRAM.
    """
    found: list[Filled] = []
    beyond: list[Note] = []
    if step_times(profile, scenario, model) and scenario.engine.attention_kernels is None:
        found.append(("engine.attention_kernels", "contiguous", "default"))
    capacity_bytes = scenario.tiers.dram.capacity
    for direction, points in (("h2d", profile.fit.h2d_by_buffer), ("d2h", profile.fit.d2h_by_buffer)):
        if points is None or not capacity_bytes or not is_calibrated(origin_of(("link", direction))):
            continue
        low, high = points[0][0], points[-1][0]
        size = units.short(capacity_bytes, "size")
        bytes_per_s = Table(points, lambda x: 1.0).at(capacity_bytes)
        found.append((f"link.{direction}", bytes_per_s, f"{origin(profile, 'measured')} at {size}"))
        if not low <= capacity_bytes <= high:
            text = f"link.{direction} was asked for a buffer (tiers.dram.capacity) of {size}; {profile.name} measured"
            beyond.append((CODE, f"{text} buffers of {units.short(low, 'size')} to {units.short(high, 'size')}."))
    return found, beyond


def pieces_outside(profile: Profile | None, config: SystemConfig, taken: Given) -> Iterator[Note]:
    """Yield a note for each lane whose pieces are smaller or larger than any that were measured.

    ``taken``: whether the value at a path is the profile's. Dense streams of active offload have pieces of any size,
    and aren't judged.
    """
    if profile is None or (config.active is not None and not config.active.sparse):
        return
    dram, ssd = config.dram.capacity_bytes > 0, config.ssd.capacity_bytes > 0
    for lane in LANES:
        fit: LinkFit | None = getattr(profile.fit, lane)
        drive = lane.startswith("ssd")
        path: Path = ("tiers", "ssd", lane.removeprefix("ssd_")) if drive else ("link", lane)
        if fit is None or not dram or (drive and not ssd) or not taken(path):
            continue
        asked = _piece_bytes(config, drive)
        if not fit.smallest_bytes <= asked <= fit.largest_bytes:
            text = (
                f"{'.'.join(path)} was asked for pieces of {units.short(asked, 'size')}; {profile.name} measured "
                f"{units.short(fit.smallest_bytes, 'size')} to {units.short(fit.largest_bytes, 'size')}."
            )
            yield CODE, text


def _piece_bytes(config: SystemConfig, whole_units: bool) -> float:
    """Return the size of one contiguous piece; drives take units whole."""
    if config.active is not None:
        return config.engine.block_bytes / config.active.layers
    if whole_units:
        return config.engine.block_bytes * config.offload.unit_blocks
    return config.engine.block_bytes / config.link.descriptors_per_block


def digest(profile: Profile) -> str:
    """Return everything of a profile that decides a run, as text: its fit without what says how good that is."""
    return json.dumps(_said(profile.fit.model_dump()), sort_keys=True)


def _said(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _said(one) for key, one in value.items() if key not in _UNSAID}
    return value


def too_many_ranks(profile: Profile | None, known: Mapping[str, Any], scenario: Scenario) -> Iterator[Fault]:
    """Yield a fault where ranks need a link between GPUs that nothing says anything of."""
    if profile is not None and scenario.replicas.tensor_parallel > 1 and "gpu_link_bytes_per_s" not in known:
        what = f"calibration profile {profile.name} has no link between GPUs"
        mend = "write 1, or name a card of the catalogue as the profile's device.base"
        yield Fault(("replicas", "tensor_parallel"), what, mend)
