"""A resolved scenario with more or less of a resource than its machine has."""

from __future__ import annotations

from collections.abc import Mapping

from simkv.errors import unknown
from simkv.scenario.resolve import Resolved

RESOURCES = ("vram", "compute", "memory_bandwidth", "link", "dram", "dram_bandwidth", "ssd", "ssd_bandwidth")
"""What can be scaled: capacities (vram, dram, ssd) and rates."""


def scaled(resolved: Resolved, factors: Mapping[str, float]) -> Resolved:
    """Return ``resolved`` with each resource of ``factors`` times its factor; raises InputError for an unknown one."""
    for name in factors:
        if name not in RESOURCES:
            raise unknown("resource", name, RESOURCES, "scale")
    raise NotImplementedError
