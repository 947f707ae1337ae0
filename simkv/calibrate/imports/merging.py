"""Imported figures into a fit, and whole profiles of machines that simkv never ran on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from simkv import __version__
from simkv.calibrate.imports.drives import best, drive_figures
from simkv.calibrate.imports.imported import ENGINES, TOOLS, Copy, Engine, Imported, Requests
from simkv.calibrate.imports.links import LINKS, link_figures
from simkv.catalog import load_hardware
from simkv.errors import InputError, Problem
from simkv.profile.schema import Device, Fit, Profile

Tell = Callable[[Copy], bool]


class Chosen(NamedTuple):
    """A figure, and the files it was made of."""

    value: Any
    taken: tuple[Imported, ...]


def _alone(kind: str, memory: str) -> Tell:
    return lambda c: c.kind == kind and c.memory == memory and not c.during and not c.all_gpus


COPIED: dict[str, Tell] = {
    **{name: _alone(*what) for name, what in LINKS.items()},
    "h2d_by_buffer": _alone("h2d", "pinned"),
    "d2h_by_buffer": _alone("d2h", "pinned"),
    "duplex_bytes_per_s": lambda c: (c.during or c.kind == "duplex") and not c.all_gpus,
    "memory": lambda c: c.kind == "device_copy",
}
"""Figure to the copies that it is made of."""
DRIVEN = ("ssd_read", "ssd_write")


def merge(fit: Fit, imported: Sequence[Imported]) -> Fit:
    """Return ``fit`` with imported figures where it has none; what was measured is kept.

    Of several files copy engines come before kernels, then the tool that ``TOOLS`` names first, then the file given
    first; files of the same tool with other buffers or blocks add theirs. ``notes`` says what was taken from where.
    """
    found: dict[str, Any] = {}
    notes: list[str] = []
    for name in (*COPIED, *DRIVEN):
        if not _has(fit, name) and (chosen := _chosen(name, imported)) is not None:
            found[name] = chosen.value
            notes.append(_said(name, chosen, imported))
    if "memory" in found:
        found["memory"] = fit.memory.model_copy(update=found["memory"])
    return fit.model_copy(update=found | {"notes": (*fit.notes, *notes)})


def profile_of(imported: Sequence[Imported], name: str, base: str | None) -> Profile:
    """Return the profile of a machine of which only imported figures are known.

    ``base``: card of the catalogue for the rest, its memory included. Raises InputError for none, an unknown one, or
    where nothing is imported.
    """
    if base is None:
        what = "imported figures say nothing of computing and memory"
        raise InputError(Problem(what, "name the card of the catalogue that they are of", path="--base"))
    card = load_hardware(base)
    if not imported:
        raise InputError(Problem("there is nothing to import", "name the files that other tools wrote"))
    devices = [device for one in imported for device in one.devices]
    return Profile(
        name=name,
        device=Device(
            kind="imported", name=devices[0] if devices else card.name, memory_bytes=card.usable_bytes, base=card.name
        ),
        environment={"simkv": __version__, "imported": [told(one) for one in imported]},
        samples=tuple(sample for one in imported for sample in one.samples),
        fit=merge(Fit(), imported),
    )


def told(one: Imported) -> dict[str, Any]:
    """Return what a profile's environment says of an imported file."""
    return {
        "file": PurePath(one.source).name,
        "tool": one.tool,
        "version": one.version,
        "devices": list(one.devices),
        "bytes_per_s": dict(one.alternatives),
        "notes": list(one.notes),
    }


def _has(fit: Fit, name: str) -> bool:
    return fit.memory.copy_bytes_per_s is not None if name == "memory" else getattr(fit, name) is not None


def _chosen(name: str, imported: Sequence[Imported]) -> Chosen | None:
    if name in DRIVEN:
        return _of_drives(name, imported)
    for engine in ENGINES:
        for tool in TOOLS:
            pooled = _pooled((one for one in imported if one.tool == tool), engine, COPIED[name])
            value = link_figures([c for _, c in pooled], tool).get(name)
            if value is not None:
                return Chosen(value, _files(one for one, _ in pooled))
    return None


def _pooled(imported: Iterable[Imported], engine: Engine, tells: Tell) -> list[tuple[Imported, Copy]]:
    """Return the copies that a figure is made of; those of a later file only where no earlier one did the same."""
    by: dict[tuple[Any, ...], Imported] = {}
    pooled = []
    for one in imported:
        for c in one.copies:
            same = (c.kind, c.during, c.memory, c.buffer_bytes)
            if c.engine == engine and tells(c) and by.setdefault(same, one) is one:
                pooled.append((one, c))
    return pooled


def _of_drives(name: str, imported: Sequence[Imported]) -> Chosen | None:
    by: dict[tuple[Any, ...], Imported] = {}
    pooled: list[tuple[Imported, Requests]] = []
    for one in imported:
        for r in one.requests:
            same = (r.block_bytes, r.depth, r.pattern, r.direct, r.beside, r.drive)
            if r.kind == name and by.setdefault(same, one) is one:
                pooled.append((one, r))
    chosen = best([r for _, r in pooled])
    if not chosen:
        return None
    return Chosen(drive_figures(chosen)[name], _files(one for one, r in pooled if any(r is c for c in chosen)))


def _files(imported: Iterable[Imported]) -> tuple[Imported, ...]:
    taken: list[Imported] = []
    for one in imported:
        if not any(one is other for other in taken):
            taken.append(one)
    return tuple(taken)


def _said(name: str, chosen: Chosen, imported: Sequence[Imported]) -> str:
    left = [one for one in imported if _has(one.figures, name) and not any(one is other for other in chosen.taken)]
    text = f"{name}: imported from {_named(chosen.taken)}"
    return (f"{text}; left aside {_named(left)}" if left else text)[:2000]


def _named(imported: Iterable[Imported]) -> str:
    return ", ".join(f"{PurePath(one.source).name} ({one.tool})" for one in imported)
