"""Keys of batch mode held against each other and against what it can't do."""

from __future__ import annotations

from collections.abc import Iterator

from simkv.scenario.batch_schema import BATCH_KEYS, BATCH_PRESETS
from simkv.scenario.faults import Fault, Given
from simkv.scenario.schema import InlineHardware, InlineModel, Scenario
from simkv.scenario.text import Path

IDLE: tuple[Path, ...] = (
    *(("engine", key) for key in (
        "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "num_gpu_blocks", "kv_cache_tokens",
        "async_scheduling", "enforce_eager", "hybrid_kv_cache", "reserve_full_prompt", "load", "store_outputs",
        "prefix_caching", "host_cost_per_block", "host_cost_per_load", "attention_backend",
    )),
    ("engine", "prefill"), ("engine", "preemption"), ("tiers", "relation"), ("tiers", "dram", "ratio"), ("offload",),
    ("link", "descriptors_per_block"), ("contention",),
)  # fmt: skip
"""Keys of continuous batching and of reuse, which mean nothing in batch mode."""


def batch_idle_paths(s: Scenario) -> tuple[Path, ...]:
    """Return the keys that mean nothing in this scenario, which is in batch mode."""
    engine = s.engine
    assert engine.placement is not None, "batch mode"
    idle = [*IDLE]
    if not engine.cpu_attention:
        idle.append(("engine", "cpu_attention_rate"))
    elif engine.placement.kv[0] == 100:
        idle += [("engine", "cpu_attention"), ("engine", "cpu_attention_rate")]
    if not engine.overlap:
        idle.append(("engine", "schedule"))
    return (*idle, *(("engine", "io", key) for key, used in _io_in_use(s).items() if not used))


def idle_io_notes(s: Scenario, given: Given) -> list[tuple[str, str]]:
    """Return a note for what is given of ``engine.io`` and decides nothing, as the scenario's parts are placed."""
    idle = [f"engine.io.{key}" for key, used in _io_in_use(s).items() if not used and given(("engine", "io", key))]
    if not idle:
        return []
    do = "do" if len(idle) > 1 else "does"
    return [("io_idle", f"{', '.join(idle)} {do} nothing, as weights, KV and activations are placed and kept here.")]


def _io_in_use(s: Scenario) -> dict[str, bool]:
    """Return which keys of ``engine.io`` decide something in this scenario."""
    engine = s.engine
    io, place = engine.io, engine.placement
    assert io is not None and place is not None, "of the preset"
    in_dram = {"weights": place.weights[1] > 0, "kv": place.kv[0] < 100}
    loaded = {"weights": in_dram["weights"], "kv": in_dram["kv"] and not engine.cpu_attention}
    unpinned = any(loaded[part] and not pinned for part, pinned in (("weights", io.pin_weights), ("kv", io.pin_kv)))
    expanded = bool(engine.cpu_attention) and in_dram["kv"]
    on_disk = any(sum(pair) < 100 for pair in place.model_dump().values())
    return {
        "pin_weights": loaded["weights"],
        "pin_kv": in_dram["kv"],
        "staging": unpinned or (on_disk and bool(io.read_ahead)),
        "copy_rate": (unpinned and io.staging == "engine") or (expanded and io.expand_kv != "never"),
        "pageable_rate": io.staging == "driver" and (unpinned or (on_disk and bool(io.read_ahead))),
        "load_efficiency": loaded["weights"] and io.pin_weights,
        "kv_store_rate": in_dram["kv"] and not io.pin_kv,
        "read_ahead": on_disk,
        "expand_kv": expanded,
        "unpack_passes": "int4" in (engine.weight_dtype, engine.kv_dtype),
        "whole_matrices": place.weights[0] < 100,
    }


def batch_faults(s: Scenario, given: Given) -> Iterator[Fault]:
    """Yield everything about batch mode that doesn't go together."""
    engine = s.engine
    if engine.preset not in BATCH_PRESETS:
        for key in BATCH_KEYS:
            if getattr(engine, key) is not None:
                yield Fault(
                    ("engine", key),
                    f"does nothing with preset {engine.preset}",
                    f"write preset: {', '.join(BATCH_PRESETS)}",
                )
        return
    assert engine.placement is not None, "of the preset"
    if isinstance(s.hardware, InlineHardware) or isinstance(s.model, InlineModel):
        inline = "hardware" if isinstance(s.hardware, InlineHardware) else "model"
        yield Fault(
            (inline,), f"preset {engine.preset} moves weights and needs a real one", "name one of the catalogue"
        )
    if s.replicas.tensor_parallel > 1:
        yield Fault(
            ("replicas", "tensor_parallel"), "batch mode serves each replica on one GPU", "write 1, or leave it out"
        )
    for path in IDLE:
        if given(path):
            yield Fault(path, f"does nothing with preset {engine.preset}, which serves static batches", "leave it out")
    if engine.cpu_attention and engine.placement.kv[0] == 100:
        for key in ("cpu_attention", "cpu_attention_rate"):
            if given(("engine", key)):
                yield Fault(
                    ("engine", key), "does nothing with all KV on the GPU", "place KV below it, or leave it out"
                )
    if not engine.cpu_attention and given(("engine", "cpu_attention_rate")):
        yield Fault(("engine", "cpu_attention_rate"), "does nothing without cpu_attention", "write cpu_attention: true")
    if engine.io is not None and engine.io.staging == "engine" and given(("engine", "io", "pageable_rate")):
        yield Fault(("engine", "io", "pageable_rate"), "does nothing with staging: engine", "write staging: driver")
    yield from _stranded(s)
    if not engine.overlap and given(("engine", "schedule")):
        yield Fault(("engine", "schedule"), "does nothing without overlap", "write overlap: true, or leave it out")


def _stranded(s: Scenario) -> Iterator[Fault]:
    """Yield the rates of zero that would have to move what is placed below the GPU."""
    engine, ssd = s.engine, s.tiers.ssd
    place = engine.placement
    assert place is not None, "batch mode"
    below = {part: pair[0] < 100 for part, pair in place.model_dump().items()}
    on_disk = {part: sum(pair) < 100 for part, pair in place.model_dump().items()}
    stored_below, stored_on_disk = (found["kv"] or found["activations"] for found in (below, on_disk))
    uplink = s.link.uplink.bandwidth if s.link.uplink is not None else 1.0
    attended = bool(engine.cpu_attention) and below["kv"]
    io, in_use = engine.io, _io_in_use(s)
    assert io is not None, "of the preset"
    needed: tuple[tuple[Path, float | None, bool, str], ...] = (
        (("engine", "io", "copy_rate"), io.copy_rate, in_use["copy_rate"], "the CPU copies at it"),
        (
            ("engine", "io", "pageable_rate"),
            io.pageable_rate,
            io.pageable_rate is not None and in_use["pageable_rate"],
            "memory that isn't pinned is transferred",
        ),
        (
            ("engine", "io", "kv_store_rate"),
            io.kv_store_rate,
            io.kv_store_rate is not None and in_use["kv_store_rate"],
            "KV is stored below the GPU",
        ),
        (("link", "h2d"), s.link.h2d, any(below.values()), "the GPU reads what is placed below it"),
        (("link", "d2h"), s.link.d2h, stored_below, "KV or activations are placed below the GPU"),
        (("link", "duplex"), s.link.duplex, any(below.values()), "something is placed below the GPU"),
        (("link", "uplink", "bandwidth"), uplink, any(below.values()), "something is placed below the GPU"),
        (("tiers", "dram", "bandwidth"), s.tiers.dram.bandwidth, any(below.values()), "it is between GPU and disk"),
        (("tiers", "ssd", "read"), ssd.read, any(on_disk.values()), "something is placed on disk"),
        (("tiers", "ssd", "write"), ssd.write, stored_on_disk, "KV or activations are placed on disk"),
        (("engine", "cpu_attention_rate"), engine.cpu_attention_rate, attended, "KV is attended to on the CPU"),
    )
    for path, rate, used, why in needed:
        if used and not rate:
            yield Fault(path, f"zero, and {why}", "give a rate, or place all of it on the GPU in engine.placement")
