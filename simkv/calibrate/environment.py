"""Where the figures of a profile come from: versions, processor, memory, GPU, drive, date; no paths, no host names."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simkv import __version__
from simkv.calibrate.backend import Backend, load_torch

IDENTITY = ("simkv", "torch", "python", "kernel", "cpu", "cores", "threads", "numa_nodes", "gpu", "driver", "cuda")
"""Entries that make figures those of another machine, or taken another way, where they differ."""
BUSY = 0.5
"""Load per core from which on figures are noisy."""
_LINK = {
    "pcie_gen": "pcie.link.gen.current", "pcie_gen_max": "pcie.link.gen.max",
    "pcie_width": "pcie.link.width.current", "pcie_width_max": "pcie.link.width.max",
}  # fmt: skip


def environment(backend: Backend, ssd_path: Path | None = None) -> dict[str, Any]:
    """Return what this machine is and runs; ``date`` in UTC, memory in bytes, ``load_per_core`` of the last minute.

    What can't be read is absent.
    """
    found = {
        "simkv": __version__,
        "torch": str(load_torch().__version__),
        "python": platform.python_version(),
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "cpu": cpu_name(),
        "cores": cores(),
        "threads": backend.threads,
        "memory_bytes": memory_bytes(),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        "load_per_core": load_per_core(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        **(_gpu() if backend.kind == "cuda" else {}),
        **({} if ssd_path is None else {"ssd": _drive(ssd_path)}),
    }
    return {key: value for key, value in found.items() if value is not None}


def cpu_name() -> str:
    """Return what the processor calls itself, or its architecture where it doesn't."""
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return " ".join(value.split())
    return platform.processor() or platform.machine() or "cpu"


def device_name(backend: Backend) -> str:
    """Return what is measured, as it calls itself."""
    return str(load_torch().cuda.get_device_name(0)) if backend.kind == "cuda" else cpu_name()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int | None:
    """Return the machine's memory."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def load_per_core() -> float | None:
    """Return the load of the last minute over the cores: near zero where nothing else runs."""
    try:
        return round(os.getloadavg()[0] / cores(), 2)
    except (AttributeError, OSError):
        return None


def link_in_use(backend: Backend) -> dict[str, int]:
    """Return generation and width of the GPU's link, and the most it can; nothing where it isn't told.

    An idle GPU may show a lower generation: to be asked when it has just worked.
    """
    if backend.kind != "cuda":
        return {}
    answers = zip(_LINK, _nvidia_smi(*_LINK.values()), strict=True)
    return {name: int(answer) for name, answer in answers if answer.isdigit()}


def _gpu() -> dict[str, Any]:
    torch = load_torch()
    (driver,) = _nvidia_smi("driver_version")
    return {
        "gpu": str(torch.cuda.get_device_name(0)),
        "gpu_memory_bytes": int(torch.cuda.get_device_properties(0).total_memory),
        "cuda": str(torch.version.cuda),
        "driver": driver or None,
    }


def _nvidia_smi(*query: str) -> list[str]:
    """Return the answers to ``query`` for the first GPU that torch sees; empty texts where it can't be asked."""
    nothing = [""] * len(query)
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
    try:
        answer = subprocess.run(
            ["nvidia-smi", f"--query-gpu={','.join(query)}", "--format=csv,noheader", f"--id={first}"],
            capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return nothing
    fields = [field.strip() for field in answer.stdout.partition("\n")[0].split(",")]
    return fields if len(fields) == len(nothing) and "no devices" not in fields[0].lower() else nothing


def _drive(folder: Path) -> dict[str, Any]:
    """Return the file system of ``folder``, the drive under it, and whether it is read around the page cache."""
    from simkv.calibrate.drive import Drive

    with Drive(folder, 1 << 20) as drive:
        direct, why_not = drive.direct, drive.why_not or None
    system, source = _mount(folder)
    found = {"file_system": system, "model": _model(folder, source), "direct": direct, "why_not": why_not}
    return {key: value for key, value in found.items() if value is not None}


def _mount(folder: Path) -> tuple[str | None, str]:
    """Return the type of the file system that ``folder`` is on, and what is mounted there."""
    place, best = folder.resolve(), -1
    answer: tuple[str | None, str] = (None, "")
    for line in _read(Path("/proc/self/mountinfo")).splitlines():
        left, _, right = line.partition(" - ")
        point = Path(left.split()[4].replace("\\040", " "))
        if (place == point or point in place.parents) and len(point.parts) >= best:
            kind, source = right.split()[:2]
            best, answer = len(point.parts), (kind, source)
    return answer


def _model(folder: Path, source: str) -> str | None:
    """Return what the drive calls itself: of the partition the whole drive's word; virtual ones have none."""
    number = folder.stat().st_dev
    nodes = [Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")]
    if source.startswith("/dev/"):
        nodes.append(Path("/sys/class/block") / Path(source).resolve().name)
    for node in nodes:
        for place in (node.resolve(), node.resolve().parent):
            if model := _read(place / "device" / "model").strip():
                return " ".join(model.split())
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
