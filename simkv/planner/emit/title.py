"""The head of an emitted text: what it starts, what it was written from, and what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence

from simkv import __version__
from simkv.planner.emit.part import Part, endless
from simkv.planner.emit.types import FOLDER


def title(part: Part, engine: str, missing: Sequence[str]) -> list[str]:
    """Return the first lines."""
    scenario = part.resolved.scenario
    replicas = scenario.replicas
    ranks = f"{part.ranks} x {part.gpu.name}" if part.ranks > 1 else part.gpu.name
    lines = [f"{engine}: {part.model.name} on {ranks}; from scenario {scenario.name}, by simkv {__version__}"]
    if replicas.hosts > 1:
        lines.append(f"Run it on each of {replicas.hosts} hosts: {replicas.count} engines in all, {part.here} a host")
    elif replicas.count > 1:
        lines.append(f"{replicas.count} engines, each with its own GPUs, port and part of the host's memory")
    if replicas.hosts > 1 and replicas.count % replicas.hosts:
        lines.append(f"{replicas.hosts - replicas.count % replicas.hosts} of the hosts have one engine less")
    if part.uses_ssd and not endless(part):
        lines.append(f"Write the SSD's folder in the place of {FOLDER}")
    return lines + [f"Not said here: {sentence}" for sentence in missing]
