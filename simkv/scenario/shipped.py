"""Scenario files that go by their name: the working directory's ``scenarios``, a checkout's, then the package's own."""

from __future__ import annotations

from pathlib import Path

FOLDER = "scenarios"


def shipped() -> dict[str, Path]:
    """Return scenario files by name."""
    package = Path(__file__).resolve().parents[1]
    folders = (Path(FOLDER), package.parent / FOLDER, package / "data" / FOLDER)
    found: dict[str, Path] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*.yaml"))):
        found.setdefault(path.stem, path)
    return found
