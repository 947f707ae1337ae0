"""How ``simkv plan`` shows its answer: the winner in a sentence, why, the table, what would move it, the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import Any

from simkv.cli.guard import printable
from simkv.cli.table import table
from simkv.planner import words
from simkv.planner.answer import PlanResult
from simkv.results.quantity import MISSING, change, digits, seconds

_ROWS = 12
_REASONS = 6
_WIDEST = 100
_BAR = 20


def render(result: PlanResult, folder: Path, names: Sequence[str], width: int) -> str:
    """Return the answer as text."""
    answer, width = result.answer, min(width, _WIDEST)
    blocks = [
        _title(answer),
        *_paragraphs(_headline(answer), width),
        *_paragraphs(" ".join(answer["why"]), width),
        *_observed(answer, width),
        _candidates(answer),
        *_not_simulated(answer, width),
        *_sensitivity(answer, width),
        *_verdict(answer, width),
        *_flags(answer, width),
        *_paragraphs(_how(answer), width),
        "\n".join(_wrapped(f"Files: {folder}/ ({', '.join(names)})", width)),
    ]
    return "\n\n".join(block for block in blocks if block)


def _title(answer: Mapping[str, Any]) -> str:
    return printable(f"{answer['scenario']}: {answer['question'] or 'what is best?'}")


def _headline(answer: Mapping[str, Any]) -> str:
    return f"{words.headline(answer)} {words.holds(answer['winner'])}" if answer["winner"] is not None else ""


def _observed(answer: Mapping[str, Any], width: int) -> Iterator[str]:
    """Say what the machine was fitted to, and how near it comes."""
    found = answer["observed"]
    if found is None:
        return
    yield "\n".join(_wrapped(words.fitted(found), width))
    rows = [
        (one["figure"], words.figure(one["figure"], one["observed"]), words.figure(one["figure"], one["before"]),
         change(one["error_before"]), words.figure(one["figure"], one["after"]), change(one["error_after"]))
        for one in found["residuals"]
    ]  # fmt: skip
    yield table(("measured", "is", "before", "error", "fitted", "error"), rows, right=(1, 2, 3, 4, 5))
    yield from ("\n".join(_wrapped(f"Note: {note}", width)) for note in found["notes"])


def _candidates(answer: Mapping[str, Any]) -> str:
    """Return the best candidates as a table; the winner has a mark, the Pareto front another."""
    targets = list(answer["slo"]["limits"])
    per = f"{answer['currency'] or ''}/M tokens"
    head = ("", "candidate", "units", f"{answer['currency'] or 'price'}/h", per, "carries", "binds", *targets)
    winner = answer["winner"]["name"] if answer["winner"] is not None else ""
    rows = [
        (
            _mark(row, winner, answer["pareto_names"]), printable(row["name"]),
            MISSING if row["units"] is None else str(row["units"]), words.money(row["cost_per_hour"]),
            words.money(row["cost_per_million_output_tokens"]), f"{digits(row['carries']['load'])} x",
            words.spaced(row["carries"]["binds"] or MISSING),
            *(seconds(row["latency"].get(key)) + (" *" if words.of_seeds(row) else "") for key in targets),
        )
        for row in words.best_first(answer)[:_ROWS]
    ]  # fmt: skip
    more = len(answer["candidates"]) - len(rows)
    end = f"\n... and {more} more in candidates.csv" if more > 0 else ""
    said = (
        f"> winner; x: doesn't hold with {words.held_to(answer)}; p: on the Pareto front (cost,\n"
        "  latency, load of a unit); *: over several seeds, all units together"
    )
    return f"{table(head, rows, right=(2, 3, 4, 5, *range(7, 7 + len(targets))))}{end}\n{said}"


def _mark(row: Mapping[str, Any], winner: str, front: Sequence[str]) -> str:
    return (">" if row["name"] == winner else "x" if words.refuted(row) else " ") + (
        "p" if row["name"] in front else ""
    )


def _not_simulated(answer: Mapping[str, Any], width: int) -> Iterator[str]:
    """Say what wasn't simulated, reason by reason."""
    for key, what in (("pruned", "pruned by a bound"), ("left_out", "left out")):
        rows = answer[key]
        if not rows:
            continue
        reasons = words.by_reason(rows)
        lines = [f"{len(rows)} combinations were {what}:" if len(rows) > 1 else f"1 combination was {what}:"]
        for reason, names in list(reasons.items())[:_REASONS]:
            lines += [f"  {line}" for line in _wrapped(f"{words.some(names)}: {reason}", width - 2)]
        if len(reasons) > _REASONS:
            lines.append(f"  and {len(reasons) - _REASONS} other reasons in candidates.csv")
        yield "\n".join(lines)


def _sensitivity(answer: Mapping[str, Any], width: int) -> Iterator[str]:
    found = answer["sensitivity"]
    if not found:
        return
    most = max([abs(one["load_change"] or 0.0) for one in found.values()] + [0.01])
    rows = []
    for name, one in found.items():
        moved = one["load_change"]
        if moved is None:
            continue
        bar = "█" * ceil(_BAR * abs(moved) / most) if one["measurable"] else ""
        said = f"{change(moved)} ± {100 * (one['doubt'] or 0.0):.1f} %"
        felt = [f"{k.removesuffix('_change').replace('_', ' ')} {change(one[k])}" for k in
                ("ttft_p95_change", "tpot_p95_change") if one.get(k) is not None]  # fmt: skip
        rows.append((f"+10 % {name.replace('_', ' ')}", said, bar, ", ".join(felt)))
    yield (
        "What 10 % more of a resource buys the winner (load that holds the SLO; latency at the planned load):\n"
        + table(("", "load", "", ""), rows).split("\n", 2)[2]
    )
    absent = [one["because"] for one in found.values() if one["load_change"] is None]
    if absent:
        yield "\n".join(_wrapped(" ".join(dict.fromkeys(absent)), width))


def _verdict(answer: Mapping[str, Any], width: int) -> Iterator[str]:
    found = answer["verdict"]
    if found is None:
        return
    beside = [found[key] for key in ("break_even", "dram_knee", "ssd", "wear")]
    parts = [found["because"], *(part["because"] for part in beside if part is not None and part.get("because"))]
    yield "\n".join(_wrapped("Verdict: " + " ".join(parts), width))


def _flags(answer: Mapping[str, Any], width: int) -> Iterator[str]:
    for engine, missing in answer["engine_missing"].items():
        if missing:
            yield "\n".join(_wrapped(f"Flags of {engine} don't say: {'; '.join(missing)}", width))


def _how(answer: Mapping[str, Any]) -> str:
    prices = words.prices(answer)
    return words.effort(answer) + (f" Prices: {'; '.join(prices)}." if prices else "")


def _paragraphs(text: str, width: int) -> list[str]:
    return ["\n".join(_wrapped(text, width))] if text else []


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(printable(text), width, subsequent_indent="  ", break_on_hyphens=False)
