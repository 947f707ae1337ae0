"""A scenario file and what was set on the command line, over a preset and the catalogue, validated whole."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from simkv import catalog
from simkv.errors import InputError, Problem
from simkv.model import ModelShape
from simkv.scenario import calibrated, overrides, presets, text
from simkv.scenario.active_checks import active_check
from simkv.scenario.base import locate
from simkv.scenario.checks import cross_check
from simkv.scenario.machine import CATALOGUE, Brought, Machine, brought, find_machine, limits, unmeasured, unsplit
from simkv.scenario.problems import problem, problems_of
from simkv.scenario.schema import Scenario

SCENARIO, SET, DEFAULT = "scenario", "--set", "default"


@dataclass(frozen=True, slots=True)
class Layers:
    """Where values come from: each layer wins over the ones after it."""

    file: str
    written: Mapping[str, Any]
    """The file with the assignments in it."""
    set_paths: frozenset[text.Path]
    preset: presets.Preset
    machine: Brought
    """What the named hardware brings."""

    def origin(self, path: text.Path) -> str:
        """Return where the value at ``path`` comes from."""
        if _is_set(path, self.set_paths) and _holds(self.written, path):
            return SET
        if _holds(self.written, path):
            return SCENARIO
        if _holds(self.preset.values, path):
            return f"preset {self.preset.key} {self.preset.version}"
        if _holds(self.machine.values, path):
            return self.machine.origins.get(path, CATALOGUE)
        return DEFAULT

    def given(self, path: text.Path) -> bool:
        """Say whether the scenario or the command line gives ``path``."""
        return self.origin(path) in (SCENARIO, SET)


def _is_set(path: text.Path, set_paths: frozenset[text.Path]) -> bool:
    """Say whether the command line sets ``path``, or a section around it."""
    return any(path[:n] in set_paths for n in range(1, len(path) + 1))


def _holds(tree: Any, path: text.Path) -> bool:
    for key in path:
        if not isinstance(tree, Mapping):
            return tree is not None  # a value whose parts are asked for
        if tree.get(key) is None:
            return False
        tree = tree[key]
    return True


@dataclass(frozen=True, slots=True)
class Loaded:
    """A valid scenario, not yet resolved."""

    scenario: Scenario
    layers: Layers
    model: ModelShape | None
    """None: given inline."""
    machine: Machine


def load(path: str, assignments: Sequence[str] = ()) -> Loaded:
    """Read and validate a scenario file. Raises InputError with everything that is wrong at once."""
    return from_tree(text.read_file(path), assignments)


def load_text(content: str, file: str = "scenario.yaml", assignments: Sequence[str] = ()) -> Loaded:
    """As :func:`load`, from a text; ``file`` names it in errors, and its folder is where paths start."""
    return from_tree(text.parse(content, file), assignments)


def from_tree(tree: text.Tree, assignments: Sequence[str]) -> Loaded:
    """Validate a tree with ``assignments`` over it; the tree's values are changed."""
    reader = _Reader(tree, assignments)
    loaded = reader.read()
    if reader.problems or loaded is None:
        raise InputError(_in_order(reader.problems))
    return loaded


def _in_order(problems: list[Problem]) -> list[Problem]:
    """Return the problems line by line, one a path: what was found first says it best."""
    once: dict[tuple[str, int | None, str, str], Problem] = {}
    for found in problems:
        key = (found.file, found.line, found.path, found.path or found.what)
        once.setdefault(key, found)
    return sorted(once.values(), key=lambda p: (p.file, p.line or 0))


class _Reader:
    """Collects problems on the way from a tree to a scenario."""

    def __init__(self, tree: text.Tree, assignments: Sequence[str]) -> None:
        self.problems = list(tree.problems)
        self._tree = tree
        self._written = tree.values
        paths, wrong = overrides.apply(self._written, assignments)
        self.problems.extend(wrong)
        self._set_paths = frozenset(paths)

    def read(self) -> Loaded | None:
        preset = self._preset()
        model, machine = self._model(), self._machine()
        for fault in unmeasured(machine, self._written):
            self.problems.append(problem(fault.path, fault.what, fault.mend, self._written, self._place))
        layers = Layers(self._tree.file, self._written, self._set_paths, preset, brought(machine, self._written))
        below = presets.merge(layers.machine.values, presets.beside(preset.values, self._written))
        merged = presets.merge(below, self._written)
        context = {"folder": os.path.dirname(self._tree.file)}
        try:
            scenario = Scenario.model_validate(merged, context=context)
        except ValidationError as error:
            self.problems.extend(problems_of(error, merged, Scenario, self._place))
            return None
        split = unsplit(scenario, model)
        checked = (*cross_check(scenario, layers.given), *active_check(scenario, layers.given, model))
        kernels = calibrated.kernels_fault(machine.profile, scenario, model, layers.given)
        faults = [*split, *checked, *kernels, *limits(scenario, machine.instance)]
        if machine.gpu is not None:
            faults += calibrated.too_many_ranks(machine.profile, machine.gpu.figures, scenario)
        for fault in faults:
            if split and fault.path == ("link", "uplink", "gpus"):
                continue  # of the same ranks
            self.problems.append(problem(fault.path, fault.what, fault.mend, merged, self._place))
        return Loaded(scenario, layers, model, machine)

    def _place(self, path: text.Path) -> tuple[str, int | None]:
        within = any(given[: len(path)] == path for given in self._set_paths)
        if _is_set(path, self._set_paths) or (within and path not in self._tree.lines):
            return overrides.FILE, None  # there, or of a section that is there only for what is set in it
        return self._tree.file, self._tree.line_of(path)

    def _note(self, error: InputError, *path: str) -> None:
        """Keep what a lookup found wrong, with the place in the scenario."""
        for found in error.problems:
            self.problems.append(problem(path, found.what, found.mend, self._written, self._place))

    def _preset(self) -> presets.Preset:
        engine = self._written.get("engine")
        asked = engine if isinstance(engine, dict) else {}
        key, version = asked.get("preset", "vllm"), asked.get("version")
        if key not in presets.NAMES:
            key, version = "vllm", None  # validation tells
        if version is not None and not isinstance(version, str):
            like = f'"{presets.load(key).version}"'
            quoted, on_line = f"'engine.version={like}'", ("engine", "version") in self._set_paths
            mend = f"write it in quotes, like {quoted if on_line else like}"
            self._note(InputError(Problem("not a text", mend)), "engine", "version")
            version = None
        try:
            return presets.load(key, version)
        except InputError as error:
            self._note(error, "engine", "version")
            return presets.load(key)

    def _model(self) -> ModelShape | None:
        name = self._written.get("model")
        if isinstance(name, str):
            try:
                return catalog.load_model(name, locate(name, os.path.dirname(self._tree.file)).path)
            except InputError as error:
                self.problems.extend(found for found in error.problems if found.file)
                self._note(InputError([found for found in error.problems if not found.file]), "model")
        return None

    def _machine(self) -> Machine:
        name = self._written.get("hardware")
        if isinstance(name, str):
            try:
                return find_machine(name, os.path.dirname(self._tree.file))
            except InputError as error:
                self.problems.extend(found for found in error.problems if found.file)
                self._note(InputError([found for found in error.problems if not found.file]), "hardware")
        return Machine()
