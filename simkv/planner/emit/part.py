"""What one engine of a resolved scenario gets: its GPUs, its part of a host's tiers, its pool in VRAM."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf
from typing import Any

from simkv.errors import InputError, Problem
from simkv.hardware import Gpu
from simkv.model import ModelShape
from simkv.scenario.build import block_tokens, engine_config
from simkv.scenario.load import SET
from simkv.scenario.resolve import Resolved

_VISIBLE = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "HIP_VISIBLE_DEVICES", "intel": "ZE_AFFINITY_MASK"}
"""Variables that say which GPUs a process sees, by vendor."""


@dataclass(frozen=True, slots=True)
class Part:
    """One engine's part; ``resolved`` is of a catalogued model on a catalogued GPU."""

    resolved: Resolved
    model: ModelShape
    gpu: Gpu
    ranks: int
    here: int
    """Engines of the host with the most."""
    dram_bytes: float
    """One engine's, all ranks; ``inf`` where nobody says how much."""
    ssd_bytes: float
    """The same of a device that all engines of the host share."""

    @property
    def offloads(self) -> bool:
        """Whether anything is ever kept in DRAM."""
        scenario = self.resolved.scenario
        return bool(self.dram_bytes) and scenario.offload.write != "never" and scenario.engine.prefix_caching

    @property
    def uses_ssd(self) -> bool:
        """Whether anything is ever kept below DRAM."""
        return self.offloads and bool(self.ssd_bytes)

    @property
    def dram_bytes_per_rank(self) -> float:
        """One GPU's part of DRAM."""
        return self.dram_bytes / self.ranks

    @property
    def ssd_bytes_per_rank(self) -> float:
        """One GPU's part of the SSD."""
        return self.ssd_bytes / self.ranks

    @property
    def one_copy(self) -> bool:
        """Whether every rank has the same KV, so that one copy below VRAM does for all (MLA throughout)."""
        return self.ranks > 1 and self.model.mla and self.model.uniform

    @property
    def pool_given(self) -> bool:
        """Whether the scenario itself says how large the pool in VRAM is."""
        given = self.resolved.layers.given
        return given(("engine", "num_gpu_blocks")) or given(("engine", "kv_cache_tokens"))

    @property
    def pool_tokens(self) -> int:
        """Tokens of the pool in VRAM."""
        return engine_config(self.resolved).num_gpu_blocks * block_tokens(self.resolved)

    @property
    def dram_ratio(self) -> float | None:
        """How many times the pool in VRAM, where DRAM was given so."""
        layers = self.resolved.layers
        written = _at(layers.written, "tiers", "dram") or {}
        if any(written.get(key) is not None for key in ("capacity", "per_gpu")):
            return None
        ratio = written.get("ratio")
        ratio = _at(layers.preset.values, "tiers", "dram", "ratio") if ratio is None else ratio
        return None if ratio is None else float(ratio)

    def line_bytes(self, name: str) -> int:
        """Return one line of a GPU's memory budget, as a positive size; needs one (``resolved.budget``)."""
        assert self.resolved.budget is not None
        return abs(sum(size for line, size, _ in self.resolved.budget.lines if line == name))

    def origin(self, path: str) -> str:
        """Return a path and where its value is from, as comments say it."""
        origin = self.resolved.origin(tuple(path.split(".")))
        return f"{path}: {'chosen' if origin == SET else origin}"

    def gpus(self, replica: int) -> dict[str, str]:
        """Return the variable that gives a replica its own GPUs, of a host with several."""
        name = _VISIBLE.get(self.gpu.vendor.lower(), "CUDA_VISIBLE_DEVICES")
        first = replica * self.ranks
        return {name: ",".join(map(str, range(first, first + self.ranks)))} if self.here > 1 else {}


def part_of(resolved: Resolved, engine: str) -> Part:
    """Return one engine's part; raises InputError for an abstract model or machine: nothing can be started of it."""
    model, gpu = resolved.model, resolved.gpu
    if model is None or gpu is None:
        what = "model" if model is None else "hardware"
        mend = f"name a {what} of the catalogue (simkv catalog {'models' if model is None else 'hardware'})"
        raise InputError(Problem(f"an abstract {what} can't be put into {engine}'s words", mend, path=what))
    scenario = resolved.scenario
    here = scenario.replicas.of_fullest_host
    tiers = scenario.tiers
    return Part(
        resolved, model, gpu, scenario.replicas.tensor_parallel, here, tiers.dram.capacity / here,
        tiers.ssd.capacity / here,
    )  # fmt: skip


def endless(part: Part) -> bool:
    """Say whether DRAM has no size: nothing that an engine could be told."""
    return isinf(part.dram_bytes)


def _at(tree: Any, *path: str) -> Any:
    for key in path:
        tree = tree.get(key) if hasattr(tree, "get") else None
    return tree
