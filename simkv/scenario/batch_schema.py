"""Keys of the ``engine`` section that batch mode has: where weights, KV and activations lie, and how a batch is cut."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, model_validator

from simkv.scenario.base import Section, fault
from simkv.scenario.quantity import NumberAboveZero, Quantity, Rate, SmallCount

Percent = Annotated[float, Quantity("number", most=100)]
Percentages = Annotated[
    tuple[Percent, Percent], Field(description="Percent on GPU and on CPU; the rest is on disk", examples=[[20, 80]])
]
_PARTS = ("weights", "kv", "activations")


class Placement(Section):
    """FlexGen's six percentages."""

    weights: Percentages
    kv: Percentages
    activations: Percentages

    @model_validator(mode="after")
    def _within_hundred(self) -> Placement:
        for part in _PARTS:
            gpu, cpu = getattr(self, part)
            if gpu + cpu > 100:
                raise fault(f"{gpu:g} % on GPU and {cpu:g} % on CPU are more than all", "lower one of them", key=part)
        return self


BatchSize = Annotated[SmallCount | None, Field(description="Batch mode: sequences that the GPU computes at once")]
Batches = Annotated[
    SmallCount | None, Field(description="Batch mode: GPU batches that a layer serves before the next one is loaded")
]
Overlap = Annotated[
    StrictBool | None, Field(description="Batch mode: move and compute at once; false: one after the other")
]
Schedule = Annotated[
    Literal["loads_first", "at_once"] | None,
    Field(
        description="Batch mode, with overlap: while decoding, what goes onto the GPU goes before the rest of its "
        "block (as FlexGen's cost model has it), or everything at once"
    ),
]
CpuAttention = Annotated[StrictBool | None, Field(description="Batch mode: decoding attends to KV below the GPU there")]
CpuAttentionRate = Annotated[
    Rate | None, Field(description="Batch mode: bytes of KV that attention on the CPU reads a second")
]
Constants = Annotated[
    Literal["hardware", "flexgen-t4"] | None,
    Field(description="Batch mode: rates of the hardware and link named, or those that FlexGen fitted to a T4"),
]
Slack = Annotated[
    NumberAboveZero | None,
    Field(description="Batch mode: how much of the GPU the estimate of its peak may fill; above 1 it is relaxed"),
]

BATCH_KEYS = (
    "placement", "gpu_batch_size", "num_gpu_batches", "overlap", "schedule", "cpu_attention", "cpu_attention_rate",
    "constants", "memory_slack",
)  # fmt: skip
"""All of them."""
BATCH_PRESETS = ("flexgen", "zero-inference")
"""Engines that serve static batches; all others batch continuously."""
