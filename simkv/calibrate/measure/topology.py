"""What this machine has that measurements must be sized by: free memory, caches, NUMA nodes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from simkv.calibrate.backend import Backend, load_torch

SYSTEM = Path("/sys/devices/system")
_CACHE_BYTES = 32 << 20
_FREE_BYTES = 1 << 30
"""Assumed where the system doesn't say."""


def beyond_caches_bytes(system: Path = SYSTEM) -> int:
    """Return the size of a pool that the last-level cache can't serve: four times that cache, at least 64 MiB."""
    sizes = [_cache_size(_text(path)) for path in sorted((system / "cpu/cpu0/cache").glob("index*/size"))]
    return max(4 * max(sizes, default=_CACHE_BYTES), 64 << 20)


def _cache_size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG])", text)
    return int(found[1]) << {"K": 10, "M": 20, "G": 30}[found[2]] if found else 0


def free_host_bytes(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how much host memory is free for use, the limit of a container included."""
    free = re.search(r"^MemAvailable:\s+(\d+) kB", _text(proc / "meminfo"), re.M)
    available = int(free[1]) << 10 if free else _FREE_BYTES
    limit, used = _text(cgroup / "memory.max"), _text(cgroup / "memory.current")
    if limit.isdigit() and used.isdigit():
        available = min(available, max(0, int(limit) - int(used)))
    return available


def free_device_bytes(backend: Backend) -> int:
    """Return how much of the device's memory is free; a CPU's is the host's."""
    if backend.kind == "cuda":
        return int(load_torch().cuda.mem_get_info()[0])
    return free_host_bytes()


def allowed_cpus() -> frozenset[int]:
    """Return the CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def numa_nodes(system: Path = SYSTEM) -> dict[int, frozenset[int]]:
    """Return the CPUs of each NUMA node that this process may run on, nodes rising; one node where none are named."""
    allowed = allowed_cpus()
    nodes = {}
    for path in (system / "node").glob("node[0-9]*"):
        if cpus := _cpu_list(_text(path / "cpulist")) & allowed:
            nodes[int(path.name.removeprefix("node"))] = cpus
    return dict(sorted(nodes.items())) or {0: allowed}


def _cpu_list(text: str) -> frozenset[int]:
    """Return the numbers of such as ``0-3,8-11``."""
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return frozenset(cpus)


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except OSError:
        return ""
