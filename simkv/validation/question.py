"""What is asked once for all observations of a case that have the same settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from simkv.validation.schema import Case, Observation


@dataclass(frozen=True, slots=True)
class Question:
    """One section with settings over it, and the metrics wanted of its answer; plain data, for any process."""

    case: str
    ask: str
    section: Any
    settings: tuple[tuple[str, Any], ...]
    """Dotted names and values, in order."""
    metrics: tuple[str, ...]
    files: tuple[tuple[str, str], ...] = ()
    """Keys of the section, and the paths of the files that go there."""
    seeds: int = 1
    folder: str = ""
    """Where relative paths of the section start."""

    @property
    def file(self) -> str:
        """What a section written out would be called: errors name it, and its folder is where paths start."""
        return f"{self.folder or '.'}/{self.case}.yaml"

    @property
    def key(self) -> str:
        """What tells it from the case's other questions."""
        return key_of(dict(self.settings))

    @property
    def work(self) -> str:
        """A text that is equal where the work is: who asks, for what, and how he calls his scenario change nothing."""
        section = self.section
        if self.ask == "scenario" and isinstance(section, dict):
            section = {key: value for key, value in section.items() if key != "name"}
        return json.dumps([self.ask, section, self.settings, self.files, self.seeds, self.folder], default=str)


@dataclass(slots=True)
class _Wanted:
    settings: dict[str, Any]
    metrics: dict[str, None] = field(default_factory=dict)


def key_of(settings: dict[str, Any]) -> str:
    """Return a text that is equal for equal settings."""
    return yaml.safe_dump(settings, sort_keys=True)


def asked_for(seen: Observation) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the settings and metrics that an observation is made of: its own, and what it is relative to."""
    yield seen.set, seen.metric
    if seen.relative_to is not None:
        yield seen.relative_to.set, seen.relative_to.metric or seen.metric


def questions(case: Case, files: tuple[tuple[str, str], ...], folder: str) -> dict[str, Question]:
    """Return the questions of a case by :func:`key_of` their settings."""
    wanted: dict[str, _Wanted] = {}
    for settings, metric in _parts(case):
        wanted.setdefault(key_of(settings), _Wanted(settings)).metrics[metric] = None
    return {
        key: Question(
            case.id,
            case.ask,
            getattr(case, case.ask),
            tuple(one.settings.items()),
            tuple(one.metrics),
            files,
            case.seeds,
            folder,
        )
        for key, one in wanted.items()
    }


def _parts(case: Case) -> Iterator[tuple[dict[str, Any], str]]:
    for seen in case.observations:
        yield from asked_for(seen)
