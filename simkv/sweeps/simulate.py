"""One simulation as a job: a scenario's text, what is set over it, a seed; its summary comes back."""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from simkv import __version__
from simkv.errors import InputError, Problem
from simkv.jobs.job import Job
from simkv.reruns import Reruns
from simkv.scenario.as_measured import Measured, as_measured
from simkv.scenario.resolve import Resolved, resolve_text
from simkv.scenario.scaled import scaled
from simkv.scenario.text import read_text
from simkv.simulation import run_scenario

_SET = "# --set "


@dataclass(frozen=True, slots=True)
class Written:
    """A scenario as its user gave it."""

    text: str
    file: str
    """Names it in errors; paths in it start from its folder."""
    assignments: tuple[str, ...] = ()
    """``--set`` of the command line."""

    @classmethod
    def read(cls, path: str, assignments: Sequence[str] = ()) -> Written:
        """Return the scenario in a file; raises InputError where it can't be read."""
        return cls(read_text(path), path, tuple(assignments))

    @property
    def as_given(self) -> str:
        """The scenario as it was given, what was set over it in comments at its end, in the place of older ones."""
        lines = self.text.splitlines(keepends=True)
        while lines and lines[-1].startswith(_SET):
            lines.pop()
        text = "".join(lines)
        ends = "" if text.endswith("\n") else "\n"
        return text + ends + "".join(f"{_SET}{' '.join(assignment.split())}\n" for assignment in self.assignments)


def settings_of(text: str) -> list[str]:
    """Return what was set over a scenario, from a text that :attr:`Written.as_given` gave."""
    return [line.removeprefix(_SET) for line in text.splitlines() if line.startswith(_SET)]


@dataclass(frozen=True, slots=True)
class Case:
    """One simulation: the scenario, and what is changed in it."""

    written: Written
    assignments: tuple[str, ...] = ()
    """``PATH=VALUE``, over those of ``written``."""
    scale: tuple[tuple[str, float], ...] = ()
    """Resources that there is more or less of (:func:`simkv.scenario.scaled.scaled`)."""
    measured: Measured | None = None
    """How a measured run corrects the machine's figures (:func:`simkv.scenario.as_measured.as_measured`)."""

    def resolve(self) -> Resolved:
        """Return the scenario that is simulated; raises InputError, InfeasibleError."""
        resolved = resolve_text(self.written.text, self.written.file, (*self.written.assignments, *self.assignments))
        if self.measured is not None:
            resolved = as_measured(resolved, self.measured)
        return scaled(resolved, dict(self.scale)) if self.scale else resolved


@lru_cache(maxsize=2)
def _reruns(shared: Path | None) -> Reruns:
    """Return what this process remembers: neighbours in a grid have most baselines in common."""
    return Reruns(shared)


def simulate(case: Case, seed: int, shared: Path | None = None) -> dict[str, Any]:
    """Return the summary of one run of ``case``; raises as :func:`simkv.simulation.run_scenario` does.

    ``shared``: a folder through which processes share the runs of baselines.
    """
    result = run_scenario(case.resolve(), seed=seed, reruns=_reruns(shared))
    gc.collect()  # a system is full of circles
    return result.summary


def answer(case: Case, seed: int, scenario_hash: str, shared: Path | None = None) -> dict[str, Any]:
    """Return what :func:`simulate` does, of the scenario that was meant.

    Raises InputError where the one here is another: a file that it names was changed, or differs on this machine.
    """
    summary = simulate(case, seed, shared)
    if summary["scenario_hash"] != scenario_hash:
        what = "a file that it names isn't what it was when this run was asked for"
        mend = "run it again; on a cluster, give every machine the same files"
        raise InputError(Problem(what, mend, case.written.file))
    return summary


def job_of(case: Case, seed: int, label: str = "", resolved: Resolved | None = None) -> Job:
    """Return the job that simulates ``case``; ``resolved``: what it resolves to, where that is known."""
    resolved = resolved or case.resolve()
    return Job(key_of(resolved, seed), answer, (case, seed, resolved.scenario_hash), label)


def key_of(resolved: Resolved, seed: int, more: Mapping[str, Any] | None = None) -> str:
    """Return the hash of what decides a run, version and seed among it, and of ``more``."""
    parts = [resolved.scenario_hash, seed, __version__, dict(more or {})]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
