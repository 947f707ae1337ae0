"""What a generator asks of the command line, and what must hold of the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one input."""

    code: int
    """Exit code; minus the signal's number where one ended it."""
    stdout: str
    stderr: str
    seconds: float
    peak_bytes: int
    ended: str = ""
    """``hang``: stopped at the time limit; ``long``: it had said how long it will take, and was stopped."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command line, run in the folder of its files."""

    args: tuple[str, ...]
    allowed: tuple[int, ...] = (0, 2, 3)
    out: str = ""
    """Folder or file that the command writes: there (and whole) after exit code 0, not there after 2 or 3."""
    holds: str = ""
    """File of ``out`` that makes it whole; JSON where its name says so."""
    keeps: bool = False
    """Whether ``out`` may stay after a failure: what was finished is kept, as of sweeps, or it was there before."""
    json: bool = False
    """Whether stdout is JSON after exit code 0."""
    in_child: Callable[[], None] | None = None
    """Called in the process of the command before it begins: further limits, closed descriptors."""
    judge: Callable[[Outcome, Path], str] | None = None
    """Returns what else is wrong with the outcome, or nothing; gets the command's folder."""
    stdin: bytes = b""
    notes: tuple[str, ...] = field(default=())
    """What was done to the input, for those who look at a failure."""


Generator = Callable[[Random, Path], Command]
