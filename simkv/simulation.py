"""One scenario simulated, with its baselines, under common random numbers."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from simkv import __version__, units
from simkv.baselines import BASELINES
from simkv.errors import InfeasibleError
from simkv.firstorder import active_first_order, concurrency_formula, first_order
from simkv.formulas.interpolated import InterpolatedStep
from simkv.reruns import Reruns
from simkv.results.active import warnings as active_warnings
from simkv.results.check import check_run
from simkv.results.context import SummaryContext
from simkv.results.result import RunResult
from simkv.results.summary import summarize
from simkv.results.warnings import outside_calibration
from simkv.scenario.active import active_notes
from simkv.scenario.build import system_config, workload_source
from simkv.scenario.calibrated import is_calibrated, pieces_outside
from simkv.scenario.explain import to_yaml
from simkv.scenario.resolve import Resolved
from simkv.sim.config import SystemConfig
from simkv.sim.record.recording import Wanted
from simkv.sim.rundata import RunData
from simkv.sim.system import System
from simkv.workload.handover import Handover
from simkv.workload.request import Countable, Source

GIB = 1 << 30
TIB = 1 << 40

Progress = Callable[[float], None]
"""Called now and then with the share of the work that is done, 0 to 1."""


def run_scenario(
    resolved: Resolved,
    *,
    seed: int | None = None,
    step_exact: bool = False,
    audit: bool | None = None,
    progress: Progress | None = None,
    reruns: Reruns | None = None,
    record: Sequence[Wanted] = (),
) -> RunResult:
    """Simulate ``resolved`` and what it is compared with; Ctrl-C ends it early with what is finished.

    ``step_exact`` walks every engine step (slow, the same answer); ``audit`` checks the laws of
    INVARIANTS.md on the way (None: where the environment variable SIMKV_AUDIT is set, and not 0);
    ``reruns`` remembers baselines for scenarios that have them in common; ``record`` says of which
    windows of the run itself every event is kept (``RunData.recordings``).
    Raises InputError (a trace that doesn't read), InfeasibleError, and LawError where an audited law
    doesn't hold.
    """
    seed = resolved.scenario.run.seed if seed is None else seed
    config = replace(system_config(resolved, seed), step_exact=step_exact, audit=audit)
    names = [name for name in resolved.scenario.run.baselines if BASELINES[name].differs(config)]
    parts = 1 + len(names)
    source = workload_source(resolved, seed)
    expected = _expected_requests(resolved, source) if progress is not None else None
    data = simulate(config, source, expected, _part(progress, 0, parts), record)
    odd = (*_odd_rows(resolved, source), *_outside_calibration(resolved, config))
    baselines: dict[str, RunData] = {}
    missing = ""
    for number, name in enumerate(names, start=1):
        if data.interrupted:
            break
        gc.collect()  # the system before is full of circles
        changed = BASELINES[name].change(config)
        anew = partial(simulate, changed, source, expected, _part(progress, number, parts))
        other = anew() if reruns is None else reruns.run(changed, resolved.workload_hash, seed, anew)
        if other.interrupted:
            missing = name
            break
        baselines[name] = other
    about = context(resolved, config, data, seed)
    forms = {name: _forms(BASELINES[name].change(config), other) for name, other in baselines.items()}
    about = replace(about, warnings=(*odd, *about.warnings), baselines=forms)
    if missing:
        text = f"The run was stopped before its baseline {missing} had ended: it isn't compared with it."
        about = replace(about, warnings=(("interrupted", text), *about.warnings))
    summary = summarize(data, about, baselines)
    data.interrupted |= bool(missing)
    return RunResult(
        summary=summary,
        data=data,
        resolved=to_yaml(resolved),
        name=resolved.scenario.name,
        hash=resolved.scenario_hash,
        baselines=baselines,
    )


def simulate(
    config: SystemConfig,
    source: Source,
    expected: int | None = None,
    progress: Progress | None = None,
    record: Sequence[Wanted] = (),
) -> RunData:
    """Run one system on a workload of about ``expected`` requests (None: unknown).

    Raises InfeasibleError where nothing arrives, LawError where an audited law doesn't hold.
    """
    report = None
    if progress is not None:
        until = config.duration_s

        def report(ended: int, now_s: float) -> None:
            share = ended / expected if expected else now_s / until if until else 0.0
            progress(min(1.0, share))

    data = System(config, source, record=record).run(report)
    if data.arrived == 0 and not data.interrupted:
        raise InfeasibleError("the workload has no request within the run: nothing to simulate; lengthen run.duration")
    if config.audited and not data.interrupted:
        check_run(data)
    return data


def context(resolved: Resolved, config: SystemConfig, data: RunData, seed: int) -> SummaryContext:
    """Return what the summary must know of the scenario."""
    s = resolved.scenario
    cost = s.cost
    closed_form, most = _forms(config, data)
    return SummaryContext(
        scenario=s.name,
        scenario_hash=resolved.scenario_hash,
        seed=seed,
        version=__version__,
        question=s.question or "",
        slo=_targets(s.slo),
        classes={name: _targets(cls.slo) for name, cls in s.classes.items()},
        cost=cost.model_dump(exclude_none=True) if cost is not None else None,
        gpus=s.replicas.count * s.replicas.tensor_parallel,
        dram_gib=config.dram.capacity_bytes * s.replicas.hosts / GIB,
        ssd_tib=config.ssd.capacity_bytes * s.replicas.hosts / TIB,
        warm_up=s.run.warm_up if s.run.warm_up is not None else "auto",
        closed_form=closed_form,
        warnings=(*resolved.notes, *_too_small(config, data), *active_warnings(data.active, config.active)),
        notes=active_notes(s),
        concurrency_formula=most,
        max_running=config.engine.max_num_seqs * config.replicas,
        block_bytes=config.engine.block_bytes,
        tiers=_tiers(data),
    )


def _forms(config: SystemConfig, data: RunData) -> tuple[Mapping[str, object], float | None]:
    """Return the closed forms that stand beside a run, and how many sequences fit at once by formula."""
    return {**first_order(config, data), **active_first_order(config, data)}, concurrency_formula(config, data)


def _tiers(data: RunData) -> tuple[str, ...]:
    return tuple(tier for tier in ("vram", "dram", "ssd") if data.tier_capacity_blocks[tier])


def _too_small(config: SystemConfig, data: RunData) -> tuple[tuple[str, str], ...]:
    """Return a warning for a tier in which not even one block (or unit of blocks) has room."""
    dram, ssd, blocks = config.dram, config.ssd, data.tier_capacity_blocks
    unit = units.short(config.engine.block_bytes * config.offload.unit_blocks, "size")
    if dram.capacity_bytes and dram.bandwidth_bytes_per_s and not blocks["dram"]:
        name, capacity = "tiers.dram", dram.capacity_bytes
    elif blocks["dram"] and ssd.capacity_bytes and not blocks["ssd"]:
        name, capacity = "tiers.ssd", ssd.capacity_bytes
    else:
        return ()
    what = "a block" if config.offload.unit_blocks == 1 else "a unit (offload.unit_tokens)"
    text = f"{name} does nothing: {what} takes {unit}, and of {units.short(capacity, 'size')} nobody has as much"
    return (("too_small", text),)


def _targets(section: Any) -> dict[str, float]:
    if section is None:
        return {}
    values = section if isinstance(section, dict) else section.model_dump(exclude_none=True)
    return {name: float(value) for name, value in values.items()}


def _expected_requests(resolved: Resolved, source: Source) -> int | None:
    if isinstance(source, Handover):
        return source.expected_requests
    if isinstance(source, Countable):
        return source.expected_requests()
    bound: int | None = getattr(resolved.scenario.workload, "requests", None)
    return bound


def _odd_rows(resolved: Resolved, source: Source) -> tuple[tuple[str, str], ...]:
    """Return what the reader of a trace put up with or left out, as warnings."""
    from simkv.workload.readers import SessionsSource, TraceSource

    if isinstance(source, Handover):
        source = source.original
    if not isinstance(source, TraceSource | SessionsSource):
        return ()
    return tuple(("trace_rows", f"In the trace, {sentence}.") for sentence in source.report.sentences())


def _outside_calibration(resolved: Resolved, config: SystemConfig) -> list[tuple[str, str]]:
    """Return where the run so far left what the machine's calibration measured, as warnings."""
    if resolved.profile is None:
        return []
    pieces = list(pieces_outside(resolved.profile, config, lambda path: is_calibrated(resolved.origin(path))))
    if not isinstance(config.cost, InterpolatedStep):
        return pieces
    return [*pieces, *outside_calibration(config.cost.outside(), resolved.profile.name)]


def _part(progress: Progress | None, number: int, parts: int) -> Progress | None:
    if progress is None:
        return None
    return lambda share: progress((number + share) / parts)
