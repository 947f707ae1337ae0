"""What a plan was asked: the objective, the SLO, the load, what may be chosen, and at which prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simkv.planner import words
from simkv.planner.why import spoken
from simkv.report.document import Block, Facts, Text
from simkv.results.quantity import count, digits, seconds, share

_OBJECTIVES = {
    "cost": "the least money for the scenario's load",
    "gpus": "the fewest GPUs for the scenario's load",
    "goodput": "the most requests within the SLO",
    "users": "the most users",
}
_NAMED = 8


def question(answer: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the question in its own words, and what it means in figures."""
    if answer["question"]:
        yield Text(str(answer["question"]))
    limits = ", ".join(f"{spoken(key)} at most {seconds(limit)}" for key, limit in answer["slo"]["limits"].items())
    rows = [("Wanted", _OBJECTIVES.get(answer["objective"], str(answer["objective"]))), ("Must hold", limits)]
    rows += [("Load", _load(answer["load"])), ("Kept free", f"{share(answer['headroom'])} of what a unit carries")]
    if answer["budget"] is not None:
        rows.append(("Budget", f"{answer['budget']:g} {answer['currency'] or ''} an hour".replace("  ", " ")))
    rows += [("May be chosen", text) for text in [_choices(answer)] if text]
    rows += [("Prices", "; ".join(words.prices(answer)))] if words.prices(answer) else []
    sources = dict.fromkeys(
        str(row["price"]["source"]) for row in answer["candidates"] if row["price"] and row["price"]["source"]
    )
    rows += [("Prices are from", "; ".join(sources))] if sources else []
    yield Facts(rows)


def _load(load: Mapping[str, Any]) -> str:
    parts = []
    if load["requests_per_s"] is not None:
        parts.append(f"{digits(load['requests_per_s'])} requests/s")
    if load["users"] is not None:
        parts.append(f"{count(load['users'])} users")
    if load["output_tokens_per_s"] is not None:
        parts.append(f"{count(load['output_tokens_per_s'])} output tokens/s")
    lengths = [
        f"{count(round(load[key]))} {what} tokens"
        for key, what in (("prompt_tokens", "prompt"), ("output_tokens", "output"))
        if load[key] is not None
    ]
    return ", ".join([*parts, *([f"{' and '.join(lengths)} a request on average"] if lengths else [])])


def _choices(answer: Mapping[str, Any]) -> str:
    """Return every axis with the values that are anywhere among what was looked at."""
    found: dict[str, dict[str, None]] = {}
    for row in (*answer["candidates"], *answer["pruned"], *answer["left_out"]):
        for name, value in row["values"].items():
            found.setdefault(name, {})[str(value)] = None
    texts = []
    for name, values in found.items():
        some = list(values)
        more = f" and {len(some) - _NAMED} more" if len(some) > _NAMED else ""
        texts.append(f"{name}: {', '.join(some[:_NAMED])}{more}")
    return "; ".join(texts)
