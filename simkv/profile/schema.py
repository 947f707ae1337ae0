"""What a calibration profile holds: raw samples, what was fitted to them, where they were taken, what they predict.

A profile is one JSON file. Everything is SI. Whatever wasn't measured is absent (null), never a guess: then the
card named by ``base`` is asked, or the run that needs it says so.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

SCHEMA = "simkv-calibration-1"
"""Names the shape of the file; a profile of another one is refused."""

Seconds = Annotated[float, Field(ge=0.0, le=1e6, allow_inf_nan=False)]
Rate = Annotated[float, Field(ge=1.0, le=1e18, allow_inf_nan=False)]
"""Slower ones no clock of a run can tell apart."""
Positive = Annotated[float, Field(gt=0.0, le=1e18, allow_inf_nan=False)]
Factor = Annotated[float, Field(ge=1.0, le=1000.0, allow_inf_nan=False)]
Text = Annotated[str, StringConstraints(max_length=2000)]
Lane = Literal["h2d", "d2h", "ssd_read", "ssd_write"]
LANES: tuple[Lane, ...] = ("h2d", "d2h", "ssd_read", "ssd_write")
WAIT = "wait"
"""In the place of a lane: nothing is carried, computing only pauses before every layer."""


def refused(reason: str, mend: str) -> PydanticCustomError:
    """Return an error for a validator to raise."""
    return PydanticCustomError("refused", "{reason}", {"reason": reason, "mend": mend})


def _tellable(name: str) -> str:
    if not name.strip() or not name.isprintable():
        raise refused("nothing that can be printed", "name the profile by letters and digits")
    return name


class Part(BaseModel):
    """A mapping of the file; unknown keys are errors, values don't change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Sample(Part):
    """One measured point: what was timed, at which settings, and every repeat."""

    kind: Text
    """Of the table in docs/calibration.md: ``h2d``, ``linear``, ``ssd_read``, ..."""
    at: dict[str, float | int | str | bool]
    """Settings, such as ``{"bytes": 65536, "pieces": 16, "memory": "pinned"}``."""
    seconds: Annotated[tuple[Annotated[float, Field(gt=0.0, le=1e6, allow_inf_nan=False)], ...], Field(min_length=1)]
    """Every repeat, in the order taken, warm-up left out."""

    @property
    def median_s(self) -> float:
        """Return the middle of the repeats."""
        return median(self.seconds)

    @property
    def outliers(self) -> tuple[float, ...]:
        """Return the repeats outside 1.5 interquartile ranges (Tukey's fences): reported, and part of the median."""
        ordered = sorted(self.seconds)
        if len(ordered) < 4:
            return ()
        low, high = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
        reach = 1.5 * (high - low)
        return tuple(one for one in self.seconds if not low - reach <= one <= high + reach)


class Residual(Part):
    """How far a fit is from the medians it was made of, as shares of them (0.05: 5 %)."""

    points: Annotated[int, Field(ge=0)]
    median: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    largest: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class LinkFit(Part):
    """A transfer of ``pieces`` pieces: ``setup + pieces * latency + bytes / bandwidth``."""

    setup_s: Seconds
    """Of one transfer, however many pieces it has: handing it over, starting it, saying that it is through."""
    latency_s: Seconds
    """Of one piece (descriptor)."""
    bytes_per_s: Rate
    smallest_bytes: Positive
    """Of one piece: the range that was measured."""
    largest_bytes: Positive
    residual: Residual
    note: Text = ""

    @model_validator(mode="after")
    def _a_range(self) -> Self:
        if self.smallest_bytes > self.largest_bytes:
            raise refused("smallest_bytes is more than largest_bytes", "they are the sizes that were measured")
        return self


def _rising(points: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    for (before, _), (after, _) in pairwise(points):
        if before >= after:
            raise refused(f"x doesn't rise: {after:g} follows {before:g}", "order the points, each x once")
    return points


Duration = Annotated[float, Field(ge=1e-12, le=1e6, allow_inf_nan=False)]
Extent = Annotated[float, Field(ge=1.0, le=1e18, allow_inf_nan=False)]
"""Tokens, sequences or bytes: none of them comes in parts."""
Points = Annotated[tuple[tuple[Extent, Duration], ...], Field(min_length=1, max_length=4096), AfterValidator(_rising)]
"""(x, seconds), x rising."""
RatePoints = Annotated[tuple[tuple[Extent, Rate], ...], Field(min_length=1, max_length=4096), AfterValidator(_rising)]
"""(x, rate), x rising."""


class AttentionRow(Part):
    """Decode attention of one batch size over the tokens of context that it reads, all sequences together."""

    batch: Annotated[int, Field(ge=1, le=1 << 40)]
    context: Points
    """(tokens of context over all sequences, seconds of one layer)."""


def _batches(rows: tuple[AttentionRow, ...]) -> tuple[AttentionRow, ...]:
    for before, after in pairwise(rows):
        if before.batch >= after.batch:
            raise refused(f"batch {after.batch} follows {before.batch}", "order the rows by batch, each once")
    return rows


Rows = Annotated[tuple[AttentionRow, ...], Field(min_length=1, max_length=1024), AfterValidator(_batches)]
"""Batch rising."""
SHAPE = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocab")
"""What makes a model the one that was measured."""


def _whole(shape: dict[str, int]) -> dict[str, int]:
    if set(shape) != set(SHAPE):
        raise refused("not the shape of a model", f"it has {', '.join(SHAPE)}")
    return shape


class Compute(Part):
    """What computing one model takes, by interpolation between measured points; times of one layer or of the step."""

    model: Text
    """Name in the catalogue, or path of a config.json."""
    shape: Annotated[dict[str, Annotated[int, Field(ge=1, le=1 << 40)]], AfterValidator(_whole)]
    """``layers hidden heads kv_heads head_dim intermediate vocab``: a model of another shape isn't this one."""
    dtype: Literal["fp32", "bf16", "fp16"]
    """Of weights and KV."""
    linear: Points
    """(tokens, seconds of one layer): all matrix products and what goes with them."""
    head: Points
    """(sequences that get a token, seconds of one step): last norm, lm_head, choosing a token."""
    decode: Rows
    """Over KV that lies in one piece, batch rising."""
    paged: Rows | None = None
    """Over KV that is gathered through a block table first: what the verification run does."""
    prefill: Points
    """(tokens of a prompt, seconds of one layer)."""
    layer_overhead_s: Seconds
    """Of one layer: launches that its parts, timed by themselves, don't show."""
    step_overhead_s: Seconds
    """Of one step: all that isn't in a layer or the head."""
    residual: Residual
    """Of whole steps, put together from these, against whole steps measured."""


class Rates(Part):
    """Figures of the roofline, for models and lengths that weren't measured."""

    flops_per_s: Rate
    """Best of the matrix products."""
    weight_bytes_per_s: Rate
    """As matrix products of few tokens read weights."""
    attention_bytes_per_s: Rate
    """As decode attention reads KV."""
    attention_flops_per_s: Rate
    """Best of prefill attention."""


class Memory(Part):
    """Bandwidth of device memory, and of the host's DRAM."""

    read_bytes_per_s: Rate | None = None
    copy_bytes_per_s: Rate | None = None
    """Read and written bytes together."""
    dram_copy_bytes_per_s: Rate | None = None
    """Of all threads of the best count, read and written bytes together."""
    dram_threads: int | None = None
    far_node_factor: Factor | None = None
    """How many times longer a copy to another NUMA node takes."""


class Contention(Part):
    """How many times longer things take while another goes on; 1: no longer."""

    compute_during: dict[Lane, Factor] = Field(default_factory=dict)
    """Computation, while that lane carries something."""
    during_compute: dict[Lane, Factor] = Field(default_factory=dict)
    """That lane, while the device computes."""
    after_wait: Factor = 1.0
    """A layer that is computed after a wait, next to one that follows another: caches cool down meanwhile."""


class Host(Part):
    """CPU time of managing blocks in one step: ``step + blocks * block``."""

    step_s: Seconds
    block_s: Seconds
    residual: Residual


class Fit(Part):
    """Everything that a run takes from a profile."""

    h2d: LinkFit | None = None
    d2h: LinkFit | None = None
    h2d_pageable: LinkFit | None = None
    d2h_pageable: LinkFit | None = None
    ssd_read: LinkFit | None = None
    ssd_write: LinkFit | None = None
    duplex_bytes_per_s: Rate | None = None
    """Both directions of the link together."""
    h2d_by_buffer: RatePoints | None = None
    """(bytes of host memory that copies come from, B/s): it falls for buffers of many GiB."""
    d2h_by_buffer: RatePoints | None = None
    memory: Memory = Memory()
    compute: Compute | None = None
    rates: Rates | None = None
    contention: Contention = Contention()
    host: Host | None = None
    notes: tuple[Text, ...] = ()
    """What a reader of these figures should know: parts that are missing, factors below 1, times that fall."""


class Device(Part):
    """What was measured."""

    kind: Literal["cpu", "cuda", "imported"]
    name: Text
    memory_bytes: Positive
    """Of a GPU its memory; on a CPU the bounded pool that stands for it."""
    base: Text | None = None
    """Card of the catalogue that stands in for what wasn't measured."""


class Prediction(Part):
    """One figure of a verification run; ``error`` is predicted / measured - 1, null where that has no meaning."""

    measured: float
    predicted: float
    error: float | None = None
    repeats: tuple[float, ...] = ()
    """What each repeat of the run measured."""


class VerifiedRun(Part):
    """One real run beside the simulator's prediction of it."""

    name: Text
    """``resident``, ``no_prefetch``, ``prefetch``, or ``prefetch_`` with what guesses."""
    scenario: Text
    """YAML of the scenario that was predicted, without its hardware."""
    t_step_s: Prediction
    t_compute_s: Prediction
    t_transfer_s: Prediction
    p_hit: Prediction
    beta: Prediction | None = None
    speedup: Prediction | None = None
    """Against ``no_prefetch``."""
    outputs: Text
    """SHA-256 over the attention outputs of every step."""


class Verification(Part):
    """A small real decode with KV in several tiers, and what the simulator said of it."""

    runs: tuple[VerifiedRun, ...]
    bit_identical: bool
    """Attention's outputs with offload are those of all-resident KV, bit by bit."""
    transfer_over_compute: float
    note: Text = ""


class Profile(Part):
    """One calibrated machine."""

    schema_: Literal["simkv-calibration-1"] = Field(default="simkv-calibration-1", alias="schema")
    name: Annotated[Text, AfterValidator(_tellable)]
    device: Device
    environment: dict[str, Any]
    """Driver, torch, CPU, kernel, date, simkv version, ...: whatever says where the figures are from."""
    samples: Annotated[tuple[Sample, ...], Field(max_length=100_000)]
    fit: Fit
    verification: Verification | None = None

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
