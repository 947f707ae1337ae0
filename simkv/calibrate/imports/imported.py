"""What was read of another tool's output: copies between host and device, requests to a drive, figures of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from simkv.profile.schema import Fit, Sample

Tool = Literal["nvbandwidth", "gpu_copy", "bandwidthTest", "fio"]
TOOLS: tuple[Tool, ...] = ("nvbandwidth", "gpu_copy", "bandwidthTest", "fio")
"""The one named first is believed where several measured the same: bandwidthTest prints one digit after the point."""
Engine = Literal["ce", "sm"]
ENGINES: dict[Engine, str] = {"ce": "copy engine", "sm": "copy kernel (SM)"}
"""The first is preferred: engines move blocks with copy engines, so that the SMs compute."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One bandwidth that a tool printed, of one GPU."""

    kind: Literal["h2d", "d2h", "duplex", "device_copy"]
    """``duplex``: both directions together; ``device_copy``: bytes copied, not read and written."""
    bytes_per_s: float
    buffer_bytes: int
    """Of one copy."""
    gpu: int
    test: str
    """As the tool calls it."""
    engine: Engine = "ce"
    memory: Literal["pinned", "pageable"] = "pinned"
    node: int | None = None
    """NUMA node of the host memory, where it is told."""
    during: bool = False
    """The other direction was busy at the same time: not the link's rate of one direction."""
    all_gpus: bool = False
    """All GPUs copied at the same time."""


@dataclass(frozen=True, slots=True)
class Requests:
    """What one or several jobs of fio did at the same time in one direction."""

    kind: Literal["ssd_read", "ssd_write"]
    bytes_per_s: float
    block_bytes: int
    depth: int
    """Requests under way at once, of all jobs together."""
    pattern: str
    """fio's ``rw``."""
    name: str
    latency_s: float | None = None
    """Mean from handing a request over to its end."""
    direct: bool | None = None
    """Past the page cache; None: not told."""
    ioengine: str = ""
    drive: str = ""
    """File, device or folder, where it is told."""
    beside: bool = False
    """Something else was read or written at the same time."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reader of one format returns."""

    tool: Tool
    version: str = ""
    devices: tuple[str, ...] = ()
    copies: tuple[Copy, ...] = ()
    requests: tuple[Requests, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """One file of figures that another tool measured."""

    source: str
    """Path of the file."""
    tool: Tool
    version: str
    devices: tuple[str, ...]
    samples: tuple[Sample, ...]
    figures: Fit
    """What the file tells by itself."""
    alternatives: dict[str, float]
    """Every bandwidth (B/s) by what it is of, figure or not, such as ``h2d by copy kernel (SM), 512 MiB``."""
    notes: tuple[str, ...]
    copies: tuple[Copy, ...] = field(repr=False, default=())
    requests: tuple[Requests, ...] = field(repr=False, default=())
