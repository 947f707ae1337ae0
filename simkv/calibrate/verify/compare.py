"""Runs the verification: what was measured beside what was predicted."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean as mean
from statistics import median, median_low
from typing import Any

from simkv.calibrate.copies import CopyEngine
from simkv.calibrate.drive import Drive, padded
from simkv.calibrate.model import Decoder, decoder
from simkv.calibrate.session import together
from simkv.calibrate.task import Bench
from simkv.calibrate.verify import beside
from simkv.calibrate.verify.executor import RealEngine
from simkv.calibrate.verify.pool import ColdStore, HotPool
from simkv.calibrate.verify.rig import Observed, Rig
from simkv.calibrate.verify.workload import NO_PREFETCH, RESIDENT, RUNS, Workload, choose, predicted
from simkv.errors import InputError, Problem
from simkv.profile.load import read_profile
from simkv.profile.schema import Prediction, Profile, Sample, Verification, VerifiedRun
from simkv.scenario.build import system_config, workload_source
from simkv.scenario.resolve import resolve_text
from simkv.sim.system import System

Progress = Callable[[float, str], None]
"""Called with the share that is done and what is done now."""
REPEATS = 8
_SWITCH_S = 5e-4
"""How long Python lets one thread run while others wait: copies are handed over in less than a piece takes."""


@dataclass(frozen=True)
class Ground:
    """What all runs of a verification share."""

    bench: Bench
    model: Decoder
    workload: Workload
    cold: ColdStore
    profile: Path


def verify(path: Path, bench: Bench, progress: Progress) -> Profile:
    """Return the profile in ``path`` with its verification: a real decode on ``bench``'s device beside the prediction.

    What the prediction rests on is measured again in turns with the runs, so that both see the same machine, which
    others may share; the profile returned is fitted to that. Raises :class:`InputError` for a profile without the
    figures that the prediction needs, or a CPU without a drive.
    """
    on_drive = bench.backend.kind == "cpu"
    if on_drive and bench.ssd_path is None:
        what = "on a CPU the KV below the pool lies on a drive"
        raise InputError(Problem(what, "name a folder on it: --ssd-path DIR", path="--verify"))
    progress(0.0, "choosing a workload")
    profile, model = read_profile(path), decoder(bench.backend, bench.model)
    workload = choose(profile, path, bench.model, model.piece_bytes, bench.quick, on_drive)
    with prepared(bench, model, workload, path) as ground:
        seen, samples = _measure(ground, REPEATS, progress)
    profile = beside.refitted(profile, samples, bench)
    with beside.written(profile) as refitted:
        said = {run: predicted(workload, run, refitted) for run in RUNS}
    return profile.model_copy(update={"verification": _verification(workload, seen, said, ground.cold.drive)})


@contextmanager
def prepared(bench: Bench, model: Decoder, workload: Workload, profile: Path) -> Iterator[Ground]:
    """Yield what runs work on; the drive's file is gone afterwards."""
    stride = padded(workload.piece_bytes)
    with ExitStack() as opened:
        drive = None
        if workload.on_drive:
            assert bench.ssd_path is not None
            nbytes = workload.units * workload.layers * stride
            drive = opened.enter_context(Drive(bench.ssd_path, nbytes, fill=False))
        cold = ColdStore(bench.backend, model, workload.units, workload.dram_units, drive, workload.block_tokens)
        opened.callback(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(_SWITCH_S)
        if drive is not None:
            cold.fill(stride)
        yield Ground(bench, model, workload, cold, profile)


def _measure(ground: Ground, repeats: int, progress: Progress) -> tuple[dict[str, list[Observed]], tuple[Sample, ...]]:
    """Return every repeat of every run, and what was measured between them."""
    between = beside.Beside(ground.bench, ground.workload)
    seen: dict[str, list[Observed]] = {run: [] for run in RUNS}
    samples: list[Sample] = []
    for repeat in range(-1, repeats):
        name = f"repeat {repeat + 1} of {repeats}" if repeat >= 0 else "warm-up"
        for number, run in enumerate(RUNS):
            progress(((repeat + 1) * len(RUNS) + number) / ((repeats + 1) * len(RUNS)), f"{run}, {name}")
            observed = real_run(ground, run)
            if repeat >= 0:
                seen[run].append(observed)
                samples += between.measure()
    return seen, together(samples)


def real_run(ground: Ground, run: str) -> Observed:
    """Decode ``run`` once, really."""
    text = ground.workload.scenario(run)
    resolved = resolve_text(text, f"verify-{run}.yaml", [f"hardware={ground.profile.resolve()}"])
    config = replace(system_config(resolved, 0), audit=False)  # its steps take real time, which keeps to no model
    bench, workload = ground.bench, ground.workload
    slots = workload.units if run == RESIDENT else min(workload.units, _slots(workload))
    gc.collect()  # the pool of the run before, too
    hot = HotPool(bench.backend, ground.model, slots, workload.block_tokens)
    lanes = CopyEngine(bench.backend, hot.memory, ground.cold.dram, ground.cold.drive, workload.piece_bytes)
    with closing(lanes) as copies, _no_collecting():
        rig = Rig(bench.backend, ground.model, hot, ground.cold, copies)
        system = System(config, workload_source(resolved, 0), partial(RealEngine, rig=rig))
        system.run()
        (engine,) = system.engines
        assert isinstance(engine, RealEngine)
        return engine.runner.end()


@contextmanager
def _no_collecting() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _slots(workload: Workload) -> int:
    """Return the slots of a pool that keeps a share: that share, and what one step reads beyond it."""
    share = int(workload.residency * workload.blocks) + 1
    return workload.batch * (share + workload.budget_tokens // workload.block_tokens + 1)


# ---- beside one another


def _verification(
    workload: Workload, seen: dict[str, list[Observed]], said: dict[str, dict[str, Any]], drive: Drive | None
) -> Verification:
    said_no = said[NO_PREFETCH]
    below = "host memory" if drive is None else "a drive, " + ("O_DIRECT" if drive.direct else drive.why_not)
    return Verification(
        runs=tuple(_verified(workload, run, seen, said) for run in RUNS),
        bit_identical=len({one.digest for repeats in seen.values() for one in repeats}) == 1,
        transfer_over_compute=said_no["t_transfer_s"] / said_no["t_compute_s"],
        note=f"{workload.steps} steps of {workload.batch} sequences, of each step the middle of "
        f"{len(seen[RESIDENT])} repeats; KV below the pool on {below}",
    )


def _verified(
    workload: Workload, run: str, seen: dict[str, list[Observed]], said: dict[str, dict[str, Any]]
) -> VerifiedRun:
    summary, repeats = said[run], seen[run]

    def middle(measured: Callable[[Observed], float], predicted_: float) -> Prediction:
        each = [measured(one) for one in repeats]
        return prediction(median_low(each), predicted_, each)

    offloads = run != RESIDENT
    faster = offloads and run != NO_PREFETCH
    return VerifiedRun(
        name=run,
        scenario=workload.scenario(run),
        t_step_s=prediction(t_step_s(repeats), summary["t_step_s"], [mean(one.steps_s) for one in repeats]),
        t_compute_s=prediction(t_compute_s(repeats), summary["t_compute_s"], [mean(one.computed_s) for one in repeats]),
        t_transfer_s=middle(lambda one: one.transfer_s / len(one.steps_s), summary["t_transfer_s"]),
        p_hit=middle(lambda one: one.hits / one.reads, summary["p_hit"]),
        beta=middle(lambda one: one.beta, summary["beta"]) if offloads else None,
        speedup=prediction(
            t_step_s(seen[NO_PREFETCH]) / t_step_s(repeats),
            said[NO_PREFETCH]["t_step_s"] / summary["t_step_s"],
            [mean(slow.steps_s) / mean(fast.steps_s) for slow, fast in zip(seen[NO_PREFETCH], repeats, strict=True)],
        )
        if faster
        else None,
        outputs=repeats[0].digest,
    )


def t_step_s(repeats: list[Observed]) -> float:
    """Return the mean step (s): of each step, which does the same in every repeat, the middle of what it took."""
    return mean(median(step) for step in zip(*(one.steps_s for one in repeats), strict=True))


def t_compute_s(repeats: list[Observed]) -> float:
    """Return the mean of what steps took beside waiting for pieces (s), taken as :func:`t_step_s` is."""
    return mean(median(step) for step in zip(*(one.computed_s for one in repeats), strict=True))


def prediction(measured: float, predicted_: float, repeats: list[float]) -> Prediction:
    """Return the two beside one another, with the error where that has a meaning."""
    error = predicted_ / measured - 1 if measured else None
    return Prediction(measured=measured, predicted=predicted_, error=error, repeats=tuple(repeats))
