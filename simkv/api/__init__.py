"""What ``import simkv`` offers to notebooks and programs: scenarios, runs, sweeps and plans as typed results.

Everything here takes a scenario (or the path of one, or its YAML text) and returns a value that shows itself: figures
as DataFrames, pictures as they stand. Nothing is written unless a folder is named. ``import simkv`` alone loads none of
it: each name is looked up when it is first used.
"""

from simkv.api.calibrations import Calibration, calibration
from simkv.api.curves import Curves, curves_of
from simkv.api.formulas import (
    Formula,
    break_even,
    concurrency,
    concurrency_of,
    kv_size,
    scores,
    speedup,
    step_time,
    t_avg,
    t_avg_of,
)
from simkv.api.hits import hit_rates
from simkv.api.plans import Plan, plan
from simkv.api.runs import Run, run
from simkv.api.scenarios import Scenario, load_scenario
from simkv.api.shown import Picture
from simkv.api.sweeps import Sweep, sweep
from simkv.api.validation import Validation, validate
from simkv.errors import InfeasibleError, InputError, LawError, SimkvError

__all__ = [
    "Calibration",
    "Curves",
    "Formula",
    "InfeasibleError",
    "InputError",
    "LawError",
    "Picture",
    "Plan",
    "Run",
    "Scenario",
    "SimkvError",
    "Sweep",
    "Validation",
    "break_even",
    "calibration",
    "concurrency",
    "concurrency_of",
    "curves_of",
    "hit_rates",
    "kv_size",
    "load_scenario",
    "plan",
    "run",
    "scores",
    "speedup",
    "step_time",
    "sweep",
    "t_avg",
    "t_avg_of",
    "validate",
]
