"""Puts a profile together: what was set, which machine, the samples of a session, and what is fitted to them."""

from __future__ import annotations

import re
from typing import Any

from simkv.calibrate.backend import load_torch
from simkv.calibrate.environment import IDENTITY, device_name
from simkv.calibrate.fit import fit_profile
from simkv.calibrate.session import Measured
from simkv.calibrate.task import Bench
from simkv.errors import InputError, Problem
from simkv.profile.schema import Device, Profile


def slug(name: str) -> str:
    """Return ``name`` as a file can be called: lower case, ``-`` between words."""
    plain = re.sub(r"\((r|tm|c)\)|\b(cpu|processor)\b|@.*", " ", name.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "machine"


def settings(bench: Bench) -> dict[str, Any]:
    """Return what the user chose, which a profile tells."""
    return {
        "device": bench.backend.kind,
        "model": bench.model.name,
        "dtype": bench.backend.dtype,
        "quick": bench.quick,
        "hot_pool_bytes": bench.hot_pool_bytes or None,
    }


def measured_as(bench: Bench, environment: dict[str, Any]) -> dict[str, Any]:
    """Return settings and machine: measurements of others don't go together with these."""
    identity = {key: environment.get(key) for key in IDENTITY}
    folder = None if bench.ssd_path is None else str(bench.ssd_path.resolve())
    return settings(bench) | identity | {"ssd_path": folder}


def other_machine(profile: Profile, environment: dict[str, Any]) -> tuple[str, ...]:
    """Return what of this machine isn't what ``profile`` was measured on."""
    return tuple(key for key in IDENTITY if profile.environment.get(key) != environment.get(key))


def assemble(
    name: str, bench: Bench, measured: Measured, environment: dict[str, Any], base: str | None = None
) -> Profile:
    """Return the profile of a session.

    ``base``: card of the catalogue that stands in for what wasn't measured. Raises :class:`InputError` where nothing
    could be measured.
    """
    if not measured.samples:
        why = measured.failures[0].reason if measured.failures else "there is nothing to measure"
        raise InputError(Problem(f"not one measurement worked: {why}", "mend that, and run it again"))
    failed = [{"key": one.key, "reason": one.reason} for one in measured.failures]
    return Profile(
        name=name,
        device=Device(
            kind=bench.backend.kind, name=device_name(bench.backend), memory_bytes=_memory_bytes(bench), base=base
        ),
        environment=environment | {"settings": settings(bench)} | ({"failed": failed} if failed else {}),
        samples=measured.samples,
        fit=fit_profile(measured.samples, bench.model, bench.backend.dtype),
    )


def _memory_bytes(bench: Bench) -> int:
    if bench.backend.kind == "cpu":
        return bench.hot_pool_bytes
    return int(load_torch().cuda.get_device_properties(0).total_memory)
