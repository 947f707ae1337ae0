# ruff: noqa: T201 -- a script: printing is its result
"""Fit a GPU family's efficiencies on published step times, and print the residual of every point.

    python calibration/fit_steps.py MEASUREMENTS.yaml [--family ada|ampere|hopper]

Least squares on relative errors. A family's figures that aren't fitted keep their catalogue values. A
served run is never fitted on. The figures printed here are copied into ``simkv/data/hardware.yaml``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import yaml
from scipy.optimize import least_squares

from simkv.catalog import load_hardware, load_model
from simkv.formulas.step import RooflineStep, step_cost
from simkv.hardware import Figure, Gpu

Cases = dict[str, dict[str, Any]]
Tune = Callable[[Gpu], Gpu]


@dataclass(frozen=True)
class Point:
    """One observation: what it is, its value (s), and how the model predicts it with tuned hardware."""

    name: str
    observed_s: float
    predict: Callable[[Tune], float]


@dataclass(frozen=True)
class Family:
    """What is fitted for one family: figures with their starting values, and the points."""

    start: dict[str, float]
    points: Callable[[Cases], list[Point]]


def cost(tune: Tune, card: str, model: str, ranks: int = 1, **options: Any) -> RooflineStep:
    """Step times on a tuned card."""
    return step_cost(load_model(model), tune(load_hardware(card)), ranks, **options)


def decode_run(step: RooflineStep, batch: int, prompt: int, steps: int) -> float:
    """Seconds of ``steps`` decode steps of a batch that starts at ``prompt`` tokens each."""
    first, growth, _ = step.decode(batch, batch * (prompt + 1))
    return steps * first + growth * steps * (steps - 1) / 2


def prefill_run(step: RooflineStep, batch: int, prompt: int, budget: int) -> float:
    """Seconds to prefill a batch in steps of at most ``budget`` tokens."""
    total, chunks, room = 0.0, [], budget
    for _ in range(batch):
        done = 0
        while done < prompt:
            new = min(room, prompt - done)
            chunks.append((new, done))
            done, room = done + new, room - new
            if not room:
                total, chunks, room = total + step.mixed(0, 0, chunks, 1), [], budget
    return total + (step.mixed(0, 0, chunks, 1) if chunks else 0.0)


def curve(cases: Cases, case: str, metric: str) -> list[tuple[float, float]]:
    """The points of an observed curve."""
    return [(x, y) for x, y in cases[case]["observed"][metric]["points"]]


def value(cases: Cases, case: str, metric: str) -> float:
    """One observed value."""
    return float(cases[case]["observed"][metric]["value"])


def ada(cases: Cases) -> list[Point]:
    """Kernel times of Llama-3.1-8B on an RTX 4090, summed by their authors."""

    def kernels(tune: Tune) -> RooflineStep:
        return cost(tune, "rtx-4090", "llama-3.1-8b", mode="kernels")

    case, points = "lss-rtx4090-l8b-steps", []
    for context in (1024, 4096):
        for batch, ms in curve(cases, case, f"decode_step_kv{context}"):
            points.append(
                Point(f"decode kv {context} batch {batch}", ms / 1e3,
                      lambda tune, b=int(batch), c=context: kernels(tune).decode(b, b * c)[0])
            )  # fmt: skip
    for tokens, ms in curve(cases, case, "prefill"):
        points.append(
            Point(f"prefill {tokens}", ms / 1e3, lambda tune, t=int(tokens): kernels(tune).mixed(0, 0, [(t, 0)], 1))
        )
    return points


def ampere(cases: Cases) -> list[Point]:
    """Linear layers of Llama-2-7B (vidur), whole runs (TensorRT-LLM) and TP8 prefill (Mooncake) on A100/A800."""
    points = []
    for tokens, ms in curve(cases, "vidur-llama2-7b-linear-a100", "linear_plus_other_x32layers"):

        def linear(tune: Tune, t: int = int(tokens)) -> float:
            step = cost(tune, "a100-sxm4-80gb", "llama-2-7b", mode="kernels")
            return step.overhead_s + step.linear.seconds(t)

        points.append(Point(f"vidur linear {tokens}", ms / 1e3, linear))
    for batch, prompt, out in ((384, 128, 128), (60, 128, 2048), (52, 2048, 128)):

        def seconds_per_token(tune: Tune, b: int = batch, p: int = prompt, o: int = out) -> float:
            step = cost(tune, "a100-sxm4-80gb", "llama-2-7b")
            return (prefill_run(step, b, p, 8192) + decode_run(step, b, p, o - 1)) / (b * o)

        rate = value(cases, "trtllm-a100-llama7b", f"tput_b{batch}_{prompt}_{out}")
        points.append(Point(f"trtllm batch {batch} {prompt}+{out}", 1 / rate, seconds_per_token))
    for tokens, seconds in curve(cases, "mooncake-fig14-prefill", "prefill_0pct"):

        def prefill(tune: Tune, t: int = int(tokens)) -> float:
            return cost(lambda gpu: a800(tune(gpu)), "a100-sxm4-80gb", "llama-3.1-70b", 8).mixed(0, 0, [(t, 0)], 1)

        points.append(Point(f"mooncake prefill {tokens} tp8", seconds, prefill))
    return points


def a800(gpu: Gpu) -> Gpu:
    """An A800 is an A100 with 200 GB/s a direction between GPUs."""
    link = gpu.figure("gpu_link_bytes_per_s")
    return gpu.with_figures(gpu_link_bytes_per_s=replace(link, value=200e9))


def hopper(cases: Cases) -> list[Point]:
    """Prefill of Llama-3.1-8B on H100, inter-token latency on H100 (fp8 weights) and H200 (TP 1, 2, 4)."""
    points = []
    for kilo, ms in curve(cases, "vllm-h100-l8b-prefill-ttft", "ttft"):

        def ttft(tune: Tune, t: int = int(kilo * 1000)) -> float:
            return prefill_run(cost(tune, "h100-sxm5-80gb", "llama-3.1-8b"), 1, t, 8192)

        points.append(Point(f"h100 prefill {kilo}K", ms / 1e3, ttft))
    for batch, ms in curve(cases, "sily-h100-qwen8b-fp8", "itl_median"):

        def itl(tune: Tune, b: int = int(batch)) -> float:
            return cost(tune, "h100-sxm5-80gb", "qwen3-8b", weight_dtype="fp8").decode(b, b * 3072)[0]

        points.append(Point(f"h100 qwen3-8b fp8 batch {batch}", ms / 1e3, itl))
    for name, model, ranks in (
        ("llama3.1-8b_tp1", "llama-3.1-8b", 1), ("llama3-70b_tp4", "llama-3.1-70b", 4),
        ("mixtral8x7b_tp2", "mixtral-8x7b", 2),
    ):  # fmt: skip

        def latency(tune: Tune, m: str = model, n: int = ranks) -> float:
            step = cost(tune, "h200-sxm5-141gb", m, n)
            return prefill_run(step, 8, 32, 8192) + decode_run(step, 8, 32, 127)

        points.append(Point(f"h200 {name} 8 x (32+128)", value(cases, "vllm-ci-h200-latency", name) / 1e3, latency))
    return points


FAMILIES = {
    "ada": Family(
        {"flops_efficiency": 0.95, "weight_bandwidth_efficiency": 0.9, "attention_bandwidth_efficiency": 0.93,
         "attention_flops_efficiency": 0.8, "tile_fill_loss": 0.3, "sequence_overhead_s": 1e-5},
        ada,
    ),
    "ampere": Family(
        {"flops_efficiency": 0.65, "weight_bandwidth_efficiency": 0.7, "attention_flops_efficiency": 0.6,
         "tile_fill_loss": 0.3},
        ampere,
    ),
    "hopper": Family(
        {"flops_efficiency": 0.65, "weight_bandwidth_efficiency": 0.7, "attention_flops_efficiency": 0.6,
         "layer_overhead_s": 3e-5},
        hopper,
    ),
}  # fmt: skip


def fit(family: Family, cases: Cases) -> tuple[dict[str, float], list[tuple[Point, float]]]:
    """Return the fitted figures, and each point with its prediction."""
    names, scale = list(family.start), np.array(list(family.start.values()))
    points = family.points(cases)

    def tuned(x: np.ndarray) -> Tune:
        figures = {n: Figure(float(v), "", "", "fitted") for n, v in zip(names, x * scale, strict=True)}
        return lambda gpu: gpu.with_figures(**figures)

    def residuals(x: np.ndarray) -> list[float]:
        tune = tuned(x)
        return [p.predict(tune) / p.observed_s - 1 for p in points]

    upper = [1.0 / v if n.endswith("efficiency") else np.inf for n, v in family.start.items()]
    best = least_squares(residuals, np.ones(len(names)), bounds=(np.zeros(len(names)), upper)).x
    tune = tuned(best)
    return dict(zip(names, best * scale, strict=True)), [(p, p.predict(tune)) for p in points]


def main() -> None:
    """Fit the families asked for and print figures and residuals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measurements", help="the file of published measurements")
    parser.add_argument("--family", choices=FAMILIES, action="append")
    args = parser.parse_args()
    with open(args.measurements, encoding="utf-8") as file:
        cases = {case["id"]: case for case in yaml.safe_load(file)}
    for name in args.family or FAMILIES:
        figures, rows = fit(FAMILIES[name], cases)
        print(f"{name}:")
        for figure, number in figures.items():
            print(f"  {figure} = {number:.4g}")
        for point, predicted in rows:
            error = predicted / point.observed_s - 1
            print(f"  {point.name:38s} {point.observed_s * 1e3:10.3f} ms {predicted * 1e3:10.3f} ms {error:+7.2%}")
        errors = [predicted / point.observed_s - 1 for point, predicted in rows]
        print(f"  rms {np.sqrt(np.mean(np.square(errors))):.2%}, largest {max(map(abs, errors)):.2%}")


if __name__ == "__main__":
    main()
