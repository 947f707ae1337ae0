"""Scenario files that go by their name: those of the working directory's ``scenarios``, then a checkout's."""

from __future__ import annotations

from pathlib import Path

FOLDER = "scenarios"


def shipped() -> dict[str, Path]:
    """Return scenario files by name."""
    folders = (Path(FOLDER), Path(__file__).resolve().parents[2] / FOLDER)
    found: dict[str, Path] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*.yaml"))):
        found.setdefault(path.stem, path)
    return found
