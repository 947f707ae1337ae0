"""A simulated run, asked for metrics of its summary."""

from __future__ import annotations

from typing import Any

import yaml

from simkv.results.result import RunResult
from simkv.scenario.resolve import Resolved, resolve_text
from simkv.simulation import run_scenario
from simkv.validation.asks.metrics import metric_of
from simkv.validation.question import Question


def answer(question: Question) -> dict[str, float]:
    """Run the scenario (at as many seeds as the case asks) and return the mean of each metric."""
    resolved = _resolved(question)
    first = resolved.scenario.run.seed
    totals = dict.fromkeys(question.metrics, 0.0)
    for seed in range(first, first + question.seeds):
        result: RunResult = run_scenario(resolved, seed=seed)
        for name in totals:
            totals[name] += metric_of(result, name)
    return {name: total / question.seeds for name, total in totals.items()}


def _resolved(question: Question) -> Resolved:
    text = yaml.safe_dump(question.section, sort_keys=False, allow_unicode=True)
    pairs: list[tuple[str, Any]] = [*question.files, *question.settings]
    return resolve_text(text, f"{question.folder or '.'}/{question.case}.yaml", [_assignment(*pair) for pair in pairs])


def _assignment(key: str, value: Any) -> str:
    written = yaml.safe_dump(value, default_flow_style=True, width=10**6).strip()
    return f"{key}={written.removesuffix('...').strip()}"
