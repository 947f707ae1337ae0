"""Hit rate over capacity, a line a policy, between Belady's bound and the ceiling."""

from __future__ import annotations

from typing import Any, BinaryIO

from simkv.plots.style import FAINT, INK, MARKERS, PALETTE, figure, label_side

_BOUND = "belady"


def hit_rate_over_capacity(answer: dict[str, Any], title: str, file: BinaryIO, form: str) -> None:
    """Draw ``answer`` (of ``simkv hitrate --json``) into ``file`` as ``form`` (png or svg)."""
    references = answer["references"]
    scale, unit = _scale(answer)
    with figure(title, file, form) as axes:
        axes.axhline(100 * answer["infinite_hit_rate"], color=FAINT, linestyle=(0, (1, 2)), label="ceiling (no limit)")
        _draw_bound(axes, answer, scale)
        _mark_knee(axes, answer, scale)
        curve = [p for p in answer["lru_curve"] if p["capacity_blocks"] * scale >= _lowest(answer) * scale / 4]
        for k, (names, rows) in enumerate(_lines(answer)):
            colour, where = PALETTE[k % len(PALETTE)], [row["capacity_blocks"] * scale for row in rows]
            if "lru" in names:
                axes.plot([p["capacity_blocks"] * scale for p in curve], [100 * p["hits"] / references for p in curve],
                          color=colour, linewidth=2.6, label=", ".join(names))  # fmt: skip
                continue
            axes.plot(where, [100 * row["hit_rate"] for row in rows], color=colour, marker=MARKERS[k % len(MARKERS)],
                      label=", ".join(names))  # fmt: skip
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel(f"Capacity ({unit}, logarithmic)")
        axes.set_ylabel("Hit rate (% of block references)")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        label_side(axes)


def _scale(answer: dict[str, Any]) -> tuple[float, str]:
    """Return what capacities in blocks are multiplied by, and the unit that they are shown in."""
    if answer["block_bytes"]:
        return answer["block_bytes"] / 2**30, f"GiB of KV of {answer['model']}"
    return 1.0, f"blocks of {answer['block_tokens']:,} tokens"


def _lines(answer: dict[str, Any]) -> list[tuple[list[str], list[dict[str, Any]]]]:
    """Return policies with their rows, those together that hit the same."""
    together: dict[tuple[int, ...], tuple[list[str], list[dict[str, Any]]]] = {}
    for name in dict.fromkeys(row["policy"] for row in answer["rows"] if row["policy"] != _BOUND):
        rows = [row for row in answer["rows"] if row["policy"] == name]
        together.setdefault(tuple(row["hits"] for row in rows), ([], rows))[0].append(name)
    return list(together.values())


def _lowest(answer: dict[str, Any]) -> float:
    return float(min(row["capacity_blocks"] for row in answer["rows"]))


def _draw_bound(axes: Any, answer: dict[str, Any], scale: float) -> None:
    rows = [row for row in answer["rows"] if row["policy"] == _BOUND]
    axes.plot([row["capacity_blocks"] * scale for row in rows], [100 * row["hit_rate"] for row in rows],
              color=INK, linestyle="--", linewidth=1.4, label="belady (bound)")  # fmt: skip


def _mark_knee(axes: Any, answer: dict[str, Any], scale: float) -> None:
    """Ring the place where LRU reaches most of the ceiling."""
    knee = answer["knee"]
    if not knee["hits"]:
        return
    axes.plot(
        knee["capacity_blocks"] * scale, 100 * knee["hits"] / answer["references"], color=INK, marker="o",
        markersize=9, fillstyle="none", linestyle="", label=f"lru at {knee['share_of_ceiling']:.0%} of it",
    )  # fmt: skip
