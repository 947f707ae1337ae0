"""How ``simkv curves`` says what it found: a table a curve, then what can be read off, and where the two part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

from simkv.cli.table import table
from simkv.results.quantity import count, digits, seconds

Row = Mapping[str, Any]

_WIDTH = 100
_MOST_ROWS = 20


class Column(NamedTuple):
    """One column of a curve's table."""

    head: str
    cell: Callable[[Row], str]


def render(answer: Mapping[str, Any], folder: Path) -> str:
    """Return ``answer`` (``curves.json``) as text; ``folder``: where the files are."""
    parts = ["\n".join([f"Curves of {answer['scenario']}", *(_wrapped(text, "- ") for text in answer["about"])])]
    parts += ["\n".join(_curve(name, curve)) for name, curve in answer["curves"].items()]
    parts += [_wrapped(f"No curve {name}: {reason}.", "") for name, reason in answer["left_out"].items()]
    parts.append(f"{', '.join(f'{name}.csv .png .svg' for name in answer['curves'])} and curves.json are in {folder}")
    return "\n\n".join(parts)


def _curve(name: str, curve: Row) -> Iterator[str]:
    yield _wrapped(f"{_HEADS[name]}: {curve['title']}.", "")
    yield ""
    columns, rows = _TABLES[name], _thinned(_ROWS[name](curve))
    cells = [[column.cell(row) for column in columns] for row in rows]
    yield table([column.head for column in columns], cells, right=range(1, len(columns)))
    for head, key in (("warning: ", "warnings"), ("", "reads"), ("", "parts"), ("", "about")):
        if curve[key]:
            yield ""
        for text in curve[key]:
            yield _wrapped(head + text, "- ")


def _wrapped(text: str, mark: str) -> str:
    return "\n".join(wrap(text, _WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark)))


def _thinned(rows: Sequence[Row]) -> list[Row]:
    """Return a selection of at most about 20 of ``rows``, the first and the last among them."""
    every = -(-len(rows) // _MOST_ROWS)
    kept = [row for k, row in enumerate(rows) if k % every == 0]
    return kept if not rows or kept[-1] is rows[-1] else [*kept, rows[-1]]


def _series(*names: str) -> Callable[[Row], list[Row]]:
    return lambda curve: [row for row in curve["rows"] if row["series"] in names]


def _by_residency(curve: Row) -> list[Row]:
    """Return the points of T_avg with the step of both schedules in one row."""
    ahead = {row["residency"]: row.get("step_ratio") for row in curve["rows"] if row["series"] == "prefetch"}
    points = [row for row in curve["rows"] if row["series"] == "on demand"]
    return [{**row, "ahead": ahead.get(row["residency"])} for row in points]


def _number(key: str, show: Callable[[float], str]) -> Callable[[Row], str]:
    """Return a cell of ``key`` with its interval, where there is one."""

    def cell(row: Row) -> str:
        value = row.get(key)
        if value is None:
            return "-"
        high, low = row.get(f"{key}_high"), row.get(f"{key}_low")
        if high is None or low is None or high == low:
            return show(value)
        return f"{show(value)} ± {show((high - low) / 2)}"

    return cell


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _thousandths(value: float) -> str:
    return f"{value:.3f}"


def _times(value: float) -> str:
    return f"{digits(value)} x"


def _share(value: float) -> str:
    return f"{value:g}"


def _name(row: Row) -> str:
    return str(row.get("name") or row["series"])


def _policy(row: Row) -> str:
    return f"λ = {row['lambda']:g}" if row["lambda"] is not None else str(row["series"])


_HEADS = {
    "t_avg": "T_avg over p_hit",
    "speedup": "Speedup over β",
    "concurrency": "Concurrency over p",
    "lambda": "Hit rate over λ",
}
_ROWS: Mapping[str, Callable[[Row], list[Row]]] = {
    "t_avg": _by_residency,
    "speedup": _series("given β", "schedule"),
    "concurrency": _series("simulated"),
    "lambda": _series("score", "lru", "lfu", "ceiling"),
}
_TABLES: Mapping[str, Sequence[Column]] = {
    "t_avg": (
        Column("p", _number("residency", _share)),
        Column("p_hit", _number("p_hit", _percent)),
        Column("T_avg, closed", _number("closed_t_avg_s", seconds)),
        Column("simulated", _number("t_avg_s", seconds)),
        Column("GPU waits", _number("exposed_s", seconds)),
        Column("step, T_c + T_t", _number("step_on_demand", _times)),
        Column("on demand", _number("step_ratio", _times)),
        Column("prefetch", _number("ahead", _times)),
    ),
    "speedup": (
        Column("", _name),
        Column("β", _number("beta", digits)),
        Column("speedup", _number("speedup", _thousandths)),
        Column("closed form", _number("closed", _thousandths)),
        Column("T_step", _number("t_step_s", seconds)),
    ),
    "concurrency": (
        Column("p", _number("residency", _share)),
        Column("C_max", _number("c_max", count)),
        Column("fits", _number("staged", count)),
        Column("at most", _number("running_max", count)),
        Column("mean", _number("running_mean", digits)),
        Column("tokens/s", _number("output_tokens_per_s", digits)),
        Column("closed form", _number("closed_tokens_per_s", digits)),
        Column("ITL p95", _number("itl_p95_s", seconds)),
        Column("T_step, closed", _number("closed_step_s", seconds)),
    ),
    "lambda": (Column("", _policy), Column("hit rate", _number("hit_rate", _percent))),
}
