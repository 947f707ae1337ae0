"""A piece of work, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Answer = dict[str, Any]
"""What a piece of work gives: plain data that JSON can hold."""


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work; pickled to where it is done."""

    key: str
    """Hash of everything that decides the answer: jobs with the same key are the same work."""
    work: Callable[..., Answer]
    """A module's own function; raises a SimkvError where the work can't be done."""
    args: tuple[Any, ...] = ()
    label: str = ""
    """What it is called in messages."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job has no answer."""

    kind: str
    """Name of the exception, ``WorkerLost`` where its process died."""
    message: str
    """As the command line would say it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job."""

    job: Job
    status: Literal["done", "failed"]
    answer: Answer | None = None
    """None: failed."""
    failure: Failure | None = None
    attempts: int = 1
    """How often it was begun, in this run and in those before it."""
    wall_s: float = 0.0
    """Seconds of the last attempt."""
    kept: bool = False
    """Whether the answer was there already, from a run before."""
