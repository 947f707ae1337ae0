"""What checks of a valid scenario find: one contradiction each, told at the key to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from simkv.scenario.text import Path

Given = Callable[[Path], bool]
"""Whether the scenario or the command line gives a path (and not a preset or a default)."""


class Fault(NamedTuple):
    """A contradiction, or a key that would do nothing."""

    path: Path
    """The key to change."""
    what: str
    mend: str
