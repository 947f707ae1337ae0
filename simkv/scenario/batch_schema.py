"""Keys of the ``engine`` section that batch mode has: where weights, KV and activations lie, and how a batch is cut."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, model_validator

from simkv.formulas.placement.policy import Expands
from simkv.scenario.base import Section, fault
from simkv.scenario.quantity import FractionAboveZero, NumberAboveZero, Quantity, Rate, Size, SmallCount

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
    Literal["loads_first", "reads_first", "at_once"] | None,
    Field(
        description="Batch mode, with overlap: while decoding, what goes onto the GPU goes before the rest of its "
        "block (as FlexGen's cost model has it), what SSD reads as well, or everything at once"
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


class HostIo(Section):
    """How an engine of static batches moves what lies in DRAM and on disk: what its code does, apart from the link."""

    pin_weights: StrictBool = Field(description="Weights in DRAM are page-locked: the GPU takes them without a copy")
    pin_kv: StrictBool = Field(description="The same of KV")
    staging: Literal["engine", "driver"] = Field(
        description="Who copies what isn't pinned: the engine, tensor by tensor before it launches anything else, or "
        "the driver, while it transfers"
    )
    copy_rate: Annotated[Rate, Field(description="Bytes a second that the CPU copies within DRAM")]
    pageable_rate: Rate | None = Field(
        default=None, description="What the driver transfers of memory that isn't pinned; absent: by the link"
    )
    load_efficiency: Annotated[FractionAboveZero, Field(description="Of the link, what loading pinned weights reaches")]
    kv_store_rate: Rate | None = Field(
        default=None, description="KV on its way to memory that isn't pinned; absent: as the link"
    )
    read_ahead: Annotated[
        Size,
        Field(
            description="Files on disk are mapped, and read so much ahead (Linux: 128 KiB; striped volumes: twice "
            "their stripe); 0: they are read directly, at the drive's rate"
        ),
    ]
    expand_kv: Annotated[
        Expands,
        Field(
            description="Attention on the CPU first writes KV out in 32 bits, once for each head of the queries: "
            "never, where heads of KV are repeated, or always"
        ),
    ]
    unpack_passes: Annotated[
        NumberAboveZero, Field(description="Passes over device memory that unpacking int4 takes, of its 16-bit form")
    ]
    whole_matrices: Annotated[
        StrictBool, Field(description="Percentages of weights are met by whole matrices, as they come")
    ]


BATCH_KEYS = (
    "placement", "gpu_batch_size", "num_gpu_batches", "overlap", "schedule", "cpu_attention", "cpu_attention_rate",
    "constants", "memory_slack", "io",
)  # fmt: skip
"""All of them."""
BATCH_PRESETS = ("accelerate", "flexgen", "zero-inference")
"""Engines that serve static batches; all others batch continuously."""
