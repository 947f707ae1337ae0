"""The points of each curve as a table: which columns, what they are called, how they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from simkv.results.quantity import MISSING, count, digits, seconds

Row: TypeAlias = Mapping[str, Any]
"""A line of a curve's CSV, as ``curves.json`` has it."""

HEADS = {
    "t_avg": "T_avg over p_hit",
    "speedup": "Speedup over β",
    "concurrency": "Concurrency over p",
    "lambda": "Hit rate over λ",
}
"""What the curves are called."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a curve's table."""

    head: str
    key: str
    """In a row; empty: it names the row."""
    show: Callable[[float], str]
    name: Callable[[Row], str] | None = None

    def text(self, row: Row) -> str:
        """Return the cell as people read it, with its interval where there is one."""
        if self.name is not None:
            return self.name(row)
        value = row.get(self.key)
        if value is None:
            return MISSING
        high, low = row.get(f"{self.key}_high"), row.get(f"{self.key}_low")
        if high is None or low is None or high == low:
            return self.show(value)
        return f"{self.show(value)} ± {self.show((high - low) / 2)}"


def columns(name: str) -> Sequence[Column]:
    """Return the columns of the curve ``name``; the first says which point it is."""
    return _COLUMNS[name]


def points(name: str, curve: Row) -> list[Row]:
    """Return the simulated points of the curve ``name``, a row each."""
    rows: list[Row] = [row for row in curve["rows"] if row["series"] in _SERIES[name]]
    if name != "t_avg":
        return rows
    ahead = {row["residency"]: row.get("step_ratio") for row in curve["rows"] if row["series"] == "prefetch"}
    return [{**row, "ahead": ahead.get(row["residency"])} for row in rows]


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _thousandths(value: float) -> str:
    return f"{value:.3f}"


def _times(value: float) -> str:
    return f"{digits(value)} x"


def _share(value: float) -> str:
    return f"{value:g}"


def _named(row: Row) -> str:
    return str(row.get("name") or row["series"])


def _policy(row: Row) -> str:
    return f"λ = {row['lambda']:g}" if row["lambda"] is not None else str(row["series"])


_SERIES: Mapping[str, Sequence[str]] = {
    "t_avg": ("on demand",),
    "speedup": ("given β", "schedule"),
    "concurrency": ("simulated",),
    "lambda": ("score", "lru", "lfu", "ceiling"),
}
_COLUMNS: Mapping[str, Sequence[Column]] = {
    "t_avg": (
        Column("p", "residency", _share),
        Column("p_hit", "p_hit", _percent),
        Column("T_avg, closed", "closed_t_avg_s", seconds),
        Column("simulated", "t_avg_s", seconds),
        Column("GPU waits", "exposed_s", seconds),
        Column("step, T_c + T_t", "step_on_demand", _times),
        Column("on demand", "step_ratio", _times),
        Column("prefetch", "ahead", _times),
    ),
    "speedup": (
        Column("", "", str, _named),
        Column("β", "beta", digits),
        Column("speedup", "speedup", _thousandths),
        Column("closed form", "closed", _thousandths),
        Column("T_step", "t_step_s", seconds),
    ),
    "concurrency": (
        Column("p", "residency", _share),
        Column("C_max", "c_max", count),
        Column("fits", "staged", count),
        Column("at most", "running_max", count),
        Column("mean", "running_mean", digits),
        Column("tokens/s", "output_tokens_per_s", digits),
        Column("closed form", "closed_tokens_per_s", digits),
        Column("ITL p95", "itl_p95_s", seconds),
        Column("T_step, closed", "closed_step_s", seconds),
    ),
    "lambda": (Column("", "", str, _policy), Column("hit rate", "hit_rate", _percent)),
}
