"""Small systems under active offload: a block is 4 tokens and 1000 bytes in 4 layers, a step computes for a second.

The link carries ten blocks a second without latency, SSDs read and write five, so that times can be worked out by
hand: a (block, layer) piece takes 25 ms up, and 75 ms from SSD.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from simkv.kvcache.access import Dense
from simkv.results.check import check_run
from simkv.sim.active.config import ActiveConfig, PrefetchConfig
from simkv.sim.active.measured import Measured
from simkv.sim.config import SystemConfig
from simkv.sim.rundata import RunData
from simkv.sim.system import System
from simkv.workload.replay import FixedSource
from simkv.workload.request import Request
from tests import sim_factory
from tests.sim_factory import request

LAYERS = 4
PLAIN: dict[str, Any] = {"prefix_caching": False, "chunk_bytes": 50, "dram_blocks": 400}


def active_config(**changes: Any) -> SystemConfig:
    """Return a system of one replica with active offload; ``changes`` go wherever a field has that name.

    ``policy``, ``beta``, ``accuracy``, ... are of the prefetch, ``swap``, ``residency``, ... of active offload, all
    else as in :func:`tests.sim_factory.system_config`.
    """
    mine = {f.name: changes.pop(f.name) for f in fields(PrefetchConfig) if f.name in changes}
    given = {"residency": 0.5, "budget_blocks": None, "access": Dense(), "layers": LAYERS, "seed": 0}
    given |= {f.name: changes.pop(f.name) for f in fields(ActiveConfig) if f.name in changes and f.name != "prefetch"}
    cost = changes.pop("cost", None)
    config = sim_factory.system_config(cost, **(PLAIN | changes), active=None)
    return _with(config, ActiveConfig(**given, prefetch=PrefetchConfig(**mine)))


def _with(config: SystemConfig, active: ActiveConfig) -> SystemConfig:
    offload = replace(config.offload, write=active.write, relation="exclusive" if active.exclusive else "copy")
    return replace(config, active=active, offload=offload)


def run(config: SystemConfig, requests: Iterable[Request], every: int = 16) -> RunData:
    """Run requests under all laws, looked at after ``every`` events."""
    system = System(replace(config, audit=True), FixedSource(requests))
    assert system.audit is not None
    system.audit.every = every
    data = system.run()
    check_run(data)
    return data


def measured(config: SystemConfig, requests: Iterable[Request]) -> Measured:
    """Run under all laws; return what decode steps measured."""
    found = run(config, requests).active
    assert found is not None
    return found


def decoding(prompt: int = 40, output: int = 9, number: int = 0, arrival_s: float = 0.0) -> Request:
    """Return a request that decodes for ``output - 1`` steps after its prompt."""
    return request(number, arrival_s, prompt, output)


def step_s(found: Measured) -> float:
    """Return the mean time of a decode step."""
    return found.step_s / found.steps


def write_log(path: Path, reads: dict[int, list[list[int]]]) -> Path:
    """Write a replay log: blocks by step of each sequence."""
    rows = [
        {"step": step, "sequence": sequence, "blocks": blocks}
        for sequence, steps in reads.items()
        for step, blocks in enumerate(steps)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def random_reads(rng: random.Random, prompt: int, steps: int, most: int = 6) -> list[list[int]]:
    """Return random blocks, each once, for every decode step after ``prompt`` tokens, its newest among them."""
    found = []
    for step in range(steps):
        blocks = -(-(prompt + step + 1) // sim_factory.BLOCK)
        picked = rng.sample(range(blocks), min(blocks, rng.randint(1, most)))
        found.append(picked if blocks - 1 in picked else [*picked, blocks - 1])
    return found
