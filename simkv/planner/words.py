"""What a plan's answer says in sentences, for whoever shows it: the winner, how it does, what was left out, the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simkv.planner.objective import FOR_LOAD
from simkv.results.quantity import MISSING, count, digits, seconds, share


def headline(answer: Mapping[str, Any]) -> str:
    """Return what to take, and what it costs; empty where nothing will do."""
    winner = answer["winner"]
    if winner is None:
        return ""
    gpus = "1 GPU" if winner["gpus"] == 1 else f"{winner['gpus']} GPUs"
    parts = [f"Take {winner['units']} x {winner['name']} ({gpus})"]
    if winner["cost_per_hour"] is not None:
        parts.append(f"{winner['cost_per_hour']:.2f} {answer['currency']} an hour")
    if winner["cost_per_million_output_tokens"] is not None:
        parts.append(f"{winner['cost_per_million_output_tokens']:.2f} {answer['currency']} per million output tokens")
    return f"{': '.join([parts[0], ', '.join(parts[1:])]) if parts[1:] else parts[0]}."


def holds(winner: Mapping[str, Any]) -> str:
    """Return how the winner does at the planned load, over several seeds."""
    confirmed = winner["confirmed"]
    targets = [
        f"{spaced(key)} {with_interval(one)} of {seconds(one['limit'])}" for key, one in confirmed["targets"].items()
    ]
    carried = f"One unit carries {digits(winner['carries']['load'])} times the scenario's load"
    rate = winner["carries"]["requests_per_s"]
    carried += f" ({digits(rate)} requests/s)" if rate is not None else ""
    surely = "" if confirmed["surely"] else " The interval reaches beyond a limit: more seeds or headroom would tell."
    return f"At the planned load: {', '.join(targets)} ({confirmed['seeds']} seeds). {carried}.{surely}"


def with_interval(one: Mapping[str, Any]) -> str:
    """Return an estimate of a time with its interval, relative."""
    if one["ci95"] is None or not one["mean"]:
        return seconds(one["mean"])
    return f"{seconds(one['mean'])} ± {share((one['ci95'][1] - one['mean']) / one['mean'])}"


def spaced(name: str) -> str:
    """``ttft_p95`` to ``ttft p95``."""
    return name.replace("_", " ")


def money(value: float | None) -> str:
    """Return an amount without its currency."""
    return MISSING if value is None else f"{value:.2f}"


def best_first(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the candidates: the winner, its runners-up, all others."""
    first = answer["winner"]["name"] if answer["winner"] is not None else ""
    places = {name: k for k, name in enumerate([first, *(row["name"] for row in answer["runners_up"])])}
    return sorted(answer["candidates"], key=lambda row: places.get(row["name"], len(places)))


def of_seeds(row: Mapping[str, Any]) -> bool:
    """Say whether a candidate's latencies are of several seeds."""
    return row["confirmed"] is not None and bool(row["confirmed"]["targets"])


def refuted(row: Mapping[str, Any]) -> bool:
    """Say whether a candidate was confirmed in vain."""
    return row["confirmed"] is not None and not row["confirmed"]["holds"]


def held_to(answer: Mapping[str, Any]) -> str:
    """Say with what candidates are confirmed: plans for the most are at their planned load alone."""
    return "several seeds" + (" and the headroom used up" if answer["objective"] in FOR_LOAD else "")


def by_reason(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the names of what wasn't simulated, by the reason."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        reasons.setdefault(row["reason"], []).append(row["name"])
    return reasons


def some(names: Sequence[str]) -> str:
    """Return the first of ``names``, and how many more there are."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def fitted(found: Mapping[str, Any]) -> str:
    """Return what the machine was fitted to, and how near it comes; ``found``: ``observed`` of the answer."""
    values = "; ".join(
        f"{one['figure']} {digits(one['value'])}{_unit(one)} (catalogue {digits(one['catalogue'])})"
        for one in found["fitted"]
    )
    errors = f"root mean square error {share(found['error']['before'])} before, {share(found['error']['after'])} after"
    return f"Fitted to {found['file']} ({found['requests']} requests): {values}; {errors}."


def _unit(one: Mapping[str, Any]) -> str:
    return "" if one["unit"] in ("", "1") else f" {one['unit']}"


def figure(name: str, value: float) -> str:
    """Return a measured figure; its name tells times from counts."""
    return seconds(value) if "_s." in name else count(value)


def prices(answer: Mapping[str, Any]) -> list[str]:
    """Return what an hour of each unit costs, with the date."""
    return list(dict.fromkeys(
        f"{row['unit']['name']} {row['price']['hour']:.2f} {row['price']['currency']}/h"
        + (f", {row['price']['date']}" if row["price"]["date"] else "")
        for row in answer["candidates"] if row["price"] is not None
    ))  # fmt: skip


def effort(answer: Mapping[str, Any]) -> str:
    """Return on how many runs the answer rests."""
    return (
        f"{answer['runs']} runs with warm tiers, the best confirmed with several seeds; {share(answer['headroom'])} of "
        "what a unit carries is kept free."
    )
