"""Keys of batch mode held against each other and against what it can't do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simkv.scenario.batch_schema import BATCH_KEYS, BATCH_PRESETS
from simkv.scenario.schema import InlineHardware, InlineModel, Scenario
from simkv.scenario.text import Path

Found = tuple[Path, str, str]
"""Path, what is wrong, mend."""

IDLE: tuple[Path, ...] = (
    *(("engine", key) for key in (
        "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "num_gpu_blocks", "kv_cache_tokens",
        "enforce_eager", "hybrid_kv_cache", "reserve_full_prompt", "load", "store_outputs", "prefix_caching",
    )),
    ("engine", "prefill"), ("engine", "preemption"), ("tiers", "relation"), ("offload",),
    ("link", "descriptors_per_block"),
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
    return tuple(idle)


def batch_faults(s: Scenario, given: Callable[[Path], bool]) -> Iterator[Found]:
    """Yield everything about batch mode that doesn't go together."""
    engine = s.engine
    if engine.preset not in BATCH_PRESETS:
        for key in BATCH_KEYS:
            if getattr(engine, key) is not None:
                yield (
                    ("engine", key),
                    f"does nothing with preset {engine.preset}",
                    "write preset: flexgen or zero-inference",
                )
        return
    assert engine.placement is not None, "of the preset"
    if isinstance(s.hardware, InlineHardware) or isinstance(s.model, InlineModel):
        inline = "hardware" if isinstance(s.hardware, InlineHardware) else "model"
        yield (inline,), f"preset {engine.preset} moves weights and needs a real one", "name one of the catalogue"
    if s.replicas.tensor_parallel > 1:
        yield ("replicas", "tensor_parallel"), "batch mode serves each replica on one GPU", "write 1, or leave it out"
    for path in IDLE:
        if given(path):
            yield path, f"does nothing with preset {engine.preset}, which serves static batches", "leave it out"
    if engine.cpu_attention and engine.placement.kv[0] == 100 and given(("engine", "cpu_attention")):
        yield ("engine", "cpu_attention"), "does nothing with all KV on the GPU", "place KV below it, or leave it out"
    if not engine.cpu_attention and given(("engine", "cpu_attention_rate")):
        yield ("engine", "cpu_attention_rate"), "does nothing without cpu_attention", "write cpu_attention: true"
    if not engine.overlap and given(("engine", "schedule")):
        yield ("engine", "schedule"), "does nothing without overlap", "write overlap: true, or leave it out"
