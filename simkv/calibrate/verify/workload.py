"""What a verification run decodes: a scenario for each run, chosen so that prefetch has something to hide.

A batch of equal sequences under sparse access reads a budget of blocks at each step. How much of their KV stays in the
pool, how much of a step's reads the next one repeats and how even its picks are is searched with the simulator: where
the transfers of a step take ``LEAST`` to ``MOST`` of its computation, and of those where prefetch gains most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simkv.calibrate.drive import padded
from simkv.calibrate.measure.kvpool import BLOCK_TOKENS
from simkv.errors import InputError, Problem
from simkv.model import ModelShape
from simkv.profile.schema import Profile
from simkv.scenario.resolve import resolve_text
from simkv.simulation import run_scenario

LEAST, MOST = 0.3, 0.8
"""Transfer over computation: enough to hide, and so far below 1 that a hiccup of a drive makes no prefetch late."""
RESIDENT, NO_PREFETCH, PREFETCH, PREDICTED = "resident", "no_prefetch", "prefetch", "prefetch_heavy_hitters"
RUNS: Mapping[str, str] = {
    RESIDENT: "{policy: none}",
    NO_PREFETCH: "{policy: none}",
    PREFETCH: "{policy: oracle}",
    PREDICTED: "{policy: next_step, predictor: heavy_hitters}",
}
"""Runs by name, with their ``offload.prefetch``. The oracle times prefetching; guessing well is another question."""
RESIDENCIES = (0.9, 0.75, 0.65, 0.6)
PICKS = ((0.8, 1.0), (0.5, 1.0), (0.2, 1.0), (0.0, 1.0), (0.0, 0.0))
"""(stickiness, skew) of what a step reads, by how much more a step misses."""
TRIED = 6
"""Workloads of which the gain is predicted."""
_PROMPT_BLOCKS, _PARTS = {True: 32, False: 128}, 2
"""By whether it is a CPU; a step reads one of so many parts."""
SPARE_BLOCKS = 64


@dataclass(frozen=True)
class Workload:
    """One batch of sequences, alike but for what attention picks."""

    model: str
    dtype: str
    batch: int
    block_tokens: int
    piece_bytes: int
    layers: int
    prompt_tokens: int
    steps: int
    dram_units: int
    """Blocks of all layers that host memory holds; what it doesn't lies on a drive."""
    residency: float = 0.75
    stickiness: float = 0.5
    skew: float = 1.0

    @property
    def blocks(self) -> int:
        """Return the blocks of one sequence at its end."""
        return -(-(self.prompt_tokens + self.steps) // self.block_tokens)

    @property
    def units(self) -> int:
        """Return the most units that all sequences have, and one more each, as the simulator counts them."""
        return self.batch * (self.blocks + 2)

    @property
    def on_drive(self) -> bool:
        """Say whether KV below the pool lies on a drive."""
        return self.dram_units < self.units

    @property
    def budget_tokens(self) -> int:
        """Return the tokens that a step reads of each sequence."""
        return self.prompt_tokens // _PARTS

    def scenario(self, run: str) -> str:
        """Return the YAML of ``run``, without hardware."""
        block_bytes = self.piece_bytes * self.layers
        ssd = f"{block_bytes * (self.units + SPARE_BLOCKS)}B" if self.on_drive else "0GiB"
        lines = (
            f"name: verify-{run.replace('_', '-')}",
            f"model: {self.model}",
            f"engine: {{block_tokens: {self.block_tokens}, num_gpu_blocks: {self.units + SPARE_BLOCKS}, "
            f"max_num_seqs: {self.batch}, max_model_len: {self.prompt_tokens + self.steps}, prefix_caching: false, "
            f"prefill: vram, attention_kernels: paged, weight_dtype: {self.dtype}, kv_dtype: {self.dtype}}}",
            f"workload: {{kind: batch, size: {self.batch}, prompt_tokens: {self.prompt_tokens}, "
            f"output_tokens: {self.steps}}}",
            f"tiers: {{dram: {{capacity: {block_bytes * self.dram_units}B}}, ssd: {{capacity: {ssd}}}}}",
            f"link: {{chunk: {padded(self.piece_bytes)}B}}",
            "offload:",
            f"  residency: {1.0 if run == RESIDENT else self.residency}",
            f"  access: {{pattern: topk, budget: {self.budget_tokens}, recent: {2 * self.block_tokens}, "
            f"sinks: {self.block_tokens}, skew: {self.skew}, stickiness: {self.stickiness}}}",
            "  eviction: {policy: lru}",
            "  write: write_through",
            f"  prefetch: {RUNS[run]}",
            "run: {seed: 0, warm_up: 0s, baselines: []}",
        )
        return "\n".join(lines) + "\n"


def predicted(workload: Workload, run: str, profile: Path) -> dict[str, Any]:
    """Return the summary of what the simulator says of ``run`` on the machine that ``profile`` describes."""
    resolved = resolve_text(workload.scenario(run), f"verify-{run}.yaml", [f"hardware={profile.resolve()}"])
    return run_scenario(resolved).summary


def choose(
    profile: Profile, path: Path, model: ModelShape, piece_bytes: Callable[[int], int], quick: bool, on_drive: bool
) -> Workload:
    """Return the workload that is decoded, chosen by what ``profile`` predicts.

    Where none comes into the range it is the nearest. Raises :class:`InputError` where the profile has no times of
    decoding.
    """
    compute = profile.fit.compute
    if compute is None or compute.paged is None:
        what = "has no times of a decode step through a block table"
        raise InputError(Problem(what, "measure again: simkv calibrate", file=str(path)))
    batch = max((row.batch for row in compute.paged if row.batch <= 4), default=compute.paged[0].batch)
    start = Workload(
        model=compute.model, dtype=compute.dtype, batch=batch, block_tokens=BLOCK_TOKENS,
        piece_bytes=piece_bytes(BLOCK_TOKENS), layers=model.layers,
        prompt_tokens=_PROMPT_BLOCKS[profile.device.kind == "cpu"] * BLOCK_TOKENS,
        steps=12 if quick else 16, dram_units=1,
    )  # fmt: skip
    if not on_drive:
        start = replace(start, dram_units=start.units)
    ratios = {
        workload: _ratio(workload, path)
        for stickiness, skew in PICKS
        for residency in RESIDENCIES
        for workload in (replace(start, residency=residency, stickiness=stickiness, skew=skew),)
    }
    inside = [workload for workload, ratio in ratios.items() if LEAST <= ratio <= MOST]
    middle = (LEAST + MOST) / 2
    if not inside:
        return min(ratios, key=lambda workload: abs(ratios[workload] - middle))
    likely = sorted(inside, key=lambda workload: abs(ratios[workload] - middle))[:TRIED]
    return max(likely, key=lambda workload: _gain(workload, path))


def _ratio(workload: Workload, path: Path) -> float:
    summary = predicted(workload, NO_PREFETCH, path)
    return float(summary["t_transfer_s"] / summary["t_compute_s"])


def _gain(workload: Workload, path: Path) -> float:
    slow, fast = (predicted(workload, run, path) for run in (NO_PREFETCH, PREFETCH))
    return float(slow["t_step_s"] / fast["t_step_s"])
