"""CPU time of managing blocks: what deciding about one decode step costs, without computing or copying anything.

A sequence decodes in the simulator itself, whose classes the verification run uses too: sparse attention reads so many
blocks a step, part of them resident. Steps and links take no time, so what is left is the bookkeeping and the event
loop of every layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import inf
from time import thread_time

from simkv.calibrate.backend import repeated
from simkv.calibrate.measure.kvpool import BLOCK_TOKENS
from simkv.calibrate.measure.pace import repeats_s
from simkv.calibrate.plain import plain_sizes
from simkv.calibrate.task import Bench, Task
from simkv.kvcache.access import TopK
from simkv.profile.schema import Sample
from simkv.sim.active.config import ActiveConfig
from simkv.sim.config import DramConfig, EngineConfig, LinkConfig, OffloadConfig, SsdConfig, SystemConfig
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from simkv.workload.request import PRIVATE_STREAM_BASE, Request

_BLOCKS = {True: (8, 32, 128, 512), False: (8, 16, 32, 64, 128, 256, 512, 1024)}
"""By ``quick``."""
_STEPS, _SETTLING = 48, 8
"""Of one run, and those of them at its beginning that fill the resident set."""
_CONTEXT_OF_READ, _RESIDENCY, _RECENT = 4, 0.5, 4
"""A sequence has four times the blocks that a step reads, half of them resident; a quarter of the reads is newest."""
_FREE = 1e15
_STEP_S = 1.5e-3
"""For estimates of the time alone."""


def tasks(bench: Bench) -> Iterator[Task]:
    """Yield ``host_step`` by blocks read. Raises :class:`InputError` for a model that isn't computed."""
    layers = plain_sizes(bench.model).layers
    for blocks in _BLOCKS[bench.quick]:
        estimate_s = repeats_s(bench, _STEPS * _STEP_S)
        yield Task(f"host_step/{blocks}", estimate_s, partial(_host_step, bench, blocks, layers))


def _host_step(bench: Bench, blocks: int, layers: int) -> list[Sample]:
    seconds = repeated(lambda: managing_s(blocks, layers), bench.budget_s)
    return [Sample(kind="host_step", at={"blocks": blocks}, seconds=seconds)]


class Watch:
    """Steps that take no time, and the CPU time at which each began."""

    def __init__(self, layers: int) -> None:
        self.layers = layers
        self.begun_s: list[float] = []

    def decode(self, sequences: int, context_tokens: int) -> tuple[float, float, int]:
        """Note the time."""
        self.begun_s.append(thread_time())
        return 0.0, 0.0, 1

    def mixed(self, sequences: int, context_tokens: int, chunks: list[tuple[int, int]], sampled: int) -> float:
        """Return that prompts take no time either."""
        return 0.0


def managing_s(blocks: int, layers: int) -> float:
    """Return the CPU seconds of one step that reads ``blocks`` blocks in ``layers`` layers, the mean of a run."""
    system, watch = watched(blocks, layers)
    system.run()
    begun_s = watch.begun_s[_SETTLING:]
    return max((begun_s[-1] - begun_s[0]) / (len(begun_s) - 1), 1e-9)


def watched(blocks: int, layers: int) -> tuple[System, Watch]:
    """Return a system in which one sequence decodes and reads ``blocks`` blocks a step, and what watches its steps."""
    watch = Watch(layers)
    prompt, output = _CONTEXT_OF_READ * blocks * BLOCK_TOKENS, _STEPS + 1
    request = Request(0, 0.0, prompt, output, ((PRIVATE_STREAM_BASE, 0, prompt + output),))
    return System(_config(watch, blocks, prompt + output), FixedSource([request])), watch


def _config(watch: Watch, blocks: int, tokens: int) -> SystemConfig:
    """Return one replica with active offload to DRAM, sized for one sequence of ``tokens``, whose links are free."""
    room, layers = 2 * (tokens // BLOCK_TOKENS + 1), watch.layers
    read = TopK(blocks * BLOCK_TOKENS, blocks * BLOCK_TOKENS // _RECENT)
    return SystemConfig(
        engine=EngineConfig(BLOCK_TOKENS, layers, room, 1, tokens, tokens, prefix_caching=False),
        cost=watch,
        replicas=1,
        hosts=1,
        router="round_robin",
        link=LinkConfig(_FREE, _FREE, inf, 0.0),
        dram=DramConfig(room * layers, _FREE, shared=False),
        ssd=SsdConfig(0, _FREE, _FREE, 0.0, 1),
        offload=OffloadConfig(),
        active=ActiveConfig(_RESIDENCY, None, read, layers, seed=0, prefill="dram"),
        audit=False,
    )
