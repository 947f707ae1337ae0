"""From somebody's measurement to a plan: what a benchmark wrote is read, and the machine is fitted to it.

Start with :func:`read_observed` and :func:`fit`; ``Fitted.measured`` goes into every ``Case`` that is planned with.
"""

from __future__ import annotations

from simkv.planner.observed.fitting import Evaluate, Fitted, Residual, Value, fit
from simkv.planner.observed.read import read_observed
from simkv.planner.observed.types import Observed, Rows

__all__ = ["Evaluate", "Fitted", "Observed", "Residual", "Rows", "Value", "fit", "read_observed"]
