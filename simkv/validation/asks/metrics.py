"""Numbers of a run by name: a summary's by their dotted names, and some that are made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simkv.errors import InputError, Problem
from simkv.results.result import RunResult

MADE: dict[str, Callable[[dict[str, Any]], float]] = {
    "total_tokens_per_s": lambda s: (s["prompt_tokens"] + s["output_tokens"]) / s["makespan_s"],
    "prompt_tokens_per_s": lambda s: s["prompt_tokens"] / s["makespan_s"],
    "output_tokens_per_makespan_s": lambda s: s["output_tokens"] / s["makespan_s"],
}


def metric_of(result: RunResult, name: str) -> float:
    """Return a number of ``result``; ``turn.N.ttft_s`` is the mean of a sessions' turn N, counted from 0.

    Raises InputError for a name that the summary hasn't got, or whose value is no number.
    """
    if name in MADE:
        return MADE[name](result.summary)
    if name.startswith("turn."):
        return _of_turn(result, name)
    value: Any = result.summary
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if not isinstance(value, int | float):
        raise InputError(
            Problem("is no number of the run's summary", "docs/results.md lists them", path="metric", value=name)
        )
    return float(value)


def _of_turn(result: RunResult, name: str) -> float:
    _, turn, what = name.split(".")
    rows: dict[str, Any] = dict(result.data.requests)
    mine = rows["turn"] == int(turn)
    if what == "ttft_s":
        return float(np.mean((rows["first_token_s"] - rows["arrival_s"])[mine]))
    raise InputError(Problem("is no figure of a turn", "ttft_s or hit_rate", path="metric", value=name))
