"""The sliders of a run's report as a widget, and the table that stands for them on paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simkv.curves.study import KINDS
from simkv.formulas.overlap import feasible_beta, speedup, speedup_bounds, step_ideal, step_serial
from simkv.report.document import Cell, Table, Widget
from simkv.report.folders import RESOLVED
from simkv.report.sliders.axes import every_slider, felt
from simkv.report.sliders.ground import Scene, read_scene
from simkv.report.sliders.origins import origins
from simkv.report.sliders.points import NAMES, curve_points, level_lines, run_point
from simkv.results.quantity import data, digits, seconds
from simkv.scenario.build import kv_bytes_of_token

_TITLES = {
    "t_avg": "T_avg over p_hit",
    "t_step": "T_step over p_hit",
    "speedup": "Speedup over β",
    "concurrency": "C_max over p",
    "lambda": "Hit rate over λ",
}
_BINDING = {"article": "the article's bound", "overlap": "overlap, (T_c + T_t) / max(T_c, T_t),"}
_BUDGET = "offload.vram_budget is one room for all sequences: no share of each bounds how many run"
_UNSIMULATED = (
    "no closed form of the hit rate over λ exists, and there are no simulated points: simkv curves makes them"
)


def sliders(
    summary: Mapping[str, Any], resolved: str, curves: Mapping[str, Any] | None, file: str = RESOLVED
) -> Widget | None:
    """Return the live closed forms of a run; None where it has none (static batches, nothing served).

    ``summary``: summary.json; ``resolved``: the text of scenario.resolved.yaml; ``curves``: curves.json of the same
    scenario, for simulated points; ``file``: names ``resolved`` in errors, and its folder is where paths start.
    Raises InputError for a scenario that doesn't resolve any more: its calibration profile is gone, say.
    """
    scene = read_scene(summary, resolved, curves, file)
    if scene is None:
        return None
    left_out = dict(_left_out(scene))
    shown = [name for name in NAMES if name not in left_out]
    if not shown:
        return None
    every = every_slider(scene, origins(resolved))
    moving = felt(every, scene, set(shown))
    longest = int(next(one.high for one in every if one.key == "context"))
    rest = {one.key: one.value for one in every}
    return Widget(
        "sliders",
        _finding(scene, rest),
        {
            "scenario": summary["scenario"],
            "rest": rest,
            "sliders": [one.as_data() for one in moving],
            "forms": scene.forms.as_data((scene.step_sequences, scene.speedup_sequences), longest),
            "charts": [_chart(scene, name) for name in shown],
            "left_out": [[_TITLES[name], reason] for name, reason in left_out.items()],
            "notes": list(_notes(scene)),
            "given": [list(row) for row in _given(scene)],
            "hits_of": "reads" if scene.setting.kind in ("sparse", "replay") else "prompt tokens",
            "prompt_tokens": scene.setting.lengths.prompt_tokens,
        },
        [_instead(scene, rest, shown)],
    )


def _left_out(scene: Scene) -> Iterator[tuple[str, str]]:
    """Yield the charts without a meaning here, and why: as curves are left out."""
    for name in NAMES:
        curve = "t_avg" if name == "t_step" else name
        reason = None if name == "t_step" else KINDS[curve].why_not(scene.setting)
        if name == "concurrency" and reason is None and scene.setting.shares_budget:
            reason = _BUDGET
        if name == "lambda" and reason is None and curve not in scene.curves:
            reason = scene.left_out.get(curve, _UNSIMULATED)
        if reason is not None:
            yield name, reason


def _chart(scene: Scene, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "key": name,
        "title": _TITLES[name],
        "points": curve_points(scene, name),
        "run": run_point(scene, name),
        "apart": _apart(scene, name),
    }
    if name == "t_step":
        found["sequences"] = scene.step_sequences
    if name == "speedup":
        found["sequences"] = scene.speedup_sequences
    if name == "lambda":
        found["levels"] = level_lines(scene)
    return found


def _apart(scene: Scene, name: str) -> list[str]:
    """Return why simulated points aren't on the line, as the curve says it: of T_avg what its step doesn't tell."""
    curve = "t_avg" if name == "t_step" else name
    if curve not in scene.curves or name == "lambda":
        return []
    parts = list(scene.curves[curve]["parts"])
    return {"t_avg": parts[:-1], "t_step": parts[-1:]}.get(name, parts)


def _notes(scene: Scene) -> Iterator[str]:
    """Yield what is assumed, and what the scenario gives no meaning to."""
    if scene.what_if:
        yield (
            "A what-if: the scenario keeps all KV of running sequences in VRAM. With p below 1 they keep that share, "
            "attention reads every block in every step, and the rest streams from DRAM. Engines such as vLLM can't "
            "do that."
        )
        if scene.config.engine.side is not None:
            yield "The model has windows or states, whose KV can't be split in a simulation yet: lines have no points."
    if scene.setting.inline:
        yield "The machine is abstract: its VRAM takes no time that is known, and T_c is a constant."
    if scene.setting.kind == "replay":
        yield "What attention reads is a log's: T_t is the simulated one, scaled by misses and bandwidth."
    elif scene.forms.knots is not None:
        known = len(scene.forms.knots) - 2
        yield (
            "Under sparse access residency is earned: no formula gives p_hit at a p. It is read along straight lines "
            f"through {_simulated(known)}, p_hit = 0 at p = 0 and 1 at p = 1; context doesn't move it."
        )
    if scene.forms.piece.ssd_s:
        yield "Some misses come from SSD: what they spend there is taken from the run."


def _simulated(count: int) -> str:
    return f"{count} simulated point{'s' if count != 1 else ''}"


def _given(scene: Scene) -> Iterator[tuple[str, str]]:
    """Yield what the closed forms are made of, and nobody moves."""
    forms, engine = scene.forms, scene.config.engine
    alpha = kv_bytes_of_token(scene.setting.resolved)
    yield "KV of a token, α", f"{data(alpha)}{_linear_from(scene)}"
    yield "Room for KV, M_VRAM - M_model", f"{data(forms.free_bytes)}: {engine.num_gpu_blocks:,} blocks a replica"
    budget = scene.setting.resolved.budget
    weights = next((-size for name, size, _ in budget.lines if name == "weights"), None) if budget is not None else None
    if weights is not None:
        yield "Weights, one GPU", data(weights)
    yield "T_vram, a block in one layer", f"{seconds(forms.piece.vram_s)} for {data(forms.piece.size_bytes)}"
    if forms.piece.start_s:
        yield "Start of a transfer", seconds(forms.piece.start_s)
    if forms.reads.most_tokens is not None:
        yield "A step reads of a sequence", f"{forms.reads.most_tokens:,} tokens at most"
    yield "Seats, max_num_seqs", f"{engine.max_num_seqs:,}"


def _linear_from(scene: Scene) -> str:
    side = scene.config.engine.side
    if side is None:
        return ", at any length"
    windows = [one.block_tokens * one.decoding for one in side.windows]
    beside = data(side.decoding(scene.config.engine.max_model_len) * scene.config.engine.block_bytes)
    start = f"from {max(windows):,} tokens on" if windows else "at any length"
    return f" {start}, beside {beside} of windows and states"


def _finding(scene: Scene, at: Mapping[str, float]) -> str:
    compute_s, transfer_s = _times(scene, at, scene.speedup_sequences)
    if transfer_s == 0:
        return "What p, β, λ, context and bandwidth do: move them, and the closed forms follow"
    most = speedup_bounds(compute_s, transfer_s)
    bound = "all of a transfer hidden" if most.binding == "article" else "a step is too short to hide a whole transfer"
    what_if = "If p were" if scene.what_if else "At p ="
    return f"{what_if} {at['p']:.2g}, overlap could make a decode step {digits(most.value)} times as fast: {bound}"


def _times(scene: Scene, at: Mapping[str, float], sequences: int) -> tuple[float, float]:
    forms, tokens = scene.forms, int(at["context"])
    compute_s = forms.compute_s(sequences, tokens)
    return compute_s, forms.transfer_s(sequences, forms.p_hit(at["p"]), tokens, at["bandwidth"])


def _instead(scene: Scene, at: Mapping[str, float], shown: list[str]) -> Table:
    rows = [row for name in shown if name in _ROWS for row in _ROWS[name](scene, at)]
    heads = ("Closed form", "With the scenario's figures", "Value")
    caption = f"Closed forms at p = {digits(at['p'])} and β = {digits(at['beta'])}"
    return Table(heads, rows, "closed-forms", caption, frozenset({2}))


_Row = tuple[Cell, Cell, Cell]


def _sequences(count: int) -> str:
    return f"{count:,} sequence{'s' if count != 1 else ''}"


def _row(form: str, figures: str, text: str, value: float) -> _Row:
    return Cell(form), Cell(figures), Cell(text, value)


def _t_avg_rows(scene: Scene, at: Mapping[str, float]) -> Iterator[_Row]:
    forms, rate = scene.forms, at["bandwidth"]
    p_hit, memory_s = forms.p_hit(at["p"]), forms.memory_s(rate)
    access_s = forms.access_s(p_hit, rate)
    figures = f"{digits(p_hit)} × {seconds(forms.piece.vram_s)} + {digits(1 - p_hit)} × {seconds(memory_s)}"
    yield _row("T_avg = p_hit T_vram + (1 - p_hit) T_mem", figures, seconds(access_s), access_s)


def _t_step_rows(scene: Scene, at: Mapping[str, float]) -> Iterator[_Row]:
    compute_s, transfer_s = _times(scene, at, scene.step_sequences)
    serial_s, ideal_s = step_serial(compute_s, transfer_s), step_ideal(compute_s, transfer_s)
    times = f"{seconds(compute_s)}, {seconds(transfer_s)}; {_sequences(scene.step_sequences)}"
    yield _row("T_step on demand = T_c + T_t", times, seconds(serial_s), serial_s)
    yield _row("T_step overlapped = max(T_c, T_t)", times, seconds(ideal_s), ideal_s)


def _speedup_rows(scene: Scene, at: Mapping[str, float]) -> Iterator[_Row]:
    compute_s, transfer_s = _times(scene, at, scene.speedup_sequences)
    most, bounds = feasible_beta(compute_s, transfer_s), speedup_bounds(compute_s, transfer_s)
    beta = min(at["beta"], most)
    times = f"T_c {seconds(compute_s)}, T_t {seconds(transfer_s)}; {_sequences(scene.speedup_sequences)}"
    gained = speedup(compute_s, transfer_s, beta)
    yield _row("S = (T_c + T_t) / (T_c + (1 - β) T_t)", f"{times}, β {digits(beta)}", digits(gained), gained)
    yield _row("β at most min(1, T_c / T_t)", times, digits(most), most)
    yield _row(f"S at most: {_BINDING[bounds.binding]} binds", times, digits(bounds.value), bounds.value)
    yield _row("S_max = 1 + T_t / T_c, the article's bound", times, digits(bounds.article), bounds.article)


def _concurrency_rows(scene: Scene, at: Mapping[str, float]) -> Iterator[_Row]:
    forms, tokens = scene.forms, int(at["context"])
    fits, size = forms.c_max(at["p"], tokens), forms.sequence_bytes(tokens)
    figures = f"{data(forms.free_bytes)} / ({digits(at['p'])} × {data(size)})"
    yield _row("C_max = floor((M_VRAM - M_model) / (p S_seq))", figures, f"{fits:,}", fits)


_ROWS = {
    "t_avg": _t_avg_rows,
    "t_step": _t_step_rows,
    "speedup": _speedup_rows,
    "concurrency": _concurrency_rows,
}
