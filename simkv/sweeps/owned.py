"""Whose kept answers lie in a folder: nobody writes over another scenario's."""

from __future__ import annotations

from pathlib import Path

from simkv.jobs.store import Store
from simkv.results.write import check_out


def check_owned(folder: Path, file: str, meta: str, scenario: str) -> None:
    """Raise InputError where answers of ``scenario`` can't be kept in ``folder``, or go on there; changes nothing.

    ``file`` is what keeps them there, and ``meta`` the name under which it has a mapping that says ``scenario``.
    """
    check_out(folder, scenario, lambda place: _owner(place, file, meta, scenario))


def _owner(place: Path, file: str, meta: str, scenario: str) -> str | None:
    """Return whose answers lie in ``place``; those that were stopped before they said so are anybody's."""
    kept = place / file
    if not kept.is_file():
        ours = all(entry.name.startswith(file) for entry in place.iterdir())
        return scenario if ours else None
    if not kept.stat().st_size:
        return scenario
    with Store.read(kept) as store:
        said = store.get_meta(meta)
    if said is None:
        return scenario
    return str(said["scenario"]) if isinstance(said, dict) and "scenario" in said else None
