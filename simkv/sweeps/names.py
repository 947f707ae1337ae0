"""Short names of what is varied most, and what each path brings along or puts out of force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simkv.errors import InputError, Problem
from simkv.scenario.problems import nearest
from simkv.sweeps import paths
from simkv.units import shown

SHORT: Mapping[str, str] = {
    "p": "offload.residency",
    "beta": "offload.prefetch.beta",
    "lambda": "offload.eviction.lambda",
    "instance": "hardware",
    "gpu": "hardware",
    "tp": "replicas.tensor_parallel",
    "count": "replicas.count",
    "hosts": "replicas.hosts",
    "dram": "tiers.dram.capacity",
    "ssd": "tiers.ssd.capacity",
    "preset": "engine.preset",
    "kv_dtype": "engine.kv_dtype",
    "rate": "workload.arrival.rate",
    "users": "workload.arrival.users",
    "seed": "run.seed",
}
"""Short names, and the paths that they stand for."""


@dataclass(frozen=True, slots=True)
class Along:
    """What has to change in a scenario as written so that varying a path means something."""

    implies: tuple[tuple[str, str], ...] = ()
    """Path and value."""
    replaces: tuple[str, ...] = ()
    """Paths of what contradicts it, taken out where the scenario's file has them."""
    only_with: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Paths that mean something with some of its values, and those; taken out, where the file has them, with others."""


_AHEAD = "offload.prefetch"
ALONG: Mapping[str, Along] = {
    "offload.residency": Along(replaces=("offload.vram_budget",)),
    "offload.vram_budget": Along(replaces=("offload.residency",)),
    "offload.prefetch.beta": Along(
        implies=((f"{_AHEAD}.policy", "fixed_overlap"),),
        replaces=(
            *(f"{_AHEAD}.{key}" for key in (
                "predictor", "accuracy", "lead", "demand", "window", "stop", "timeout_base", "timeout_per_ki_token",
                "timeout_most", "min_tokens", "in_flight", "batch",
            )),
            "offload.eviction.incoming",
        ),
    ),
    f"{_AHEAD}.policy": Along(only_with=(
        (f"{_AHEAD}.beta", ("fixed_overlap",)),
        (f"{_AHEAD}.predictor", ("next_step",)),
        (f"{_AHEAD}.accuracy", ("next_step",)),
        (f"{_AHEAD}.lead", ("next_step", "oracle")),
        (f"{_AHEAD}.demand", ("next_step", "oracle", "layer")),
        (f"{_AHEAD}.window", ("queue",)),
        (f"{_AHEAD}.stop", ("queue", "arrival")),
        *((f"{_AHEAD}.{key}", ("queue", "arrival")) for key in (
            "timeout_base", "timeout_per_ki_token", "timeout_most",
        )),
        *((f"{_AHEAD}.{key}", ("arrival",)) for key in ("min_tokens", "in_flight", "batch")),
    )),
    "offload.eviction.policy": Along(only_with=(
        ("offload.eviction.lambda", ("score",)),
        ("offload.eviction.count", ("score", "lfu")),
        ("offload.eviction.half_life", ("score", "lfu")),
        ("offload.eviction.incoming", ("lru",)),
    )),
    "offload.eviction.lambda": Along(
        implies=(("offload.eviction.policy", "score"),), replaces=("offload.eviction.incoming",)
    ),
    "tiers.dram.capacity": Along(replaces=("tiers.dram.ratio", "tiers.dram.per_gpu")),
    "tiers.dram.ratio": Along(replaces=("tiers.dram.capacity", "tiers.dram.per_gpu")),
    "tiers.dram.per_gpu": Along(replaces=("tiers.dram.capacity", "tiers.dram.ratio")),
    "engine.num_gpu_blocks": Along(replaces=("engine.kv_cache_tokens",)),
    "engine.kv_cache_tokens": Along(replaces=("engine.num_gpu_blocks",)),
}  # fmt: skip
"""By path, whether it was named in short or in full."""


def path_of(name: str) -> str:
    """Return the path that ``name``, short or in full, stands for.

    Raises InputError, with the nearest names there are, for a path that no scenario has or that no run depends on.
    """
    path = SHORT.get(name, name)
    if not paths.exists(path):
        mend = nearest(path[: paths.LONGEST], (*SHORT, *paths.all_paths()))
        raise InputError(Problem("no scenario has such a path", mend, path=shown(name)[1:-1]))
    if not paths.decides(path):
        raise InputError(Problem("no run depends on it", "name what decides a run", path=shown(name)[1:-1]))
    return path


def short(path: str) -> str:
    """Return the shortest name of ``path``."""
    return min((name for name, full in SHORT.items() if full == path), key=len, default=path)
