"""A simulated run, asked for metrics of its summary.

The section is a scenario, written out or in a file: the path of one, or the name of one that comes with simkv.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

from simkv.errors import InfeasibleError, InputError, Problem
from simkv.estimate import check as check_estimate
from simkv.estimate import estimate
from simkv.scenario import load, text
from simkv.scenario.base import locate
from simkv.scenario.overrides import put
from simkv.scenario.problems import nearest
from simkv.scenario.resolve import Resolved, fill_in, replaced
from simkv.scenario.shipped import shipped
from simkv.simulation import run_scenario
from simkv.validation.asks.found import Found, NothingError
from simkv.validation.asks.metrics import metric_of
from simkv.validation.asks.names import check_names
from simkv.validation.question import Question

_TOLD = (
    "rejected", "warm_up_too_long", "not_realisable", "beta_clamped", "prefetch_idle", "empty_steps", "unreachable",
    "too_small", "budget_disagrees",
)  # fmt: skip
"""Warnings of a run that isn't quite what was asked for."""


def answer(question: Question) -> Found:
    """Run the scenario (at as many seeds as the case asks) and return the mean of each metric."""
    resolved = _compared(_resolved(question), question.metrics)
    first = resolved.scenario.run.seed
    totals: dict[str, float] = defaultdict(float)
    found = Found()
    for seed in range(first, first + question.seeds):
        result = run_scenario(resolved, seed=seed)
        found.warnings |= {one["message"]: None for one in result.summary["warnings"] if one["code"] in _TOLD}
        for name in question.metrics:
            try:
                totals[name] += metric_of(result, name)
            except NothingError as error:
                found.nothing.setdefault(name, str(error))
    found.metrics = {name: total / question.seeds for name, total in totals.items() if name not in found.nothing}
    return found


def check(question: Question) -> float:
    """Return about how many seconds its runs take; what isn't feasible is told by the run.

    Raises InputError for a scenario that isn't one, for a metric that no run has, and for a run that would take days or
    more memory than there is.
    """
    check_names(question.metrics)
    try:
        resolved = _compared(_resolved(question), question.metrics)
    except InfeasibleError:
        return 0.0
    found = estimate(resolved)
    try:
        check_estimate(resolved, found)
    except InputError as error:
        raise InputError([replace(problem, mend="lower it") for problem in error.problems]) from None
    return found.time_s * question.seeds


def check_keys(question: Question) -> None:
    """Raise InputError for what is wrong with a scenario, a metric or the key of a file, whose files aren't there."""
    check_names(question.metrics)
    _loaded(question)


def _resolved(question: Question) -> Resolved:
    return fill_in(_loaded(question))


def _loaded(question: Question) -> load.Loaded:
    tree = _tree(question)
    for name, value in (*question.files, *question.settings):
        put(tree.values, tuple(name.split(".")), value)
    return load.from_tree(tree, ())


def _compared(resolved: Resolved, metrics: Sequence[str]) -> Resolved:
    """Return the scenario with those of its baselines alone that a metric is about: each is a run of its own."""
    heads = {tuple(name.split(".")[:2]) for name in metrics}
    every = any(head[0] == "speedup" for head in heads)
    names = tuple(name for name in resolved.scenario.run.baselines if every or ("baselines", name) in heads)
    return replace(resolved, scenario=replaced(resolved.scenario, ["run", "baselines"], names))


def _tree(question: Question) -> text.Tree:
    if isinstance(question.section, str):
        return text.read_file(_file(question.section, question.folder))
    return text.Tree(question.file, deepcopy(question.section))


def _file(name: str, folder: str) -> str:
    """Return the file of a scenario that goes by its path or its name; raises InputError where there is none."""
    path, known = locate(name, folder).path, shipped()
    if os.path.exists(path):
        return path
    if name not in known:
        mend = f"{nearest(name, list(known))}, or the path of a file, from the case file's folder"
        raise InputError(Problem("is no scenario", mend, path="scenario", value=name))
    return str(known[name])
