"""What the winner of a plan is weighed with: its sensitivity and the verdict on offload, measured as one batch."""

from __future__ import annotations

from typing import Any

from simkv.planner import verdict as verdicts
from simkv.planner.compare import Bench, Evaluate, measure
from simkv.planner.sensitivity import cases, sensitivity
from simkv.planner.types import Unit
from simkv.sweeps.simulate import Case


def weigh(case: Case, unit: Unit, bench: Bench, evaluate: Evaluate) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return sensitivity and verdict of one unit, as ``sensitivity`` and ``verdict`` of those modules say.

    What both ask for is measured once. Raises InputError, InfeasibleError where ``case`` itself doesn't resolve.
    """
    asked = verdicts.ask(case)
    more, left_out = cases(case, asked.resolved)
    found = measure({**more, **asked.cases}, bench, evaluate, rough=asked.sizes)
    return sensitivity(found, left_out), verdicts.verdict(asked, unit, found)
