"""The accelerator that a calibration profile describes: what was measured, over the card of the catalogue beneath."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from simkv.catalog import load_hardware
from simkv.errors import InputError, Problem
from simkv.hardware import Figure, Gpu, Standing
from simkv.profile.load import read_profile
from simkv.profile.schema import Fit, Profile, Rates

Row = tuple[str, float, str, Standing]
"""Name of a figure, its value, unit and standing."""
_CONTAINED = "contained in what was measured"


def is_profile_name(name: str) -> bool:
    """Say whether the name of a machine is that of a file, whatever the catalogue has."""
    return name.lower().endswith(".json")


def load_calibrated(path: str | os.PathLike[str]) -> tuple[Profile, Gpu]:
    """Return the profile in a file, and its card; raises :class:`InputError` naming the file."""
    profile = read_profile(path)
    try:
        return profile, gpu_of(profile)
    except InputError as error:
        raise InputError([replace(one, file=os.fspath(path)) for one in error.problems]) from None


def source_of(profile: Profile) -> str:
    """Return the source of the figures that are the profile's own."""
    return f"calibration profile {profile.name}"


def gpu_of(profile: Profile) -> Gpu:
    """Return the accelerator with the profile's figures; what it hasn't is the figure of its ``device.base``.

    Raises :class:`InputError` where neither says how fast it computes, and for a base that isn't in the catalogue.
    """
    base = _base(profile)
    source = source_of(profile)
    figures = dict(base.figures) if base is not None else {}
    if profile.fit.rates is None and base is None:
        raise InputError(
            Problem(
                f"calibration profile {profile.name} doesn't say how fast {profile.device.name} computes",
                "measure compute too (simkv calibrate), or name a card of the catalogue as device.base",
                path="fit.rates",
            )
        )
    rows = [*_memory(profile), *_links(profile.fit, base)]
    if profile.fit.rates is not None:
        rows += [*_rates(profile.fit.rates, profile.fit, base), *_overheads(profile.fit)]
    figures |= {name: Figure(value, unit, source, standing) for name, value, unit, standing in rows}
    if profile.fit.rates is not None:
        figures |= _assumed(figures)
    return Gpu(
        name=profile.name,
        vendor=base.vendor if base is not None else "",
        family=base.family if base is not None else "",
        figures=MappingProxyType(figures),
        note=f"{profile.device.name}, as calibrated" + (f"; the rest from {base.name}" if base is not None else ""),
    )


def _base(profile: Profile) -> Gpu | None:
    if profile.device.base is None:
        return None
    try:
        return load_hardware(profile.device.base)
    except InputError as error:
        found = error.problems[0]
        problem = Problem(found.what, found.mend, path="device.base", value=profile.device.base)
        raise InputError(problem) from None


def _memory(profile: Profile) -> Iterator[Row]:
    for name in ("vram_bytes", "usable_bytes"):
        yield name, profile.device.memory_bytes, "B", "measured"


def _links(fit: Fit, base: Gpu | None) -> Iterator[Row]:
    """Yield the figures of the link to host memory that were measured."""
    for name, link in (("h2d_bytes_per_s", fit.h2d), ("d2h_bytes_per_s", fit.d2h)):
        if link is not None:
            yield name, link.bytes_per_s, "B/s", "fitted"
    if fit.duplex_bytes_per_s is not None:
        yield "duplex_bytes_per_s", fit.duplex_bytes_per_s, "B/s", "measured"
    elif fit.h2d is not None and fit.d2h is not None:
        both = fit.h2d.bytes_per_s + fit.d2h.bytes_per_s
        yield "duplex_bytes_per_s", both * (_duplex_share(base) if base is not None else 1.0), "B/s", "assumed"


def _duplex_share(base: Gpu) -> float:
    """Return how much of both directions by themselves a card carries in both at once."""
    return base.value("duplex_bytes_per_s") / (base.value("h2d_bytes_per_s") + base.value("d2h_bytes_per_s"))


def _rates(rates: Rates, fit: Fit, base: Gpu | None) -> Iterator[Row]:
    """Yield peaks, and what is achieved of them: the measured best is the peak, so that its share is 1."""
    memory = fit.memory.read_bytes_per_s or fit.memory.copy_bytes_per_s
    hbm = memory or max(rates.weight_bytes_per_s, rates.attention_bytes_per_s)
    yield "hbm_bytes_per_s", hbm, "B/s", "measured"
    yield "weight_bandwidth_efficiency", rates.weight_bytes_per_s / hbm, "1", "fitted"
    yield "attention_bandwidth_efficiency", rates.attention_bytes_per_s / hbm, "1", "fitted"
    yield "flops_efficiency", 1.0, "1", "measured"
    yield "attention_flops_efficiency", rates.attention_flops_per_s / rates.flops_per_s, "1", "fitted"
    yield "flops_fp16_per_s", rates.flops_per_s, "FLOP/s", "measured"
    if base is None:
        yield "flops_fp32_per_s", rates.flops_per_s, "FLOP/s", "measured"
        return
    of_sixteen = base.value("flops_fp8_efficiency") / base.value("flops_efficiency")
    yield "flops_fp8_efficiency", min(1.0, of_sixteen), "1", "assumed"
    share = rates.flops_per_s / base.dense_flops_per_s("fp16")
    for name, figure in base.figures.items():
        if name.startswith("flops_") and name.endswith("_per_s") and name != "flops_fp16_per_s":
            yield name, figure.value * share, "FLOP/s", "assumed"


def _overheads(fit: Fit) -> Iterator[Row]:
    """Yield what launches cost; measured without captured graphs, so that running eagerly costs no more."""
    if fit.compute is not None:
        yield "step_overhead_s", fit.compute.step_overhead_s, "s", "fitted"
        yield "layer_overhead_s", fit.compute.layer_overhead_s, "s", "fitted"
        yield "eager_layer_overhead_s", 0.0, "s", "measured"
        yield "sequence_overhead_s", 0.0, "s", "measured"


def _assumed(known: Mapping[str, Figure]) -> dict[str, Figure]:
    """Return what a machine without a base has no figure of, and needs none: it is part of what was measured."""
    neutral = {
        "flops_fp8_efficiency": (1.0, "1"), "host_step_overhead_s": (0.0, "s"),
        "tile_fill_loss": (0.0, "1"), "mixed_query_rows": (1.0, "1"), "step_overhead_s": (0.0, "s"),
        "layer_overhead_s": (0.0, "s"), "eager_layer_overhead_s": (0.0, "s"), "sequence_overhead_s": (0.0, "s"),
    }  # fmt: skip
    return {
        name: Figure(value, unit, _CONTAINED, "assumed") for name, (value, unit) in neutral.items() if name not in known
    }
