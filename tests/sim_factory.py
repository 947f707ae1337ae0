"""Small systems and workloads for tests of the simulator: one knob a test, everything else plain.

A block is ``BLOCK`` tokens and 1000 bytes, a step takes one second, and links move a block in a tenth of one,
so that times can be worked out by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from math import inf
from typing import Any

from simkv.formulas.step import ConstantStep
from simkv.results.check import check_run
from simkv.sim.config import DramConfig, EngineConfig, LinkConfig, OffloadConfig, SsdConfig, StepCost, SystemConfig
from simkv.sim.rundata import RunData
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from simkv.workload.request import PRIVATE_STREAM_BASE, Request, Source

BLOCK = 4
BLOCK_BYTES = 1000
RATE = 10_000.0
"""Bytes a second of a plain link: ten blocks a second."""


class ComputeStep:
    """A step takes ``base_s``, a second for each prompt token and ``decode_s`` for each decoding sequence."""

    def __init__(self, base_s: float = 1.0, token_s: float = 1.0, decode_s: float = 0.0, layers: int = 4) -> None:
        self.base_s, self.token_s, self.decode_s, self.layers = base_s, token_s, decode_s, layers

    def decode(self, sequences: int, context_tokens: int) -> tuple[float, float, int]:
        return self.base_s + self.decode_s * sequences, 0.0, 1 << 62

    def mixed(self, sequences: int, context_tokens: int, chunks: list[tuple[int, int]], sampled: int) -> float:
        return self.base_s + self.decode_s * sequences + self.token_s * sum(new for new, _ in chunks)


class SpiedStep(ComputeStep):
    """Notes what every step is made of: ``(sequences, context tokens, chunks, sampled)``; run it step by step."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.steps: list[tuple[int, int, list[tuple[int, int]], int]] = []

    def decode(self, sequences: int, context_tokens: int) -> tuple[float, float, int]:
        self.steps.append((sequences, context_tokens, [], sequences))
        return self.base_s + self.decode_s * sequences, 0.0, 1  # asked again at each step

    def mixed(self, sequences: int, context_tokens: int, chunks: list[tuple[int, int]], sampled: int) -> float:
        self.steps.append((sequences, context_tokens, list(chunks), sampled))
        return super().mixed(sequences, context_tokens, chunks, sampled)


def system_config(cost: StepCost | None = None, **changes: Any) -> SystemConfig:
    """Return a system of one replica with VRAM alone; ``changes`` go to whichever section has the field.

    ``dram_blocks`` and ``ssd_blocks`` give capacities, ``dram_rate`` the DRAM's bandwidth, ``h2d``/``d2h``/
    ``duplex``/``latency_s`` the link, ``ssd_read``/``ssd_write``/``ssd_latency_s``/``queue_depth``/
    ``request_latency_s`` the SSD.
    """
    take = changes.pop
    config = SystemConfig(
        engine=EngineConfig(BLOCK, BLOCK_BYTES, 1000, 8, 1000, 10**6),
        cost=cost or ConstantStep(1.0, 4),
        replicas=1,
        hosts=1,
        router="round_robin",
        link=LinkConfig(take("h2d", RATE), take("d2h", RATE), take("duplex", inf), take("latency_s", 0.0)),
        dram=DramConfig(take("dram_blocks", 0) * BLOCK_BYTES, take("dram_rate", inf), take("shared", False)),
        ssd=SsdConfig(
            take("ssd_blocks", 0) * BLOCK_BYTES,
            take("ssd_read", RATE / 2),
            take("ssd_write", RATE / 2),
            take("ssd_latency_s", 0.0),
            take("queue_depth", 1),
            take("request_latency_s", 0.0),
        ),
        offload=OffloadConfig(),
    )
    for section in ("engine", "link", "offload"):
        part = getattr(config, section)
        mine = {f.name: take(f.name) for f in fields(part) if f.name in changes}
        config = replace(config, **{section: replace(part, **mine)})
    return replace(config, **changes)


def request(
    number: int, arrival_s: float, prompt: int, output: int = 1, shared: int = 0, stream: int = 0, cls: str = ""
) -> Request:
    """Return a request whose first ``shared`` tokens are those of ``stream``, the rest its own."""
    private = (PRIVATE_STREAM_BASE + number, 0, prompt + output - shared)
    spans = ((stream, 0, shared), private) if shared else (private,)
    return Request(number, arrival_s, prompt, output, spans, cls=cls)


def same(number: int, arrival_s: float, prompt: int, output: int = 1, stream: int = 0, cls: str = "") -> Request:
    """Return a request with the prompt and the output of every other one of ``stream``."""
    return Request(number, arrival_s, prompt, output, ((stream, 0, prompt + output),), cls=cls)


def run(config: SystemConfig, source: Source | Iterable[Request], audit: bool = True) -> RunData:
    """Run a source (or a list of requests) under all laws."""
    return run_system(config, source, audit)[1]


def run_system(config: SystemConfig, source: Source | Iterable[Request], audit: bool = True) -> tuple[System, RunData]:
    """As :func:`run`; also return the system as the run left it."""
    if not hasattr(source, "arrivals"):
        source = FixedSource(source)  # type: ignore[arg-type]
    system = System(replace(config, audit=audit), source)  # type: ignore[arg-type]
    data = system.run()
    if audit:
        check_run(data)
    return system, data


def column(data: RunData, name: str, ids: Sequence[int] | None = None) -> list[Any]:
    """Return a column of the records by request id."""
    by_id = dict(zip(data.requests["id"].tolist(), data.requests[name].tolist(), strict=True))
    return [by_id[i] for i in (sorted(by_id) if ids is None else ids)]


def ttft(data: RunData) -> list[float]:
    """Return the time to first token by request id."""
    return [b - a for a, b in zip(column(data, "arrival_s"), column(data, "first_token_s"), strict=True)]
