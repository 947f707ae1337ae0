"""How ``simkv plan`` shows its answer: the winner in a sentence, why, the table, what would move it, the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import Any

from simkv.cli.guard import printable
from simkv.cli.table import table
from simkv.planner.answer import PlanResult
from simkv.planner.objective import FOR_LOAD
from simkv.results.quantity import MISSING, change, count, digits, seconds, share

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
    winner = answer["winner"]
    if winner is None:
        return ""
    gpus = "1 GPU" if winner["gpus"] == 1 else f"{winner['gpus']} GPUs"
    parts = [f"Take {winner['units']} x {winner['name']} ({gpus})"]
    if winner["cost_per_hour"] is not None:
        parts.append(f"{winner['cost_per_hour']:.2f} {answer['currency']} an hour")
    if winner["cost_per_million_output_tokens"] is not None:
        parts.append(f"{winner['cost_per_million_output_tokens']:.2f} {answer['currency']} per million output tokens")
    return f"{': '.join([parts[0], ', '.join(parts[1:])]) if parts[1:] else parts[0]}. {_holds(winner, answer)}"


def _holds(winner: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """Say how the winner does at the planned load, over several seeds."""
    confirmed = winner["confirmed"]
    targets = [
        f"{key.replace('_', ' ')} {_with_interval(one)} of {seconds(one['limit'])}"
        for key, one in confirmed["targets"].items()
    ]
    carried = f"One unit carries {digits(winner['carries']['load'])} times the scenario's load"
    rate = winner["carries"]["requests_per_s"]
    carried += f" ({digits(rate)} requests/s)" if rate is not None else ""
    surely = "" if confirmed["surely"] else " The interval reaches beyond a limit: more seeds or headroom would tell."
    return f"At the planned load: {', '.join(targets)} ({confirmed['seeds']} seeds). {carried}.{surely}"


def _with_interval(one: Mapping[str, Any]) -> str:
    if one["ci95"] is None or not one["mean"]:
        return seconds(one["mean"])
    return f"{seconds(one['mean'])} ± {share((one['ci95'][1] - one['mean']) / one['mean'])}"


def _observed(answer: Mapping[str, Any], width: int) -> Iterator[str]:
    """Say what the machine was fitted to, and how near it comes."""
    found = answer["observed"]
    if found is None:
        return
    fitted = "; ".join(
        f"{one['figure']} {digits(one['value'])}{_unit(one)} (catalogue {digits(one['catalogue'])})"
        for one in found["fitted"]
    )
    errors = f"root mean square error {share(found['error']['before'])} before, {share(found['error']['after'])} after"
    yield "\n".join(_wrapped(f"Fitted to {found['file']} ({found['requests']} requests): {fitted}; {errors}.", width))
    rows = [
        (one["figure"], _figure(one["figure"], one["observed"]), _figure(one["figure"], one["before"]),
         change(one["error_before"]), _figure(one["figure"], one["after"]), change(one["error_after"]))
        for one in found["residuals"]
    ]  # fmt: skip
    yield table(("measured", "is", "before", "error", "fitted", "error"), rows, right=(1, 2, 3, 4, 5))
    yield from ("\n".join(_wrapped(f"Note: {note}", width)) for note in found["notes"])


def _unit(one: Mapping[str, Any]) -> str:
    return "" if one["unit"] in ("", "1") else f" {one['unit']}"


def _figure(name: str, value: float) -> str:
    return seconds(value) if "_s." in name else count(value)


def _candidates(answer: Mapping[str, Any]) -> str:
    """Return the best candidates as a table; the winner has a mark, the Pareto front another."""
    targets = list(answer["slo"]["limits"])
    per = f"{answer['currency'] or ''}/M tokens"
    head = ("", "candidate", "units", f"{answer['currency'] or 'price'}/h", per, "carries", "binds", *targets)
    winner = answer["winner"]["name"] if answer["winner"] is not None else ""
    rows = [
        (
            _mark(row, winner, answer["pareto_names"]), printable(row["name"]),
            MISSING if row["units"] is None else str(row["units"]), _money(row["cost_per_hour"]),
            _money(row["cost_per_million_output_tokens"]), f"{digits(row['carries']['load'])} x",
            (row["carries"]["binds"] or MISSING).replace("_", " "),
            *(seconds(row["latency"].get(key)) + (" *" if _of_seeds(row) else "") for key in targets),
        )
        for row in _best_first(answer, winner)[:_ROWS]
    ]  # fmt: skip
    more = len(answer["candidates"]) - len(rows)
    end = f"\n... and {more} more in candidates.csv" if more > 0 else ""
    said = (
        f"> winner; x: doesn't hold with {_held_to(answer)}; p: on the Pareto front (cost,\n"
        "  latency, load of a unit); *: over several seeds, all units together"
    )
    return f"{table(head, rows, right=(2, 3, 4, 5, *range(7, 7 + len(targets))))}{end}\n{said}"


def _held_to(answer: Mapping[str, Any]) -> str:
    """Say with what candidates are confirmed: plans for the most are at their planned load alone."""
    return "several seeds" + (" and the headroom used up" if answer["objective"] in FOR_LOAD else "")


def _best_first(answer: Mapping[str, Any], winner: str) -> list[Mapping[str, Any]]:
    first = [row for row in answer["candidates"] if row["name"] == winner]
    runners = [row["name"] for row in answer["runners_up"]]
    next_ = sorted(
        (row for row in answer["candidates"] if row["name"] in runners), key=lambda r: runners.index(r["name"])
    )
    others = [row for row in answer["candidates"] if row["name"] != winner and row["name"] not in runners]
    return [*first, *next_, *others]


def _of_seeds(row: Mapping[str, Any]) -> bool:
    """Whether its latencies are of several seeds."""
    return row["confirmed"] is not None and bool(row["confirmed"]["targets"])


def _mark(row: Mapping[str, Any], winner: str, front: Sequence[str]) -> str:
    refuted = row["confirmed"] is not None and not row["confirmed"]["holds"]
    return (">" if row["name"] == winner else "x" if refuted else " ") + ("p" if row["name"] in front else "")


def _money(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


def _not_simulated(answer: Mapping[str, Any], width: int) -> Iterator[str]:
    """Say what wasn't simulated, reason by reason."""
    for key, what in (("pruned", "pruned by a bound"), ("left_out", "left out")):
        rows = answer[key]
        if not rows:
            continue
        reasons: dict[str, list[str]] = {}
        for row in rows:
            reasons.setdefault(row["reason"], []).append(row["name"])
        lines = [f"{len(rows)} combinations were {what}:" if len(rows) > 1 else f"1 combination was {what}:"]
        for reason, names in list(reasons.items())[:_REASONS]:
            of = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
            lines += [f"  {line}" for line in _wrapped(f"{of}: {reason}", width - 2)]
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
    prices = list(dict.fromkeys(
        f"{row['unit']['name']} {row['price']['hour']:.2f} {row['price']['currency']}/h"
        + (f", {row['price']['date']}" if row["price"]["date"] else "")
        for row in answer["candidates"] if row["price"] is not None
    ))  # fmt: skip
    priced = f" Prices: {'; '.join(prices)}." if prices else ""
    return (
        f"{answer['runs']} runs with warm tiers, the best confirmed with several seeds; {share(answer['headroom'])} of "
        f"what a unit carries is kept free.{priced}"
    )


def _paragraphs(text: str, width: int) -> list[str]:
    return ["\n".join(_wrapped(text, width))] if text else []


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(printable(text), width, subsequent_indent="  ", break_on_hyphens=False)
