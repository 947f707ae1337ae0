"""What the sliders stand on: a run's scenario, its closed forms, how many sequences its curves were simulated with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from simkv.curves.house import House
from simkv.curves.kind import Ground
from simkv.curves.lengths import Lengths
from simkv.curves.setting import SEEDS, Setting, kind_of, read_setting
from simkv.curves.speedup import house_size as speedup_size
from simkv.curves.t_avg import house_size as t_avg_size
from simkv.errors import SimkvError
from simkv.formulas.transfer import transfer_s
from simkv.kvcache.access import AccessPattern, Replay, make_pattern
from simkv.report.folders import RESOLVED
from simkv.report.sliders.forms import Forms, Knots, Piece, Reads
from simkv.scenario.active import read_s
from simkv.scenario.build import system_config
from simkv.scenario.resolve import Resolved, resolve_text
from simkv.sim.active.config import ActiveConfig
from simkv.sim.config import SystemConfig
from simkv.sweeps.simulate import Written

_SAMPLED_STEPS = 32
"""Decode steps over which the mean of a sparse pattern's reads is taken."""

Row = Mapping[str, Any]
Curves = Mapping[str, Mapping[str, Any]]
"""``curves`` of ``curves.json``, by name."""


@dataclass(frozen=True)
class Scene:
    """One run whose closed forms are drawn."""

    summary: Mapping[str, Any]
    setting: Setting
    config: SystemConfig
    curves: Curves
    left_out: Mapping[str, str]
    """Why curves have no such curve, by name."""
    forms: Forms
    context: int
    """Tokens of a whole sequence: the workload's mean request at its end."""
    step_sequences: int
    """Sequences of a step in the chart of T_step: those that its points were simulated with, else the run's."""
    speedup_sequences: int
    """The same in the chart of S(β)."""

    @property
    def run_sequences(self) -> int:
        """Sequences that a replica ran at once, in the mean."""
        return run_sequences(self.summary, self.config)

    @property
    def what_if(self) -> bool:
        """Whether the scenario keeps all KV of running sequences in VRAM, so that p below 1 is a what-if."""
        return self.config.active is None

    @property
    def p(self) -> float:
        """Residency at rest: the scenario's, what its budget gives each sequence, or that of the what-if."""
        active = self.config.active
        if active is not None and active.budget_blocks is not None:
            return min(1.0, active.budget_blocks / (self.run_sequences * self.forms.blocks(self.context)))
        p = self.setting.scenario.offload.residency
        return p if active is not None and p > 0 else self.setting.residency

    @property
    def bytes_per_s(self) -> float:
        """The host link's bandwidth towards one replica."""
        return self.config.link.h2d_bytes_per_s


def read_scene(
    summary: Mapping[str, Any], resolved: str, curves: Mapping[str, Any] | None, file: str = RESOLVED
) -> Scene | None:
    """Return what the sliders of a run stand on; None where its closed forms aren't about decode steps over a link.

    That is so for static batches, whose KV lies where ``engine.placement`` says, and where nothing was served.
    """
    whole = resolve_text(resolved, file)
    if kind_of(whole.scenario) == "batches" or not summary["requests"]["finished"]:
        return None
    config = system_config(whole)
    if not isfinite(config.link.h2d_bytes_per_s):
        return None
    setting = _setting(summary, Written(resolved, file), whole, curves is not None)
    house = _house(setting) if curves is not None else None
    drawn: Curves = curves["curves"] if curves is not None else {}
    lengths = setting.lengths
    context = min(lengths.prompt_tokens + lengths.output_tokens, config.engine.max_model_len)
    ran = run_sequences(summary, config)
    speeding = _size(setting, house, "speedup", drawn, ran)
    return Scene(
        summary=summary,
        setting=setting,
        config=config,
        curves=drawn,
        left_out=curves["left_out"] if curves is not None else {},
        forms=_forms(summary, setting, config, drawn, context, speeding),
        context=context,
        step_sequences=_size(setting, house, "t_avg", drawn, ran),
        speedup_sequences=speeding,
    )


def run_sequences(summary: Mapping[str, Any], config: SystemConfig) -> int:
    """Return how many sequences a replica ran at once, in the mean."""
    return max(1, round((summary["concurrency"]["mean"] or 1) / config.replicas))


def _setting(summary: Mapping[str, Any], written: Written, resolved: Resolved, from_workload: bool) -> Setting:
    """Return what curves start from; lengths are the workload's, as theirs, or the run's own mean."""
    if from_workload:
        try:
            return read_setting(written, 1)
        except SimkvError:  # its trace isn't here
            pass
    finished = summary["requests"]["finished"]
    lengths = Lengths(
        max(1, round(summary["prompt_tokens"] / finished)), max(1, round(summary["output_tokens"] / finished)), finished
    )
    seeds = tuple(range(summary["seed"], summary["seed"] + SEEDS))
    return Setting(written, resolved, kind_of(resolved.scenario), lengths, seeds, 1)


def _house(setting: Setting) -> House | None:
    try:
        return House(setting)
    except SimkvError:  # layers with windows, say, whose KV can't be split
        return None


_SIZES = {"t_avg": t_avg_size, "speedup": speedup_size}


def _size(setting: Setting, house: House | None, name: str, curves: Curves, ran: int) -> int:
    """Return the sequences of the simulated points of a curve, ``ran`` where there are none."""
    if house is None or name not in curves or setting.kind == "replay":
        return ran
    return max(1, _SIZES[name](Ground(setting, house)))


def _forms(
    summary: Mapping[str, Any], setting: Setting, config: SystemConfig, curves: Curves, context: int, speeding: int
) -> Forms:
    engine, active = config.engine, config.active
    layers = config.cost.layers if active is None else active.layers
    size = engine.block_bytes / layers
    vram_s = read_s(setting.resolved, size) if active is None else active.read_s
    start_s = config.link.latency_s + config.link.setup_s
    piece = Piece(size, vram_s, start_s, _ssd_s(summary, config, size, vram_s, start_s))
    reads = Reads(None, None) if active is None or not active.sparse else _reads(config, active, context)
    forms = Forms(engine, config.cost, piece, reads, None)
    if active is None or not active.sparse:
        return forms
    if setting.kind == "replay":
        forms = _as_ran(forms, summary, curves, config)
    return Forms(engine, config.cost, piece, forms.reads, _knots(forms, summary, setting, config, curves, speeding))


def _ssd_s(summary: Mapping[str, Any], config: SystemConfig, size: float, vram_s: float, start_s: float) -> float:
    """Return what the run's misses spent on SSD in the mean: what its T_mem has over VRAM and link."""
    memory_s = (summary.get("closed_form") or {}).get("t_mem_s")
    if memory_s is None:
        return 0.0
    rest_s = memory_s - vram_s - transfer_s(size, config.link.h2d_bytes_per_s, 1, 0.0, start_s)
    return float(rest_s) if rest_s > 1e-9 * memory_s else 0.0


def _reads(config: SystemConfig, active: ActiveConfig, context: int) -> Reads:
    """Return the mean of what a step reads of a sequence, where that is less than all of it."""
    if not active.sparse or isinstance(active.access, Replay):
        return Reads(None, None)
    tokens = config.engine.block_tokens
    pattern = make_pattern(active.access, tokens, active.groups, active.seed)
    blocks = _mean_units(pattern, context) / pattern.groups
    if blocks >= -(-context // tokens):  # all of a sequence this short
        blocks = pattern.most_units(config.engine.max_model_len) / pattern.groups
    return Reads(blocks, round(blocks * tokens))


def _mean_units(pattern: AccessPattern, context: int) -> float:
    steps = min(_SAMPLED_STEPS, context - 1)
    if steps < 1:
        return float(pattern.most_units(context))
    reads = pattern.open(0, context - steps, steps)
    return sum(len(reads.reads(step)) for step in range(steps)) / steps


def _as_ran(forms: Forms, summary: Mapping[str, Any], curves: Curves, config: SystemConfig) -> Forms:
    """Return forms whose reads are so many bytes that T_t is as simulated: a log says what is read, not a formula."""
    marks = curves["speedup"]["marks"] if "speedup" in curves else summary
    missed, moved_s = 1 - (summary["p_resident"] or 0.0), marks["t_transfer_s"] or 0.0
    s_per_byte = 1 / config.link.h2d_bytes_per_s + forms.piece.ssd_s_per_byte
    always = moved_s / (missed * run_sequences(summary, config) * s_per_byte) if missed > 0 else 0.0
    return Forms(forms.engine, forms.cost, forms.piece, Reads(None, None, always), None)


def _knots(
    forms: Forms, summary: Mapping[str, Any], setting: Setting, config: SystemConfig, curves: Curves, speeding: int
) -> Knots:
    """Return p_hit over p as simulated: residency is earned, so that no formula says it."""
    ends = {0.0: 0.0, 1.0: 1.0}
    if "t_avg" in curves:
        rows = curves["t_avg"]["rows"]
        known = {row["residency"]: row["p_hit"] for row in rows if row["series"] == "on demand" and "p_hit" in row}
        known |= dict(_of_speedup(forms, curves, setting, config, speeding))
    elif config.active is not None and config.active.budget_blocks is None and summary["p_resident"] is not None:
        known = {config.active.residency: summary["p_resident"]}
    else:
        known = {}
    return sorted((ends | known | {1.0: 1.0}).items())


def _of_speedup(
    forms: Forms, curves: Curves, setting: Setting, config: SystemConfig, speeding: int
) -> Iterator[tuple[float, float]]:
    """Yield the p of S(β) with the p_hit that its T_t is of."""
    marks = curves["speedup"]["marks"] if "speedup" in curves else {}
    if marks.get("residency") is None:
        return
    lengths = setting.lengths
    context = min(lengths.prompt_tokens + lengths.output_tokens, config.engine.max_model_len)
    all_s = forms.transfer_s(speeding, 0.0, context, config.link.h2d_bytes_per_s)
    if all_s > 0:
        yield marks["residency"], min(1.0, max(0.0, 1 - marks["t_transfer_s"] / all_s))
