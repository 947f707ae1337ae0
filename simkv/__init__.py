"""simkv: what KV-cache offloading buys an LLM server, and what it costs.

Read first, in this order: ``workload/request.py`` (what arrives), ``kvcache/index.py`` (what is
where), ``sim/config.py`` (what is simulated), ``sim/engine.py`` (when), ``simulation.py`` (one scenario,
start to end). ``docs/architecture.md`` follows a request through them.

Floor by floor; nothing imports upward:

- ``errors`` what can be wrong, and how it is said; ``units`` text to SI and back; ``rng`` named random streams;
  ``interrupt`` Ctrl-C where it does no harm; ``files`` written whole or not at all;
  ``reading`` of regular files, up to a size
- ``model/`` shapes of models, those of any config.json included; ``hardware`` what accelerators can do; ``instances``
  whole machines, their drives and prices; ``catalog/`` all of them by name, from ``data/``
- ``profile/`` calibration profiles: what a machine was measured to do, as a file
- ``formulas/`` closed forms: KV size, memory budget, step time, overlap, concurrency
- ``workload/`` requests: synthetic sources, readers of traces, and what is made of traces
- ``kvcache/`` prefix index, pools, eviction policies, access patterns, resident set, predictors, reference
  replay; no clock
- ``sim/`` clock, links, storage, mover, scheduler, engine, router, recorder; the only user of SimPy
- ``scenario/`` YAML to a resolved scenario, and where each value came from
- ``results/`` metrics, warnings, verdict, the result folder; ``firstorder`` the closed
  forms beside it; ``baselines`` what it is compared with, ``reruns`` those that scenarios
  have in common; ``simulation`` one scenario with its baselines; ``estimate/`` what that will take
- ``hitrate/`` what caches of any size hit of a trace, without time; ``plots/`` figures
- ``calc/`` closed forms with figures put in, each with formula, inputs and answer
- ``calibrate/`` measures this machine, fits what it measured, verifies the model by a real run; the only user of torch
- ``sweeps/`` one scenario at many points, each a job of ``jobs/`` whose answer is kept at once
- ``curves/`` closed forms as lines, simulated points on them; ``planner/`` the cheapest that holds an SLO
- ``validation/`` cases with expected figures, asked of all of these and judged
- ``chrometrace/`` a run's events for Perfetto; ``report/`` result folders as one page
- ``api/`` what ``import simkv`` offers to programs and notebooks
- ``cli/`` the commands, one file each (``__main__``: ``python -m simkv``)

Inside, everything is SI: integer bytes, tokens and blocks, float seconds; names carry the unit.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from simkv.api import (
        Calibration,
        Curves,
        Formula,
        InfeasibleError,
        InputError,
        LawError,
        Picture,
        Plan,
        Run,
        Scenario,
        SimkvError,
        Sweep,
        Validation,
        break_even,
        calibration,
        concurrency,
        concurrency_of,
        curves_of,
        hit_rates,
        kv_size,
        load_scenario,
        plan,
        run,
        scores,
        speedup,
        step_time,
        sweep,
        t_avg,
        t_avg_of,
        validate,
    )

__version__ = "0.1.0"
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
"""What programs and notebooks use: names of ``simkv.api``, which is loaded when one of them is first asked for."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'simkv' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("simkv.api"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
