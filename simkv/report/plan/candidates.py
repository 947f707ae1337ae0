"""The candidates of a plan: cost against latency with the front, all of them as a table, and what wasn't simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from simkv.planner import words
from simkv.planner.slo import SERVED, STATIONARY
from simkv.planner.why import spoken
from simkv.plots import plan as plots
from simkv.report.document import Block, Cell, Data, Details, Figure, Table, Text, Tone
from simkv.report.run.shown import cell
from simkv.report.telling import thinned
from simkv.results.quantity import MISSING, count, digits, seconds

Row = Mapping[str, Any]

_FEW = 12
_TOLD = 12
_FEWEST = 2
_BINDING = {STATIONARY: "the queue grows", SERVED: "requests are turned away"}


def candidates(answer: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the picture, the best few, all, and what was pruned or left out with the reasons."""
    rows = words.best_first(answer)
    if len(plots.drawn(answer)) >= _FEWEST:
        yield _figure(answer)
    if rows:
        few = len(rows) > _FEW
        caption = f"The best {_FEW} of {count(len(rows))}" if few else ""
        yield _table(answer, rows[:_FEW], "" if few else "candidates", caption)
        yield Text(_key(answer))
        if few:
            yield Details(f"All {count(len(rows))} candidates", [_table(answer, rows, "candidates", "")])
    else:
        yield Text("No candidate was simulated.")
    yield from _not_simulated(answer)


def _figure(answer: Mapping[str, Any]) -> Figure:
    target, limit_s = next(iter(answer["slo"]["limits"].items()))
    rows = plots.drawn(answer)
    front = [row for row in rows if row["name"] in answer["pareto_names"]]
    per = "per million output tokens" if rows[0]["cost_per_million_output_tokens"] is not None else "an hour"
    cost = f"{answer['currency'] or 'cost'} {per}"
    return Figure(
        name="plan-pareto",
        finding=_finding(answer, rows, front, cost),
        draw=partial(plots.front, answer),
        data=Data(
            ["candidate", "unit", "units", cost, f"{target} (s)", "load of a unit", "on the front"],
            [[row["name"], row["unit"]["name"], row["units"], plots.cost_of(row), row["latency"][target],
              row["carries"]["load"], row["name"] in answer["pareto_names"]] for row in rows],
        ),
        alt=_alt(answer, rows, target, cost, limit_s),
        note="Candidates that failed to hold the SLO when they were confirmed aren't drawn. The front counts cost, "
        "latency and what a unit carries.",
    )  # fmt: skip


def _finding(answer: Mapping[str, Any], rows: Sequence[Row], front: Sequence[Row], cost: str) -> str:
    winner = answer["winner"]
    beaten = f"{count(len(front))} of {count(len(rows))} candidates are beaten by none in cost, latency and load"
    if winner is None:
        return f"Nothing holds the SLO; {beaten}"
    price = plots.cost_of(winner)
    amount = f" at {price:.2f} {cost}" if price is not None else ""
    return f"{winner['units']} x {winner['name']} is best{amount}; {beaten}"


def _alt(answer: Mapping[str, Any], rows: Sequence[Row], target: str, cost: str, limit_s: float) -> str:
    some = thinned(rows, _TOLD)
    told = "; ".join(
        f"{row['units']} x {row['name']} {plots.cost_of(row):.2f} and {seconds(row['latency'][target])}" for row in some
    )
    of = f" ({len(some)} of {count(len(rows))} candidates)" if len(some) < len(rows) else ""
    return (
        f"{spoken(target)} at the planned load over {cost}, a mark a candidate, the SLO at {seconds(limit_s)} as a "
        f"line, the winner ringed{of}: {told}."
    )


def _key(answer: Mapping[str, Any]) -> str:
    return (
        f"Refuted: doesn't hold with {words.held_to(answer)}. Latencies of those confirmed are over several seeds, all "
        "units together; others of one unit with its share. Bound: no unit of it can carry more, by closed forms."
    )


def _table(answer: Mapping[str, Any], rows: Sequence[Row], name: str, caption: str) -> Table:
    targets = list(answer["slo"]["limits"])
    currency = answer["currency"] or "price"
    heads = ["candidate", "state", "units", "GPUs", f"{currency}/h", f"{currency}/M output tokens", "carries",
             "bound", "binds", *(spoken(key) for key in targets), "bottleneck"]  # fmt: skip
    cells = [
        [
            Cell(row["name"]), _state(row, answer), cell(row["units"], str), cell(row["gpus"], str),
            cell(row["cost_per_hour"], words.money), cell(row["cost_per_million_output_tokens"], words.money),
            _times(row["carries"]["load"]), _times(row["carries"]["at_most"]), _binds(row["carries"]["binds"]),
            *(_latency(row["latency"].get(key), answer["slo"]["limits"][key]) for key in targets),
            Cell(row["carries"]["bottleneck"] or MISSING),
        ]
        for row in rows
    ]  # fmt: skip
    left = {0, 1, 8, len(heads) - 1}
    return Table(heads, cells, name, caption, frozenset(k for k in range(len(heads)) if k not in left))


def _state(row: Row, answer: Mapping[str, Any]) -> Cell:
    winner = answer["winner"]
    front = ", on the front" if row["name"] in answer["pareto_names"] else ""
    tone: Tone = "plain"
    if winner is not None and row["name"] == winner["name"]:
        text, tone = "winner", "good"
    elif row["confirmed"] is None:
        text = "simulated"
    else:
        text, tone = ("refuted", "bad") if words.refuted(row) else ("confirmed", "plain")
        text = f"{text}: {_missed(row['confirmed'])}" if words.refuted(row) else text
    return Cell(f"{text}{front}", tone=tone)


def _missed(confirmed: Mapping[str, Any]) -> str:
    """Return what a candidate that was confirmed in vain misses."""
    for targets, when in ((confirmed["targets"], ""), (confirmed["without_headroom"], " with the headroom used up")):
        over = [
            f"{spoken(key)} {words.with_interval(one)} of {seconds(one['limit'])}"
            for key, one in targets.items()
            if one["limit"] is not None and one["mean"] > one["limit"]
        ]
        if over:
            return f"{', '.join(over)}{when}"
    return "its queue grows, or requests are turned away"


def _binds(target: str | None) -> Cell:
    return Cell(MISSING) if not target else Cell(_BINDING.get(target) or spoken(target), target)


def _latency(value_s: float | None, limit_s: float) -> Cell:
    if value_s is None:
        return Cell(MISSING)
    return Cell(seconds(value_s), value_s, "bad" if value_s > limit_s else "plain")


def _times(value: float | None) -> Cell:
    return cell(value, lambda one: f"{digits(one)} x")


def _not_simulated(answer: Mapping[str, Any]) -> Iterator[Block]:
    """Yield what wasn't simulated, reason by reason."""
    rows = [(what, row) for key, what in (("pruned", "pruned by a bound"), ("left_out", "left out"))
            for row in answer[key]]  # fmt: skip
    if not rows:
        return
    reasons = words.by_reason([row for _, row in rows])
    counts = [f"{count(len(answer[key]))} {what}" for key, what in (("pruned", "pruned by a bound"),
              ("left_out", "left out")) if answer[key]]  # fmt: skip
    told = " ".join(f"{words.some(names)}: {reason}." for reason, names in reasons.items())
    cells = [[Cell(row["name"]), Cell(what), _times(row.get("at_most")), Cell(row["reason"])] for what, row in rows]
    table = Table(["combination", "state", "bound", "reason"], cells, "not-simulated", right=frozenset({2}))
    yield Details(f"What wasn't simulated: {' and '.join(counts)}", [Text(told), table])
