"""A scenario as a value: loaded, every value resolved, changed without touching its file."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from simkv.api.given import Settings, StrPath, arguments_named, assignments
from simkv.api.shown import clean, page
from simkv.errors import InputError, Problem
from simkv.scenario.resolve import Resolved
from simkv.sweeps.simulate import Case, Written
from simkv.units import shown

if TYPE_CHECKING:
    import pandas as pd

_HASH_SHOWN = 12


@dataclass(frozen=True, eq=False)
class Scenario:
    """A scenario that is valid and complete; ``with_`` returns changed ones. Made by :func:`load_scenario`."""

    written: Written
    """Its text, the file that errors name, and what is set over it."""

    @cached_property
    def resolved(self) -> Resolved:
        """Every value, as the simulator takes it."""
        with arguments_named():
            return Case(self.written).resolve()

    @property
    def name(self) -> str:
        """What the scenario is called."""
        return self.resolved.scenario.name

    @property
    def question(self) -> str:
        """What it asks; empty where it doesn't say."""
        return self.resolved.scenario.question or ""

    @property
    def hash(self) -> str:
        """SHA-256 of every value that decides a run but its seed; files count by content, names not at all."""
        return self.resolved.scenario_hash

    @property
    def notes(self) -> list[str]:
        """What a reader should know before running it, in sentences."""
        return [sentence for _, sentence in self.resolved.notes]

    @property
    def yaml(self) -> str:
        """A scenario file with every value written out; running it gives the same result."""
        from simkv.scenario.explain import to_yaml

        return to_yaml(self.resolved)

    def with_(self, settings: Settings = (), /, **values: Any) -> Scenario:
        """Return the scenario with other values, by path: ``with_({"tiers.dram.capacity": "64GiB"})``.

        As keywords, two underscores stand for the dot: ``with_(offload__residency=0.3)``. Quantities are texts with a
        unit, a mapping replaces a section whole, None takes a value out. Raises InputError with everything that is
        wrong, InfeasibleError for a model that doesn't fit.
        """
        more = {name.replace("__", "."): value for name, value in values.items()}
        over = (*self.written.assignments, *assignments(settings), *assignments(more))
        return _checked(replace(self.written, assignments=over))

    def explain(self) -> pd.DataFrame:
        """Return every value with where it came from, one row a path (columns ``value`` and ``origin``)."""
        import pandas as pd

        from simkv.scenario.explain import explain

        rows = [row._replace(origin="set" if row.origin == "--set" else row.origin) for row in explain(self.resolved)]
        return pd.DataFrame(rows, columns=["path", "value", "origin"]).set_index("path")

    def memory_budget(self) -> pd.DataFrame:
        """Return what one GPU's memory goes to, line by line (``size_bytes``); empty on inline hardware."""
        import pandas as pd

        budget = self.resolved.budget
        lines = [] if budget is None else list(budget.lines)
        return pd.DataFrame(lines, columns=["line", "size_bytes", "note"]).set_index("line")

    def __repr__(self) -> str:
        return f"<simkv.Scenario {clean(self.name)!r} of {clean(self.written.file)}, hash {self.hash[:_HASH_SHOWN]}>"

    def _repr_html_(self) -> str:
        facts = [("question", self.question), ("file", self.written.file), *self._changed(), ("hash", self.hash)]
        return page(f"Scenario {self.name}", [(label, text) for label, text in facts if text], self.notes)

    def _changed(self) -> list[tuple[str, str]]:
        return [("set", ", ".join(self.written.assignments))] if self.written.assignments else []


ScenarioLike: TypeAlias = Scenario | StrPath
"""A scenario, the path of one, or its YAML text."""


def load_scenario(scenario: ScenarioLike, set: Settings = (), *, folder: StrPath | None = None) -> Scenario:
    """Return a scenario from its file, or from YAML text (anything with a line break), with ``set`` over it.

    ``set``: ``{"tiers.dram.capacity": "64GiB"}``, or ``["tiers.dram.capacity=64GiB"]`` as on the command line.
    ``folder``: where paths in a text start; those in a file start beside it. Creates nothing. Raises InputError with
    everything that is wrong at once, each with file, line, path, value and mend; InfeasibleError for a model that
    doesn't fit its machine.
    """
    if isinstance(scenario, Scenario):
        return scenario.with_(set) if set else scenario
    _check_kind(scenario)
    return _checked(_written(scenario, assignments(set), folder))


def seeded(scenario: Scenario, seed: int | None) -> Scenario:
    """Return the scenario with ``seed`` over its own; None: as it is."""
    return scenario if seed is None else scenario.with_({"run.seed": seed})


def _written(scenario: StrPath, over: tuple[str, ...], folder: StrPath | None) -> Written:
    if isinstance(scenario, str) and "\n" in scenario:
        file = "scenario.yaml" if folder is None else str(Path(folder) / "scenario.yaml")
        return Written(scenario, file, over)
    if folder is not None:
        what = "does nothing for a file: paths in it start from its own folder"
        raise InputError(Problem(what, "leave it out", path="folder", value=shown(str(folder))))
    return Written.read(os.fspath(scenario), over)


def _check_kind(scenario: object) -> None:
    if not isinstance(scenario, str | os.PathLike):
        mend = "give the path of a file, or YAML text"
        raise InputError(Problem("is no scenario", mend, path="scenario", value=shown(str(scenario))))


def _checked(written: Written) -> Scenario:
    """Return the scenario; what is wrong with it is raised here, not where it is first used."""
    made = Scenario(written)
    _ = made.resolved
    return made
