"""A verification as text."""

from __future__ import annotations

from collections.abc import Iterator

from simkv.profile.schema import Prediction, Verification, VerifiedRun

_COLUMNS = ("run", "figure", "measured", "predicted", "error", "repeats")


def verification_text(verification: Verification) -> str:
    """Return a table of measured beside predicted, and what it rests on."""
    rows = [row for run in verification.runs for row in _rows(run)]
    widths = [max(len(row[column]) for row in (_COLUMNS, *rows)) for column in range(len(_COLUMNS))]
    lines = ["Verification: a real decode beside the simulator's prediction", ""]
    for row in (_COLUMNS, *rows):
        names = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        lines.append("  ".join(names + numbers).rstrip())
    same = "bit-identical with and without offload" if verification.bit_identical else "NOT the same with offload"
    lines += [
        "",
        f"Attention outputs are {same}.",
        f"Transfers take {verification.transfer_over_compute:.2f} of the computation without prefetch; "
        f"{verification.note}.",
    ]
    return "\n".join(lines)


def _rows(run: VerifiedRun) -> Iterator[tuple[str, ...]]:
    first = run.name
    for label, figure, scale, unit in (
        ("T_step", run.t_step_s, 1e3, " ms"),
        ("T_compute", run.t_compute_s, 1e3, " ms"),
        ("T_transfer", run.t_transfer_s, 1e3, " ms"),
        ("p_hit", run.p_hit, 1.0, ""),
        ("β", run.beta, 1.0, ""),
        ("speedup", run.speedup, 1.0, "x"),
    ):
        if figure is None or (label == "T_transfer" and run.beta is None):
            continue
        yield first, label, *_cells(figure, label, scale, unit)
        first = ""


def _cells(figure: Prediction, label: str, scale: float, unit: str) -> tuple[str, ...]:
    digits = 4 if not unit else 2
    share = label in ("p_hit", "β")
    error = figure.predicted - figure.measured if share else figure.error
    shown = "" if error is None else f"{error:+.4f}" if share else f"{error:+.1%}"
    spread = ""
    if len(figure.repeats) > 1:
        low, high = min(figure.repeats) * scale, max(figure.repeats) * scale
        spread = f"{low:.{digits}f} to {high:.{digits}f}"
    measured, predicted = figure.measured * scale, figure.predicted * scale
    return f"{measured:.{digits}f}{unit}", f"{predicted:.{digits}f}{unit}", shown, spread
