"""S(beta): what overlapping transfer with computation gives, and what it can't exceed (formulas/overlap)."""

from __future__ import annotations

from simkv.calc.answer import Answer, Line, shown
from simkv.errors import InputError, Problem
from simkv.formulas import overlap
from simkv.formulas.transfer import transfer_s as moving_s


def speedup(
    compute_s: float, transfer_s: float, beta: float | None = None, layers: int | None = None, moved: str = ""
) -> Answer:
    """Return the speedup by hiding a share ``beta`` of the transfer (None: the largest that can be hidden).

    ``moved``: what the transfer is of. Raises InputError for a beta outside 0..1, or times that are both zero.
    """
    if compute_s + transfer_s <= 0:
        raise InputError(Problem("nothing is computed and nothing moved", "give a time above zero", path="compute"))
    most = overlap.feasible_beta(compute_s, transfer_s)
    asked = most if beta is None else beta
    what_if, used = overlap.speedup(compute_s, transfer_s, asked), min(asked, most)
    bounds = overlap.speedup_bounds(compute_s, transfer_s)
    inputs = [
        Line("compute_s", compute_s, "T_c, compute", "time"),
        Line("transfer_s", transfer_s, "T_t, transfer", "time", moved),
        Line("beta", asked, "beta, hidden share of T_t", "fraction", "" if beta is not None else "the largest"),
    ]
    steps = [
        Line("beta_max", most, "min(1, T_c / T_t)", "fraction", "the most that one step's compute hides"),
        Line("beta_feasible", used, "beta inside one step", "fraction"),
        Line("what_if", what_if, "S at the beta given", "number", _reach(asked, most)),
        Line("s_max_article", bounds.article, "1 + T_t / T_c", "number", "the article's bound: all of T_t hidden"),
        Line("s_max_overlap", bounds.overlap, "(T_c + T_t) / max(T_c, T_t)", "number", "bound inside one step"),
        Line("binding", bounds.binding, "which bound binds", "text", _binding(bounds.binding)),
        *_step_times(compute_s, transfer_s, used),
    ]
    if layers is not None:
        inputs.append(Line("layers", layers, "layers", "count"))
        pipelined_s = overlap.step_pipelined(compute_s, transfer_s, layers)
        bubble_s = overlap.fill_bubble(compute_s, transfer_s, layers)
        filled = f"and the fill bubble min(T_c, T_t) / L, {shown(bubble_s, 'time')}"
        steps.append(Line("t_step_pipelined_s", pipelined_s, "T_step, layer by layer", "time", filled))
    result = Line("speedup", overlap.speedup(compute_s, transfer_s, used), "S against no overlap", "number")
    warnings = []
    if asked > most:
        warnings.append(f"beta {asked:g} can't be reached inside one step: min(1, T_c / T_t) is {most:g}, and is used")
    formula = "S = (T_c + T_t) / (T_c + (1 - beta) T_t),  beta <= min(1, T_c / T_t)"
    return Answer("Speedup by overlap", formula, inputs, steps, [result], warnings=warnings)


def moving(size_bytes: float, bytes_per_s: float) -> tuple[float, str]:
    """Return what moving ``size_bytes`` takes (s), and a remark that says so."""
    return moving_s(size_bytes, bytes_per_s), f"{shown(size_bytes, 'size')} over {shown(bytes_per_s, 'rate')}"


def _reach(asked: float, most: float) -> str:
    return "" if asked <= most else "a what-if: only hiding behind other steps could give it"


def _binding(name: str) -> str:
    return "T_t <= T_c: the two are equal" if name == "article" else "T_t > T_c: one step can't hide all of T_t"


def _step_times(compute_s: float, transfer_s: float, beta: float) -> list[Line]:
    return [
        Line("t_step_none_s", overlap.step_serial(compute_s, transfer_s), "T_step, no overlap", "time", "T_c + T_t"),
        Line("t_step_s", compute_s + (1 - beta) * transfer_s, "T_step at that beta", "time", "T_c + (1 - beta) T_t"),
        Line(
            "t_step_ideal_s", overlap.step_ideal(compute_s, transfer_s), "T_step, ideal overlap", "time",
            "max(T_c, T_t)",
        ),
    ]  # fmt: skip
