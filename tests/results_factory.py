"""A finished run made up by a recursion: one server, first come first served, exact to the last digit.

Each request loads its DRAM hits, prefills what misses, and decodes alone, so every record, step
and integral follows from Lindley's recursion and the laws of ``results.check`` hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from simkv.results.context import SummaryContext
from simkv.results.result import RunResult
from simkv.results.summary import summarize
from simkv.sim.rundata import REQUEST_COLUMNS, STEP_COLUMNS, TIMESERIES_COLUMNS, RunData

BLOCK = 16
RESOURCES = ("gpu", "h2d", "d2h", "dram", "ssd_read", "ssd_write")


def make_run(
    n: int = 2000,
    rate: float = 1.0,
    prefill_s_per_token: float = 2e-4,
    step_s: float = 0.01,
    growth_s: float = 1e-6,
    prompt: int = 1000,
    output: int = 30,
    vram_hit: float = 0.1,
    dram_hit: float = 0.3,
    load_s_per_token: float = 1e-5,
    batch: bool = False,
    rejected: int = 0,
    seed: int = 0,
    classes: tuple[str, ...] = ("",),
    dram_blocks: int = 1000,
    warm_after: int = 0,
    arrival_s: np.ndarray | None = None,
) -> RunData:
    """Return a run of ``n`` finished requests; the first ``warm_after`` hit nothing (a cold cache)."""
    rng = np.random.default_rng(seed)
    arrival = np.zeros(n) if batch else np.cumsum(rng.exponential(1 / rate, n))
    arrival = arrival if arrival_s is None else arrival_s
    out = rng.integers(1, 2 * output, n)
    warm = np.arange(n) >= warm_after
    hit_vram = np.where(warm, int(prompt * vram_hit), 0)
    hit_dram = np.where(warm, int(prompt * dram_hit), 0)
    load = hit_dram * load_s_per_token
    prefill = (prompt - hit_vram - hit_dram) * prefill_s_per_token
    steps = out - 1
    decode = steps * step_s + growth_s * steps * (steps - 1) / 2
    work = load + prefill + decode
    done = np.cumsum(work)
    finish = done + np.maximum.accumulate(arrival - (done - work)) if n else arrival
    begin = np.maximum(finish - work, arrival)
    scheduled = begin + load
    first_token = scheduled + prefill
    finish = first_token + decode
    requests = {name: np.zeros(n, dtype) for name, dtype in REQUEST_COLUMNS.items()}
    requests |= {
        "id": np.arange(n), "session": np.arange(n), "cls": rng.integers(0, len(classes), n).astype("i2"),
        "arrival_s": arrival, "scheduled_s": scheduled, "first_token_s": first_token, "finish_s": finish,
        "prompt_tokens": np.full(n, prompt, "i4"), "output_tokens": out.astype("i4"),
        "hit_vram_tokens": hit_vram.astype("i4"), "hit_dram_tokens": hit_dram.astype("i4"),
        "queue_time_s": begin - arrival, "load_dram_time_s": load, "prefill_time_s": prefill, "decode_time_s": decode,
        "ceiling_tokens": np.full(n, int(prompt * min(1.0, vram_hit + dram_hit + 0.05)), "i4"),
    }  # fmt: skip
    requests = _with_rejected(requests, rejected, n)
    several = steps > 0
    step_rows = {
        "start_s": first_token[several], "first_s": np.full(several.sum(), step_s),
        "growth_s": np.full(several.sum(), growth_s), "count": steps[several].astype("i4"),
        "decodes": np.ones(several.sum(), "i4"),
    }  # fmt: skip
    end = float(finish[-1]) if n else 0.0
    gpu = float((prefill + decode).sum())
    block_bytes = 1 << 20
    moved = int(hit_dram.sum()) // BLOCK * block_bytes
    data = RunData(
        class_names=classes,
        requests=requests,
        steps={name: step_rows[name].astype(dtype) for name, dtype in STEP_COLUMNS.items()},
        gaps={"end_s": np.empty(0), "gap_s": np.empty(0)},
        timeseries=_samples(arrival, begin, finish, prefill + decode, load, end),
        arrived=n + rejected,
        finished=n,
        rejected=rejected,
        live=0,
        end_s=end,
        interrupted=False,
        busy_s={"gpu": gpu, "h2d": float(load.sum()), "d2h": 0.1 * gpu, "dram": 0.01 * gpu,
                "ssd_read": 0.0, "ssd_write": 0.0},
        instances={"gpu": 1, "h2d": 1, "d2h": 1, "dram": 1, "ssd_read": 0, "ssd_write": 0},
        bytes={"h2d": moved, "d2h": 2 * moved, "dram": 3 * moved, "ssd_read": 0, "ssd_write": 0},
        tier_capacity_blocks={"vram": 200, "dram": dram_blocks, "ssd": 0},
        tier_written_blocks={"vram": 70 * n, "dram": 60 * n, "ssd": 0},
        tier_mean_used={"vram": 0.7, "dram": 0.9, "ssd": 0.0},
        preemptions=0,
        recomputed_tokens=0,
        refused_stores=0,
        running_time_s=float((prefill + decode).sum()),
        running_max=1 if n else 0,
        load_held_s=float(load.sum()),
        load_hidden_s=0.25 * float(load.sum()),
        load_waits=int((load > 0).sum()),
        steps_total=int(steps.sum()) + n,
        macro_steps=2 * n,
        events=4 * n,
    )  # fmt: skip
    return data


def _with_rejected(requests: dict[str, Any], rejected: int, n: int) -> dict[str, Any]:
    if not rejected:
        return requests
    extra = {name: np.zeros(rejected, dtype) for name, dtype in REQUEST_COLUMNS.items()}
    extra["id"] = np.arange(n, n + rejected)
    extra["rejected"][:] = True
    extra["replica"][:] = -1
    extra["prompt_tokens"][:] = 10**6
    extra["arrival_s"] = extra["finish_s"] = np.full(rejected, requests["arrival_s"][0] if n else 0.0)
    extra["scheduled_s"] = extra["first_token_s"] = np.full(rejected, np.nan)
    return {name: np.concatenate([extra[name], requests[name]]) for name in REQUEST_COLUMNS}


def _samples(
    arrival: np.ndarray, begin: np.ndarray, finish: np.ndarray, gpu: np.ndarray, load: np.ndarray, end: float
) -> dict[str, np.ndarray]:
    times = np.linspace(0, end, 201)
    columns = {name: np.zeros(len(times)) for name in TIMESERIES_COLUMNS}
    columns["t_s"] = times
    ended = np.searchsorted(finish, times, "right")
    begun = np.searchsorted(begin, times, "right")
    columns["waiting"] = (np.searchsorted(arrival, times, "right") - begun).astype("f8")
    columns["running"] = (begun - ended).astype("f8")
    columns["finished"] = ended.astype("f8")
    columns["gpu_busy_s"] = np.concatenate([[0.0], np.cumsum(gpu)])[ended]
    columns["h2d_busy_s"] = np.concatenate([[0.0], np.cumsum(load)])[ended]
    columns["vram_blocks"] = 63.0 * columns["running"]
    columns["vram_cached_blocks"] = np.minimum(137.0, 10 * columns["finished"])
    columns["dram_blocks"] = np.minimum(1000.0, 60 * columns["finished"])
    return columns


def make_context(**changes: Any) -> SummaryContext:
    """Return the context of a scenario with a DRAM tier."""
    ctx = SummaryContext(
        scenario="chatbot",
        scenario_hash="0123456789abcdef",
        seed=0,
        version="0.1.0",
        question="How much does a DRAM tier buy this chatbot?",
        warm_up=0.0,
        dram_gib=200.0,
        block_bytes=1 << 20,
        tiers=("vram", "dram"),
    )
    return replace(ctx, **changes)


def make_result(n: int = 2000, rate: float = 1.0, **changes: Any) -> RunResult:
    """Return a result with its no-offload baseline."""
    ctx = make_context(**changes)
    data, plain = make_run(n, rate), make_run(n, rate, dram_hit=0.0)
    baselines = {"no_offload": plain}
    return RunResult(
        summary=summarize(data, ctx, baselines),
        data=data,
        resolved=f"name: {ctx.scenario}\n",
        name=ctx.scenario,
        hash=ctx.scenario_hash,
        baselines=baselines,
    )
