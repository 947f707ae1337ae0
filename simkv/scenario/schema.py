"""The sections of a scenario file and what each key takes (the workload's are in ``workload_schema``).

Values here have passed their own checks and are in SI; :mod:`simkv.scenario.checks` holds them
against each other. Keys without a default here get one from the engine preset, the hardware or
:mod:`simkv.scenario.resolve`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, StrictBool, StringConstraints

from simkv.formulas.backends import Backend
from simkv.formulas.memory import logged_kv_tokens
from simkv.scenario import batch_schema as batch
from simkv.scenario import presets
from simkv.scenario.base import Named, Section
from simkv.scenario.naming import TITLE
from simkv.scenario.offload_schema import Offload
from simkv.scenario.plan_schema import Plan
from simkv.scenario.quantity import (
    FiniteSizeAboveZero,
    FractionAboveZero,
    Number,
    PoolTokens,
    Priority,
    Quantity,
    Rate,
    Size,
    SmallCount,
    Time,
    TimeAboveZero,
    TokensAboveZero,
)
from simkv.scenario.sweep_schema import Replications, Sweep
from simkv.scenario.workload_schema import MOST_CLASSES, Workload

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Title = Annotated[str, StringConstraints(pattern=TITLE, min_length=1, max_length=300)]
Text = Annotated[str, StringConstraints(max_length=2000)]
CatalogueName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1000),
    Field(description="Name in the catalogue, or path of a calibration profile (.json)"),
]
if TYPE_CHECKING:
    PresetName = str
else:
    PresetName = Literal[presets.NAMES]
Dtype = Literal["auto", "fp32", "bf16", "fp16", "fp8", "int8", "int4"]
WeightDtype = Literal["auto", "fp32", "bf16", "fp16", "fp8", "int8", "int4", "mxfp4", "nvfp4"]


def logged_tokens(value: object) -> object:
    """Return the count in a pasted log line; anything else as it is."""
    logged = logged_kv_tokens(value) if isinstance(value, str) else None
    return value if logged is None else logged


class InlineModel(Section):
    """A model of which only the size of its KV matters; goes with inline hardware."""

    kv_bytes_per_token: FiniteSizeAboveZero


class InlineHardware(Section):
    """An abstract machine: every step takes ``step_time`` whatever is in it, and the pool holds ``kv_tokens``."""

    step_time: TimeAboveZero
    kv_tokens: PoolTokens


ModelName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1000),
    Field(description="Name in the catalogue, or path of a Hugging Face config.json or of its folder"),
]
ModelRef = Annotated[InlineModel | ModelName, Named(InlineModel, ModelName)]
HardwareRef = Annotated[InlineHardware | CatalogueName, Named(InlineHardware, CatalogueName)]


class PrefixScore(Section):
    """Prompts that the router remembers having sent to a replica, and how much of a newcomer they match."""

    weight: Number = 1.0
    block_tokens: Annotated[int, Quantity("count", least=1, most=4096)] = 16
    most_tokens: TokensAboveZero = Field(default=4096, description="Of a prompt; what comes behind isn't looked at")
    capacity: PoolTokens | None = Field(
        default=None, description="Tokens remembered for each replica; absent: as many blocks as its VRAM has"
    )


class Scorers(Section):
    """What router scored looks at, and how much each counts (llm-d, Gateway API inference extension)."""

    queue: Annotated[Number, Field(description="Fewest requests waiting")] = 1.0
    kv_usage: Annotated[Number, Field(description="Smallest share of KV blocks in use")] = 1.0
    in_flight: Annotated[Number, Field(description="Fewest requests sent there and not answered yet")] = 0.0
    cold: Annotated[Number, Field(description="Prompts that no replica knows go to the one longest without such")] = 0.0
    prefix: PrefixScore = PrefixScore()
    lower_prefix: PrefixScore | None = Field(default=None, description="The same again with DRAM in mind")
    poll: Annotated[Time, Field(description="How often it asks replicas, which tell as of their last step")] = 0.05


MOST_MACHINES = 1024
"""Replicas, or hosts of them."""


class Replicas(Section):
    count: Annotated[int, Quantity("count", least=1, most=MOST_MACHINES)] = 1
    tensor_parallel: Annotated[int, Quantity("count", least=1, most=64)] = 1
    hosts: Annotated[int, Quantity("count", least=1, most=MOST_MACHINES)] = Field(
        default=1, description="Replicas are dealt to the hosts in turn; those of one host share its DRAM and SSD"
    )
    router: Literal["round_robin", "least_loaded", "prefix_aware", "scored"] = "round_robin"
    scorers: Scorers | None = Field(
        default=None, description="Of router scored; absent: queue, kv_usage and prefix, weight 1 each"
    )

    @property
    def of_fullest_host(self) -> int:
        """How many replicas the host with the most has."""
        return -(-self.count // self.hosts)


class Engine(Section):
    preset: PresetName = "vllm"
    version: Annotated[Text, Field(description="Engine version whose defaults apply; absent: the newest known")]
    max_num_seqs: SmallCount
    max_num_batched_tokens: TokensAboveZero
    max_model_len: TokensAboveZero | None = Field(default=None, description="Absent: the model's own maximum")
    block_tokens: Annotated[int, Quantity("count", least=1, most=4096)]
    gpu_memory_utilization: FractionAboveZero
    num_gpu_blocks: Annotated[int, Quantity("count", least=2)] | None = Field(
        default=None,
        description="As the engine logs it (pages, of models with windows or states); absent: from the budget",
    )
    kv_cache_tokens: Annotated[int, Quantity("tokens", least=1), BeforeValidator(logged_tokens)] | None = Field(
        default=None, description='What the engine logged, a count or the line "GPU KV cache size: 41,408 tokens"'
    )
    weight_dtype: WeightDtype = Field(
        default="auto", description="The checkpoint's own, auto or by name, keeps parts that it has in other formats"
    )
    kv_dtype: Dtype = "auto"
    enforce_eager: StrictBool
    scheduling: Literal["fcfs", "priority"]
    prefix_caching: StrictBool
    hybrid_kv_cache: Annotated[
        StrictBool, Field(description="Free what has left a window; false: layers with one grow as all others do")
    ]
    preemption: Literal["recompute", "swap"] = Field(
        default="recompute",
        description="What a request that has to give its VRAM back does later: compute again, or load from DRAM",
    )
    reserve_full_prompt: Annotated[StrictBool, Field(description="Admit only what has room for its whole prompt")]
    async_scheduling: StrictBool | None = Field(
        default=None,
        description="A step is decided while the one before it runs: who arrives meanwhile joins the step after next; "
        "absent: the engine's own, false on abstract hardware",
    )
    load: Literal["hold", "overlap", "block"] = Field(
        description="hold: a request waits for its load while others run; overlap: its step waits layer by layer; "
        "block: its step, and with it the whole batch, computes when all is loaded"
    )
    store_outputs: Annotated[StrictBool, Field(description="Whether generated tokens go to the lower tiers too")]
    attention_kernels: Literal["contiguous", "paged"] | None = Field(
        default=None,
        description="Step times of a calibration profile: over KV in one piece, or gathered through a block table",
    )
    host_cost_per_block: Time | None = Field(
        default=None,
        description="Prefix reuse: CPU time between two steps for each block of a prompt that lower "
        "tiers are asked about; absent: the engine's own, none on abstract hardware",
    )
    host_cost_per_load: Time | None = Field(
        default=None,
        description="Prefix reuse: the same for each request that is held for its load, on top",
    )
    attention_backend: Backend | None = Field(
        default=None, description="Kernels of attention: flash (FlashAttention, FlashInfer; absent: this), or triton"
    )
    placement: batch.Placement | None = Field(default=None, description="Batch mode: what lies where")
    gpu_batch_size: batch.BatchSize = None
    num_gpu_batches: batch.Batches = None
    overlap: batch.Overlap = None
    schedule: batch.Schedule = None
    cpu_attention: batch.CpuAttention = None
    cpu_attention_rate: batch.CpuAttentionRate = None
    constants: batch.Constants = None
    memory_slack: batch.Slack = None
    io: batch.HostIo | None = Field(default=None, description="Batch mode: how what the host holds is moved")
    prefill: Literal["here", "vram", "dram", "ssd"] = Field(
        default="here",
        description="Active offload: where prompts are computed; a tier: their KV is there already when they arrive",
    )


class Dram(Section):
    capacity: Annotated[Size, Field(description="Of one host; absent: by ratio or per_gpu, else none")] = 0
    ratio: Number | None = Field(
        default=None, description="Instead of a capacity: so many times the KV pools in VRAM of the host's replicas"
    )
    per_gpu: Size | None = Field(default=None, description="Instead of a capacity: so much for each GPU in use")
    bandwidth: Rate = 160e9
    shared: StrictBool = Field(description="One pool for all replicas of a host, or an equal part for each")

    @property
    def exists(self) -> bool:
        """Whether there is any, by whichever measure."""
        return bool(self.capacity or self.ratio or self.per_gpu)


class Ssd(Section):
    capacity: Annotated[Size, Field(description="Of one host")] = 0
    read: Rate = 7e9
    write: Rate = 5e9
    latency: Time = 80e-6
    request_latency: Annotated[
        Time, Field(description="Of each request on top of a transfer's latency, at the queue depth")
    ] = 0.0
    queue_depth: Annotated[int, Quantity("count", least=1, most=65536)] = 32


class Tiers(Section):
    dram: Dram
    ssd: Ssd = Ssd()
    relation: Literal["copy", "exclusive"]


class Uplink(Section):
    """What the GPUs behind one PCIe switch share on their way to host memory."""

    bandwidth: Annotated[Rate, Field(description="Of each direction")]
    gpus: Annotated[
        int,
        Quantity("count", least=1, most=1024),
        Field(description="How many GPUs share one, in order of their numbers on the host"),
    ]


class Link(Section):
    """The host link of one GPU; a replica's is ``tensor_parallel`` times as wide."""

    h2d: Rate
    d2h: Rate
    duplex: Annotated[Rate, Field(description="Both directions together")]
    latency: Annotated[Time, Field(description="Of one descriptor, that is one contiguous piece")] = 3.5e-6
    setup: Annotated[Time, Field(description="Of one transfer, however many descriptors it has")] = 0.0
    chunk: Annotated[
        FiniteSizeAboveZero, Field(description="A transfer gives way to a more urgent one every chunk")
    ] = 2 << 20
    descriptors_per_block: Annotated[
        int | Literal["auto"], Quantity("count", least=1, most=100_000, words=("auto",))
    ] = "auto"
    uplink: Uplink | None = Field(default=None, description="Absent: each GPU's link reaches host memory by itself")


Factor = Annotated[float, Quantity("number", least=1, most=1000)]


class LaneFactors(Section):
    """A factor for each lane; 1: none."""

    h2d: Factor = 1.0
    d2h: Factor = 1.0
    ssd_read: Factor = 1.0
    ssd_write: Factor = 1.0


class Contention(Section):
    """Active offload: how much computation and copies slow each other."""

    compute_during: Annotated[
        LaneFactors, Field(description="How many times longer computation takes while the lane carries something")
    ] = LaneFactors()
    during_compute: Annotated[
        LaneFactors, Field(description="How many times longer the lane's transfers take while the GPU computes")
    ] = LaneFactors()
    after_wait: Annotated[
        Factor, Field(description="How many times longer a layer takes that had to wait for pieces: caches cool down")
    ] = 1.0


class ClassSlo(Section):
    ttft: TimeAboveZero | None = None
    tpot: TimeAboveZero | None = None


class RequestClass(Section):
    priority: Annotated[
        Priority, Field(description="A lower number goes first: in the queue and, within a kind of transfer, on links")
    ] = 0
    slo: ClassSlo = ClassSlo()
    vram_share: FractionAboveZero | None = Field(
        default=None, description="The most of the KV blocks that its requests hold when one more is admitted"
    )
    dram_share: FractionAboveZero | None = Field(
        default=None, description="Its own part of DRAM; absent: what is left by classes that have one"
    )
    retention: Annotated[int | None, Quantity("count", most=100)] = Field(
        default=None,
        description="Eviction policy priority: what its blocks are worth, 0 to 100, the lowest go first; absent: 35",
    )


class Cost(Section):
    """Prices in ``currency``, of one GPU, one GiB and one TiB for an hour."""

    gpu_hour: Number
    dram_gib_hour: Number = 0.0
    ssd_tib_hour: Number = 0.0
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")] = "USD"
    source: Text = ""
    date: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None


class Run(Section):
    seed: Annotated[int, Quantity("count", most=2**32 - 1)] = 0
    duration: TimeAboveZero | None = Field(default=None, description="Arrivals from this time on are not taken in")
    warm_up: Annotated[float | Literal["auto"], Quantity("time", most=1e10, words=("auto",))] = "auto"
    warm_tiers: Annotated[float | Literal["auto"] | None, Quantity("time", most=1e10, words=("auto",))] = Field(
        default=None,
        description="How much of the workload passes untimed before the run, leaving warm tiers; absent: none, auto: "
        "until longer would change nothing",
    )
    replications: Replications = Field(
        default=1, description="Seeds with which `simkv sweep` runs each point: seed, seed + 1, ..."
    )
    baselines: tuple[Literal["no_offload", "no_prefetch"], ...] = Field(
        default=("no_offload", "no_prefetch"),
        max_length=2,
        description="The same run with one thing changed; one that wouldn't differ isn't run",
    )


class Scenario(Section):
    """One serving system, its load, and the question."""

    name: Annotated[Title, Field(description="One line of text; names the result's folder, too")]
    question: Annotated[Text, Field(description="What the run shall answer; shown in reports")] = ""
    model: ModelRef
    hardware: HardwareRef
    replicas: Replicas = Replicas()
    engine: Engine
    workload: Workload
    tiers: Tiers
    link: Link
    offload: Offload
    contention: Contention | None = Field(
        default=None, description="Active offload; absent: computation and copies don't slow each other"
    )
    classes: dict[Name, RequestClass] = Field(default_factory=dict, max_length=MOST_CLASSES)
    slo: dict[str, TimeAboveZero] = Field(
        default_factory=dict, max_length=100, description="METRIC_STATISTIC: time, such as ttft_p95: 2s"
    )
    cost: Cost | None = None
    run: Run = Run()
    sweep: Sweep | None = Field(default=None, description="What `simkv sweep` varies")
    plan: Plan | None = Field(default=None, description="What `simkv plan` may choose from, and what must hold")

    @property
    def active(self) -> bool:
        """Whether sequences run under active offload: part of their KV below VRAM, or brought there by others."""
        return self.offload.active or self.engine.prefill != "here"


SLO_METRICS = ("ttft", "itl", "tpot", "e2e", "queue")
SLO_STATISTICS = ("mean", "p50", "p90", "p95", "p99", "max")
SLO_KEYS = tuple(f"{metric}_{statistic}" for metric in SLO_METRICS for statistic in SLO_STATISTICS)
