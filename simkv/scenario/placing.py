"""Batch mode in a scenario: from its keys and the hardware to what the simulator runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

from simkv import units
from simkv.errors import InfeasibleError
from simkv.formulas.placement import (
    BatchPolicy,
    LayerShape,
    Placement,
    Rates,
    Room,
    Share,
    by_matrices,
    flexgen_t4,
    hardware_rates,
    layer_shape,
    mapped_bytes_per_s,
)
from simkv.formulas.placement.rates import FLEXGEN_T4
from simkv.hardware import Gpu
from simkv.model import ModelShape
from simkv.scenario.batch_schema import BATCH_PRESETS, HostIo
from simkv.scenario.schema import Engine, Scenario
from simkv.scenario.text import Path
from simkv.sim.batchmode.config import BatchConfig
from simkv.sim.config import LinkConfig, SsdConfig, SystemConfig

SHARE_WITHOUT_NOTE = 0.8
"""Of the drive's rate: mapped files that give more than this need no note."""
EAGER_ATTENTION = FLEXGEN_T4.bmm_prefill
"""FLOP/s of prompts' attention, at most: these engines write scores out and go over them in kernels of their own.
FlexGen's fit on a T4, taken for faster cards as well, which do no better in its runs (docs/batch-mode.md)."""
GEN3_BYTES_PER_S = 16e9
"""PCIe 3.0 x16, with some to spare."""
PAGEABLE_GEN3 = (3.75e9, "measured: Quadro RTX 6000 on PCIe 3.0, copies of 1 MiB (docs/batch-mode.md)")
PAGEABLE_NEWER = (17.5e9, "fitted: OPT-66B in ZeRO-Inference on an A6000, PCIe 4.0 (docs/batch-mode.md)")
FITTED = "FlexGen's cost_model.py, fitted to a T4"
FITTED_RATES: tuple[tuple[str, float], ...] = (
    ("link.h2d", FLEXGEN_T4.h2d),
    ("link.d2h", FLEXGEN_T4.d2h),
    ("link.duplex", inf),
    ("tiers.ssd.read", FLEXGEN_T4.ssd_read),
    ("tiers.ssd.write", FLEXGEN_T4.ssd_write),
    ("engine.cpu_attention_rate", FLEXGEN_T4.cpu_attention),
)
"""What engine.constants ``flexgen-t4`` stands for, unless the scenario says otherwise."""


def in_batches(scenario: Scenario) -> bool:
    """Say whether the engine serves static batches."""
    return scenario.engine.preset in BATCH_PRESETS


def policy_of(engine: Engine, layer: LayerShape) -> BatchPolicy:
    """Return the policy that the engine's keys describe, of weights like ``layer``'s."""
    place, io = engine.placement, io_of(engine)
    assert place is not None and engine.gpu_batch_size is not None and engine.num_gpu_batches is not None, "batch mode"
    weights, kv, activations = (
        Share(gpu / 100, cpu / 100) for gpu, cpu in (place.weights, place.kv, place.activations)
    )
    by_engine = io.staging == "engine"
    return BatchPolicy(
        Placement(by_matrices(weights, layer.matrices) if io.whole_matrices else weights, kv, activations),
        engine.gpu_batch_size,
        engine.num_gpu_batches,
        overlap=bool(engine.overlap),
        cpu_attention=bool(engine.cpu_attention),
        loads_first=engine.schedule != "at_once",
        reads_first=engine.schedule == "reads_first",
        stages_weights=by_engine and not io.pin_weights,
        stages_kv=by_engine and not io.pin_kv,
        expands_kv=io.expand_kv,
    )


def io_of(engine: Engine) -> HostIo:
    """Return how the engine moves what the host holds."""
    assert engine.io is not None, "batch mode"
    return engine.io


def layer_of(engine: Engine, model: ModelShape) -> LayerShape:
    """Return one layer of the model as the engine stores it; raises InputError for models that can't be streamed."""
    return layer_shape(model, _dtype(engine.weight_dtype), _dtype(engine.kv_dtype))


def _dtype(dtype: str) -> str:
    return "fp16" if dtype == "auto" else dtype


def room_of(scenario: Scenario, gpu: Gpu) -> Room:
    """Return what each tier has for one replica: the GPU by its label, of DRAM and SSD its part of a full host's."""
    here = scenario.replicas.of_fullest_host
    tiers, slack = scenario.tiers, scenario.engine.memory_slack
    assert slack is not None, "batch mode"
    return Room(gpu.vram_bytes, tiers.dram.capacity / here, tiers.ssd.capacity / here, slack)


def kv_room_bytes(scenario: Scenario, model: ModelShape, gpu: Gpu) -> tuple[float, float, float]:
    """Return what weights leave of GPU, DRAM and SSD for KV, all replicas of a host together in the last two.

    Raises :class:`InfeasibleError` where the weights alone don't fit.
    """
    layer = layer_of(scenario.engine, model)
    policy = policy_of(scenario.engine, layer)
    limits = room_of(scenario, gpu).limits()
    weights = policy.placement.weights.split(layer.weight_bytes * layer.layers)
    for (tier, limit), held in zip(limits.items(), weights, strict=True):
        if held > limit:
            share = f"the weights placed there take {units.short(held, 'size')}"
            what = f"{tier} has {units.short(limit, 'size')} a replica, and {share}: "
            raise InfeasibleError(
                what + f"{units.short(held - limit, 'size')} too much; place less in engine.placement.weights"
            )
    here = scenario.replicas.of_fullest_host
    gpu_left, dram_left, disk_left = (limit - held for limit, held in zip(limits.values(), weights, strict=True))
    return gpu_left, dram_left * here, disk_left * here


def filled(
    scenario: Scenario, given: Callable[[Path], bool], model: ModelShape, of_model: str
) -> Iterator[tuple[str, object, str]]:
    """Yield what batch mode leaves open: path, value, and where it is from."""
    engine = scenario.engine
    if engine.constants == "flexgen-t4":
        for path, rate in FITTED_RATES:
            if not given(tuple(path.split("."))):
                yield path, rate, FITTED
    io = io_of(engine)
    if io.staging == "driver" and io.pageable_rate is None:
        yield "engine.io.pageable_rate", *_pageable(scenario.link.h2d)
    for key in ("weight_dtype", "kv_dtype"):
        if getattr(engine, key) == "auto":
            yield f"engine.{key}", "fp16", "computed: 16 bits"
    if engine.max_model_len is None:
        yield "engine.max_model_len", model.max_position_embeddings, of_model


def placing_notes(scenario: Scenario) -> list[tuple[str, str]]:
    """Return what the user should know of how files are read: where mapping them costs much of the drive."""
    place, io, drive = scenario.engine.placement, io_of(scenario.engine), scenario.tiers.ssd.read
    assert place is not None, "batch mode"
    mapped = mapped_bytes_per_s(drive, io.read_ahead)
    if mapped > SHARE_WITHOUT_NOTE * drive or all(sum(pair) == 100 for pair in place.model_dump().values()):
        return []
    rates = f"{units.short(mapped, 'rate')} of the drive's {units.short(drive, 'rate')}"
    ahead = units.short(io.read_ahead, "size")
    more = "a striped volume reads twice its stripe ahead: engine.io.read_ahead"
    return [("mapped_files", f"Files are mapped and read {ahead} ahead, which gives {rates}; {more}.")]


def _pageable(link_bytes_per_s: float | None) -> tuple[float, str]:
    """Return what the driver transfers of memory that isn't pinned, by the link's generation, and its source."""
    return PAGEABLE_NEWER if (link_bytes_per_s or 0.0) > GEN3_BYTES_PER_S else PAGEABLE_GEN3


def gpu_blocks(scenario: Scenario, model: ModelShape, gpu: Gpu) -> int:
    """Return the KV blocks of the GPU's pool, at least one; raises InfeasibleError where the weights don't fit."""
    room, _, _ = kv_room_bytes(scenario, model, gpu)
    return max(1, int(room // (scenario.engine.block_tokens * kv_bytes_of_token(scenario.engine, model))))


def batched(config: SystemConfig, scenario: Scenario, model: ModelShape, gpu: Gpu) -> SystemConfig:
    """Return the system in batch mode: of DRAM and SSD, its pools have what weights leave."""
    _, dram, ssd = kv_room_bytes(scenario, model, gpu)
    batch = batch_config(scenario, model, gpu, config.link, config.ssd)
    return replace(
        config,
        engine=replace(config.engine, max_num_seqs=batch.policy.sequences),
        dram=replace(config.dram, capacity_bytes=dram),
        ssd=replace(config.ssd, capacity_bytes=ssd),
        batch=batch,
    )


def kv_bytes_of_token(engine: Engine, model: ModelShape) -> int:
    """Return the bytes of one token's KV in all layers, as stored."""
    layer = layer_of(engine, model)
    return layer.kv_bytes * layer.layers


def batch_config(scenario: Scenario, model: ModelShape, gpu: Gpu, link: LinkConfig, ssd: SsdConfig) -> BatchConfig:
    """Return what a replica's batch-mode engine is told."""
    engine = scenario.engine
    layer = layer_of(engine, model)
    rates = _rates(engine, layer, gpu, link, ssd)
    return BatchConfig(layer, policy_of(engine, layer), rates, room_of(scenario, gpu))


def _rates(engine: Engine, layer: LayerShape, gpu: Gpu, link: LinkConfig, ssd: SsdConfig) -> Rates:
    assert engine.cpu_attention_rate is not None and engine.gpu_batch_size is not None, "resolved"
    io = io_of(engine)
    rates = hardware_rates(
        gpu, link.h2d_bytes_per_s, link.d2h_bytes_per_s, ssd.read_bytes_per_s, ssd.write_bytes_per_s,
        engine.cpu_attention_rate, link.setup_s + link.latency_s, ssd.latency_s + ssd.request_latency_s,
        io.unpack_passes,
    )  # fmt: skip
    rates = replace(rates, bmm_prefill=min(rates.bmm_prefill, EAGER_ATTENTION))
    if engine.constants == "flexgen-t4":
        rates = _fitted(rates, flexgen_t4(layer, engine.gpu_batch_size))
    pageable = io.pageable_rate if io.pageable_rate is not None else inf
    store = io.kv_store_rate if io.kv_store_rate is not None else inf
    return replace(
        rates,
        copy=io.copy_rate,
        weight_load=_load(io.pin_weights, pageable, io.load_efficiency, rates.h2d),
        kv_load=inf if io.pin_kv else pageable,
        mapped_read=mapped_bytes_per_s(ssd.read_bytes_per_s, io.read_ahead),
        mapped_load=pageable if io.staging == "driver" and io.read_ahead else inf,
        d2h_cache=rates.d2h_cache if io.pin_kv else min(rates.d2h_cache, store),
    )


def _load(pinned: bool, pageable: float, efficiency: float, link: float) -> float:
    """Return the most at which weights are loaded; infinite where that is the link's own rate."""
    if not pinned:
        return pageable
    return efficiency * link if efficiency < 1 else inf


def _fitted(rates: Rates, fitted: Rates) -> Rates:
    """Return FlexGen's fit with the lanes of ``rates``, which are the scenario's."""
    lanes = ("h2d", "d2h", "ssd_read", "ssd_write", "link_latency_s", "ssd_latency_s")
    slower = fitted.cpu_attention / FLEXGEN_T4.cpu_attention
    return replace(fitted, cpu_attention=rates.cpu_attention * slower, **{name: getattr(rates, name) for name in lanes})
