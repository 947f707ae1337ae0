"""Small runs with their curves, once a process, and summaries of scenarios that nobody ran."""

from __future__ import annotations

from functools import cache
from typing import Any

from simkv.curves.setting import read_setting
from simkv.curves.study import check_any, study
from simkv.errors import InputError
from simkv.jobs.workers import Workers
from simkv.scenario.explain import to_yaml
from simkv.scenario.resolve import resolve_text
from simkv.simulation import run_scenario
from simkv.sweeps.simulate import Written

_ENGINE = "engine: {max_num_seqs: 4, prefix_caching: false, prefill: vram, num_gpu_blocks: 700}"
_ACTIVE = f"""
model: llama-3.1-8b
hardware: a100-sxm4-80gb
{_ENGINE}
workload: {{kind: batch, size: 4, prompt_tokens: 2000, output_tokens: 12}}
tiers: {{dram: {{capacity: 20GiB}}}}
run: {{warm_up: 0s}}
"""
DENSE = f"""
name: dense
{_ACTIVE}
link: {{latency: 0s}}
offload: {{residency: 0.5, access: {{pattern: dense}}, prefetch: {{policy: layer}}}}
"""
SPARSE = f"""
name: sparse
{_ACTIVE}
offload:
  residency: 0.4
  access: {{pattern: topk, budget: 512}}
  eviction: {{policy: score, lambda: 0.7}}
  prefetch: {{policy: layer}}
"""
REUSE = """
name: reuse
model: llama-3.1-8b
hardware: a100-sxm4-80gb
workload:
  {kind: sessions, arrival: {process: poisson, rate: 1 req/s}, requests: 20, turns: 3, prompt_tokens: 900,
   output_tokens: 64}
tiers: {dram: {capacity: 20GiB}}
run: {warm_up: 0s, baselines: []}
"""
WINDOWS = REUSE.replace("reuse", "windows").replace("llama-3.1-8b", "gemma-3-4b")

Case = tuple[dict[str, Any], str, dict[str, Any] | None]
"""A run's summary, its scenario.resolved.yaml, and its curves.json."""


@cache
def ran(text: str, with_curves: bool = True, file: str = "s.yaml") -> Case:
    """Return a run of ``text`` and its curves in few steps; nobody may change them."""
    resolved = resolve_text(text, file)
    summary = run_scenario(resolved).summary
    return summary, to_yaml(resolved), _curves(text, file) if with_curves else None


def _curves(text: str, file: str) -> dict[str, Any] | None:
    setting = read_setting(Written(text, file), 2, 1)
    names = ("t_avg", "speedup", "concurrency", "lambda")
    try:
        check_any(setting, names)
    except InputError:
        return None
    with Workers(1) as workers:
        return study(setting, names, workers)


def as_if_ran(prompt_tokens: int = 4000, output_tokens: int = 96, sequences: float = 3.0) -> dict[str, Any]:
    """Return what sliders take of the summary of a run without active offload."""
    return {
        "scenario": "as if",
        "seed": 0,
        "requests": {"finished": 10},
        "prompt_tokens": 10 * prompt_tokens,
        "output_tokens": 10 * output_tokens,
        "concurrency": {"formula": 4.0, "mean": sequences, "max": 4},
        "p_hit": None,
        "p_resident": None,
        "t_avg_s": None,
        "t_step_s": None,
        "t_transfer_s": None,
        "beta": None,
        "speedup": {"formula": None, "measured": None, "vs_no_offload": None},
        "hit_rate": {"vram": 0.1, "dram": 0.2, "ssd": 0.0, "miss": 0.7, "ceiling": 0.5},
        "closed_form": {},
    }
