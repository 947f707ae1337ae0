"""Predicted beside measured throughput of FlexGen and ZeRO-Inference, case by case.

    python benchmarks/batch_mode.py FOLDER/measurements.yaml

Policies and observations are the cases' own; where a case packs several runs, ``RUNS`` says which. A machine's
figures are the same in all of its runs: no constant belongs to a case. Two predictions: FlexGen's closed form with
the rates that it fitted to a T4 (on its own runs there), and the schedule with the hardware's figures.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import Any

import yaml

from simkv.catalog import load_hardware, load_model
from simkv.errors import InfeasibleError
from simkv.formulas.placement import (
    BatchPolicy,
    Job,
    Placement,
    Room,
    Share,
    check_memory,
    flexgen_t4,
    hardware_rates,
    layer_shape,
    published,
    schedule_s,
)

CPU_ATTENTION = 12.3e9
"""Bytes a second, PyTorch on a server CPU: FlexGen's fit (0.0123 TFLOP/s at a byte a FLOP)."""
UNPINNED_T4 = 4.7e9
"""Host to device from pageable memory on the T4 machine: Accelerate streams 59.2 GB of OPT-30B in 405 s / 32 tokens
(case latency-t4-opt30b-baselines). ZeRO-Inference doesn't pin by default."""
ALL_GPU = (100, 0, 100, 0, 100, 0)


@dataclass(frozen=True)
class Machine:
    """Links, drive and memory of one test bed, bytes and bytes a second."""

    gpu: str
    h2d: float
    d2h: float
    ssd_read: float
    ssd_write: float
    dram: float


T4 = Machine("t4", 13.8e9, 12.5e9, 2.0e9, 1.0e9, 208e9)
T4_SLOW_DISK = Machine("t4", 13.8e9, 12.5e9, 1.2e9, 1.0e9, 208e9)
T4_PAGEABLE = Machine("t4", UNPINNED_T4, 12.5e9, 1.2e9, 1.0e9, 208e9)
A6000 = Machine("rtx-a6000", 25e9, 25e9, 5.6e9, 1.0e9, 252e9)
V100 = Machine("v100-sxm2-32gb", 12.5e9, 12.5e9, 2.0e9, 1.0e9, 1e12)
A100 = Machine("a100-pcie-40gb", 25e9, 25e9, 2.0e9, 1.0e9, 1e12)


@dataclass(frozen=True)
class Run:
    """One measured run: which figure of which case, and how it was served."""

    case: str
    metric: str
    model: str
    gpu_batch_size: int
    num_gpu_batches: int
    percent: tuple[int, ...]
    prompt: int = 512
    output: int = 32
    cpu_attention: bool = False
    overlap: bool = True
    weight_dtype: str = "fp16"
    kv_dtype: str = "fp16"
    machine: Machine = T4
    engine: str = "FlexGen"


CPU_KV = (0, 100, 0, 100, 100, 0)
DISK_WEIGHTS = (0, 0, 0, 100, 100, 0)
INT4 = {"weight_dtype": "int4", "kv_dtype": "int4"}
A6000_RUN = {"cpu_attention": True, "machine": A6000}
ZERO = {"cpu_attention": True, "engine": "ZeRO-Inference"}
RUNS = (
    Run("fg-t4-opt6.7b-p512", "generation_throughput", "opt-6.7b", 2, 1, ALL_GPU, overlap=False),
    Run("fg-t4-opt6.7b-p1024", "generation_throughput", "opt-6.7b", 1, 1, ALL_GPU, 1024, overlap=False),
    Run("fg-t4-opt30b-p256", "generation_throughput", "opt-30b", 160, 2, (10, 90, 0, 100, 0, 100), 256,
        cpu_attention=True),
    Run("fg-t4-opt30b-p512", "generation_throughput", "opt-30b", 48, 3, (20, 80, 0, 100, 0, 100), cpu_attention=True),
    Run("fg-t4-opt30b-p512", "decode_throughput", "opt-30b", 48, 3, (20, 80, 0, 100, 0, 100), cpu_attention=True),
    Run("fg-abl-overlap-off", "gen_tput_opt30b", "opt-30b", 48, 3, (20, 80, 0, 100, 0, 100), cpu_attention=True,
        overlap=False),
    Run("fg-abl-deepspeed-policy", "gen_tput_opt30b", "opt-30b", 8, 1, (0, 100, 100, 0, 100, 0)),
    Run("fg-t4-opt175b-p1024", "generation_throughput", "opt-175b", 12, 12, (0, 50, 0, 0, 0, 100), 1024,
        cpu_attention=True),
    Run("fg-abl-overlap-off", "gen_tput_opt175b", "opt-175b", 32, 8, (0, 50, 0, 0, 0, 100), cpu_attention=True,
        overlap=False),
    Run("fg-abl-deepspeed-policy", "gen_tput_opt175b", "opt-175b", 2, 1, (0, 0, 100, 0, 100, 0)),
    Run("fgc-t4-opt6.7b", "generation_throughput_p512", "opt-6.7b", 72, 1, ALL_GPU, overlap=False, **INT4),
    Run("fgc-t4-opt30b-p512", "generation_throughput", "opt-30b", 64, 8, (0, 100, 0, 100, 0, 100), kv_dtype="int4"),
    Run("fgc-t4-p1024", "gen_tput_opt6.7b", "opt-6.7b", 28, 1, ALL_GPU, 1024, overlap=False, **INT4),
    Run("fgc-t4-p1024", "gen_tput_opt30b", "opt-30b", 20, 12, (0, 100, 0, 100, 0, 100), 1024, kv_dtype="int4"),
    Run("fgc-t4-p1024", "gen_tput_opt175b", "opt-175b", 12, 4, (0, 100, 0, 100, 0, 100), 1024, **INT4),
    Run("zero-t4-kv-offload", "flexgen_opt30b", "opt-30b", 96, 1, CPU_KV, cpu_attention=True, machine=T4_SLOW_DISK),
    Run("zero-t4-kv-offload", "flexgen_opt66b", "opt-66b", 48, 1, CPU_KV, cpu_attention=True, machine=T4_SLOW_DISK),
    Run("zero-t4-kv-offload", "flexgen_opt175b", "opt-175b", 64, 1, DISK_WEIGHTS, cpu_attention=True,
        machine=T4_SLOW_DISK),
    Run("zero-t4-kv-offload", "ds_opt30b", "opt-30b", 56, 1, CPU_KV, machine=T4_PAGEABLE, **ZERO),
    Run("zero-t4-kv-offload", "ds_opt66b", "opt-66b", 24, 1, CPU_KV, machine=T4_PAGEABLE, **ZERO),
    Run("zero-t4-kv-offload", "ds_opt175b", "opt-175b", 24, 1, DISK_WEIGHTS, machine=T4_PAGEABLE, **ZERO),
    Run("deepspeed-t4-p1024", "gen_tput_opt6.7b", "opt-6.7b", 8, 1, (0, 100, 100, 0, 100, 0), 1024,
        engine="ZeRO-Inference"),
    Run("deepspeed-t4-p1024", "gen_tput_opt30b", "opt-30b", 2, 1, (0, 100, 100, 0, 100, 0), 1024,
        engine="ZeRO-Inference"),
    Run("flexgen-a6000", "opt30b", "opt-30b", 200, 1, CPU_KV, **A6000_RUN),
    Run("flexgen-a6000", "opt66b", "opt-66b", 80, 1, CPU_KV, **A6000_RUN),
    Run("flexgen-a6000", "opt175b_disk", "opt-175b", 64, 1, DISK_WEIGHTS, **A6000_RUN),
    Run("zero-a6000-kv-offload", "opt30b", "opt-30b", 128, 1, CPU_KV, machine=A6000, **ZERO),
    Run("zero-a6000-kv-offload", "opt66b", "opt-66b", 40, 1, CPU_KV, machine=A6000, **ZERO),
    Run("zero-a6000-kv-offload", "opt175b_disk", "opt-175b", 32, 1, DISK_WEIGHTS, machine=A6000, **ZERO),
    Run("zero-a6000-kv-offload", "llama2_70b", "llama-2-70b", 96, 1, CPU_KV, machine=A6000, **ZERO),
    Run("llmpq-v100-opt13b-512-80", "total_throughput", "opt-13b", 32, 1, (97, 3, 0, 100, 100, 0), 512, 80,
        machine=V100),
    Run("llmpq-v100-opt13b-int4-512-100", "total_throughput", "opt-13b", 32, 1, ALL_GPU, 512, 100, weight_dtype="int4",
        machine=V100),
    Run("llmpq-a100-opt13b-512-80", "total_throughput", "opt-13b", 32, 1, (100, 0, 40, 60, 100, 0), 512, 80,
        machine=A100),
)  # fmt: skip
LEFT_OUT = {
    "zero-a6000-kv-offload bloom176b_disk": "BLOOM isn't in the catalogue",
    "deepspeed-t4-p1024 OPT-175B": "out of memory there",
    "accelerate-t4-p512": "Hugging Face Accelerate: another engine",
    "infinigen": "a speed-up over baselines, no seconds",
}


@dataclass(frozen=True)
class Found:
    """Token/s of one run, observed and predicted; ``fits`` tells what the memory check says."""

    run: Run
    observed: float
    fitted: float | None
    """FlexGen's closed form with its T4 rates; None on other cards and of other engines."""
    schedule: float
    fits: bool


def measure(path: Path) -> list[Found]:
    """Return every run beside its observation."""
    cases = {case["id"]: case for case in yaml.load(path.read_text("utf-8"), yaml.SafeLoader)}
    return [predict(run, cases[run.case]["observed"][run.metric]["value"]) for run in RUNS]


def predict(run: Run, observed: float) -> Found:
    """Return both predictions of one run."""
    layer = layer_shape(load_model(run.model), run.weight_dtype, run.kv_dtype)
    policy = BatchPolicy(_placement(run.percent), run.gpu_batch_size, run.num_gpu_batches, run.overlap,
                         run.cpu_attention)  # fmt: skip
    job, machine = Job(policy.sequences, run.prompt, run.output), run.machine
    gpu = load_hardware(machine.gpu)
    rates = hardware_rates(gpu, machine.h2d, machine.d2h, machine.ssd_read, machine.ssd_write, CPU_ATTENTION, 3.5e-6,
                           80e-6)  # fmt: skip
    first_s, total_s = schedule_s(layer, policy, rates, job)
    tokens, seconds = job.sequences * job.output_tokens, total_s
    theirs = published(layer, policy, flexgen_t4(layer, run.gpu_batch_size), job)
    fitted_s = theirs.total_s
    if run.metric == "decode_throughput":
        tokens, seconds, fitted_s = job.sequences * (job.output_tokens - 1), total_s - first_s, theirs.decode_s
    try:
        check_memory(layer, policy, job, Room(gpu.vram_bytes, machine.dram, 1.5e12, 1.2))
        fits = True
    except InfeasibleError:
        fits = False
    fitted = tokens / fitted_s if machine.gpu == "t4" and run.engine == "FlexGen" else None
    return Found(run, observed, fitted, tokens / seconds, fits)


def _placement(percent: tuple[int, ...]) -> Placement:
    return Placement(*(Share(percent[i] / 100, percent[i + 1] / 100) for i in (0, 2, 4)))


def error(predicted: float, observed: float) -> float:
    """Return predicted over observed less one."""
    return predicted / observed - 1


def typical_error(pairs: list[tuple[float, float]]) -> float:
    """Return the geometric mean of the factor by which predictions miss, less one."""
    return exp(sum(abs(log(p / o)) for p, o in pairs) / len(pairs)) - 1


def _beside(predicted: float, observed: float) -> str:
    return f"{predicted:>9.3g}{error(predicted, observed):>+7.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", type=Path, help="published observations: a list of cases, YAML")
    path = parser.parse_args().measurements
    if not path.is_file():
        parser.error(f"{path}: no such file; name one with a list of cases, each with its id and what was observed")
    found = measure(path)
    print(f"{'case':<34}{'figure':<28}{'observed':>9}{'T4 fit':>9}{'':>7}{'hardware':>9}{'':>7}  memory")
    for one in found:
        fitted = _beside(one.fitted, one.observed) if one.fitted else f"{'-':>9}{'':>7}"
        named = f"{one.run.case:<34}{one.run.metric:<28}{one.observed:>9.3g}"
        print(f"{named}{fitted}{_beside(one.schedule, one.observed)}  {'' if one.fits else 'over'}")
    groups: dict[str, list[Any]] = {}
    for one in found:
        groups.setdefault(f"{one.run.engine} on {one.run.machine.gpu}", []).append(one)
    for name, group in groups.items():
        typical = typical_error([(one.schedule, one.observed) for one in group])
        print(f"{name}: hardware's figures miss by {typical:.0%} typically, {len(group)} figures")
    fitted_pairs = [(one.fitted, one.observed) for one in found if one.fitted]
    print(
        f"FlexGen on t4: its own fit misses by {typical_error(fitted_pairs):.0%} typically, {len(fitted_pairs)} figures"
    )
    for name, why in LEFT_OUT.items():
        print(f"left out: {name}: {why}")


if __name__ == "__main__":
    main()
