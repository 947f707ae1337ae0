"""What comes out: flags, the text that a user pastes, files beside it, and what none of them says."""

from __future__ import annotations

from dataclasses import dataclass

FOLDER = "/mnt/kv-cache"
"""Stands where the SSD's own folder goes."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """A configuration in one engine's own words and units."""

    engine: str
    flags: list[str]
    """Arguments of the command, the model first; what tells the engines of one host apart isn't among them."""
    text: str
    """A bash script that starts all engines of one host: a line for each flag, with a comment."""
    files: dict[str, str]
    """Config files by name, as the script writes them."""
    missing: list[str]
    """What the scenario has and the engine can't be told, a sentence each."""
