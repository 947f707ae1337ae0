"""Samples of a machine whose figures are known: what a calibration should find again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from simkv.model import AttentionLayers, ModelShape
from simkv.profile.schema import Sample

KIB, MIB, GIB = 1024, 1024**2, 1024**3
MODEL = ModelShape("tiny", 4, 512, (AttentionLayers(4, 8, 2, 64),), 1024, 1000, "bf16", 4096)
BATCHES, CONTEXTS = (1, 2, 4), (256, 512, 1024, 2048)


@dataclass(frozen=True)
class Link:
    """A line through transfers, true by construction."""

    setup_s: float
    latency_s: float
    bytes_per_s: float

    def seconds(self, piece_bytes: float, pieces: float) -> float:
        return self.setup_s + pieces * self.latency_s + pieces * piece_bytes / self.bytes_per_s


@dataclass
class Machine:
    """Measures what it is made of, with relative noise."""

    noise: float = 0.02
    seed: int = 0
    h2d: Link = Link(20e-6, 3e-6, 11e9)
    d2h: Link = Link(25e-6, 4e-6, 9e9)
    ssd: Link = Link(0.0, 90e-6, 2.5e9)
    step_overhead_s: float = 400e-6
    compute_slowed: float = 1.2
    copy_slowed: float = 1.1
    after_wait: float = 1.05
    host_step_s: float = 30e-6
    host_block_s: float = 0.5e-6
    _rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def sample(self, kind: str, seconds: float, **at: float | int | str | bool) -> Sample:
        repeats = seconds * np.exp(self._rng.normal(0, self.noise, 9))
        return Sample(kind=kind, at=at, seconds=tuple(repeats.tolist()))

    def copies(self, kind: str, link: Link, memory: str = "pinned") -> Iterator[Sample]:
        for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB):
            for pieces in (1, 4, 16, 64):
                if size * pieces <= 64 * MIB:
                    yield self.sample(kind, link.seconds(size, pieces), bytes=size, pieces=pieces, memory=memory)

    def requests(self, kind: str, direct: bool = True) -> Iterator[Sample]:
        for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB):
            for depth in (1, 4, 16):
                for pieces in (16, 64):
                    seconds = max(self.ssd.seconds(size, pieces) / depth, pieces * size / 6e9)
                    yield self.sample(kind, seconds, bytes=size, pieces=pieces, depth=depth, direct=direct)

    def linear_s(self, tokens: float) -> float:
        return max(300e-6, tokens * 40e-6)

    def head_s(self, tokens: float) -> float:
        return 100e-6 + tokens * 20e-6

    def attention_s(self, tokens: float) -> float:
        return 30e-6 + tokens * 0.2e-6

    def prefill_s(self, tokens: float) -> float:
        return 50e-6 + tokens**2 * 1e-9

    def computing(self) -> Iterator[Sample]:
        for tokens in (1, 2, 4, 8, 16, 64, 256):
            yield self.sample("linear", 4 * self.linear_s(tokens), tokens=tokens, layers=4)
            yield self.sample("head", self.head_s(tokens), tokens=tokens)
        for tokens in (128, 512, 2048):
            yield self.sample("prefill_attention", 2 * self.prefill_s(tokens), tokens=tokens, layers=2)
        for batch in BATCHES:
            for context in CONTEXTS:
                layer_s = self.attention_s(batch * context)
                at = {"batch": batch, "context": context, "layers": 2}
                yield self.sample("decode_attention", 2 * layer_s, **at)
                yield self.sample("paged_attention", 2 * 1.5 * layer_s, **at, block_tokens=32)

    def whole_step_s(self, batch: int, context: int) -> float:
        layer_s = self.linear_s(batch) + 1.5 * self.attention_s(batch * context)
        return self.step_overhead_s + MODEL.layers * layer_s + self.head_s(batch)

    def steps(self) -> Iterator[Sample]:
        for batch in BATCHES:
            for context in (512, 2048):
                seconds = self.whole_step_s(batch, context)
                yield self.sample("step", seconds, batch=batch, context=context, block_tokens=32)

    def contention(self) -> Iterator[Sample]:
        for lane in ("h2d", "ssd_read"):
            for kind, factor in (("compute", self.compute_slowed), ("copy", self.copy_slowed)):
                yield self.sample(f"{kind}_alone", 0.01, lane=lane)
                yield self.sample(f"{kind}_during", 0.01 * factor, lane=lane)
        yield self.sample("compute_alone", 0.01, lane="wait")
        yield self.sample("compute_during", 0.01 * self.after_wait, lane="wait")

    def memory(self) -> Iterator[Sample]:
        for size in (MIB, 64 * MIB, 128 * MIB, 256 * MIB):
            cached = 3.0 if size == MIB else 1.0
            yield self.sample("device_read", size / 100e9 / cached, bytes=size)
            yield self.sample("device_copy", 2 * size / 80e9 / cached, bytes=size)
        for threads, rate in ((1, 12e9), (2, 20e9), (4, 19e9)):
            at = {"bytes": 64 * MIB, "threads": threads, "to_node": 0}
            yield self.sample("dram_copy", 2 * 64 * MIB / rate, **at, from_node=0)
            yield self.sample("dram_copy", 1.7 * 2 * 64 * MIB / rate, **at, from_node=1)

    def host(self) -> Iterator[Sample]:
        for blocks in (1, 8, 64, 512):
            yield self.sample("host_step", self.host_step_s + blocks * self.host_block_s, blocks=blocks)

    def all(self) -> list[Sample]:
        """Return every kind of sample."""
        duplex = [self.sample("duplex", 16 * 4 * MIB / 9e9, bytes=4 * MIB, pieces=16, memory="pinned")]
        buffers = [
            self.sample(f"{way}_buffer", 256 * MIB / rate, buffer_bytes=size, bytes=256 * MIB, memory="pinned")
            for way in ("h2d", "d2h")
            for size, rate in ((GIB, 11e9), (16 * GIB, 6e9))
        ]
        return [
            *self.copies("h2d", self.h2d), *self.copies("d2h", self.d2h), *duplex, *buffers,
            *self.requests("ssd_read"), *self.requests("ssd_write"), *self.memory(),
            self.sample("launch", 8e-6), *self.computing(), *self.steps(), *self.contention(), *self.host(),
        ]  # fmt: skip
