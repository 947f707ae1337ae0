"""Small scenarios to plan, and workers that are nobody but the test itself."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from simkv.jobs.workers import Workers
from simkv.sweeps.simulate import Case, Written

FILE = "small.yaml"

SINGLE_SERVER = """
name: single-server
model: {kv_bytes_per_token: 1KiB}
hardware: {step_time: 100ms, kv_tokens: 4096}
engine: {preset: vllm, max_num_seqs: 1, max_num_batched_tokens: 64, prefix_caching: false}
workload:
  kind: plain
  requests: 1000000
  arrival: {process: poisson, rate: 5 req/s}
  prompt_tokens: 1
  output_tokens: 1
slo: {queue_mean: 100ms}
run: {warm_tiers: 1s}
"""
"""With one seat and one step a request: M/D/1 at 100 ms."""

SMALL = """
name: small
model: smollm2-135m
hardware: t4
engine: {preset: vllm, max_num_seqs: 32, max_model_len: 4096, num_gpu_blocks: 1024}
workload:
  kind: sessions
  requests: 400
  arrival: {process: poisson, rate: 1 req/s}
  turns: {dist: geometric, mean: 3, max: 8}
  think_time: 2s
  system_prompt: {tokens: 256}
  prompt_tokens: {dist: lognormal, median: 200, sigma: 0.6, max: 1000}
  output_tokens: {dist: lognormal, median: 30, sigma: 0.5, max: 100}
  max_context: 4000
slo: {ttft_p95: 400ms, tpot_p95: 30ms}
"""
"""A small model on one real card, nothing planned yet."""

INSTANCES = """
name: instances
model: llama-3.1-8b
hardware: p4d.24xlarge
engine: {preset: vllm, max_model_len: 8192}
workload:
  kind: plain
  requests: 300
  arrival: {process: poisson, rate: 10 req/s}
  prompt_tokens: 500
  output_tokens: 50
slo: {ttft_p95: 2s}
"""
"""Whole machines, with prices of the catalogue."""


def written(text: str, *assignments: str) -> Written:
    """Return a scenario as its user gave it."""
    return Written(text, FILE, assignments)


def case(text: str, *assignments: str) -> Case:
    """Return one simulation of it."""
    return Case(written(text, *assignments))


def planned(text: str, plan: str) -> Written:
    """Return a scenario with a plan, given as it stands behind ``plan:``."""
    return Written(f"{text}plan: {plan}\n", FILE)


class _Here:
    """Does each job as soon as it is submitted."""

    size = 1
    room = 1
    lost: tuple[type[BaseException], ...] = ()
    tries = 1

    def __init__(self) -> None:
        self.done = 0

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args))
        self.done += 1
        return future

    def check(self) -> None: ...

    def abandon(self) -> None: ...

    def close(self) -> None: ...


def here() -> Workers:
    """Return workers that are the test's own process: nothing has to start, and what a test changes holds there too."""
    workers = Workers.__new__(Workers)
    workers._place = _Here()
    return workers


def jobs_done(workers: Workers) -> int:
    """Return how many jobs those of :func:`here` have done."""
    place = workers.place
    assert isinstance(place, _Here)
    return place.done
